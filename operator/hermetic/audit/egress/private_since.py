"""The moment since when a subnet is known to be private, and the evidence for it.

A machine that is created in a private subnet gets no hidden public address. So where Azure does not show the property
of an interface, two dates decide: when the machine was created, and since when its subnet is known to have been
private without interruption. That moment comes from

- the previous attestation, which saw the subnet private: each passes on the earliest moment as long as every one of
  them saw it private;
- the activity log, combined with such an observation. Events appear in it late, so it proves nothing about the last
  hour: alone it cannot rule out a subnet that was made private a minute ago. With an observation older than that
  hour, the last write before it is the moment since when the subnet was private; a write after it voids the earlier
  evidence;
- the policy file, where a person states it. A later write in the activity log voids the statement, unless `through`
  covers it.

A log that could not be read completely, or that shows no event at all, neither proves nor voids anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from hermetic.api.times import timestamp
from hermetic.audit.estate.arm_ids import group_of, parent_of, type_of
from hermetic.audit.estate.azure.activity import ActivityLog
from hermetic.audit.estate.azure.machines import ScaleSetInstance, VirtualMachine
from hermetic.audit.estate.azure.vnet import NicFields, ScaleSetNic, Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, ObservedDocument, missing
from hermetic.audit.model.findings import Evidence
from hermetic.audit.policy.declarations import AttestedPrivate, DeclaredPrivateSubnet, Policy


@dataclass(frozen=True, slots=True)
class Created:
    """The machine of an interface: id, creation date (None where not shown) and observations."""

    machine: str
    at: datetime | None
    observations: tuple[Observation, ...]


def created(estate: Estate, nic: NicFields) -> Created:
    """When the machine of this interface was created. Raises FactDamaged for a date that cannot be read."""
    return _of_instance(estate, nic) if isinstance(nic, ScaleSetNic) else _of_machine(estate, nic)


def _of_instance(estate: Estate, nic: NicFields) -> Created:
    """Found by the interface's id, because its reference to the machine is spelt in several ways."""
    machine = nic.id[: nic.id.lower().find("/networkinterfaces/")]
    scale_set = nic.id[: nic.id.lower().find("/virtualmachines/")]
    instances = estate.every(ScaleSetInstance, scale_set)
    rows = _by_id(estate, scale_set).get(machine.lower(), ())
    if not rows:
        absent = missing(f"{machine}: not among the instances of its scale set")
        return Created(machine, None, (instances, absent))
    dates = [row.created_at for row in rows]
    known_dates = [created_at for created_at in dates if created_at is not None]
    at = min(known_dates) if len(known_dates) == len(dates) else None
    return Created(machine, at, rows)


def _by_id(estate: Estate, scale_set: str) -> Mapping[str, tuple[ScaleSetInstance, ...]]:
    def read() -> Mapping[str, tuple[ScaleSetInstance, ...]]:
        rows_by_id: dict[str, tuple[ScaleSetInstance, ...]] = {}
        for row in estate.every(ScaleSetInstance, scale_set):
            rows_by_id[row.id.lower()] = (*rows_by_id.get(row.id.lower(), ()), row)
        return rows_by_id

    return estate.once(("instances", scale_set.lower()), read)


def _of_machine(estate: Estate, nic: NicFields) -> Created:
    machine = nic.virtual_machine.id if nic.virtual_machine is not None else ""
    if type_of(machine).lower() != VirtualMachine.TYPE.lower():
        return Created(machine, None, (missing(f"{nic.id}: names no virtual machine"),))
    observation = estate.one(VirtualMachine, machine)
    at = observation.value.created_at if observation.value is not None else None
    return Created(machine, at, (observation,))


class Basis(StrEnum):
    """The evidence for a moment."""

    AUDIT = "audit"
    ATTESTATION = "attestation"
    ACTIVITY_LOG = "activityLog"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Since:
    """The moment since when a subnet is known to have been private; `message` names the evidence."""

    at: datetime
    basis: Basis
    message: str
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class VoidProof:
    """The evidence for a moment is void, because of a later write."""

    message: str


@dataclass(frozen=True, slots=True)
class _Log:
    """What the activity log shows of one subnet and its network."""

    start: datetime
    horizon: datetime
    last_write: datetime | None
    observation: Observation


def is_private(subnet: Lookup[Subnet]) -> bool:
    """Whether the subnet is private now. Raises FactDamaged where the field cannot be read."""
    return subnet.value is not None and subnet.problem is None and subnet.value.default_outbound_access is False


