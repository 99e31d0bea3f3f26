"""What Azure says that the rules of a sentinel's interface are, all groups in its way, tags and groups spelled out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.audit.checks.nsg.combinations import in_words
from hermetic.audit.checks.nsg.verdicts import firewall_looks, path
from hermetic.audit.egress.rules import Hole, holes, way_out
from hermetic.audit.egress.sentinels import each_sentinel
from hermetic.audit.egress.surroundings import Layers, Surroundings
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.azure.effective import EffectiveGroup, EffectiveGroups
from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Seen
from hermetic.audit.judging import Judgement, cannot_say, does_not_apply, fails, passes
from hermetic.audit.policy import Policy

Rules = tuple[Hole, ...]


def effective_rules(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """The subnet is judged; a sentinel stands beside the nodes, and its own group is not theirs."""

    def judge(around: Surroundings, nic: NetworkInterface) -> Iterator[Judgement]:
        seen = estate.asked(EffectiveGroups, nic.id)
        by_firewall = firewall_looks(estate, policy, around)
        if seen.value is None:
            yield cannot_say(around.id, "RulesNotSeen", f"effective rules of {nic.name} were not answered", seen)
        elif by_firewall is not None:
            words = "every default route leads to the declared firewall, which decides"
            yield does_not_apply(around.id, "FirewallDecides", words, seen, *by_firewall)
        else:
            yield _judged(around, nic, seen, seen.value.value or [])

    yield from each_sentinel(estate, policy, judge)


def _judged(
    around: Surroundings, nic: NetworkInterface, seen: Seen[EffectiveGroups], groups: list[EffectiveGroup]
) -> Judgement:
    unread = [one for one in groups if not one.effective_security_rules]
    if unread or (not groups and any(layers.groups for layers in around.combinations)):
        words = f"the effective rules of {nic.name} came without rules, though a security group is attached"
        return cannot_say(around.id, "NoEffectiveRules", words, seen)
    layers = [holes(one.effective_security_rules or (), around.ground) for one in groups]
    if not way_out(layers, around.ground):
        return passes(around.id, "InternetDenied", f"the effective rules of {nic.name} deny the internet", seen)
    if around.combinations and all(
        _seals_the_nodes(around, groups, combination) for combination in around.combinations
    ):
        words = f"the effective rules of {nic.name} are open, but those of the subnet with the nodes' own group are not"
        rests_on = (one for combination in around.combinations for one in combination.groups)
        return passes(around.id, "NodesSealed", words, seen, *rests_on, *around.looks)
    words = f"the effective rules of {nic.name} let packets out to the internet: {_first(layers)}"
    return fails(around.id, "InternetNotDenied", words, seen, paths=(path(around, Layers(())),))


def _seals_the_nodes(around: Surroundings, groups: Sequence[EffectiveGroup], combination: Layers) -> bool:
    """Whether the effective rules of the subnet, with the nodes' own group in place of the sentinel's, seal it."""
    of_subnet = [one for one in groups if one.association is not None and one.association.subnet is not None]
    own = around.subnet.network_security_group
    of_nodes = [
        one.value for one in combination.groups if one.value is not None and not (own and same_id(one.target, own.id))
    ]
    layers = [holes(one.effective_security_rules or (), around.ground) for one in of_subnet]
    layers += [holes(group.rules, around.ground) for group in of_nodes]
    return not way_out(layers, around.ground)


def _first(layers: Sequence[Rules]) -> str:
    hole = next((one for layer in layers for one in layer), None)
    return in_words(hole) if hole is not None else "there is no group"
