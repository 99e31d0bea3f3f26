"""The places that an audit of a whole estate lists as evaluated, and estates whose facts are not enough to list any.

Agent pools and `nodeImageVersion`: managedClusters of Microsoft.ContainerService in Azure/azure-rest-api-specs. Default
subnet of provisioned nodes: learn.microsoft.com/azure/aks/node-auto-provisioning-networking.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.result.coverage import Coverage, coverage_of
from testbed.azure.baseline import LAYOUTS, estate_of, sealed_estate
from tests.azure_audits import evaluated


async def coverage(estate: Any) -> Coverage | None:
    return await evaluated(estate, "list", coverage_of)


def pools(estate: Any) -> list[dict[str, Any]]:
    agent_pools: list[dict[str, Any]] = estate.properties(estate.cluster)["agentPoolProfiles"]
    return agent_pools


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_coverage_of_a_sealed_estate_lists_every_pool_with_its_subnet_and_scale_set(layout: str) -> None:
    estate = estate_of(layout)
    covered = await coverage(estate)
    assert covered is not None
    assert [pool.name for pool in covered.pools] == sorted(pool["name"] for pool in pools(estate))
    for pool in covered.pools:
        assert pool.subnets
        assert [pool.name in scale_set for scale_set in pool.scale_sets] == [True]
        assert pool.node_image.startswith("AKSUbuntu-")
    listed = {subnet.id.lower() for subnet in covered.subnets}
    assert listed == {subnet.lower() for pool in covered.pools for subnet in pool.subnets}
    assert all(subnet.prefixes for subnet in covered.subnets)
    assert covered.provisioned == ()


async def test_coverage_of_a_pool_without_a_named_subnet_takes_those_of_its_scale_set() -> None:
    estate = sealed_estate()
    (named,) = (pool["vnetSubnetID"] for pool in pools(estate) if pool["name"] == "gpu")
    for pool in pools(estate):
        pool.pop("vnetSubnetID")
    covered = await coverage(estate)
    assert covered is not None
    (gpu,) = (pool for pool in covered.pools if pool.name == "gpu")
    assert [subnet.lower() for subnet in gpu.subnets] == [named.lower()]


async def test_coverage_of_node_auto_provisioning_lists_the_subnet_of_the_first_pool() -> None:
    estate = sealed_estate()
    estate.properties(estate.cluster)["nodeProvisioningProfile"] = {"mode": "Auto"}
    covered = await coverage(estate)
    assert covered is not None
    assert [subnet.lower() for subnet in covered.provisioned] == [pools(estate)[0]["vnetSubnetID"].lower()]


async def test_coverage_of_a_pool_without_an_image_or_scale_set_keeps_the_pool() -> None:
    estate = sealed_estate()
    pools(estate).append({**pools(estate)[1], "name": "stopped", "count": 0})
    pools(estate)[-1].pop("nodeImageVersion")
    covered = await coverage(estate)
    assert covered is not None
    (stopped,) = (pool for pool in covered.pools if pool.name == "stopped")
    assert (stopped.node_image, stopped.scale_sets) == ("", ())
    assert stopped.subnets


@pytest.mark.parametrize(
    "damage",
    [
        lambda estate: estate.properties(estate.cluster).update(agentPoolProfiles="system"),
        lambda estate: pools(estate)[0].update(vnetSubnetID=["a", "b"]),
        lambda estate: pools(estate)[0].update(name=7),
        lambda estate: estate.properties(estate.cluster).update(nodeProvisioningProfile="Auto"),
        lambda estate: estate.deny(estate.cluster),
    ],
    ids=["pools are text", "subnet is a list", "name is a number", "provisioning is text", "cluster may not be read"],
)
async def test_coverage_of_damaged_or_refused_facts_lists_nothing(damage: Any) -> None:
    estate = sealed_estate()
    damage(estate)
    assert await coverage(estate) is None


def test_coverage_of_an_estate_of_which_azure_was_not_asked_is_none() -> None:
    assert coverage_of(Estate("/cluster", ("kube",), {})) is None
