"""Gateways that AKS runs for the cluster: public ingress gateways, and egress gateways."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster_scope import network_ids_of, of_cluster, subnets_of
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
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.hops import INTERNET, LOAD_BALANCER, POD, path_of
from hermetic.audit.policy import Policy

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
        if published:
            path = path_of(INTERNET, LOAD_BALANCER, POD)
            yield fails(estate.cluster, "PublicIngress", "; ".join(published), cluster, paths=(path,))
        elif kind and kind.lower() not in INTERNAL:
            yield unknown(estate.cluster, "TypeUnknown", f"controller type {kind!r} is not known", cluster)
        elif kind:
            yield passes(estate.cluster, "InternalOnly", f"its default controller is {kind}", cluster)
        else:
            yield passes(
                estate.cluster, "NoAppRouting", "application routing is off, its Gateway API included", cluster
            )

    yield from of_cluster(estate, policy, evaluate)
    yield from _delegated(estate)


def _delegated(estate: Estate) -> Iterator[CheckResult]:
    """Subnets delegated to Application Gateway for Containers, whose frontends are public."""
    networks = [estate.one(InhabitedNetwork, one) for one in network_ids_of(estate)]
    for network in networks:
        for subnet in (network.value.subnets or ()) if network.value is not None else ():
            if any((one.service_name or "").lower() == CONTAINERS_GATEWAY for one in subnet.delegations or ()):
                words = "the subnet is delegated to Application Gateway for Containers: its frontends are public"
                path = path_of(INTERNET, hops.gateway("application gateway for containers"), POD)
                yield fails(subnet.id, "GatewayForContainers", words, network, paths=(path,))
    words = "no subnet is delegated to Application Gateway for Containers"
    yield passes(estate.cluster, "NoGatewayForContainers", words, *networks, *subnets_of(estate)[1])


def _default_controller(routing: AppRouting | None) -> str:
    """The type of the add-on's default controller; "" where the add-on is off."""
    if routing is None or not routing.enabled:
        return ""
    controller_type = routing.nginx.default_ingress_controller_type if routing.nginx is not None else None
    return controller_type or "AnnotationControlled"


def _published(profile: IngressProfile, kind: str) -> Iterator[str]:
    if kind.lower() in PUBLIC:
        yield f"its default controller is {kind}: a public load balancer"
    routing, balancer = profile.web_app_routing, profile.application_load_balancer
    gateways = routing.gateway_api_implementations if routing is not None else None
    istio = gateways.app_routing_istio if gateways is not None else None
    mode = (istio.mode if istio is not None else None) or "Disabled"
    if mode.lower() != "disabled":
        yield f"its Gateway API is {mode}: gateways are public load balancers unless each is configured otherwise"
    if balancer is not None and balancer.enabled:
        yield "the application load balancer is on: it publishes by frontends of its own"


@check_each("aks-istio-gateways", of_cluster)
def aks_istio_gateways(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """External ingress gateways, and egress gateways of any kind, unless `enabled` is false."""
    mesh = cluster.service_mesh_profile or MeshProfile(mode="Disabled")
    components = (mesh.istio.components if mesh.istio is not None else None) or MeshComponents()
    coming = [one for one in components.ingress_gateways or () if one.enabled is not False]
    leaving = [one for one in components.egress_gateways or () if one.enabled is not False]
    external = [one for one in coming if (one.mode or "").lower() == "external"]
    odd = [one for one in coming if (one.mode or "").lower() not in {"external", "internal"}]
    if (mesh.mode or "").lower() == "disabled":
        yield passes(estate.cluster, "NoMesh", "the service mesh is off", cluster)
    elif external or leaving:
        words = f"{len(external)} external ingress gateway(s), {len(leaving)} egress gateway(s){_named(leaving)}"
        paths = [path_of(INTERNET, LOAD_BALANCER, POD)] if external else []
        paths += [path_of(POD, hops.gateway("egress gateway"), INTERNET)] if leaving else []
        fill = {"GATEWAY_NAME": [one.name for one in leaving if one.name]}
        yield fails(estate.cluster, "MeshGateway", words, cluster, paths=paths, fill=fill)
    elif odd or (mesh.mode or "").lower() != "istio":
        words = f"mesh mode {mesh.mode!r}, gateway modes {[one.mode for one in odd]}: not known"
        yield unknown(estate.cluster, "MeshUnknown", words, cluster)
    else:
        yield passes(estate.cluster, "InternalOnly", "its gateways are internal", cluster)


def _named(gateways: list[AksMeshGateway]) -> str:
    names = ", ".join(one.name for one in gateways if one.name)
    return f": {names}" if names else ""
