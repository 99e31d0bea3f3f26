"""outboundType `block`: AKS implements it by rules of security groups in the node group, which can be edited."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import missing, node_group_of, whole_or_unknown
from hermetic.audit.egress.nsg_matching import Ground
from hermetic.audit.egress.nsg_rules import holes
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import Judgement, cannot_say, does_not_apply, fails, passes, whatever_is_damaged
from hermetic.audit.hops import INTERNET, NODE, path_of
from hermetic.audit.policy import Policy


@check("nsg-block-type")
def nsg_block_type(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Every group of the node group must deny the internet before it allows it."""
    seen = estate.one(ManagedCluster, estate.cluster)
    if seen.value is None:
        yield cannot_say(estate.cluster, "ClusterNotSeen", "the cluster could not be read", seen)
        return
    profile = seen.value.network_profile
    said = (profile.outbound_type if profile is not None else None) or ""
    if said.lower() != "block":
        words = f"outboundType is {said or 'absent'}: no rules of AKS's are meant to block"
        yield does_not_apply(estate.cluster, "NotBlock", words, seen)
        return
    groups = estate.every(SecurityGroup, node_group_of(estate))
    for group in groups:
        yield from whatever_is_damaged(group.id, _judged(group))
    if groups.items:
        yield from whole_or_unknown(estate.cluster, "security groups of the node group", groups)
    elif groups.problem is not None:
        yield cannot_say(estate.cluster, "SecurityGroupsNotSeen", "the groups could not be read", groups)
    else:
        words = "outboundType is block, and the node group has no security group"
        yield fails(estate.cluster, "NoBlockRules", words, seen, groups, paths=(path_of(NODE, INTERNET),))


def _judged(group: SecurityGroup) -> Iterator[Judgement]:
    found = holes(group.rules, Ground())
    if found and not any(hole.is_sure for hole in found):
        look = missing(f"{group.id}: answered without the rules that every group ends in")
        yield cannot_say(group.id, "RulesNotSeen", "its rules were not seen whole", look, group)
    elif found:
        words = f"outboundType is block, and rule {found[0].rule.name} ({found[0].rule.priority}) lets packets out"
        path = path_of(NODE, f"rules of {group.name}", INTERNET)
        yield fails(group.id, "BlockRulesEdited", words, group, paths=(path,))
    else:
        yield passes(group.id, "Blocks", "it denies the internet before it allows it", group)
