"""DNS policies and rulesets linked to a network in a locked node resource group, where its own list is refused.

Policies and rulesets lie outside that group and list the networks that they are linked to. Such a list proves that a
link exists, never that none does: the owner may be in a subscription that the audit does not read.

A network has at most one DNS security policy (learn.microsoft.com/azure/dns/dns-security-policy, "Location": 1:N), so
one link that is seen decides. No such limit is documented for rulesets: an egress path by one is a Fail of that
ruleset, and the network itself stays Unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.azure.dns import (
    DnsPolicy,
    DnsPolicyLink,
    LinkedDnsPolicies,
    LinkedRulesets,
    LinkToNetwork,
    Ruleset,
    RulesetLink,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, is_locked
from hermetic.audit.estate.resource import Resource
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.reachable_networks import throughout

Owner = tuple[str, LinkToNetwork]
"""The id of a policy or ruleset, and its link to the network."""


def policies_behind_the_lock(estate: Estate, policy: Policy, network: str) -> tuple[Owner, ...]:
    """DNS security policies linked to the network; empty unless the network's own list was refused by a lock."""
    if not is_locked(estate.asked(LinkedDnsPolicies, network)):
        return ()
    return tuple(_linking(estate, policy, network, DnsPolicy, DnsPolicyLink))


def rulesets_behind_the_lock(estate: Estate, policy: Policy, network: str) -> tuple[Owner, ...]:
    """Forwarding rulesets linked to the network; empty unless the network's own list was refused by a lock."""
    if not is_locked(estate.asked(LinkedRulesets, network)):
        return ()
    return tuple(_linking(estate, policy, network, Ruleset, RulesetLink))


def _linking(
    estate: Estate, policy: Policy, network: str, owners: type[Resource], links: type[LinkToNetwork]
) -> Iterator[Owner]:
    for owner in throughout(estate, policy, owners):
        damaged: list[Observation] = []  # without a readable link the network stays Unknown, as it is anyway
        for link, linked in readable(estate.every(links, owner.id), lambda link: link.virtual_network, damaged):
            if linked is not None and same_id(linked.id, network):
                yield owner.id, link
