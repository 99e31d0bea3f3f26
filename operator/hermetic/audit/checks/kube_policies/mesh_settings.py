"""Mesh-wide settings: what the proxies let through, and where they and istiod send telemetry."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import DATA
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.mesh_config import SHARED, MeshConfig
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.served import SERVED, ServedGroup
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.observation import Listing
from hermetic.audit.evaluation import Judgement, cannot_say, fails
from hermetic.audit.findings import Severity
from hermetic.audit.hops import path_of
from hermetic.audit.kube_findings import everywhere, objections

GROUP = "networking.istio.io"
REGISTRY_ONLY = "REGISTRY_ONLY"


def is_there(estate: Estate) -> bool:
    """Whether the API server serves Istio's kinds; True where that is not known."""
    groups = estate.every(ServedGroup, SERVED.target)
    return groups.problem is not None or any(one.id == GROUP for one in groups)


def judge_settings(estate: Estate, maps: Listing[ConfigMap]) -> Iterator[Judgement]:
    """Judge every mesh ConfigMap, and the case that there is none."""
    services = frozenset(f"{one.metadata.name}.{one.namespace}" for one in everywhere(estate, Service))
    settings = {(one.namespace, one.metadata.name): one for one in maps if one.mesh is not None}

    def judge(one: ConfigMap) -> Iterator[Judgement]:
        mesh = one.mesh or MeshConfig()
        yield from _judge_addresses(one, mesh, services)
        # AKS reads its own ConfigMap first, then the user's.
        revision = one.metadata.name.removeprefix("istio-")
        shared = settings.get((one.namespace, f"{SHARED}{revision}"))
        is_shared = one.metadata.name.startswith(SHARED)
        mode = mesh.mode or (shared.mesh.mode if shared is not None and shared.mesh is not None else "")
        is_open = mode != REGISTRY_ONLY and not mesh.unread
        if is_open and not (is_shared and not mesh.mode):
            yield _allows_any(one, mode)

    yield from objections(settings.values(), judge)
    if not settings and maps.problem is None and is_there(estate):
        message = "Istio's kinds are served, and no ConfigMap istio or istio-REVISION holds the settings of the mesh"
        yield cannot_say(
            estate.cluster, "MeshConfigNotSeen", message, maps, severity=Severity.MEDIUM, remedy=_WHERE_IS_IT
        )


def _judge_addresses(one: ConfigMap, mesh: MeshConfig, services: frozenset[str]) -> Iterator[Judgement]:
    outside = [host for host in mesh.addresses if not is_inside(host) and host not in services]
    if outside:
        message = f"the mesh is configured to call {', '.join(outside[:3])}"
        path = path_of("proxy of the mesh", outside[0])
        yield fails(one.id, "MeshEgress", message, one, paths=(path,), remedy=_EDIT, blames=(DATA,))
    elif mesh.unread:
        yield cannot_say(one.id, "MeshConfigNotRead", mesh.unread, one)


def _allows_any(one: ConfigMap, mode: str) -> Judgement:
    words = f"outboundTrafficPolicy.mode is {mode}" if mode else "outboundTrafficPolicy.mode is not set: ALLOW_ANY"
    message = f"{words}; proxies let everything through that the mesh does not know"
    return fails(one.id, "AllowAny", message, one, severity=Severity.MEDIUM, remedy=_EDIT, blames=(DATA,))


_EDIT = """
Set outboundTrafficPolicy.mode to REGISTRY_ONLY, and let every provider and address of the key mesh be one inside. With
the Istio add-on of AKS, set it in istio-shared-configmap-REVISION: AKS reverts every change of its own ConfigMap.
Warning: with REGISTRY_ONLY, pods of the mesh reach no destination that the mesh does not know.
kubectl --namespace NAMESPACE edit configmap NAME
"""
_WHERE_IS_IT = """
Find the control plane of the mesh, in this cluster or outside of it, and see what its settings let out. Where Istio is
gone, delete its CustomResourceDefinitions:
kubectl get customresourcedefinitions --output name
"""
