"""Table I, workloads: rights of pods on their node, and outside addresses in their configuration.

Resources are named as in `kube_services`. A finding names the workload, which is what to change, and not each of its
pods.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.kube_workloads import endpoints, images, offline, rights

CHECKS = family(__package__ or "", endpoints, images, offline, rights)
