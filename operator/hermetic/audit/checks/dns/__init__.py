"""Table G, as far as Azure shows it: who resolves names for the nodes, and what they may ask."""

from __future__ import annotations

from hermetic.audit.checks.dns import allowed, forwarding, servers, zones
from hermetic.audit.checks.family import family

CHECKS = family(__package__ or "", allowed, forwarding, servers, zones)
