"""Kinds that the API server serves, that can let packets out, and that the audit does not read."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.checks.kube_policies.known_groups import EGRESS_GROUPS, HARMLESS_GROUPS, HARMLESS_KINDS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import KINDS
from hermetic.audit.estate.kubernetes.served import SERVED, ServedGroup, ServedKind
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.evaluation import Judgement, cannot_say, unreadable
from hermetic.audit.findings import Severity
from hermetic.audit.kube_findings import counted, settled
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged

# The aggregated API group in which Calico's server shows the objects of crd.projectcalico.org.
_SHOWN_TWICE = {"projectcalico.org": "crd.projectcalico.org"}
_READ = frozenset((kind.TYPE.split("/")[0], kind.KIND) for kind in KINDS if kind.TYPE.count("/") == 2)
SHOWN = 6


@check("k8s-unread-kinds")
def k8s_unread_kinds(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Every kind is read, is known to let no packet out, or is listed in the policy."""
    groups = _never_empty(estate.every(ServedGroup, SERVED.target))
    harmless = frozenset(one.lower() for one in policy.harmless_kinds)
    names = frozenset(group.id for group in groups)
    said = [one for group in groups for one in _judged(group, names, harmless)]
    number = sum(len(group.kinds) for group in groups)
    fine = f"{counted(number, 'kind')} in {counted(len(groups), 'API group')}: each that can let packets out is read"
    yield from settled(estate, said, "KindsRead", fine, groups)


def _judged(group: ServedGroup, names: frozenset[str], harmless: frozenset[str]) -> Iterator[Judgement]:
    name = group.id
    if name in HARMLESS_GROUPS or f"{name}/*".lower() in harmless or _SHOWN_TWICE.get(name) in names:
        return
    try:
        unread = [one for one in group.kinds if not _is_settled(name, one, harmless)]
        stale = list(group.stale)
    except FactDamaged as damage:
        yield cannot_say(f"API group {name}", "Unreadable", damage.message, unreadable(damage))
        return
    if name in EGRESS_GROUPS:
        yield from (_egress(group, one) for one in unread)
    elif unread:
        yield _unknown(group, unread)
    if stale and name in EGRESS_GROUPS:
        message = f"its server did not say what it serves in {', '.join(stale)}"
        yield cannot_say(f"API group {name}", "GroupNotSeen", message, group)


def _is_settled(group: str, one: ServedKind, harmless: frozenset[str]) -> bool:
    is_known = (group, one.kind) in _READ or one.kind in HARMLESS_KINDS.get(group, ())
    return is_known or f"{group}/{one.kind}".lower() in harmless


def _egress(group: ServedGroup, one: ServedKind) -> Judgement:
    return cannot_say(
        f"apiextensions.k8s.io/v1/CustomResourceDefinition {one.plural}.{group.id}",
        "EgressKindNotRead",
        f"{group.id}/{one.kind} is served, can decide which packets leave, and is not read",
        group,
    )


def _unknown(group: ServedGroup, unread: list[ServedKind]) -> Judgement:
    some = ", ".join(one.kind for one in unread[:SHOWN]) + (" and more" if len(unread) > SHOWN else "")
    return cannot_say(
        f"API group {group.id}",
        "KindsNotKnown",
        f"{group.id} ({some}) is served, and this release does not know what its objects do",
        group,
        severity=Severity.MEDIUM,
    )


def _never_empty(groups: Listing[ServedGroup]) -> Listing[ServedGroup]:
    if groups.problem is not None or groups.items:
        return groups
    problem = Problem(Trouble.UNREADABLE, "no API group in the answer, and every API server has some")
    return Listing(groups.target, (), groups.evidence, problem)
