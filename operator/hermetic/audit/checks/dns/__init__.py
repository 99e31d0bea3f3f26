"""Table G, as far as Azure shows it: the resolvers of the nodes, and the names that they answer."""

from __future__ import annotations

from hermetic.audit.checks.dns import allowed, servers, zones
from hermetic.audit.checks.family import family

CHECKS = family(__package__ or "", allowed, servers, zones)
