"""Addresses that the host itself answers: ordinary rules do not apply to them, only rules for their service tags."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.checks.nsg.combinations import each_surrounded, observations_of
from hermetic.audit.cluster.members import node_group_of
from hermetic.audit.estate.arm_ids import group_of, name_of, parent_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import missing, not_answered
from hermetic.audit.evaluation.each_resource import of_cluster, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, NODE, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.nsg_rules import RuleContext, denies_tag, holes
from hermetic.audit.rules.subnet_context import Layers, SubnetContext
from hermetic.audit.scope.dns import DefaultAction, names_by_default

DNS_TAG, DNS_PORT = "AzurePlatformDNS", 53
METADATA_TAG, METADATA_PORT = "AzurePlatformIMDS", 80


@check_each("nsg-platform-dns", each_surrounded)
def nsg_platform_dns(estate: Estate, policy: Policy, around: SubnetContext) -> Iterator[CheckResult]:
    """Rules deny Azure's resolver, or a DNS security policy blocks every name that it does not allow."""
    names = names_by_default(estate, policy, parent_of(around.id))
    if all(_denies(around, layers, DNS_TAG, DNS_PORT) for layers in around.combinations):
        message = f"rules deny {DNS_TAG} to every interface"
        yield passes(around.id, "PlatformDnsDenied", message, *observations_of(around, *around.read_combinations))
    elif names.verdict is DefaultAction.BLOCKED:
        yield passes(
            around.id, names.reason, f"{DNS_TAG} is not denied; {names.message}", around.subnet, *names.observations
        )
    elif names.verdict is DefaultAction.UNCLEAR:
        message = f"{DNS_TAG} is not denied, and {names.message}"
        yield unknown(around.id, names.reason, message, around.subnet, *names.observations)
    elif unseen := [observation for layers in around.combinations for observation in layers.unseen]:
        message = "a security group that may deny it could not be read"
        yield unknown(around.id, "SecurityGroupNotSeen", message, *unseen)
    else:
        yield fails(
            around.id,
            "PlatformDnsOpen",
            f"no rule denies {DNS_TAG}, and {names.message}: names can carry data out",
            *observations_of(around, *around.combinations),
            *names.observations,
            paths=(path_of(hops.subnet(name_of(around.id)), hops.dns("platform dns"), INTERNET),),
            fill=_group_named(around),
        )


@check_each("nsg-platform-imds", each_surrounded)
def nsg_platform_imds(_estate: Estate, _policy: Policy, around: SubnetContext) -> Iterator[CheckResult]:
    """Information only: the metadata service answers on the host, and nodes need it for their identity."""
    if all(_denies(around, layers, METADATA_TAG, METADATA_PORT) for layers in around.combinations):
        message = f"rules deny {METADATA_TAG} to every interface"
        yield passes(around.id, "MetadataDenied", message, *observations_of(around, *around.read_combinations))
    else:
        message = "it answers on the host itself, and the kubelet's identity needs it: nothing leaves the node by it"
        yield does_not_apply(around.id, "HostLocal", message, around.subnet)


def _denies(around: SubnetContext, layers: Layers, tag: str, port: int) -> bool:
    """Whether some group of a combination that was read denies the tag."""
    groups = [group.value for group in layers.groups if group.value is not None]
    return any(denies_tag(group.rules, tag, around.rule_context, port) for group in groups)


def _group_named(around: SubnetContext) -> dict[str, str]:
    """The security group of the subnet, or of the first interface that has one."""
    group = next((observation.target for layers in around.combinations for observation in layers.groups), "")
    return {"NSG_GROUP": name_of(group_of(group)), "NSG_NAME": name_of(group)} if group else {}


@check_each("nsg-block-type", of_cluster)
def nsg_block_type(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Every group of the node group must deny the internet before it allows it."""
    profile = cluster.network_profile
    outbound_type = (profile.outbound_type if profile is not None else None) or ""
    if outbound_type.lower() != "block":
        message = f"outboundType is {outbound_type or 'absent'}: no rules of AKS's are meant to block"
        yield does_not_apply(estate.cluster, "NotBlock", message, cluster)
        return
    groups = estate.every(SecurityGroup, node_group_of(estate))
    for group in groups:
        yield from whatever_is_damaged(group.id, _results(group))
    if groups.items:
        yield from whole_or_unknown(estate.cluster, "security groups of the node group", groups)
    elif groups.problem is not None:
        yield unknown(estate.cluster, "SecurityGroupsNotSeen", "the groups could not be read", groups)
    else:
        message = "outboundType is block, and the node group has no security group"
        yield fails(estate.cluster, "NoBlockRules", message, cluster, groups, paths=(path_of(NODE, INTERNET),))


def _results(group: SecurityGroup) -> Iterator[CheckResult]:
    group_holes = holes(group.rules, RuleContext())
    if group.security_rules is None:
        observation = not_answered(group.id, "list of rules")
        yield unknown(group.id, "RulesNotSeen", "its rules were not answered", observation, group)
    elif group_holes and not any(hole.is_sure for hole in group_holes):
        observation = missing(f"{group.id}: answered without the rules that every group ends in")
        yield unknown(group.id, "RulesNotSeen", "the audit could not see all of its rules", observation, group)
    elif group_holes:
        message = (
            f"outboundType is block, and rule {group_holes[0].rule.name} ({group_holes[0].rule.priority}) "
            "lets packets out"
        )
        path = path_of(NODE, f"rules of {group.name}", INTERNET)
        yield fails(group.id, "BlockRulesEdited", message, group, paths=(path,))
    else:
        yield passes(group.id, "Blocks", "it denies the internet before it allows it", group)