def private_since(estate: Estate, policy: Policy, subnet: Lookup[Subnet]) -> Since | VoidProof | None:
    """The moment since when this subnet, which is private now, is known to be so; None without evidence.

    The earliest moment of attestation and statement; on a tie the attestation. Raises FactDamaged for a log with
    invalid times.
    """
    proven, stated = proven_since(estate, policy, subnet.target), stated_since(estate, policy, subnet.target)
    candidates = [candidate for candidate in (proven, stated) if isinstance(candidate, Since)]
    if candidates:
        return min(candidates, key=lambda since: since.at)
    return next((candidate for candidate in (proven, stated) if candidate is not None), None)


def proven_since(estate: Estate, policy: Policy, subnet_id: str) -> Since | VoidProof | None:
    """By the previous attestation, combined with the activity log."""
    attested = policy.attested(subnet_id)
    return None if attested is None else _proven(attested, _log(estate, subnet_id))


def stated_since(estate: Estate, policy: Policy, subnet_id: str) -> Since | VoidProof | None:
    """By the policy file; void where the activity log shows a later write that the statement does not cover."""
    stated = policy.private_since(subnet_id)
    return None if stated is None else _stated(stated, _log(estate, subnet_id))


def _proven(attested: AttestedPrivate, log: _Log | None) -> Since | VoidProof:
    evidence = Evidence(
        f"attestation {attested.digest}: {attested.subnet} private since {timestamp(attested.since)}, "
        f"seen at {timestamp(attested.seen_at)}",
        sha256=attested.digest.removeprefix("sha256:"),
    )
    document = ObservedDocument((evidence,))
    description = f"since {timestamp(attested.since)}, shown by the attestation before"
    as_attested = Since(attested.since, Basis.ATTESTATION, description, (document,))
    return as_attested if log is None else _checked_against_log(log, attested, as_attested, document)


def _checked_against_log(
    log: _Log, attested: AttestedPrivate, as_attested: Since, document: ObservedDocument
) -> Since | VoidProof:
    """The subnet was observed between `seen_from` and `seen_at`; a write in between may be later than that."""
    written, is_old_enough = log.last_write, attested.seen_at <= log.horizon
    if written is not None and (written > attested.seen_from or (written > attested.since and not is_old_enough)):
        return VoidProof(
            f"the activity log shows a write at {timestamp(written)}, after it was last seen to be private"
        )
    if not is_old_enough or (written is None and attested.since <= log.start):
        return replace(as_attested, observations=(document, log.observation))
    at = written if written is not None else log.start
    how = (
        "its last write in the activity log" if written is not None else "the activity log shows no write from there on"
    )
    description = f"since {timestamp(at)} ({how}; seen private at {timestamp(attested.seen_at)})"
    return Since(at, Basis.ACTIVITY_LOG, description, (document, log.observation))


def statement(stated: DeclaredPrivateSubnet) -> Evidence:
    """A statement of the policy file as evidence."""
    at = timestamp(stated.since)
    return Evidence(f"policy subnetsPrivateSince: {stated.subnet} since {at}, stated by {stated.stated_by}")


def _stated(stated: DeclaredPrivateSubnet, log: _Log | None) -> Since | VoidProof:
    covered = stated.through or stated.since
    if log is not None and log.last_write is not None and log.last_write > covered:
        since, at = timestamp(stated.since), timestamp(log.last_write)
        return VoidProof(
            f"{stated.stated_by} states it since {since}, and the activity log shows a later write at {at}"
        )
    at = timestamp(stated.since)
    description = f"since {at}, stated by {stated.stated_by} in the policy (a statement, not a measurement)"
    observations: tuple[Observation, ...] = (
        ObservedDocument((statement(stated),)),
        *((log.observation,) if log is not None else ()),
    )
    return Since(stated.since, Basis.POLICY, description, observations)


def _log(estate: Estate, subnet_id: str) -> _Log | None:
    """None where the log could not be read completely or shows no event: an empty answer may not be a real log."""
    network = parent_of(subnet_id)
    observation = estate.one(ActivityLog, group_of(network))
    if observation.value is None or observation.problem is not None or observation.value.count == 0:
        return None
    log = observation.value
    return _Log(log.start, log.horizon, log.last_write(subnet_id, network), observation)
