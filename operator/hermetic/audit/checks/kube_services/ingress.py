"""Entry points that are no load balancers of their own: node ports, ingresses, gateways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.api.field_managers import CONTAINERS, annotation
from hermetic.api.public_services import CLASS, PRIVATE_FRONT, PUBLIC_CLASSES, class_is_public
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.objects import everywhere, never_empty
from hermetic.audit.cluster.workloads import pods_and_templates, trust_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.platform import is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.services import Gateway, GatewayClass, Ingress, IngressClass, Service
from hermetic.audit.estate.observation import Listing
from hermetic.audit.evaluation.each_object import counted, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

OF_A_CLASS = (("spec", "ingressClassName"), ("spec", "gatewayClassName"), annotation(CLASS))


@check("k8s-nodeport")
def k8s_nodeport(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A node port is exposed when a node has an external address, or a Service has a public load balancer."""
    services = never_empty(everywhere(estate, Service), Service)
    nodes, pods = never_empty(everywhere(estate, Node), Node), pods_and_templates(estate)
    public, trust = tuple(_public_sides(services, nodes, policy)), trust_of(estate, policy)

    def evaluate(service: Service) -> Iterator[CheckResult]:
        ports = service.node_ports
        if ports and public:
            yield fails(
                service.id,
                "NodePortExposed",
                f"node port {', '.join(map(str, ports[:5]))} is open on every node, and {public[0]}",
                service,
                paths=(path_of(INTERNET, public[0], hops.node("node port"), hops.kubernetes(service.id)),),
            )

    def evaluate_pod(pod: Pod) -> Iterator[CheckResult]:
        ports = tuple(
            port.host_port for container in pod.containers for port in container.ports or () if port.host_port
        )
        if ports and public and not (pod.has_ended or is_the_platforms(pod, trust)):
            message = f"host port {', '.join(map(str, ports[:5]))} is open on its node, and {public[0]}"
            path = path_of(INTERNET, public[0], "host port", hops.kubernetes(pod.workload))
            remedy = "Take hostPort out of the pod template, and let a Service lead to the pods."
            yield fails(pod.workload, "HostPortExposed", message, pod, paths=(path,), remedy=remedy, blames=CONTAINERS)

    results = (*objections(services, evaluate), *objections(pods, evaluate_pod))
    fine = "no node has an external address and no load balancer a public one, so that node ports stay inside"
    yield from settled(estate, results, "NoPublicSide", fine, services, nodes, pods)


@check("k8s-ingress-gateway")
def k8s_ingress_gateway(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """An ingress or gateway is public if its address is, or if its controller creates public addresses."""
    ingresses, gateways = everywhere(estate, Ingress), everywhere(estate, Gateway)
    classes, gateway_classes = everywhere(estate, IngressClass), everywhere(estate, GatewayClass)
    controllers = _controllers(classes, gateway_classes)

    def evaluate_ingress(ingress: Ingress) -> Iterator[CheckResult]:
        yield from _results(ingress, ingress.class_names, ingress.status.given, ingress.annotations)

    def evaluate_gateway(gateway: Gateway) -> Iterator[CheckResult]:
        yield from _results(gateway, (gateway.spec.gateway_class_name or "",), gateway.given, {})

    def _results(
        entry: Ingress | Gateway, names: tuple[str, ...], addresses: tuple[str, ...], annotations: Mapping[str, str]
    ) -> Iterator[CheckResult]:
        public = tuple(address for address in addresses if policy.leads_outside(address))
        served = {name: controllers.get((type(entry), name), name if name in PUBLIC_CLASSES else "") for name in names}
        by_class = next((name for name in names if class_is_public(name, annotations, served[name])), None)
        if public:
            message = f"was given {', '.join(public[:5])}"
        elif by_class is not None:
            message = f"its class {by_class} is served by {served[by_class]}, which makes public addresses"
        else:
            return
        blames = (annotation(PRIVATE_FRONT), *OF_A_CLASS)
        path = path_of(INTERNET, hops.kubernetes(entry.id))
        yield fails(entry.id, "PublicIngress", message, entry, classes, paths=(path,), blames=blames)

    results = (*objections(ingresses, evaluate_ingress), *objections(gateways, evaluate_gateway))
    fine = f"{counted(len(ingresses), 'Ingress', 'Ingresses')} and {counted(len(gateways), 'Gateway')}: none is public"
    observations = (ingresses, gateways, classes, gateway_classes)
    yield from settled(estate, results, "NoPublicIngress", fine, *observations)


def _controllers(
    classes: Listing[IngressClass], gateway_classes: Listing[GatewayClass]
) -> Mapping[tuple[type[KubernetesObject], str], str]:
    controllers: dict[tuple[type[KubernetesObject], str], str] = {}
    controllers.update(
        ((Ingress, ingress_class.metadata.name), ingress_class.spec.controller or "") for ingress_class in classes
    )
    controllers.update(
        ((Gateway, gateway_class.metadata.name), gateway_class.spec.controller_name or "")
        for gateway_class in gateway_classes
    )
    return controllers


def _public_sides(services: Listing[Service], nodes: Listing[Node], policy: Policy) -> Iterator[str]:
    for node in nodes:
        for address in node.external:
            yield f"{node.id} has the external address {address}"
    for service in services:
        try:
            if service.is_load_balancer and (
                not service.is_internal or any(policy.leads_outside(address) for address in service.status.given)
            ):
                yield f"{service.id} is a public load balancer"
        except FactDamaged:
            continue  # reported by k8s-public-lb for that Service
