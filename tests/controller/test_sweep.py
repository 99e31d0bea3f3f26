"""PersistentVolumes go one by one, each once, and never on old news."""

from __future__ import annotations

from typing import Any

from tests.controller.cluster_in_memory import ClusterInMemory, Manifest
from tests.controller.running import NAMESPACE, rest, running
from tests.controller.virtual_time import virtually
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


def test_a_volume_whose_deployment_vanished_while_nobody_looked_is_found() -> None:
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
