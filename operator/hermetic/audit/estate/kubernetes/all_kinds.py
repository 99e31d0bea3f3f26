"""Every kind that can be queried, and the questions of the cluster's checks: what a collector needs to read."""

from __future__ import annotations

# Importing them fills DECLARED.
from hermetic.audit.estate.kubernetes import (  # noqa: F401
    addons,
    ai_gateways,
    alternative_paths,
    calico_policies,
    calls,
    cilium_policies,
    devices,
    engine_settings,
    mesh,
    nodes,
    pods,
    policies,
    routes,
    scalers,
    services,
    templates,
    volumes,
)
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.nodes import AksNodeClass
from hermetic.audit.estate.kubernetes.objects import DECLARED, EVERYWHERE, KubernetesObject
from hermetic.audit.estate.questions import Question

COREDNS, COREDNS_CUSTOM = "kube-system/coredns", "kube-system/coredns-custom"
NODE_LOCAL_DNS = "kube-system/node-local-dns"

KINDS: tuple[type[KubernetesObject], ...] = tuple(DECLARED)
BY_TYPE = {kind.TYPE.lower(): kind for kind in KINDS}

# Queried only together with Azure, by a check that compares the two.
BESIDE_AZURE = frozenset({AksNodeClass})

# The questions of checks that need the cluster alone. The ConfigMaps of the resolvers have lists of their own: a caller
# who may not list all ConfigMaps may still read those.
ASKED: tuple[tuple[type[KubernetesObject], str], ...] = (
    *((kind, EVERYWHERE) for kind in KINDS if kind not in BESIDE_AZURE),
    (ConfigMap, COREDNS),
    (ConfigMap, COREDNS_CUSTOM),
    (ConfigMap, NODE_LOCAL_DNS),
)


def question(kind: type[KubernetesObject], scope: str) -> Question:
    return Question(kind.SOURCE, "list", kind.TYPE, scope, kind.API_VERSION)
