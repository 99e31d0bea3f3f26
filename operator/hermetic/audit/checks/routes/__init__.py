"""Table B: routes as configured, and effective routes as Azure reports them."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.routes import appliances, effective, next_hop, propagation, tables

CHECKS = family(__package__ or "", appliances, effective, next_hop, propagation, tables)
