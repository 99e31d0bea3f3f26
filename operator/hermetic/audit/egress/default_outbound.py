"""Whether an interface has the hidden public address of default outbound access, by ARM or Resource Graph."""

from __future__ import annotations

from collections.abc import Mapping

from hermetic.audit.estate.azure.graph import ScaleSetNicInGraph
from hermetic.audit.estate.azure.vnet import NicFields, ScaleSetNic
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation


def default_outbound_of(estate: Estate, nic: NicFields) -> tuple[bool | None, tuple[Observation, ...]]:
    """ARM's value, or Resource Graph's for a scale set's interface without one; None where neither reports it."""
    reported = nic.default_outbound_connectivity_enabled
    if reported is not None or not isinstance(nic, ScaleSetNic):
        return reported, (nic,)
    row = _graph_rows(estate, nic.id.lower().partition("/virtualmachines/")[0]).get(nic.id.lower())
    if row is None or row.default_outbound_connectivity_enabled is None:
        return None, (nic,)
    return row.default_outbound_connectivity_enabled, (nic, row)


@derived
def _graph_rows(estate: Estate, scale_set: str) -> Mapping[str, ScaleSetNicInGraph]:
    return {row.id.lower(): row for row in estate.every(ScaleSetNicInGraph, scale_set)}
