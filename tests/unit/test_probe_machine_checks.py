"""What the probe read on the machine itself: its routes, and what the metadata service told it."""

from __future__ import annotations

import pytest

from hermetic.audit.findings import Verdict
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


def told(**documents: object) -> list:
    metadata = sealed(host_network=True)["metadata"]
    return both(None, changed(host_network=True, metadata={**metadata, **documents}))


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
    found = finding(check, told(**documents))

    assert (found.verdict, found.severity) == (verdict, severity)
