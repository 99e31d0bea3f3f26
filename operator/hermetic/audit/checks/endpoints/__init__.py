"""Table F, endpoints: service endpoints, private endpoints, private link services, Azure Monitor's scopes."""

from __future__ import annotations

from hermetic.audit.checks.endpoints import foreign, monitor, private, relays, service
from hermetic.audit.checks.family import family

CHECKS = family(
    __package__ or "",
    {
        "svc-endpoint-storage": service.storage,
        "svc-endpoint-other": service.other,
        "svc-endpoint-policy-scope": service.policy_scope,
        "pe-foreign-target": private.foreign_target,
        "pe-relay-target": relays.relay_target,
        "pe-stranger": foreign.stranger,
        "pls-exposed": private.exposed,
        "ampls-open": monitor.open_scope,
    },
)
