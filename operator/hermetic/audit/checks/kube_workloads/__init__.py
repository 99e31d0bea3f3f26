"""Table I, workloads: what pods may do to their node, and what they were told about the world outside.

Resources are named as in `kube_services`. A finding is about the workload, the thing to change, and not about each of
its pods.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.kube_workloads import endpoints, images, offline, proxies, rights, tokens

CHECKS = family(__package__ or "", endpoints, images, offline, proxies, rights, tokens)
