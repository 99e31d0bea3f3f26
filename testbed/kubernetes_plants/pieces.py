"""Pieces of manifests that plants are made of. They assume nothing but what every cluster has."""

from __future__ import annotations

from typing import Any

from testbed.kubernetes_plants.plant import Manifest, Manifests

NAMESPACE = "planted"
PUBLIC_IP = "203.0.113.7"
"""RFC 5737, in place of any public address."""
OUTSIDE = "collector.example.com"
"""RFC 2606, in place of any name outside."""
DEFAULT_IMAGE = f"contoso.azurecr.io/app@sha256:{'0' * 64}"
_OF_THE_PLATFORM = ("mcr.microsoft.com/", "mcr.azk8s.cn/")


def put(manifests: Manifests, one: Manifest) -> str:
    """Adds an object, or puts it in the place of the one of its name; returns its reference."""
    manifests[:] = [other for other in manifests if _identity(other) != _identity(one)]
    manifests.append(one)
    return reference(one)


def reference(one: Manifest) -> str:
    """ "v1/Service planted/shop"."""
    namespace = one["metadata"].get("namespace", "")
    return f"{one['apiVersion']}/{one['kind']} {namespace + '/' if namespace else ''}{one['metadata']['name']}"


def manifest(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    """An object; `labels`, `annotations` and `ownerReferences` go into its metadata."""
    metadata: Manifest = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= {key: fields.pop(key) for key in ("labels", "annotations", "ownerReferences") if key in fields}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def closed_namespace(manifests: Manifests) -> str:
    """A namespace whose pods no policy lets out; made where it is not there."""
    if not any(manifest["kind"] == "Namespace" and manifest["metadata"]["name"] == NAMESPACE for manifest in manifests):
        closed = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
        manifests.append(manifest("v1", "Namespace", NAMESPACE))
        manifests.append(manifest("networking.k8s.io/v1", "NetworkPolicy", "default-deny", NAMESPACE, spec=closed))
    return NAMESPACE


def image(manifests: Manifests) -> str:
    """An image that the cluster's own workloads run: from a registry that its policy approves."""
    for manifest in manifests:
        if manifest["kind"] == "Pod" and manifest["metadata"].get("namespace") != "kube-system":
            for container in manifest["spec"].get("containers", ()):
                if container.get("image") and not container["image"].startswith(_OF_THE_PLATFORM):
                    return str(container["image"])
    return DEFAULT_IMAGE


def node(manifests: Manifests) -> Manifest:
    """The first machine of the cluster."""
    return next(manifest for manifest in manifests if manifest["kind"] == "Node")


def container(manifests: Manifests, **fields: Any) -> Manifest:
    """A container without any right."""
    return {"name": "main", "image": image(manifests), **fields}


def gpu_container(manifests: Manifests, *variables: Manifest, **fields: Any) -> Manifest:
    """A model server that is set to stay offline."""
    offline = [{"name": name, "value": "1"} for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")]
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    return container(manifests, resources=resources, env=[*offline, *variables], **fields)


def put_pod(manifests: Manifests, *, of: Manifest | None = None, spec: Manifest | None = None, **fields: Any) -> str:
    """A running pod `planted/way-out` in a closed namespace; `of` is its container."""
    whole = {
        "nodeName": node(manifests)["metadata"]["name"],
        "automountServiceAccountToken": False,
        "containers": [of or container(manifests)],
        **(spec or {}),
    }
    status = {"phase": "Running", "podIPs": [{"ip": "10.244.7.7"}]}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("v1", "Pod", "way-out", namespace, spec=whole, status=status, **fields))


def variable(name: str, value: str) -> Manifest:
    """An environment variable."""
    return {"name": name, "value": value}


def host_path(path: str) -> Manifest:
    """A pod spec's part with this folder of the node."""
    return {"volumes": [{"name": "host", "hostPath": {"path": path}}]}


def _identity(one: Manifest) -> tuple[str, str, str, str]:
    group = one["apiVersion"].rpartition("/")[0]
    return (group, one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])
