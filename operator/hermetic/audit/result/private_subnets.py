"""What a report states of the subnets that an audit observed as private: since when, and by which evidence.

The next audit of the chain reads it from the signed report (`--previous`). A subnet that was not observed as private is
not listed, so its period begins anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from hermetic.api.text import first_of
from hermetic.api.times import timestamp
from hermetic.audit.cluster.members import subnets_of
from hermetic.audit.egress.private_since import Basis, Since, is_private, proven_since, statement
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.estate import Estate
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.policy.declarations import DeclaredPrivateSubnet, Policy
from hermetic.errors import FactDamaged

NAMED = 3
"""How many subnets of one statement a sentence names; the policy file names them all."""


@dataclass(frozen=True, slots=True)
class PrivateSubnet:
    """Private now, and known to have been so without interruption since a moment.

    `basis` is how that is known: this audit, the previous attestation, or the activity log. A person's statement is
    kept beside it (`stated_since`, `stated_by`), and never becomes a known fact of a later report.
    """

    subnet: str
    since: datetime
    basis: Basis
    stated_since: datetime | None = None
    stated_by: str = ""


def private_subnets(estate: Estate, policy: Policy, finished_at: datetime) -> tuple[PrivateSubnet, ...]:
    """The private ones of the cluster, API server subnets excepted, by id. Without evidence since `finished_at`."""
    return tuple(_private_subnets(estate, policy, finished_at))


def _private_subnets(estate: Estate, policy: Policy, finished_at: datetime) -> Iterator[PrivateSubnet]:
    if "azure" not in estate.sources:
        return
    for scoped in subnets_of(estate)[0]:
        try:
            if scoped.is_for_the_api_server_only or not is_private(scoped.observation):
                continue
            proven = proven_since(estate, policy, scoped.id)
        except FactDamaged:
            continue
        stated = policy.private_since(scoped.id)
        at, basis = (proven.at, proven.basis) if isinstance(proven, Since) else (finished_at, Basis.AUDIT)
        if at > finished_at:
            at, basis = finished_at, Basis.AUDIT
        since, by = (stated.since, stated.stated_by) if stated is not None else (None, "")
        yield PrivateSubnet(scoped.id, at, basis, since, by)


def statement_notes(estate: Estate, policy: Policy, findings: Iterable[Finding]) -> Iterator[str]:
    """A sentence for each statement that makes a check pass, and for each about a subnet not of the cluster."""
    if "azure" not in estate.sources or not policy.subnets_private_since:
        return
    rest_on = Counter(
        exchange for finding in findings if finding.verdict is Verdict.PASS for exchange in set(finding.evidence)
    )
    subnets, observations = subnets_of(estate)
    decisive: dict[tuple[str, datetime], list[DeclaredPrivateSubnet]] = {}
    for declaration in policy.subnets_private_since:
        if rest_on[statement(declaration)]:
            decisive.setdefault((declaration.stated_by, declaration.since), []).append(declaration)
        elif not any(same_id(declaration.subnet, scoped.id) for scoped in subnets) and all(
            observation.problem is None for observation in observations
        ):
            yield (
                f"`subnetsPrivateSince` names {declaration.subnet}, which is not a subnet of the cluster: the "
                "statement decides nothing"
            )
    for (author, since), stated in decisive.items():
        rests = sum(rest_on[statement(declaration)] for declaration in stated)
        named = first_of([declaration.subnet for declaration in stated], NAMED)
        have = "has" if len(stated) == 1 else "have"
        private = f"{named} {have} been private since {timestamp(since)}"
        yield f"{author} states that {private}; {rests} findings pass on that"
