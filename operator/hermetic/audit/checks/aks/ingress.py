"""Gateways that AKS runs for the cluster: public ingress gateways, and egress gateways."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import network_ids_of, subnets_of
from hermetic.audit.estate.azure.aks import (
    AksMeshGateway,
    AppRouting,
    IngressProfile,
    ManagedCluster,
    MeshComponents,
    MeshProfile,
)
from hermetic.audit.estate.azure.vnet import InhabitedNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.services import Gateway
from hermetic.audit.evaluation.each_resource import of_cluster
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, LOAD_BALANCER, POD, path_of
from hermetic.audit.policy.declarations import Policy

CONTAINERS_GATEWAY = "microsoft.servicenetworking/trafficcontrollers"
INTERNAL = {"internal", "none"}
PUBLIC = {"annotationcontrolled", "external"}


@check("aks-ingress-addon")
def aks_ingress_addon(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Each ingress feature of AKS creates a public load balancer unless it is configured as internal."""

    def evaluate(cluster: ManagedCluster) -> Iterator[CheckResult]:
        profile = cluster.ingress_profile or IngressProfile()
        kind = _default_controller(profile.web_app_routing)
        published = list(_published(profile, kind))
        mode = _gateway_api_mode(profile)
        if mode:
            yield _gateway_api(estate, cluster, mode)
        if published:
            path = path_of(INTERNET, LOAD_BALANCER, POD)
            yield fails(
                estate.cluster, "PublicIngress", "; ".join(published), cluster, paths=(path,), remedy=_remedy(kind)
            )
        elif kind and kind.lower() not in INTERNAL:
            yield unknown(estate.cluster, "TypeUnknown", f"controller type {kind!r} is not known", cluster)
        elif kind:
            yield passes(estate.cluster, "InternalOnly", f"its default controller is {kind}", cluster)
        elif not mode:
            yield passes(
                estate.cluster, "NoAppRouting", "application routing is off, its Gateway API included", cluster
            )

    yield from of_cluster(estate, policy, evaluate)
    yield from _delegated(estate)


def _delegated(estate: Estate) -> Iterator[CheckResult]:
    """Subnets delegated to Application Gateway for Containers, whose frontends are public."""
    networks = [estate.one(InhabitedNetwork, network_id) for network_id in network_ids_of(estate)]
    for network in networks:
        for subnet in (network.value.subnets or ()) if network.value is not None else ():
            if any(
                (delegation.service_name or "").lower() == CONTAINERS_GATEWAY for delegation in subnet.delegations or ()
            ):
                message = "the subnet is delegated to Application Gateway for Containers: its frontends are public"
                path = path_of(INTERNET, hops.gateway("application gateway for containers"), POD)
                yield fails(subnet.id, "GatewayForContainers", message, network, paths=(path,))
    message = "no subnet is delegated to Application Gateway for Containers"
    yield passes(estate.cluster, "NoGatewayForContainers", message, *networks, *subnets_of(estate)[1])


def _default_controller(routing: AppRouting | None) -> str:
    """The type of the add-on's default controller; "" where the add-on is off."""
    if routing is None or not routing.enabled:
        return ""
    controller_type = routing.nginx.default_ingress_controller_type if routing.nginx is not None else None
    return controller_type or "AnnotationControlled"


def _published(profile: IngressProfile, kind: str) -> Iterator[str]:
    if kind.lower() in PUBLIC:
        yield f"its default controller is {kind}: a public load balancer"
    balancer = profile.application_load_balancer
    if balancer is not None and balancer.enabled:
        yield "the application load balancer is on: it publishes by frontends of its own"


def _gateway_api_mode(profile: IngressProfile) -> str:
    """The mode of the Gateway API of application routing; "" where it is off."""
    routing = profile.web_app_routing
    gateways = routing.gateway_api_implementations if routing is not None else None
    istio = gateways.app_routing_istio if gateways is not None else None
    mode = (istio.mode if istio is not None else None) or "Disabled"
    return "" if mode.lower() == "disabled" else mode


def _gateway_api(estate: Estate, cluster: ManagedCluster, mode: str) -> CheckResult:
    """The Gateway API publishes nothing by itself: it creates a load balancer for each Gateway.

    AKS Automatic has it by default from Kubernetes 1.36 on (AKS release notes, May 2026).
    """
    if "kube" in estate.sources:
        message = f"its Gateway API is {mode}: k8s-ingress-gateway evaluates each Gateway"
        return passes(estate.cluster, "GatewaysDecide", message, cluster, estate.every(Gateway, EVERYWHERE))
    message = f"its Gateway API is {mode}: a Gateway is a public load balancer unless it is configured as internal"
    path = path_of(INTERNET, LOAD_BALANCER, POD)
    return fails(
        estate.cluster, "GatewayApi", message, cluster,
        paths=(path,), severity=Severity.MEDIUM, remedy=GATEWAY_REMEDY,
    )  # fmt: skip


def _remedy(controller: str) -> str:
    """The check's own remedy configures a controller: it would create one where there is none."""
    return "" if controller.lower() in PUBLIC else FRONTEND_REMEDY


GATEWAY_REMEDY = """\
Audit with --kube: each Gateway then decides. Make each Gateway internal by the annotation
service.beta.kubernetes.io/azure-load-balancer-internal "true" under its spec.infrastructure.annotations. Where no
Gateway is used, set ingressProfile.webAppRouting.gatewayAPIImplementations.appRoutingIstio.mode to Disabled.
"""
FRONTEND_REMEDY = """\
Warning: clients that use a public frontend lose it.
Delete the frontends of Application Gateway for Containers and its association with the subnet, then disable the
application load balancer of the cluster.
"""


@check_each("aks-istio-gateways", of_cluster)
def aks_istio_gateways(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """External ingress gateways, and egress gateways of any kind, unless `enabled` is false."""
    mesh = cluster.service_mesh_profile or MeshProfile(mode="Disabled")
    components = (mesh.istio.components if mesh.istio is not None else None) or MeshComponents()
    coming = [gateway for gateway in components.ingress_gateways or () if gateway.enabled is not False]
    leaving = [gateway for gateway in components.egress_gateways or () if gateway.enabled is not False]
    external = [gateway for gateway in coming if (gateway.mode or "").lower() == "external"]
    of_unknown_mode = [gateway for gateway in coming if (gateway.mode or "").lower() not in {"external", "internal"}]
    if (mesh.mode or "").lower() == "disabled":
        yield passes(estate.cluster, "NoMesh", "the service mesh is off", cluster)
    elif external or leaving:
        message = f"{len(external)} external ingress gateway(s), {len(leaving)} egress gateway(s){_named(leaving)}"
        paths = [path_of(INTERNET, LOAD_BALANCER, POD)] if external else []
        paths += [path_of(POD, hops.gateway("egress gateway"), INTERNET)] if leaving else []
        fill = {"GATEWAY_NAME": [gateway.name for gateway in leaving if gateway.name]}
        yield fails(estate.cluster, "MeshGateway", message, cluster, paths=paths, fill=fill)
    elif of_unknown_mode or (mesh.mode or "").lower() != "istio":
        message = f"mesh mode {mesh.mode!r}, gateway modes {[gateway.mode for gateway in of_unknown_mode]}: not known"
        yield unknown(estate.cluster, "MeshUnknown", message, cluster)
    else:
        yield passes(estate.cluster, "InternalOnly", "its gateways are internal", cluster)


def _named(gateways: list[AksMeshGateway]) -> str:
    names = ", ".join(gateway.name for gateway in gateways if gateway.name)
    return f": {names}" if names else ""
