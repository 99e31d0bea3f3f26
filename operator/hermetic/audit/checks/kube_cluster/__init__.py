"""Table I and the Kubernetes rows of F and G: nodes, storage, names, and what the API server calls.

Resources are named as in `kube_services`.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.kube_cluster import calls, names, nodes, storage

CHECKS = family(__package__ or "", calls, names, nodes, storage)
