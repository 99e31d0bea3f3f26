"""Since when a subnet is known to be private, and by which evidence.

A machine that is created in a private subnet is given no hidden public address. So where Azure does not show the
property of an interface, two dates decide: when the machine was created, and since when its subnet is known to have
been private without interruption. That moment comes from

- the attestation before this audit, which saw the subnet private: each hands on the earliest moment for as long as
  every one of them saw it private;
- the activity log, held against such a look. It shows events late, so it proves nothing about the last hour: alone it
  cannot tell a subnet that was made private a minute ago. Together with a look that is older than that, the last write
  before the look is the moment from which it was private; a write after the look voids what was known before;
- the policy file, where a person states it. A later write that the activity log shows voids the statement, unless the
  author covers it with `through`.

A log that could not be read whole, or that shows no event at all, says nothing: it neither proves nor voids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from hermetic.api.times import timestamp
from hermetic.audit.estate.arm_ids import group_of, parent_of
from hermetic.audit.estate.azure.activity import ActivityLog
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, ObservedDocument, Seen
from hermetic.audit.findings import Evidence
from hermetic.audit.policy import AttestedPrivate, DeclaredPrivateSubnet, Policy


class Basis(StrEnum):
    """How a moment is known."""

    AUDIT = "audit"
    ATTESTATION = "attestation"
    ACTIVITY_LOG = "activityLog"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Since:
    """A moment from which a subnet is known to have been private; `words` say how it is known."""

    at: datetime
    basis: Basis
    words: str
    looks: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Void:
    """A moment was known, and a later write makes it worthless."""

    words: str


@dataclass(frozen=True, slots=True)
class _Log:
    """What the activity log shows of one subnet and its network."""

    start: datetime
    horizon: datetime
    last_write: datetime | None
    look: Observation


def is_private(subnet: Seen[Subnet]) -> bool:
    """Whether it was seen to be private now. Raises FactDamaged where the field cannot be read."""
    return subnet.value is not None and subnet.problem is None and subnet.value.default_outbound_access is False


def private_since(estate: Estate, policy: Policy, subnet: Seen[Subnet]) -> Since | Void | None:
    """The moment from which this subnet, private now, is known to have been so; None where nothing shows one.

    What is proven goes before what is stated; of several, the earliest. Raises FactDamaged for a log with broken times.
    """
    proven, stated = proven_since(estate, policy, subnet.target), stated_since(estate, policy, subnet.target)
    known = [one for one in (proven, stated) if isinstance(one, Since)]
    if known:
        return min(known, key=lambda one: one.at)
    return next((one for one in (proven, stated) if one is not None), None)


def proven_since(estate: Estate, policy: Policy, subnet_id: str) -> Since | Void | None:
    """By the attestation before, and the activity log held against it."""
    attested = policy.attested(subnet_id)
    return None if attested is None else _proven(attested, _log(estate, subnet_id))


def stated_since(estate: Estate, policy: Policy, subnet_id: str) -> Since | Void | None:
    """By the policy file, unless the activity log shows a later write that the statement does not cover."""
    stated = policy.private_since(subnet_id)
    return None if stated is None else _stated(stated, _log(estate, subnet_id))


def _proven(attested: AttestedPrivate, log: _Log | None) -> Since | Void:
    held = Evidence(
        f"attestation {attested.digest}: {attested.subnet} private since {timestamp(attested.since)}, "
        f"seen at {timestamp(attested.seen_at)}",
        sha256=attested.digest.removeprefix("sha256:"),
    )
    document = ObservedDocument((held,))
    words = f"since {timestamp(attested.since)}, shown by the attestation before"
    as_attested = Since(attested.since, Basis.ATTESTATION, words, (document,))
    return as_attested if log is None else _held_against(log, attested, as_attested, document)


def _held_against(log: _Log, attested: AttestedPrivate, as_attested: Since, document: ObservedDocument) -> Since | Void:
    """The look read the subnet at some time between `seen_from` and `seen_at`: a write in between may be after it."""
    written, is_old_enough = log.last_write, attested.seen_at <= log.horizon
    if written is not None and (written > attested.seen_from or (written > attested.since and not is_old_enough)):
        return Void(f"the activity log shows a write at {timestamp(written)}, after it was last seen to be private")
    if not is_old_enough or (written is None and attested.since <= log.start):
        return replace(as_attested, looks=(document, log.look))
    at = written if written is not None else log.start
    how = (
        "its last write in the activity log" if written is not None else "the activity log shows no write from there on"
    )
    words = f"since {timestamp(at)} ({how}; seen private at {timestamp(attested.seen_at)})"
    return Since(at, Basis.ACTIVITY_LOG, words, (document, log.look))


def statement(stated: DeclaredPrivateSubnet) -> Evidence:
    """A statement of the policy, as the evidence of what rests on it."""
    at = timestamp(stated.since)
    return Evidence(f"policy subnetsPrivateSince: {stated.subnet} since {at}, stated by {stated.stated_by}")


def _stated(stated: DeclaredPrivateSubnet, log: _Log | None) -> Since | Void:
    covered = stated.through or stated.since
    if log is not None and log.last_write is not None and log.last_write > covered:
        since, at = timestamp(stated.since), timestamp(log.last_write)
        return Void(f"{stated.stated_by} states it since {since}, and the activity log shows a later write at {at}")
    at = timestamp(stated.since)
    words = f"since {at}, stated by {stated.stated_by} in the policy (a statement, not a measurement)"
    looks: tuple[Observation, ...] = (ObservedDocument((statement(stated),)), *((log.look,) if log is not None else ()))
    return Since(stated.since, Basis.POLICY, words, looks)


def _log(estate: Estate, subnet_id: str) -> _Log | None:
    """None where the log could not be read whole, or shows nothing at all: then it is not known to be one."""
    network = parent_of(subnet_id)
    seen = estate.one(ActivityLog, group_of(network))
    if seen.value is None or seen.problem is not None or seen.value.count == 0:
        return None
    log = seen.value
    return _Log(log.start, log.horizon, log.last_write(subnet_id, network), seen)
