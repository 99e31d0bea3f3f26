"""What the probe read on the machine itself: its routes, and what the metadata service answered."""

from __future__ import annotations

import pytest

from hermetic.audit.model.findings import Verdict
from tests.probe_runs import both, changed, finding, sealed


@pytest.mark.parametrize(
    ("routes", "addresses", "of_routes", "of_both"),
    [
        ([], [], Verdict.PASS, Verdict.PASS),
        ([], ["2001:db8::9"], Verdict.PASS, Verdict.PASS),
        (["fe80::1 eth0"], ["2001:db8::9"], Verdict.FAIL, Verdict.FAIL),
        (["fe80::1 eth0"], [], Verdict.FAIL, Verdict.UNKNOWN),
        (None, [], Verdict.UNKNOWN, Verdict.UNKNOWN),
        ([], None, Verdict.PASS, Verdict.UNKNOWN),
    ],
)
def test_ipv6_default_routes(routes, addresses, of_routes, of_both):
    bodies = both(None, changed(host_network=True, v6=routes, v6Addresses=addresses))

    assert finding("node-routes", bodies).verdict is of_routes
    assert finding("node-v6-default-route", bodies).verdict is of_both


def both_with_metadata(**documents: object) -> list:
    metadata = sealed(host_network=True)["metadata"]
    return both(None, changed(host_network=True, metadata={**metadata, **documents}))


def lb(*addresses: str, more: int | None = 0) -> dict:
    """The document with these frontends; without `more`, as an older probe reports it."""
    fields = {"public": list(addresses), "outboundRules": 0, **({} if more is None else {"more": more})}
    return {"loadbalancer": [200, fields]}


@pytest.mark.parametrize(
    ("check", "documents", "verdict", "severity"),
    [
        (
            "imds-lb",
            {"loadbalancer": [200, {"public": ["198.51.100.7"], "outboundRules": 0}]},
            Verdict.FAIL,
            "critical",
        ),
        ("imds-lb", {"loadbalancer": [200, {"public": [], "outboundRules": 2}]}, Verdict.FAIL, "critical"),
        # behind an internal load balancer: private and empty frontends, howto-load-balancer-imds.md of azure-docs
        ("imds-lb", lb(""), Verdict.PASS, "critical"),
        ("imds-lb", lb("10.40.12.10", "172.16.0.9", "192.168.1.1", "100.64.0.7", more=3), Verdict.PASS, "critical"),
        ("imds-lb", lb("fd00::7", "fe80::1", "169.254.1.1"), Verdict.PASS, "critical"),
        ("imds-lb", lb("10.40.12.10", "51.0.0.1"), Verdict.FAIL, "critical"),
        ("imds-lb", lb("", "2603:10e1:100:2::1:1"), Verdict.FAIL, "critical"),
        ("imds-lb", lb("::ffff:51.0.0.1"), Verdict.FAIL, "critical"),
        ("imds-lb", lb("172.32.0.1"), Verdict.FAIL, "critical"),
        ("imds-lb", lb("10.40.12"), Verdict.UNKNOWN, "critical"),
        ("imds-lb", lb("10.40.12.10", "unknown"), Verdict.UNKNOWN, "critical"),
        ("imds-lb", lb("10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", more=None), Verdict.UNKNOWN, "critical"),
        ("imds-lb", {"loadbalancer": [200, {"public": 7, "more": 0, "outboundRules": 0}]}, Verdict.UNKNOWN, "critical"),
        ("imds-lb", {"loadbalancer": [200, {"public": None, "outboundRules": 0}]}, Verdict.UNKNOWN, "critical"),
        ("imds-lb", {"loadbalancer": [404, None]}, Verdict.UNKNOWN, "medium"),
        ("imds-lb", {"loadbalancer": [200, None]}, Verdict.UNKNOWN, "critical"),
        ("imds-lb", {"loadbalancer": [500, None]}, Verdict.UNKNOWN, "critical"),
        ("imds-lb", {"loadbalancer": []}, Verdict.UNKNOWN, "critical"),
        ("imds-nic-pip", {"network": [200, ["198.51.100.7"]]}, Verdict.FAIL, "critical"),
        ("imds-nic-pip", {"network": [200, None]}, Verdict.UNKNOWN, "critical"),
        ("imds-nic-pip", {"network": []}, Verdict.UNKNOWN, "critical"),
        ("imds-identity", {"compute": [200, {"subscriptionId": "another"}]}, Verdict.FAIL, "high"),
        ("imds-identity", {"compute": [200, {}]}, Verdict.UNKNOWN, "high"),
        ("imds-identity", {"compute": []}, Verdict.UNKNOWN, "high"),
    ],
)
def test_what_the_host_says_of_the_machine(check, documents, verdict, severity):
    machine_finding = finding(check, both_with_metadata(**documents))

    assert (machine_finding.verdict, machine_finding.severity) == (verdict, severity)
