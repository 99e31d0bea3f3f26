"""Security groups and application security groups on the interfaces of each subnet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hermetic.audit.cluster_scope import instance_nics_of, scale_sets_of
from hermetic.audit.egress.resource_lookup import readable
from hermetic.audit.estate.azure.vnet import ModelNic, NicFields
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation


@dataclass(slots=True)
class Attached:
    """`groups` maps interfaces' security group ids, in lower case, to their spelling; "" for an interface without."""

    groups: dict[str, str] = field(default_factory=dict)
    application_groups: set[str] = field(default_factory=set)


def attached(estate: Estate) -> tuple[Mapping[str, Attached], tuple[Observation, ...]]:
    """Groups by subnet id in lower case, of instances and models, and the observations that they rest on."""
    return estate.once("attached", lambda: _attached(estate))


def _attached(estate: Estate) -> tuple[Mapping[str, Attached], tuple[Observation, ...]]:
    found: dict[str, Attached] = defaultdict(Attached)
    damaged: list[Observation] = []
    models = [nic for _, nics in readable(scale_sets_of(estate), lambda one: one.nics, damaged) for nic in nics]
    everything: Iterable[NicFields | ModelNic] = (*models, *instance_nics_of(estate))
    for _, (group, subnets) in readable(everything, _read, damaged):
        for subnet, application_groups in subnets:
            found[subnet].groups[group.lower()] = group
            found[subnet].application_groups |= application_groups
    return dict(found), (scale_sets_of(estate), instance_nics_of(estate), *damaged)


def _read(nic: NicFields | ModelNic) -> tuple[str, list[tuple[str, set[str]]]]:
    group = nic.network_security_group.id if nic.network_security_group else ""
    return group, list(_subnets(nic))


def _subnets(nic: NicFields | ModelNic) -> Iterator[tuple[str, set[str]]]:
    for one in nic.ip_configurations:
        if one.subnet is not None:
            yield one.subnet.id.lower(), {group.id.lower() for group in one.application_security_groups}
