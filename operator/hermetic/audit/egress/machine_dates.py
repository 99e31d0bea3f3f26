"""When the machine of an interface was created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from hermetic.audit.cluster_scope import missing
from hermetic.audit.estate.arm_ids import type_of
from hermetic.audit.estate.azure.machines import ScaleSetInstance, VirtualMachine
from hermetic.audit.estate.azure.vnet import NicFields, ScaleSetNic
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation


@dataclass(frozen=True, slots=True)
class Created:
    """The machine of an interface: id, creation date (None where not shown) and observations."""

    machine: str
    at: datetime | None
    looks: tuple[Observation, ...]


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
    dates = [one.created_at for one in rows]
    known = [one for one in dates if one is not None]
    at = min(known) if len(known) == len(dates) else None
    return Created(machine, at, rows)


def _by_id(estate: Estate, scale_set: str) -> Mapping[str, tuple[ScaleSetInstance, ...]]:
    def read() -> Mapping[str, tuple[ScaleSetInstance, ...]]:
        found: dict[str, tuple[ScaleSetInstance, ...]] = {}
        for row in estate.every(ScaleSetInstance, scale_set):
            found[row.id.lower()] = (*found.get(row.id.lower(), ()), row)
        return found

    return estate.once(("instances", scale_set.lower()), read)


def _of_machine(estate: Estate, nic: NicFields) -> Created:
    machine = nic.virtual_machine.id if nic.virtual_machine is not None else ""
    if type_of(machine).lower() != VirtualMachine.TYPE.lower():
        return Created(machine, None, (missing(f"{nic.id}: names no virtual machine"),))
    seen = estate.one(VirtualMachine, machine)
    at = seen.value.created_at if seen.value is not None else None
    return Created(machine, at, (seen,))
