"""Kubernetes objects as an API server shows them: what was written, and the pods that controllers made of it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Manifest = dict[str, Any]

MICROSOFT = "mcr.microsoft.com"
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(frozen=True)
class Machine:
    """A node of the cluster, as its own pods need to know it."""

    name: str
    address: str
    pool: str
    mode: str = "User"
    arm_id: str = ""
    gpus: int = 0


@dataclass(frozen=True)
class Part:
    """What one pod of a workload is: image, account, and the rights that its manifest asks for."""

    image: str
    account: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    host_network: bool = False
    host_pid: bool = False
    privileged: bool = False
    capabilities: Sequence[str] = ()
    folders: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    first: Sequence[str] = ()
    """Images of init containers, with the rights of the others."""
    beside: Sequence[str] = ()
    """Images of further containers."""
    node_os: str = ""
    """Operating system that it selects nodes by; "": any."""


def an_object(version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    """A manifest with a uid of its own; `labels`, `annotations` and `ownerReferences` go into its metadata."""
    metadata: Manifest = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata["uid"] = uid_of(kind, namespace, name)
    metadata |= {key: fields.pop(key) for key in ("labels", "annotations", "ownerReferences") if fields.get(key)}
    fields = {key: value for key, value in fields.items() if key not in {"labels", "annotations", "ownerReferences"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def uid_of(*names: str) -> str:
    """The same for the same names."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(names)))


def owner(version: str, kind: str, name: str, namespace: str = "") -> list[Manifest]:
    """The reference of a controller to what it made."""
    uid = uid_of(kind, namespace, name)
    return [
        {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True, "blockOwnerDeletion": True}
    ]


def namespace(name: str, **labels: str) -> Manifest:
    """A namespace; keyword `control_plane=` and the like become labels by AKS's own spelling."""
    return an_object(
        "v1", "Namespace", name, labels={"kubernetes.io/metadata.name": name, **labels}, status={"phase": "Active"}
    )


def agent(name: str, space: str, part: Part, machines: Sequence[Machine]) -> list[Manifest]:
    """A DaemonSet, and its pod on each of these machines."""
    owners, count = owner("apps/v1", "DaemonSet", name, space), len(machines)
    return [
        _workload("DaemonSet", name, space, part, {"numberReady": count, "desiredNumberScheduled": count}),
        *(a_pod(f"{name}-{_suffix(name, machine.name)}", space, part, machine, owners) for machine in machines),
    ]


def controller(name: str, space: str, part: Part, machines: Sequence[Machine]) -> list[Manifest]:
    """A Deployment with one replica on each of these machines."""
    digest = _suffix(name, space, length=9)
    owners = owner("apps/v1", "ReplicaSet", f"{name}-{digest}", space)
    hashed = replace(part, labels={**part.labels, "pod-template-hash": digest})
    return [
        _workload("Deployment", name, space, part, {"readyReplicas": len(machines)}),
        *(
            a_pod(f"{name}-{digest}-{_suffix(name, machine.name)}", space, hashed, machine, owners)
            for machine in machines
        ),
    ]


def a_pod(name: str, space: str, part: Part, machine: Machine, owners: list[Manifest]) -> Manifest:
    """One running pod."""
    status = {**RUNNING, "hostIP": machine.address}
    if part.host_network:
        status["podIPs"] = [{"ip": machine.address}]
    return an_object(
        "v1",
        "Pod",
        name,
        space,
        labels=dict(part.labels),
        ownerReferences=owners,
        spec={"nodeName": machine.name, **_pod_spec(part)},
        status=status,
    )


def _workload(kind: str, name: str, space: str, part: Part, status: Manifest) -> Manifest:
    labels = dict(part.labels)
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(part)}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return an_object("apps/v1", kind, name, space, labels=labels, spec=spec, status=status)


def _pod_spec(part: Part) -> Manifest:
    volumes = [{"name": f"host-{number}", "hostPath": {"path": path}} for number, path in enumerate(part.folders)]
    mounts = [{"name": volume["name"], "mountPath": path} for volume, path in zip(volumes, part.folders, strict=True)]
    context: Manifest = {}
    if part.privileged:
        context["privileged"] = True
    if part.capabilities:
        context["capabilities"] = {"add": list(part.capabilities)}
    rights = {**({"securityContext": context} if context else {}), **({"volumeMounts": mounts} if mounts else {})}
    env = [{"name": name, "value": value} for name, value in part.env.items()]
    main = {"name": "main", "image": part.image, **rights, **({"env": env} if env else {})}
    if part.limits:
        main["resources"] = {"limits": dict(part.limits)}
    spec: Manifest = {
        "serviceAccountName": part.account,
        "containers": [main, *({"name": f"side-{n}", "image": one, **rights} for n, one in enumerate(part.beside))],
    }
    if part.first:
        spec["initContainers"] = [{"name": f"init-{n}", "image": one, **rights} for n, one in enumerate(part.first)]
    if volumes:
        spec["volumes"] = volumes
    spec |= {"hostNetwork": True} if part.host_network else {}
    spec |= {"nodeSelector": {"kubernetes.io/os": part.node_os}} if part.node_os else {}
    return spec | ({"hostPID": True} if part.host_pid else {})


def _suffix(*names: str, length: int = 5) -> str:
    """Letters as Kubernetes draws them for generated names, always the same for the same names."""
    letters = "bcdfghjklmnpqrstvwxz2456789"
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return "".join(letters[one % len(letters)] for one in digest[:length])


def service(name: str, space: str, selector: Mapping[str, str], port: int, **spec: Any) -> Manifest:
    """A Service inside the cluster."""
    whole = {"type": "ClusterIP", "selector": dict(selector), "ports": [{"port": port}], **spec}
    return an_object("v1", "Service", name, space, spec=whole, status={"loadBalancer": {}})


def plural(kind: str) -> str:
    """As the API server's own kinds and those of AKS's add-ons are spelt in a path."""
    name = kind.lower()
    if name.endswith("y") and name[-2] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"


def definition(version: str, kind: str) -> Manifest:
    """The CustomResourceDefinition of a kind, by its group and version."""
    group, _, bare = version.partition("/")
    spec = {
        "group": group,
        "names": {"plural": plural(kind), "kind": kind},
        "versions": [{"name": bare, "served": True, "storage": True}],
    }
    version = "apiextensions.k8s.io/v1"
    return an_object(version, "CustomResourceDefinition", f"{plural(kind)}.{group}", spec=spec)


def default_deny(space: str) -> Manifest:
    """Every pod of the namespace may go only where another policy lets it."""
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    return an_object("networking.k8s.io/v1", "NetworkPolicy", "default-deny", space, spec=spec)


def webhook(kind: str, name: str, space: str, called: str) -> Manifest:
    """A webhook configuration that calls a Service."""
    hook = {
        "name": f"{name}.azmk8s.io",
        "clientConfig": {"service": {"name": called, "namespace": space, "path": "/"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return an_object("admissionregistration.k8s.io/v1", kind, name, webhooks=[hook])
