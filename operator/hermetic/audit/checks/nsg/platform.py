"""Addresses that the host itself answers: ordinary rules do not apply to them, only rules for their service tags."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.checks.nsg.combinations import each_surrounded, observations_of
from hermetic.audit.cluster_scope import missing, node_group_of, of_cluster, whole_or_unknown
from hermetic.audit.egress.dns import ByDefault, names_by_default
from hermetic.audit.egress.nsg_rules import Ground, denies_tag, holes
from hermetic.audit.egress.subnet_context import Layers, SubnetContext
from hermetic.audit.estate.arm_ids import group_of, name_of, parent_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.hops import INTERNET, NODE, path_of
from hermetic.audit.policy import Policy

DNS_TAG, DNS_PORT = "AzurePlatformDNS", 53
METADATA_TAG, METADATA_PORT = "AzurePlatformIMDS", 80


@check_each("nsg-platform-dns", each_surrounded)
def nsg_platform_dns(estate: Estate, policy: Policy, around: SubnetContext) -> Iterator[CheckResult]:
    """Rules deny Azure's resolver, or a DNS security policy blocks every name that it does not allow."""
    names = names_by_default(estate, policy, parent_of(around.id))
    if all(_denies(around, layers, DNS_TAG, DNS_PORT) for layers in around.combinations):
        words = f"rules deny {DNS_TAG} to every interface"
        yield passes(around.id, "PlatformDnsDenied", words, *observations_of(around, *around.read_combinations))
    elif names.verdict is ByDefault.BLOCKED:
        yield passes(
            around.id, names.reason, f"{DNS_TAG} is not denied; {names.words}", around.subnet, *names.observations
        )
    elif names.verdict is ByDefault.UNCLEAR:
        words = f"{DNS_TAG} is not denied, and {names.words}"
        yield unknown(around.id, names.reason, words, around.subnet, *names.observations)
    elif unseen := [one for layers in around.combinations for one in layers.unseen]:
        words = "a security group that may deny it could not be read"
        yield unknown(around.id, "SecurityGroupNotSeen", words, *unseen)
    else:
        yield fails(
            around.id,
            "PlatformDnsOpen",
            f"no rule denies {DNS_TAG}, and {names.words}: names can carry data out",
            *observations_of(around, *around.combinations),
            *names.observations,
            paths=(path_of(hops.subnet(name_of(around.id)), hops.dns("platform dns"), INTERNET),),
            fill=_group_named(around),
        )


@check_each("nsg-platform-imds", each_surrounded)
def nsg_platform_imds(_estate: Estate, _policy: Policy, around: SubnetContext) -> Iterator[CheckResult]:
    """Information only: the metadata service answers on the host, and nodes need it for their identity."""
    if all(_denies(around, layers, METADATA_TAG, METADATA_PORT) for layers in around.combinations):
        words = f"rules deny {METADATA_TAG} to every interface"
        yield passes(around.id, "MetadataDenied", words, *observations_of(around, *around.read_combinations))
    else:
        words = "it answers on the host itself, and the kubelet's identity needs it: nothing leaves the node by it"
        yield does_not_apply(around.id, "HostLocal", words, around.subnet)


def _denies(around: SubnetContext, layers: Layers, tag: str, port: int) -> bool:
    """Whether some group of a combination that was read denies the tag."""
    seen = [one.value for one in layers.groups if one.value is not None]
    return any(denies_tag(group.rules, tag, around.ground, port) for group in seen)


def _group_named(around: SubnetContext) -> dict[str, str]:
    """The security group of the subnet, or of the first interface that has one."""
    group = next((one.target for layers in around.combinations for one in layers.groups), "")
    return {"NSG_GROUP": name_of(group_of(group)), "NSG_NAME": name_of(group)} if group else {}


@check_each("nsg-block-type", of_cluster)
def nsg_block_type(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Every group of the node group must deny the internet before it allows it."""
    profile = cluster.network_profile
    outbound_type = (profile.outbound_type if profile is not None else None) or ""
    if outbound_type.lower() != "block":
        words = f"outboundType is {outbound_type or 'absent'}: no rules of AKS's are meant to block"
        yield does_not_apply(estate.cluster, "NotBlock", words, cluster)
        return
    groups = estate.every(SecurityGroup, node_group_of(estate))
    for group in groups:
        yield from whatever_is_damaged(group.id, _results(group))
    if groups.items:
        yield from whole_or_unknown(estate.cluster, "security groups of the node group", groups)
    elif groups.problem is not None:
        yield unknown(estate.cluster, "SecurityGroupsNotSeen", "the groups could not be read", groups)
    else:
        words = "outboundType is block, and the node group has no security group"
        yield fails(estate.cluster, "NoBlockRules", words, cluster, groups, paths=(path_of(NODE, INTERNET),))


def _results(group: SecurityGroup) -> Iterator[CheckResult]:
    found = holes(group.rules, Ground())
    if found and not any(hole.is_sure for hole in found):
        observation = missing(f"{group.id}: answered without the rules that every group ends in")
        yield unknown(group.id, "RulesNotSeen", "its rules were not seen whole", observation, group)
    elif found:
        words = f"outboundType is block, and rule {found[0].rule.name} ({found[0].rule.priority}) lets packets out"
        path = path_of(NODE, f"rules of {group.name}", INTERNET)
        yield fails(group.id, "BlockRulesEdited", words, group, paths=(path,))
    else:
        yield passes(group.id, "Blocks", "it denies the internet before it allows it", group)
