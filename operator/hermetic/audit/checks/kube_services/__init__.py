"""Table I, Services: what is open to the outside, and which names inside lead out.

A resource is named by its Kubernetes reference: apiVersion, slash, kind, blank, then namespace/name or name:
"v1/Service inference/llama", "v1/Node aks-gpu-0". Exceptions match it as a glob: "v1/Service inference/*".
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.kube_services import balancers, ingress, routes, targets

CHECKS = family(__package__ or "", balancers, ingress, routes, targets)
