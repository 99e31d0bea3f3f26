"""What `kubectl apply` says at once of a model that the operator would refuse: warnings, and never more than that.

Each warning is held against the gates: a model that is warned of is refused, and a model that
the gates accept is not warned of.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.modeldeployment import ModelDeployment
from hermetic.cli.allowed import allowed
from hermetic.objects.names import Owner
from hermetic.plan.allowed_sources import registry_is_allowed, share_is_allowed
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gates import engine_flags_are_known, memory_holds_shared_memory
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.vm_sizes import vm_size_offers_the_pod
from testbed.api import Api
from testbed.kubectl import Kubectl
from testbed.processes import wait_until
from tests.corpus.verdicts import COLLECTION, STRICT_DRY_RUN, Answer, Judge
from tests.renderings import RENDERINGS
from tests.scenarios import DIGEST, Manifest, a_baked_model, a_share_model, an_image_volume_model, changed

GATES = (
    registry_is_allowed,
    share_is_allowed,
    engine_flags_are_known,
    memory_holds_shared_memory,
    vm_size_offers_the_pod,
)
OURS = ("hermetic-model-warnings", "hermetic-model-sources")
POLICY = Configuration.model_validate(
    {
        "registries": [{"host": "contoso.azurecr.io", "namespaces": ["default"]}],
        "shares": [
            {"account": "contosomodels", "share": "models", "namespaces": ["default"]},
            {"account": "contosomodels", "share": "team", "folders": ["a", "b"], "namespaces": ["default"]},
            {"server": "10.0.0.4", "path": "/export/models", "namespaces": ["*"]},
            {"account": "fabrikam", "share": "models", "namespaces": ["elsewhere"]},
        ],
    }
)


def vllm(**fields: Any) -> Manifest:
    return changed(a_share_model(), engine={"vllm": {**a_share_model()["spec"]["engine"]["vllm"], **fields}})


def sglang(**fields: Any) -> Manifest:
    image = f"contoso.azurecr.io/lmsysorg/sglang@sha256:{DIGEST}"
    return changed(a_share_model(), engine={"sglang": {"image": image, "version": "0.5.23", **fields}})


def image(name: str) -> Manifest:
    return vllm(image=f"{name}@sha256:{DIGEST}")


def weights(**source: Any) -> Manifest:
    manifest = a_share_model()
    return {**manifest, "spec": {**manifest["spec"], "weights": source}}


def sized(count: int, *names: str) -> Manifest:
    accelerator = {"count": count, "instanceTypes": list(names)}
    return changed(a_share_model(), accelerator=accelerator, engine=vllm(tensorParallelSize=count)["spec"]["engine"])


# Each name, the manifest, and what the warning says.
MISTAKES: dict[str, tuple[Manifest, str]] = {
    "version of vLLM": (vllm(version="0.11.0"), "spec.engine.vllm.version: 0.11.0 is not supported"),
    "version that begins alike": (vllm(version="0.330.0"), "0.330.0 is not supported"),
    "version of SGLang": (sglang(version="0.4.9"), "spec.engine.sglang.version: 0.4.9 is not supported"),
    "unknown flag": (vllm(extraArgs=["--max-num-sekwences=4"]), "knows --max-num-sekwences"),
    "unknown flag of SGLang": (sglang(extraArgs=["--max-running-reqs", "4"]), "knows --max-running-reqs"),
    "underscores of SGLang": (sglang(extraArgs=["--max_running_requests", "4"]), "knows --max_running_requests"),
    "flag and value in one item": (vllm(extraArgs=["--max-num-seqs 64"]), "as two items of the list"),
    "second of two flags": (vllm(extraArgs=["--enforce-eager", "--enforce-eagerly"]), "knows --enforce-eagerly"),
    "memory in bytes": (changed(a_share_model(), resources={"memory": "48"}), "48 must exceed /dev/shm (2Gi)"),
    "memory below shared memory": (
        changed(a_share_model(), resources={"memory": "16Gi", "sharedMemory": "16Gi"}), "16Gi must exceed"),
    "more GPUs than a VM has": (sized(2, "Standard_NC24ads_A100_v4"), "Standard_NC24ads_A100_v4 has 1"),
    "typo of a registry": (image("contosso.azurecr.io/vllm"), "is of no registry that namespace default may use"),
    "public registry": (image("docker.io/vllm/vllm-openai"), "is of no registry"),
    "image without a registry": (image("vllm/vllm-openai"), "is of no registry"),
    "registry of an image volume": (
        changed(an_image_volume_model(), weights={"imageVolume": {"reference": f"ghcr.io/m@sha256:{DIGEST}"}}),
        "is of no registry"),
    "typo of an account": (
        weights(azureFiles={"account": "contosomodel", "share": "models"}), "the share azure contosomodel/models"),
    "share of another namespace": (
        weights(azureFiles={"account": "fabrikam", "share": "models"}), "the share azure fabrikam/models"),
    "typo of an NFS path": (weights(nfs={"server": "10.0.0.4", "path": "/export/model"}), "10.0.0.4:/export/model"),
}  # fmt: skip

LAWFUL: dict[str, Manifest] = {
    **RENDERINGS,
    "patch release": vllm(version="0.32.9"),
    "abbreviation": vllm(extraArgs=["--max-num-seq=4"]),
    "underscores of vLLM": vllm(extraArgs=["--max_num_seqs", "4"]),
    "key of a flag": vllm(extraArgs=["--attention-config.backend", "FLASH_ATTN"]),
    "negation": vllm(extraArgs=["--no-enable-prefix-caching"]),
    "short flag and negative value": vllm(extraArgs=["--seed", "-1"]),
    "memory": changed(a_share_model(), resources={"memory": "48Gi"}),
    "size that is not in the catalogue": sized(2, "Standard_Future_v9"),
    "one size of two is large enough": sized(2, "Standard_NC24ads_A100_v4", "Standard_NC48ads_A100_v4"),
    "folder of a share": weights(azureFiles={"account": "contosomodels", "share": "team", "folder": "a"}),
    "NFS": weights(nfs={"server": "10.0.0.4", "path": "/export/models"}),
    "baked": a_baked_model(),
}


@pytest.fixture(scope="module")
def judge(installed: None, cluster: Path, api: Api, kubectl: Kubectl) -> Iterator[Judge]:  # noqa: ARG001
    """An API server with the policies in force and the allow lists of POLICY."""
    lists = allowed(POLICY)
    kubectl.apply(lists)
    with Judge(cluster) as server:
        mistaken = vllm(version="0.11.0", image=f"docker.io/vllm@sha256:{DIGEST}")
        wait_until("both policies", lambda: all(name in _ours(create(server, mistaken)) for name in OURS), (), 120)
        yield server
    api.delete(f"/api/v1/namespaces/{lists['metadata']['namespace']}/configmaps/{lists['metadata']['name']}")


def create(judge: Judge, manifest: Manifest) -> Answer:
    named = {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}
    return judge.ask("POST", COLLECTION + STRICT_DRY_RUN, named)


def _ours(answer: Answer) -> str:
    return "\n".join(line for line in answer.warnings if any(name in line for name in OURS))


def is_refused(manifest: Manifest) -> bool:
    spec = ModelDeployment.model_validate(manifest).spec
    snapshot = ClusterSnapshot(owner=Owner("default", "llama", "u-1"), generation=0, policy=POLICY)
    return any(isinstance(gate(spec, snapshot), Blocks) for gate in GATES)


@pytest.mark.parametrize(("manifest", "text"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_the_operator_would_refuse_is_warned_of_and_accepted(judge: Judge, manifest: Manifest, text: str) -> None:
    answer = create(judge, manifest)
    assert answer.accepted, answer.message
    assert text in _ours(answer)
    assert is_refused(manifest)


@pytest.mark.parametrize("manifest", LAWFUL.values(), ids=LAWFUL.keys())
def test_what_the_gates_accept_is_not_warned_of(judge: Judge, manifest: Manifest) -> None:
    answer = create(judge, manifest)
    assert answer.accepted, answer.message
    if not is_refused(manifest):
        assert _ours(answer) == ""


def test_every_lawful_shape_of_this_file_is_accepted_by_the_gates() -> None:
    assert [name for name in LAWFUL.keys() - RENDERINGS.keys() if is_refused(LAWFUL[name])] == []


def test_a_change_of_metadata_alone_is_not_warned_of(judge: Judge, namespace: str) -> None:
    collection = f"/apis/hermetic.dev/v1alpha1/namespaces/{namespace}/modeldeployments"
    created = judge.ask("POST", collection, image("docker.io/vllm"))
    assert "hermetic-model-sources" in _ours(created)
    labelled = judge.ask(
        "PATCH",
        f"{collection}/{created.body['metadata']['name']}",
        {"metadata": {"labels": {"team": "a"}}},
        content="application/merge-patch+json",
    )
    assert labelled.accepted
    assert _ours(labelled) == ""
