"""Every kind that can be asked for, and what the checks of the cluster ask: what a collector has to be able to see."""

from __future__ import annotations

from hermetic.audit.estate.kubernetes.calls import (
    ApiService,
    ConfigMap,
    CsiDriver,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from hermetic.audit.estate.kubernetes.nodes import (
    AksNodeClass,
    DaemonSet,
    Namespace,
    Node,
    StaticGatewayConfiguration,
)
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE, KubernetesObject
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import (
    CalicoGlobalNetworkPolicy,
    CalicoGlobalNetworkSet,
    CalicoNetworkPolicy,
    CalicoNetworkSet,
    CiliumClusterwideNetworkPolicy,
    CiliumNetworkPolicy,
    NetworkPolicy,
)
from hermetic.audit.estate.kubernetes.services import (
    EndpointSlice,
    Gateway,
    GatewayClass,
    Ingress,
    IngressClass,
    Service,
)
from hermetic.audit.estate.kubernetes.storage import PersistentVolume, StorageClass
from hermetic.audit.estate.questions import Question

COREDNS, COREDNS_CUSTOM = "kube-system/coredns", "kube-system/coredns-custom"

KINDS: tuple[type[KubernetesObject], ...] = (
    Service,
    EndpointSlice,
    Ingress,
    IngressClass,
    Gateway,
    GatewayClass,
    NetworkPolicy,
    CiliumNetworkPolicy,
    CiliumClusterwideNetworkPolicy,
    CalicoNetworkPolicy,
    CalicoGlobalNetworkPolicy,
    CalicoNetworkSet,
    CalicoGlobalNetworkSet,
    Pod,
    Node,
    Namespace,
    DaemonSet,
    AksNodeClass,
    StaticGatewayConfiguration,
    StorageClass,
    PersistentVolume,
    CsiDriver,
    ValidatingWebhookConfiguration,
    MutatingWebhookConfiguration,
    ApiService,
    ConfigMap,
)
BY_TYPE = {kind.TYPE.lower(): kind for kind in KINDS}

# Asked for only beside Azure, by checks that compare the two.
BESIDE_AZURE = frozenset({Namespace, AksNodeClass})

# What checks of the cluster alone ask for. Of ConfigMaps none but these.
ASKED: tuple[tuple[type[KubernetesObject], str], ...] = (
    *((kind, EVERYWHERE) for kind in KINDS if kind is not ConfigMap and kind not in BESIDE_AZURE),
    (ConfigMap, COREDNS),
    (ConfigMap, COREDNS_CUSTOM),
)


def question(kind: type[KubernetesObject], scope: str) -> Question:
    """The question that a look at all objects of a kind in a scope puts."""
    return Question(kind.SOURCE, "list", kind.TYPE, scope, kind.API_VERSION)
