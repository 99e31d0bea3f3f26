"""Table F, endpoints: service endpoints, private endpoints, private link services, Azure Monitor's scopes."""

from __future__ import annotations

from hermetic.audit.checks.endpoints import foreign, monitor, private, relays, service, vaults
from hermetic.audit.checks.family import family

CHECKS = family(__package__ or "", foreign, monitor, private, relays, service, vaults)
