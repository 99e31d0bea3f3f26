"""Whether a policy engine runs, and egress paths that no network policy applies to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.api.field_managers import ANNOTATIONS, LABELS, SPEC
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.checks.kube_policies.enforcement import is_recognised, ready_agents
from hermetic.audit.checks.kube_policies.settings import evaluate_settings
from hermetic.audit.cluster.objects import everywhere, never_empty
from hermetic.audit.cluster.workloads import pods_and_templates
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Node, StaticGatewayConfiguration
from hermetic.audit.estate.kubernetes.pods import POLICY_ENGINES, Pod
from hermetic.audit.estate.kubernetes.templates import DaemonSet
from hermetic.audit.estate.observation import Listing
from hermetic.audit.evaluation.each_object import counted, each_pod, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.node_agents import with_entries
from hermetic.errors import FactDamaged

ANYWHERE = "all that the network lets through"
STATIC_GATEWAY = "kubernetes.azure.com/static-gateway-configuration"
SERVICE_GATEWAY = "kubernetes.azure.com/service-egress-gateway"
_NOT_AN_ENGINE = "Find out who made it, delete it, and give the cluster an engine of AKS."


@check("k8s-policy-engine-live")
def k8s_policy_engine_live(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A recognised agent of an engine is ready on every GPU node (on every node, where none has a GPU).

    The settings of the engine must not switch enforcement off.
    """
    nodes, pods = never_empty(everywhere(estate, Node), Node), everywhere(estate, Pod)
    daemon_sets = everywhere(estate, DaemonSet)
    engines = tuple(
        daemon_set for daemon_set in daemon_sets if POLICY_ENGINES.get(daemon_set.metadata.name) == daemon_set.namespace
    )
    if not engines and daemon_sets.problem is None:
        yield _no_engine(estate, daemon_sets)
        return
    where = _machines(nodes)
    ready = tuple(ready_agents(pods))
    agents, enforced = dict(ready), {name for name, agent in ready if is_recognised(estate, policy, agent)}

    def evaluate_node(node: Node) -> Iterator[CheckResult]:
        if node.metadata.name in enforced:
            return
        if (agent := agents.get(node.metadata.name)) is not None:
            yield _not_recognised(policy, node, agent)
        elif pods.problem is not None:  # its agent may be among the pods that could not be read
            yield unknown(node.id, "AgentsNotSeen", "not every pod could be read", pods)
        else:
            yield _without_an_agent(engines, pods, node)

    engine_names = frozenset(engine.metadata.name for engine in engines) if daemon_sets.problem is None else None
    of_settings, settings = evaluate_settings(estate, engine_names)
    names = ", ".join(sorted({engine.metadata.name for engine in engines})) or "the engine"
    node_kind = "GPU node" if any(node.has_gpu for node in where) else "node"
    fine = (
        f"{names} is ready on {counted(len(where), node_kind)}; that a denied packet is dropped is the probe's to show"
    )
    results = (*objections(where, evaluate_node), *of_settings)
    yield from settled(estate, results, "PolicyEngineReady", fine, daemon_sets, pods, nodes, *settings)


def _not_recognised(policy: Policy, node: Node, agent: Pod) -> CheckResult:
    images = ", ".join(dict.fromkeys(container.image for container in agent.containers)) or "no image"
    message = (
        f"{agent.workload} has the name of a policy engine and runs {images}: not an agent of AKS, and not trusted"
    )
    remedy = with_entries(_NOT_AN_ENGINE, agent, policy, host_network=True)
    return unknown(node.id, "AgentNotRecognised", message, node, agent, remedy=remedy)


def _without_an_agent(engines: Sequence[DaemonSet], pods: Listing[Pod], node: Node) -> CheckResult:
    return fails(
        node.id,
        "PolicyEngineNotReady",
        "no agent of a policy engine is ready on it: policies are without effect for its pods",
        node,
        pods,
        *engines,
        paths=(path_of(hops.pod(f"pod on {node.metadata.name} (no policy is enforced)"), ANYWHERE),),
    )


def _no_engine(estate: Estate, daemon_sets: Listing[DaemonSet]) -> CheckResult:
    names = ", ".join(f"{namespace}/{name}" for name, namespace in POLICY_ENGINES.items())
    return fails(
        estate.cluster,
        "NoPolicyEngine",
        f"none of the DaemonSets {names} exists: no NetworkPolicy has an effect",
        daemon_sets,
        paths=(path_of(POD, hops.node("node (no policy is enforced)"), ANYWHERE),),
    )


def _machines(nodes: Listing[Node]) -> Listing[Node]:
    with_gpu = nodes.where(lambda node: node.has_gpu)
    return with_gpu if with_gpu.items else nodes


def _is_private(gateway: StaticGatewayConfiguration) -> bool:
    """False also where its addresses cannot be read."""
    try:
        return gateway.has_private_addresses_only
    except FactDamaged:
        return False


_OFF_THE_PODS = """
Take the annotation kubernetes.azure.com/static-gateway-configuration off the pod template; its pods leave by the nodes'
own network from then on.
"""


@check("k8s-static-egress")
def k8s_static_egress(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """A static egress gateway sends traffic of annotated pods out, and no network policy applies."""
    gateways, pods = everywhere(estate, StaticGatewayConfiguration), pods_and_templates(estate)
    private = {(gateway.namespace, gateway.metadata.name) for gateway in gateways if _is_private(gateway)}

    def evaluate_gateway(gateway: StaticGatewayConfiguration) -> Iterator[CheckResult]:
        is_private = gateway.has_private_addresses_only
        path = path_of(hops.pod("annotated pod"), hops.kubernetes(gateway.id), hops.gateway("gateway node"))
        message = "a static egress gateway with public addresses is configured"
        if is_private:
            message = "a static egress gateway with private addresses only is configured: network policies do not apply"
        yield fails(
            gateway.id,
            "PrivateStaticEgressGateway" if is_private else "StaticEgressGateway",
            message,
            gateway,
            paths=(path if is_private else path_of(*path, INTERNET),),
            severity=Severity.HIGH if is_private else None,
            blames=(SPEC,),
        )

    def evaluate_pod(pod: Pod) -> Iterator[CheckResult]:
        if not pod.has_ended and STATIC_GATEWAY in pod.annotations:
            name = pod.annotations[STATIC_GATEWAY]
            is_private = (pod.namespace, name) in private
            path = path_of(hops.kubernetes(pod.workload), hops.gateway(f"static egress gateway {name}"))
            yield fails(
                pod.workload,
                "UsesStaticEgressGateway",
                f"its pods are annotated to leave by the static egress gateway {name}",
                pod,
                paths=(path if is_private else path_of(*path, INTERNET),),
                severity=Severity.HIGH if is_private else None,
                remedy=_OFF_THE_PODS,
                blames=(ANNOTATIONS,),
            )

    results = (*objections(gateways, evaluate_gateway), *objections(pods, evaluate_pod))
    fine = f"no static egress gateway is configured, and none of {counted(len(pods), 'pod')} asks for one"
    yield from settled(estate, results, "NoStaticEgressGateway", fine, gateways, pods)


@check_each("k8s-svc-egress-gateway", each_pod("NoServiceEgressGateway", "none is labelled for the service gateway"))
def k8s_svc_egress_gateway(_estate: Estate, _policy: Policy, pod: Pod) -> Iterator[CheckResult]:
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
