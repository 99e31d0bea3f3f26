"""The operator around a model that does not fit: nothing is created, and what is corrected starts."""

from __future__ import annotations

from hermetic.sizing.facts_file import as_json
from tests.controller.running import a_model, reason, rest, running, where, written
from tests.fakes.cluster_in_memory import ClusterInMemory, Manifest
from tests.fakes.virtual_loop import virtually
from tests.model_configs import LLAMA_8B, LLAMA_8B_BYTES, LLAMA_70B, LLAMA_70B_BYTES, facts

A100 = "Standard_NC24ads_A100_v4"
L8, L70 = facts(LLAMA_8B, LLAMA_8B_BYTES), facts(LLAMA_70B, LLAMA_70B_BYTES)


def a_sized_model(model, **accelerator) -> Manifest:
    manifest = a_model()
    manifest["spec"]["weights"]["facts"] = as_json(model)
    manifest["spec"]["accelerator"] = {"count": 1, "instanceTypes": [A100], **accelerator}
    return manifest


def test_nothing_is_created_of_a_model_that_does_not_fit_and_more_gpus_start_it() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            manifest = a_sized_model(L70)
            cluster.put(manifest)
            await rest(5)
            assert reason(cluster) == "InsufficientGpuMemory"
            assert where("Deployment") not in cluster.objects
            before = written(cluster)
            await rest(3600)
            assert written(cluster) == before, "a refusal at rest writes nothing"

            four = {"count": 4, "instanceTypes": ["Standard_NC96ads_A100_v4"]}
            cluster.edit(where("ModelDeployment"), lambda manifest: manifest["spec"].update(accelerator=four))
            await rest(5)
            assert reason(cluster) == "Starting"
            assert where("Deployment") in cluster.objects

    virtually(scenario)


def test_facts_that_do_not_fit_change_nothing_of_what_runs() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_sized_model(L8))
            await rest(5)
            assert reason(cluster) == "Starting"
            template = cluster.objects[where("Deployment")]["spec"]["template"]
            too_large = as_json(L70)
            cluster.edit(where("ModelDeployment"), lambda manifest: manifest["spec"]["weights"].update(facts=too_large))
            await rest(5)
            assert reason(cluster) == "InsufficientGpuMemory"
            assert cluster.objects[where("Deployment")]["spec"]["template"] == template

    virtually(scenario)
