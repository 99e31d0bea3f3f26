"""Which pods are the agents of `trustedNodeAgents`, such as NVIDIA's device plug-in, recognised by their spec.

A pod is one when an entry names its controller and namespace and each of its containers runs an image of an entry for
that controller. It may then have rights over its node and the node's folders (`k8s-privileged`), with
`hostNetwork: true` in each entry its node's network too (`k8s-hostnetwork`), and nothing else: no open egress, no wide
rule, no image from a registry that is not allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from hermetic.api.node_agents import TrustedNodeAgent
from hermetic.audit.estate.kubernetes.images import digest_of, registry_of, repository_of

if TYPE_CHECKING:  # an audit without a cluster need not import the models of pods
    from hermetic.audit.estate.kubernetes.pods import Pod
    from hermetic.audit.policy import Policy


def from_elsewhere(agents: Iterable[TrustedNodeAgent], allowed: Collection[str]) -> Iterator[str]:
    """Text for each entry that cannot count because its registry is not allowed."""
    known = {one.lower() for one in allowed}
    for place, one in enumerate(agents):
        if registry_of(one.image) not in known:
            words = f"registry {registry_of(one.image)} is not in `allowedRegistries`"
            yield f"`trustedNodeAgents.{place}.image`: {words}"


def is_trusted(pod: Pod, agents: Iterable[TrustedNodeAgent]) -> bool:
    """Whether a pod is one of the agents: every container of it, init and ephemeral ones too."""
    entries = [one for one in agents if _is_run_by(one, pod)]
    images = [container.image for container in pod.containers]
    return bool(entries) and bool(images) and all(any(_names(one, image) for one in entries) for image in images)


def with_entries(remedy: str, pod: Pod, policy: Policy, *, host_network: bool) -> str:
    """The remedy, and the entries that would name the pod as an agent, filled in from its spec.

    Only for a pod that a controller made: a bare pod cannot be an agent.
    """
    kind = pod.workload.partition(" ")[0].rpartition("/")[2]
    if pod.metadata.controller is None or kind == "Node":
        return remedy
    images = dict.fromkeys(container.image for container in pod.containers)
    fields = f"namespace: {pod.namespace}, owner: {kind}/{pod.workload_name}"
    flag = ", hostNetwork: true" if host_network else ""
    entries = ", ".join(f"{{{fields}, image: {_by_digest(one)}{flag}}}" for one in images)
    foreign = {registry_of(one) for one in images} - {one.lower() for one in policy.allowed_registries}
    first = f" List {', '.join(sorted(foreign))} under `allowedRegistries` first, if it is yours." if foreign else ""
    tags = " Name the image by digest in the controller, and put that digest in place of DIGEST."
    by_tag = tags if any(not digest_of(one) for one in images) else ""
    where = "in the file given to --policy, and in the operator's configuration"
    return f"""An agent of yours that needs it, such as a network plug-in or a driver: name it
{where}.{first}{by_tag}
trustedNodeAgents: [{entries}]
Any other workload: {remedy[:1].lower()}{remedy[1:]}
"""


def _by_digest(image: str) -> str:
    return f"{repository_of(image)}@{digest_of(image) or 'sha256:DIGEST'}"


def other_images(pod: Pod, agents: Iterable[TrustedNodeAgent]) -> tuple[str, ...]:
    """Images of a pod whose controller is named by an entry, that no entry lists."""
    entries = [one for one in agents if _is_run_by(one, pod)]
    images = dict.fromkeys(container.image for container in pod.containers)
    return tuple(one for one in images if entries and not any(_names(entry, one) for entry in entries))


def met_nothing(agents: Iterable[TrustedNodeAgent], pods: Collection[Pod]) -> Iterator[str]:
    """Text for each entry that no container of any pod matches: often a typing error, or an agent was updated."""
    for one in agents:
        if not any(_is_run_by(one, pod) and any(_names(one, each.image) for each in pod.containers) for pod in pods):
            words = f"trustedNodeAgents: {one.owner} in {one.namespace} with image {one.image}"
            yield f"{words} is in no pod of the cluster, and counts for nothing"


def _is_run_by(agent: TrustedNodeAgent, pod: Pod) -> bool:
    kind = pod.workload.partition(" ")[0].rpartition("/")[2]
    is_made = pod.metadata.controller is not None
    return is_made and pod.namespace == agent.namespace and f"{kind}/{pod.workload_name}" == agent.owner


def _names(agent: TrustedNodeAgent, image: str) -> bool:
    """Whether the repository, with its registry's host, is the same, and the digest if the entry has one."""
    wanted = digest_of(agent.image)
    return repository_of(image) == repository_of(agent.image) and (not wanted or digest_of(image) == wanted)
