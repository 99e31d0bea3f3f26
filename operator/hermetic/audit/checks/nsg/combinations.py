"""Whether the security groups on a packet's way stop it when combined. Findings name the subnet to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import ScopedSubnet, subnets_of
from hermetic.audit.egress.service_endpoints import storage_path
from hermetic.audit.estate.arm_ids import group_of, name_of
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_resource import each_subnet
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import firewall_observations
from hermetic.audit.rules.nsg_rules import Hole, passes_all, sure
from hermetic.audit.rules.subnet_context import Layers, SubnetContext, surroundings


def each_surrounded(
    estate: Estate, policy: Policy, evaluate: Callable[[SubnetContext], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Apply `evaluate` to the context of every subnet of the cluster that a node or a pod sends from.

    A subnet of the API server alone needs no security group: AKS documents it without one.
    """

    def of_subnet(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        around = surroundings(estate, scoped, subnet)
        if around.is_for_the_api_server_only:
            message = "delegated to the API server, and no node or pod has an address in it"
            yield does_not_apply(around.id, "ApiServerSubnet", message, scoped.observation, *subnets_of(estate)[1])
        else:
            yield from evaluate(around)

    yield from each_subnet(estate, policy, of_subnet)


def observations_of(around: SubnetContext, *layers: Layers) -> tuple[Observation, ...]:
    """The observations that a result on combinations rests on."""
    groups = {group.target.lower(): group for combination in layers for group in combination.groups}
    return (around.subnet, *groups.values(), *around.observations)


def path(around: SubnetContext, layers: Layers) -> Path:
    """The path past these groups: to storage of others where it is open, otherwise to the internet."""
    groups = ", ".join(name_of(group.target) for group in layers.groups)
    through = (f"rules of {groups}",) if groups else ()
    return storage_path(around, layers) or path_of(hops.subnet(name_of(around.id)), *through, INTERNET)


FIRST_A_GROUP = "Give the subnet a security group first, as nsg-missing shows."
# AKS writes the group on its interfaces, and outbound type block does not exist for a network of your own.
GROUP_OF_AKS = (
    "The only security group on the way is the one that AKS keeps on the interfaces. Give the subnet a group of its "
    "own that denies the internet, as nsg-missing shows."
)


@check_each("nsg-missing", each_surrounded)
def nsg_missing(_estate: Estate, _policy: Policy, around: SubnetContext) -> Iterator[CheckResult]:
    """Without a group no rule applies, and even a private subnet reaches storage of the region."""
    bare = next((layers for layers in around.combinations if not layers.groups), None)
    if bare is not None:
        message = "neither the subnet nor an interface in it has a security group"
        yield fails(around.id, "NoSecurityGroup", message, around.subnet, paths=(path(around, bare),))
    else:
        message = "every interface passes at least one security group"
        yield passes(around.id, "SecurityGroupPresent", message, around.subnet, *around.observations)


@check_each("nsg-internet-deny", each_surrounded)
def nsg_internet_deny(estate: Estate, policy: Policy, around: SubnetContext) -> Iterator[CheckResult]:
    """Some group must deny the internet before it allows it; one such group on the way is enough."""
    by_firewall = firewall_observations(estate, policy, around)
    if by_firewall is not None:
        message = "every default route leads to the declared firewall, which decides"
        yield does_not_apply(around.id, "FirewallDecides", message, around.subnet, *by_firewall)
        return
    for layers in around.combinations:
        if not around.is_sealed(layers):
            yield _open(around, layers)
    message = "some layer denies the internet, on every port, before any layer allows it"
    yield passes(around.id, "InternetDenied", message, *observations_of(around, *around.read_combinations))


def _open(around: SubnetContext, layers: Layers) -> CheckResult:
    if layers.unseen:
        message = "a security group that decides could not be read"
        return unknown(around.id, "SecurityGroupNotSeen", message, *layers.unseen)
    observations = observations_of(around, layers)
    if not around.is_open(layers):
        message = "the audit could not see completely whether the rules let packets out to the internet"
        return unknown(around.id, "RulesNotSeen", message, *around.doubts(layers))
    if not layers.groups:
        message = "no security group is attached, so none denies the internet"
        return fails(
            around.id, "NoSecurityGroup", message, *observations, paths=(path(around, layers),), remedy=FIRST_A_GROUP
        )
    message = f"{_groups(layers)} let packets out to the internet: {_first_hole(around, layers)}"
    group = layers.groups[0].target
    fill = {"NSG_GROUP": name_of(group_of(group)), "NSG_NAME": name_of(group)}
    is_of_another_group = group_of(group).lower() != group_of(around.id).lower()
    remedy = GROUP_OF_AKS if around.subnet.network_security_group is None and is_of_another_group else ""
    return fails(
        around.id, "InternetNotDenied", message, *observations, paths=(path(around, layers),), fill=fill, remedy=remedy
    )


def _groups(layers: Layers) -> str:
    return " and ".join(name_of(group.target) for group in layers.groups)


def _first_hole(around: SubnetContext, layers: Layers) -> str:
    """The first rule, by group and priority, that lets packets through all groups."""
    sure_holes = sure(around.holes_of(layers))
    for hole in (hole for layer in sure_holes for hole in layer):
        if passes_all(hole, sure_holes, around.rule_context):
            return describe(hole)
    return "a combination of rules"


def describe(hole: Hole) -> str:
    """The rule as text: name, priority and destination."""
    rule = hole.rule
    text = f"rule {rule.name} ({rule.priority}) allows {hole.word or 'anything'}"
    if hole.through_the_network_tag:
        text += ", which holds the internet: a user-defined route to a default or public prefix widens the tag"
    return text
