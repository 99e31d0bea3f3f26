"""Running pods, and pods that templates would create: one list for all checks of workloads."""

from __future__ import annotations

from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.calls import MutatingWebhookConfiguration
from hermetic.audit.estate.kubernetes.nodes import Namespace, Node
from hermetic.audit.estate.kubernetes.platform import (
    KUBE_SYSTEM,
    PLATFORM_NAMESPACES,
    SHOWN_BY,
    PlatformTrust,
    is_hook_of_mesh,
    may_use_the_host_network,
)
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.served import SERVED, ServedGroup
from hermetic.audit.estate.kubernetes.templates import CONTROLLERS, DaemonSet, Resting, as_pod
from hermetic.audit.estate.observation import Listing, merged
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.node_agents import is_trusted
from hermetic.errors import FactDamaged


@derived
def pods_and_templates(estate: Estate) -> Listing[Pod]:
    """All pods, and one for each template without a pod that can still make one and has a node to run on.

    It has the first problem of the lists it is made from.
    """
    return merged("", everywhere(estate, Pod), *(_as_pods(estate, kind) for kind in CONTROLLERS))


def _as_pods(estate: Estate, kind: type[Resting]) -> Listing[Pod]:
    listing = everywhere(estate, kind)
    terminating = _terminating_namespaces(estate)
    able = listing.where(lambda controller: controller.namespace not in terminating)
    counted_templates = able.where(lambda controller: not _can_run_nowhere(estate, controller))
    pods = tuple(pod for controller in counted_templates if (pod := as_pod(controller)) is not None)
    namespaces = everywhere(estate, Namespace).evidence if len(able) < len(listing) else ()
    nodes = everywhere(estate, Node).evidence if len(counted_templates) < len(able) else ()
    return Listing(listing.target, pods, (*listing.evidence, *namespaces, *nodes), listing.problem)


@derived
def _terminating_namespaces(estate: Estate) -> frozenset[str]:
    """Namespaces in which the API server creates no pod any more; pods that are there still count.

    When a namespace is deleted, Kubernetes deletes its pods first and then everything else in no order (release 1.34;
    KEP-5080, Ordered Namespace Deletion), so that controllers without pods outlive the NetworkPolicies.
    """
    return frozenset(
        namespace.metadata.name for namespace in everywhere(estate, Namespace) if _is_terminating(namespace)
    )


def _is_terminating(namespace: Namespace) -> bool:
    """False also where its phase cannot be read."""
    try:
        return namespace.is_terminating
    except FactDamaged:
        return False


def _can_run_nowhere(estate: Estate, controller: Resting) -> bool:
    """Whether it is one of AKS's DaemonSets for Windows in a cluster without a Windows node.

    In the platform's namespaces only: AKS installs such DaemonSets in every cluster, under names that change with its
    releases. A label of a node cannot hide a node here: one that is not `linux` ends the exception.
    """
    is_candidate = isinstance(controller, DaemonSet) and controller.namespace in _namespaces_of_the_platform(estate)
    return is_candidate and controller.waits_for_windows and _has_linux_nodes_only(estate)


@derived
def _has_linux_nodes_only(estate: Estate) -> bool:
    """Whether the list of nodes is complete and each node is known to be of Linux."""
    nodes = everywhere(estate, Node)
    try:
        return nodes.problem is None and bool(nodes.items) and all(node.is_linux for node in nodes)
    except FactDamaged:
        return False


def belongs_on_the_host_network(estate: Estate, policy: Policy, pod: Pod) -> bool:
    """Whether it is a component of AKS that needs its node's network, or an agent that the policy trusts with it."""
    agents = [agent for agent in policy.trusted_node_agents if agent.host_network]
    return may_use_the_host_network(pod, trust_of(estate, policy)) or is_trusted(pod, agents)


@derived
def trust_of(estate: Estate, policy: Policy) -> PlatformTrust:
    """The trust settings; a namespace that needs an API group counts only where the API server serves that group."""
    approved = frozenset(registry.lower() for registry in policy.allowed_registries)
    return PlatformTrust(approved, _trusted_namespaces(estate), _has_mesh(estate))


def _namespaces_of_the_platform(estate: Estate) -> frozenset[str]:
    return PLATFORM_NAMESPACES & _trusted_namespaces(estate)


@derived
def _has_mesh(estate: Estate) -> bool:
    """Whether AKS's service mesh add-on is installed; False where the configuration of its hook cannot be read."""
    return any(_is_hook_of_mesh(configuration) for configuration in everywhere(estate, MutatingWebhookConfiguration))


def _is_hook_of_mesh(configuration: MutatingWebhookConfiguration) -> bool:
    try:
        return is_hook_of_mesh(configuration)
    except FactDamaged:
        return False


@derived
def _trusted_namespaces(estate: Estate) -> frozenset[str]:
    served = {group.id for group in estate.every(ServedGroup, SERVED.target)}
    return frozenset({KUBE_SYSTEM, *(namespace for namespace, group in SHOWN_BY.items() if group in served)})
