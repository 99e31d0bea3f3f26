"""The order of writes: a child is written after those that it needs."""

from __future__ import annotations

from tests.controller.running import NAMESPACE, rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.virtual_loop import virtually
from tests.scenarios import a_share_model, reporting


def test_a_volume_stands_before_its_claim_is_asked_for_and_everything_before_the_workload() -> None:
    """Kubernetes binds a claim that came before its volume only fifteen seconds later."""

    async def scenario() -> None:
        begun: dict[str, int] = {}
        ended: dict[str, int] = {}

        async def begins(_verb: str, at: Coordinates) -> None:
            begun.setdefault(at[0], len(begun) + len(ended))

        async def ends(_verb: str, at: Coordinates) -> None:
            ended.setdefault(at[0], len(begun) + len(ended))

        cluster = ClusterInMemory(fault=begins, done=ends)
        model = reporting(a_share_model())
        model["metadata"]["namespace"] = NAMESPACE
        async with running(cluster):
            begun.clear()
            cluster.put(model)
            await rest()

        assert ended["PersistentVolume"] < begun["PersistentVolumeClaim"]
        for kind in ("ServiceAccount", "NetworkPolicy", "PersistentVolumeClaim", "Service"):
            assert ended[kind] < begun["Deployment"]

    virtually(scenario)
