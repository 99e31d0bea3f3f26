"""Ways out that no network policy applies to."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import ANNOTATIONS, LABELS, SPEC
from hermetic.audit import hops
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import StaticGatewayConfiguration
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.evaluation import Judgement, fails
from hermetic.audit.hops import INTERNET, path_of
from hermetic.audit.kube_findings import counted, everywhere, objections, settled
from hermetic.audit.policy import Policy
from hermetic.audit.workloads import each_pod, pods_and_templates

STATIC_GATEWAY = "kubernetes.azure.com/static-gateway-configuration"
SERVICE_GATEWAY = "kubernetes.azure.com/service-egress-gateway"


@check("k8s-static-egress")
def k8s_static_egress(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A static egress gateway sends traffic of annotated pods out, and no network policy applies."""
    gateways, pods = everywhere(estate, StaticGatewayConfiguration), pods_and_templates(estate)

    def judge_gateway(gateway: StaticGatewayConfiguration) -> Iterator[Judgement]:
        path = path_of(hops.pod("annotated pod"), hops.kubernetes(gateway.id), hops.gateway("gateway node"), INTERNET)
        yield fails(
            gateway.id,
            "StaticEgressGateway",
            "a static egress gateway is configured",
            gateway,
            paths=(path,),
            blames=(SPEC,),
        )

    def judge_pod(pod: Pod) -> Iterator[Judgement]:
        if not pod.has_ended and STATIC_GATEWAY in pod.annotations:
            name = pod.annotations[STATIC_GATEWAY]
            yield fails(
                pod.workload,
                "UsesStaticEgressGateway",
                f"its pods are annotated to leave by the static egress gateway {name}",
                pod,
                paths=(
                    path_of(hops.kubernetes(pod.workload), hops.gateway(f"static egress gateway {name}"), INTERNET),
                ),
                blames=(ANNOTATIONS,),
            )

    said = (*objections(gateways, judge_gateway), *objections(pods, judge_pod))
    fine = f"no static egress gateway is configured, and none of {counted(len(pods), 'pod')} asks for one"
    yield from settled(estate, said, "NoStaticEgressGateway", fine, gateways, pods)


@check_each("k8s-svc-egress-gateway", each_pod("NoServiceEgressGateway", "none is labelled for the service gateway"))
def k8s_svc_egress_gateway(_estate: Estate, _policy: Policy, pod: Pod) -> Iterator[Judgement]:
    """A label routes a pod's traffic through the service gateway's own NAT."""
    if SERVICE_GATEWAY in pod.labels:
        yield fails(
            pod.workload,
            "UsesServiceEgressGateway",
            f"its pods are labelled {SERVICE_GATEWAY}={pod.labels[SERVICE_GATEWAY]}",
            pod,
            paths=(path_of(hops.kubernetes(pod.workload), hops.service("service gateway"), INTERNET),),
            blames=(LABELS,),
        )
