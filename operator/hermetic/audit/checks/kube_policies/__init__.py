"""Table I, network policies: whether pods are closed, by an engine that is there, and what opens them or goes around.

Resources are named as in `kube_services`.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.kube_policies import (
    alternative_paths,
    default_deny,
    engine,
    policy_bypass,
    unread_kinds,
    wide,
)

CHECKS = family(
    __package__ or "",
    {
        "k8s-default-deny-egress": default_deny.default_deny,
        "k8s-policy-engine-live": engine.policy_engine,
        "k8s-policy-allow-all": wide.allow_all,
        "k8s-static-egress": policy_bypass.static_egress,
        "k8s-svc-egress-gateway": policy_bypass.service_egress_gateway,
        "k8s-other-ways": alternative_paths.other_ways,
        "k8s-mesh-egress": alternative_paths.mesh_egress,
        "k8s-unread-kinds": unread_kinds.unread_kinds,
    },
)
