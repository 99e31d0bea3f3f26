"""A peering into a network of another tenant, which the policy allows and no identity of ours can read.

Azure answers SubscriptionNotFound (404) for a subscription of another tenant, and AuthorizationFailed (403) for one of
ours without a role: learn.microsoft.com/azure/virtual-network/create-peering-different-subscriptions,
learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors. Such a peering leaves those
checks Unknown that need to know what is in the network, and no others.
"""

from __future__ import annotations

import pytest

from hermetic.audit.model.findings import Finding, Verdict
from testbed.azure.baseline import estate_of
from testbed.azure.baseline.layout import NETWORK
from testbed.azure.baseline.network import peering
from testbed.azure.estate import Estate
from tests.stand_in_answers import judged

SUBSCRIPTION = "/subscriptions/77777777-7777-4777-8777-777777777777"
PARTNER = f"{SUBSCRIPTION}/resourceGroups/rg-partner/{NETWORK}/virtualNetworks/vnet-partner"


def partnered(layout: str, *, answers: int) -> Estate:
    """An estate whose network is peered with the partner's, whose subscription is answered by this status."""
    estate = estate_of(layout)
    estate.add(f"{estate.site.vnet}/virtualNetworkPeerings/to-partner", peering(PARTNER, "10.90.0.0/16"))
    estate.policy["allowedPeerings"] = [*estate.policy.get("allowedPeerings", []), PARTNER]
    if answers == FORBIDDEN:
        estate.add(PARTNER, {"addressSpace": {"addressPrefixes": ["10.90.0.0/16"]}, "subnets": []})
        estate.deny(SUBSCRIPTION)
    return estate


FORBIDDEN, NOT_FOUND = 403, 404


def unknown_of(estate: Estate) -> dict[str, Finding]:
    """The Unknown findings that decide the verdict, by check; nothing may fail."""
    deciding = [finding for finding in judged(estate) if finding.severity.decides]
    assert [
        f"{finding.check} {finding.resource}: {finding.message}"
        for finding in deciding
        if finding.verdict is Verdict.FAIL
    ] == []
    return {finding.check: finding for finding in deciding if finding.verdict is Verdict.UNKNOWN}


# What is in the partner's network decides these: machines, services, firewalls, hubs, endpoints and zones there, load
# balancers that may hold nodes, and the deliveries of what is found there.
OF_BALANCERS = {
    "lb-basic-sku",
    "lb-gateway-chain",
    "lb-ip-based-pool",
    "lb-outbound-rule",
    "lb-public-frontend",
    "lb-rule-snat",
}
OF_DELIVERIES = {
    "alert-receivers", "diag-foreign-sink", "event-foreign-sink", "event-hub-capture", "storage-replication",
    "workspace-export",
}  # fmt: skip
RESTS_ON_THE_PEER = OF_BALANCERS | OF_DELIVERIES | {
    "dns-allowed-domains", "firewall-in-path", "pe-foreign-target", "pe-relay-target", "service-pivot", "vm-pivot",
    "vwan-connection",
}  # fmt: skip


@pytest.mark.parametrize("layout", ["sealed", "filtered"])
@pytest.mark.parametrize("answers", [NOT_FOUND, FORBIDDEN])
def test_peer_that_cannot_be_read_leaves_those_checks_unknown_that_rest_on_it(layout: str, answers: int) -> None:
    derived = {"aks-outbound-type"} if layout == "sealed" else set()
    assert set(unknown_of(partnered(layout, answers=answers))) == RESTS_ON_THE_PEER | derived
