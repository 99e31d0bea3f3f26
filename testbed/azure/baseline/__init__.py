"""Sealed estates as a platform team would really have them: nothing leads out, and every check has to agree.

sealed_estate()            the plainest: network isolated, private, one GPU pool, Azure DNS behind a policy
estate_of("peered")        another layout of LAYOUTS; all are sealed, `filtered` behind its declared firewall
"""

from __future__ import annotations

from testbed.azure.baseline.cluster import add_cluster
from testbed.azure.baseline.disks import add_disks
from testbed.azure.baseline.firewall import add_firewall
from testbed.azure.baseline.layout import LAYOUTS, Layout, site_of
from testbed.azure.baseline.network import add_hub, add_network
from testbed.azure.baseline.services import add_identities, add_services
from testbed.azure.estate import Estate
from testbed.azure.references import refer_back

# earlier than the machines of the layouts were created
PRIVATE_SINCE = "2026-06-01T08:00:00Z"

__all__ = ["LAYOUTS", "built", "estate_of", "filtered_estate", "private_since", "sealed_estate"]


def sealed_estate() -> Estate:
    return estate_of("sealed")


def filtered_estate() -> Estate:
    return estate_of("filtered")


def estate_of(name: str) -> Estate:
    """A new estate of a named layout, with the policy and profile it is meant to be audited with."""
    return built(LAYOUTS[name])


def built(layout: Layout) -> Estate:
    """A new estate of any layout."""
    estate = Estate(site_of(layout))
    add_network(estate, layout)
    add_identities(estate)
    add_services(estate, layout)
    add_cluster(estate, layout)
    add_disks(estate)
    if layout.has_hub:
        add_hub(estate)
    if layout.firewall:
        add_firewall(estate)
    estate.policy["subnetsPrivateSince"] = private_since(estate.site.system_subnet, *layout.gpu_subnets)
    return refer_back(estate)


def private_since(*subnets: str) -> list[dict[str, str]]:
    """What a policy file states of subnets: private since before any machine of a layout was created."""
    named = {subnet.lower(): subnet for subnet in subnets}
    owner = "platform-team@contoso.example"
    return [{"subnet": subnet, "since": PRIVATE_SINCE, "statedBy": owner} for subnet in named.values()]
