"""Which pods are the agents of `trustedNodeAgents`, such as NVIDIA's device plug-in, recognised by their spec.

A pod is one when an entry names its controller and namespace and each of its containers runs an image of an entry for
that controller. It may then have rights over its node and the node's folders (`k8s-privileged`), with
`hostNetwork: true` in each entry its node's network too (`k8s-hostnetwork`), and nothing else: no open egress, no wide
rule, no image from a registry that is not allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from hermetic.api.image_references import digest_of, registry_of, repository_of
from hermetic.api.node_agents import TrustedNodeAgent
from hermetic.audit.estate.kubernetes.images import MICROSOFT

if TYPE_CHECKING:  # an audit without a cluster need not import the models of pods
    from hermetic.audit.estate.kubernetes.pods import Pod
    from hermetic.audit.policy.declarations import Policy


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")


def is_trusted(pod: Pod, agents: Iterable[TrustedNodeAgent]) -> bool:
    """Whether a pod is one of the agents: every container of it, init and ephemeral ones too."""
    entries = [agent for agent in agents if _is_run_by(agent, pod)]
    images = [container.image for container in pod.containers]
    return bool(entries) and bool(images) and all(any(_names(entry, image) for entry in entries) for image in images)


def with_entries(
    remedy: str, pod: Pod, policy: Policy, *, host_network: bool, images_beside: Collection[str] = ()
) -> str:
    """The remedy, and the entries that would name the pod as an agent, filled in from its spec.

    Only for a pod that a controller made: a bare pod cannot be an agent. `images_beside` are those of all agents of the
    namespace: one entry then names the images of one path. With the node's network each image needs a digest.
    """
    kind = pod.workload.partition(" ")[0].rpartition("/")[2]
    if pod.metadata.controller is None or kind == "Node":
        return remedy
    images = dict.fromkeys(container.image for container in pod.containers)
    # The API server takes any text as an image and as the name of an owner: lines of it would be commands in a remedy.
    if not all(map(_PLAIN.fullmatch, (pod.namespace, f"{kind}/{pod.workload_name}", *images))):
        return remedy
    foreign = {registry_of(image) for image in images} - {registry.lower() for registry in policy.allowed_registries}
    if foreign and all(registry_of(image) in MICROSOFT for image in images):
        return _as_exception(remedy, pod)
    images_beside = [image for image in images_beside if _PLAIN.fullmatch(image)]
    shared = set() if host_network or kind != "DaemonSet" else _shared_paths({*images, *images_beside})
    by_name = [image for image in images if _path_of(image) not in shared]
    flag = ", hostNetwork: true" if host_network else ""
    paths = dict.fromkeys(path for image in images if (path := _path_of(image)) in shared)
    entries = [
        *(f"{{namespace: {pod.namespace}, owner: DaemonSet/*, image: {path}/*}}" for path in paths),
        *(
            f"{{namespace: {pod.namespace}, owner: {kind}/{pod.workload_name}, image: {_by_digest(image)}{flag}}}"
            for image in by_name
        ),
    ]
    first = f" List {', '.join(sorted(foreign))} under `allowedRegistries` first, if it is yours." if foreign else ""
    tags = " Name the image by digest in the controller, and put that digest in place of DIGEST."
    by_tag = tags if any(not digest_of(image) for image in by_name) else ""
    wide = " Users who may make DaemonSets in the namespace can run every image of such a path." if paths else ""
    where = "in the file given to --policy, and in the operator's configuration"
    return f"""An agent of yours that needs it, such as a network plug-in or a driver: name it
{where}.{first}{by_tag}{wide}
trustedNodeAgents: [{", ".join(entries)}]
Any other workload: {remedy[:1].lower()}{remedy[1:]}
"""


def _as_exception(remedy: str, pod: Pod) -> str:
    """The remedy of a workload that runs Microsoft's images alone, such as an add-on that this release does not know.

    Its controller is not the user's to change, and Microsoft's registry in `allowedRegistries` would let every workload
    run each of its images.
    """
    return f"""Its images are all of Microsoft's registry, and this release knows no part of AKS of this name.
Its labels tell what installed it. Where that is an add-on or an extension that you need, accept
{pod.workload} by an exception in the file given to --exceptions. Otherwise turn it off.
kubectl get daemonsets,deployments --namespace {pod.namespace} --show-labels
Any other workload: {remedy[:1].lower()}{remedy[1:]}
"""


def _shared_paths(images: Collection[str]) -> set[str]:
    """Paths, with their registry, below which there are two or more of the repositories; never a registry alone."""
    paths = Counter(_path_of(repository) for repository in {repository_of(image) for image in images})
    return {path for path, count in paths.items() if count > 1 and "/" in path}


def _path_of(image: str) -> str:
    return repository_of(image).rpartition("/")[0]


def _by_digest(image: str) -> str:
    return f"{repository_of(image)}@{digest_of(image) or 'sha256:DIGEST'}"


def other_images(pod: Pod, agents: Iterable[TrustedNodeAgent]) -> tuple[str, ...]:
    """Images of a pod whose controller is named by an entry, that no entry lists."""
    entries = [agent for agent in agents if _is_run_by(agent, pod)]
    images = dict.fromkeys(container.image for container in pod.containers)
    return tuple(image for image in images if entries and not any(_names(entry, image) for entry in entries))


def met_nothing(agents: Iterable[TrustedNodeAgent], pods: Collection[Pod]) -> Iterator[str]:
    """Text for each entry that no container of any pod matches: often a typing error, or an agent was updated."""
    for agent in agents:
        if not any(
            _is_run_by(agent, pod) and any(_names(agent, container.image) for container in pod.containers)
            for pod in pods
        ):
            description = f"trustedNodeAgents: {agent.owner} in {agent.namespace} with image {agent.image}"
            yield f"{description} is in no pod of the cluster, and is ignored"


def _is_run_by(agent: TrustedNodeAgent, pod: Pod) -> bool:
    kind = pod.workload.partition(" ")[0].rpartition("/")[2]
    owner, prefix = f"{kind}/{pod.workload_name}", agent.owner.removesuffix("*")
    is_owner = owner == agent.owner or (prefix != agent.owner and owner.startswith(prefix))
    return pod.metadata.controller is not None and pod.namespace == agent.namespace and is_owner


def _names(agent: TrustedNodeAgent, image: str) -> bool:
    """Whether the repository, with its registry's host, is the same or below its path, and the digest if it has one."""
    if agent.image.endswith("/*"):
        return repository_of(image).startswith(agent.image.removesuffix("*"))
    digest = digest_of(agent.image)
    return repository_of(image) == repository_of(agent.image) and (not digest or digest_of(image) == digest)
