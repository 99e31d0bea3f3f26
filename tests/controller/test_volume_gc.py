"""PersistentVolumes go one by one, each once, and never on old news."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.errors import Conflict, Forbidden, HermeticError, ServerError
from hermetic.kinds import PERSISTENT_VOLUME_CLAIM
from hermetic.kube.watch_specs import STORE_WATCHES
from tests.controller.running import NAMESPACE, rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually
from tests.scenarios import a_share_model, reporting


def a_share() -> Manifest:
    manifest = reporting(a_share_model())
    manifest["metadata"]["namespace"] = NAMESPACE
    return manifest


def in_phase(phase: str) -> Any:
    """What the volume controller says of a volume."""

    def change(volume: Manifest) -> None:
        volume["status"] = {"phase": phase}
        volume["spec"]["claimRef"]["uid"] = "uid-of-the-claim"

    return change


def the_volume(cluster: ClusterInMemory) -> tuple[str, str, str]:
    (volume,) = cluster.of_kind("PersistentVolume")
    return ("PersistentVolume", "", volume["metadata"]["name"])


def die(cluster: ClusterInMemory) -> None:
    """The ModelDeployment is deleted, and the garbage collector takes its claim."""
    cluster.remove("ModelDeployment", NAMESPACE, "llama")
    (claim,) = cluster.of_kind("PersistentVolumeClaim")
    cluster.remove("PersistentVolumeClaim", NAMESPACE, claim["metadata"]["name"])


def deletes(cluster: ClusterInMemory) -> int:
    return sum(verb == "delete" for verb, _ in cluster.writes)


def test_a_volume_goes_after_its_release_and_not_before() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_share())
            await rest()
            volume = the_volume(cluster)
            cluster.edit(volume, in_phase("Bound"))
            die(cluster)
            await rest()
            assert deletes(cluster) == 0, "a delete now would meet a newer version"
            cluster.edit(volume, in_phase("Released"))
            await rest()
            assert cluster.of_kind("PersistentVolume") == []
            assert deletes(cluster) == 1

    virtually(scenario)


def test_a_volume_that_lingers_is_told_to_go_once() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_share())
            await rest()
            volume = the_volume(cluster)
            cluster.edit(volume, in_phase("Released"), seen=False)

            def blind_to_volumes(manifest: Manifest, *, gone: bool) -> None:
                if manifest["kind"] != "PersistentVolume" or not gone:
                    operator.see(manifest, gone=gone)

            released = dict(cluster.objects[volume])
            operator.see(released, gone=False)
            cluster.see = blind_to_volumes
            die(cluster)
            await rest()
            for _ in range(5):
                operator.see(released, gone=False)
                await rest()
            assert deletes(cluster) == 1

    virtually(scenario)


def test_a_volume_whose_deployment_vanished_while_no_operator_ran_is_found() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_share())
            await rest()
        cluster.see = ClusterInMemory().see
        cluster.edit(the_volume(cluster), in_phase("Released"))
        die(cluster)
        async with running(cluster):
            await rest()
            assert cluster.of_kind("PersistentVolume") == []

    virtually(scenario)


def released_volumes(cluster: ClusterInMemory, *names: str) -> list[Coordinates]:
    """A released volume of a deployment that is gone, for each name."""
    for name in names:
        cluster.put({**a_share(), "metadata": {"namespace": NAMESPACE, "name": name}})
    return [("PersistentVolume", "", volume["metadata"]["name"]) for volume in cluster.of_kind("PersistentVolume")]


def all_die(cluster: ClusterInMemory, *names: str) -> None:
    for name in names:
        cluster.remove("ModelDeployment", NAMESPACE, name)
    for claim in cluster.of_kind("PersistentVolumeClaim"):
        cluster.remove("PersistentVolumeClaim", NAMESPACE, claim["metadata"]["name"])
    for volume in cluster.of_kind("PersistentVolume"):
        cluster.edit(("PersistentVolume", "", volume["metadata"]["name"]), in_phase("Released"))


@pytest.mark.parametrize(
    "refused",
    [
        Forbidden("admission webhook denied the request", status=403, reason="Forbidden"),
        Conflict("the object has been modified", status=409, reason="Conflict"),
        ServerError("a webhook answered 500", status=500),
    ],
    ids=["forbidden", "conflict", "500"],
)
@pytest.mark.parametrize("place", range(3))
def test_a_volume_that_may_not_be_removed_keeps_no_other_and_is_tried_again(refused: HermeticError, place: int) -> None:
    async def scenario() -> None:
        names, cluster = ("a-model", "b-model", "c-model"), ClusterInMemory()
        stubborn: list[str] = []

        async def refusing(verb: str, at: Coordinates) -> None:
            if verb == "delete" and at[2] in stubborn:
                raise refused

        async with running(cluster):
            released_volumes(cluster, *names)
            await rest()
            stubborn.append(cluster.of_kind("PersistentVolume")[place]["metadata"]["name"])
            cluster.fault = refusing
            all_die(cluster, *names)
            await rest(5)
            assert [volume["metadata"]["name"] for volume in cluster.of_kind("PersistentVolume")] == stubborn
            stubborn.clear()
            await rest(60)
            assert cluster.of_kind("PersistentVolume") == []

    virtually(scenario)


def test_a_volume_whose_claim_vanished_from_a_list_goes_as_if_an_event_had_said_so() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_share())
            await rest()
            cluster.edit(the_volume(cluster), in_phase("Released"))
            await rest(5)
            (claim,) = cluster.of_kind("PersistentVolumeClaim")
            cluster.remove("ModelDeployment", NAMESPACE, "llama")
            await rest(5)
            assert len(cluster.of_kind("PersistentVolume")) == 1, "the claim is still there"
            cluster.remove("PersistentVolumeClaim", NAMESPACE, claim["metadata"]["name"], seen=False)
            await operator.relist(
                next(store_watch for store_watch in STORE_WATCHES if store_watch.kind is PERSISTENT_VOLUME_CLAIM)
            )
            await rest(5)
            assert cluster.of_kind("PersistentVolume") == []

    virtually(scenario)
