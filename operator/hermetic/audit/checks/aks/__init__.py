"""Table H: settings of the AKS resource itself."""

from __future__ import annotations

from hermetic.audit.checks.aks import access, attached, bootstrap, ingress, outbound, telemetry, upkeep, with_kubernetes
from hermetic.audit.checks.family import family

CHECKS = family(__package__ or "", access, attached, bootstrap, ingress, outbound, telemetry, upkeep, with_kubernetes)
