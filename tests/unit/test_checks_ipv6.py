"""Table D: IPv6 in the cluster, in its subnets, and past a policy engine that does not know it."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.checks import ipv6
from hermetic.audit.model.findings import Verdict
from tests.audit_estates import CLUSTER, NODES, FakeAzure, small_cluster
from tests.routes_and_sentinels import verdict_and_severity


def with_profile(**properties: Any) -> FakeAzure:
    azure = small_cluster()
    azure.properties(CLUSTER)["networkProfile"].update(properties)
    return azure


def test_a_cluster_of_ipv4_passes() -> None:
    for check in ipv6.CHECKS:
        findings = small_cluster().findings(check.page.id)
        assert {finding.verdict for finding in findings.values()} == {Verdict.PASS}, check.page.id


@pytest.mark.parametrize("check", [check.page.id for check in ipv6.CHECKS])
def test_a_cluster_that_cannot_be_read_passes_nothing(check: str) -> None:
    findings = small_cluster().refuse(CLUSTER).findings(check)
    assert {finding.verdict for finding in findings.values()} == {Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("families", "verdict"),
    [
        (["IPv4"], "Pass"),
        (["ipv4"], "Pass"),
        (["IPv4", "IPv6"], "Fail"),
        (["IPv6"], "Fail"),
        (["IPv4", "IPv8"], "Unknown"),
        ([], "Unknown"),
        (None, "Unknown"),
        ("IPv4", "Unknown"),
    ],
)
def test_the_families_decide(families: Any, verdict: str) -> None:
    assert verdict_and_severity(with_profile(ipFamilies=families).findings("cluster-dual-stack"), CLUSTER) == (
        verdict,
        "high",
    )


@pytest.mark.parametrize(
    ("prefixes", "verdict"),
    [
        ({"addressPrefix": "10.0.1.0/24"}, "Pass"),
        ({"addressPrefixes": ["10.0.1.0/24", "10.0.9.0/24"]}, "Pass"),
        ({"addressPrefixes": ["10.0.1.0/24", "fd00:1::/64"]}, "Fail"),
        ({"addressPrefix": "2001:db8::/64"}, "Fail"),
        ({"addressPrefix": "10.0.1.0/24", "addressPrefixes": ["fd00:1::/64"]}, "Fail"),
        ({}, "Unknown"),
        ({"addressPrefix": "somewhere"}, "Unknown"),
    ],
)
def test_every_prefix_of_a_subnet_counts(prefixes: dict[str, Any], verdict: str) -> None:
    azure = small_cluster().drop(NODES, "addressPrefix").change(NODES, **prefixes)
    assert verdict_and_severity(azure.findings("subnet-ipv6-prefix"), NODES) == (verdict, "high")


@pytest.mark.parametrize(
    ("engine", "families", "subnet", "verdict"),
    [
        ("azure", ["IPv4"], "10.0.1.0/24", "Pass"),
        ("azure", ["IPv4", "IPv6"], "10.0.1.0/24", "Fail"),
        ("azure", ["IPv4"], "fd00:1::/64", "Fail"),
        ("Azure", ["IPv4", "IPv6"], "10.0.1.0/24", "Fail"),
        ("azure", None, "10.0.1.0/24", "Unknown"),
        ("cilium", ["IPv4", "IPv6"], "fd00:1::/64", "Pass"),
        ("calico", ["IPv4", "IPv6"], "10.0.1.0/24", "Pass"),
        ("none", ["IPv4", "IPv6"], "10.0.1.0/24", "NotApplicable"),
        (None, ["IPv4", "IPv6"], "10.0.1.0/24", "NotApplicable"),
        ("engineoftomorrow", ["IPv4"], "10.0.1.0/24", "Unknown"),
    ],
)
def test_the_engine_must_know_what_is_used(engine: str | None, families: Any, subnet: str, verdict: str) -> None:
    azure = with_profile(networkPolicy=engine, ipFamilies=families).change(NODES, addressPrefix=subnet)
    assert verdict_and_severity(azure.findings("nsg-v6"), CLUSTER) == (verdict, "high")


def test_a_subnet_that_was_not_seen_may_use_ipv6() -> None:
    assert (
        verdict_and_severity(with_profile(networkPolicy="azure").refuse(NODES).findings("nsg-v6"), CLUSTER)[0]
        == "Unknown"
    )
