"""One object for each check that it must fail: where it is created, what it is, and what the finding calls it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

Manifest = dict[str, Any]
Planted = tuple[str, Manifest, str]
"""Collection, manifest, and the resource of the finding."""

IMAGE = f"contoso.azurecr.io/app@sha256:{'0' * 64}"


def unique(stem: str) -> str:
    """A name for an object of the whole cluster that no other test has."""
    return f"{stem}-{secrets.token_hex(3)}"


def pod(name: str, **spec: Any) -> Manifest:
    """A pod that nothing starts: no node has its label."""
    container = {"name": "main", "image": IMAGE}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "nodeSelector": {"no": "where"}, **spec}}


def planted_in(namespace: str, check: str) -> Planted:
    """What to plant for a check; of a namespace, where the kind has one."""
    return _PLANTS[check](namespace)


def _service(**spec: Any) -> Callable[[str], Planted]:
    manifest = {"metadata": {"name": "out"}, "spec": spec}
    return lambda namespace: (f"/api/v1/namespaces/{namespace}/services", manifest, f"v1/Service {namespace}/out")


def _pod(metadata: Manifest | None = None, **spec: Any) -> Callable[[str], Planted]:
    manifest = pod("out", **spec)
    manifest["metadata"] |= metadata or {}
    return lambda namespace: (f"/api/v1/namespaces/{namespace}/pods", manifest, f"v1/Pod {namespace}/out")


def _container(**fields: Any) -> Callable[[str], Planted]:
    return _pod(containers=[{"name": "main", "image": IMAGE, **fields}])


def _open_namespace(namespace: str) -> Planted:
    return f"/api/v1/namespaces/{namespace}/pods", pod("out"), f"v1/Namespace {namespace}"


def _endpoint(namespace: str) -> Planted:
    manifest = {
        "metadata": {"name": "out", "labels": {"kubernetes.io/service-name": "out"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["20.1.2.3"]}],
    }
    collection = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    return collection, manifest, f"discovery.k8s.io/v1/EndpointSlice {namespace}/out"


def _wide_policy(namespace: str) -> Planted:
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}
    collection = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    reference = f"networking.k8s.io/v1/NetworkPolicy {namespace}/out"
    return collection, {"metadata": {"name": "out"}, "spec": spec}, reference


def _webhook(_namespace: str) -> Planted:
    name = unique("hook")
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": "https://hook.example.com/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [],
    }
    collection = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    reference = f"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration {name}"
    return collection, {"metadata": {"name": name}, "webhooks": [hook]}, reference


def _nfs_class(_namespace: str) -> Planted:
    name = unique("nfs")
    manifest = {"metadata": {"name": name}, "provisioner": "file.csi.azure.com", "parameters": {"protocol": "nfs"}}
    return "/apis/storage.k8s.io/v1/storageclasses", manifest, f"storage.k8s.io/v1/StorageClass {name}"


def _writable_share(_namespace: str) -> Planted:
    name = unique("writable")
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "csi": {"driver": "file.csi.azure.com", "volumeHandle": name},
    }
    return "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec}, f"v1/PersistentVolume {name}"


_PLANTS: Mapping[str, Callable[[str], Planted]] = {
    "k8s-public-lb": _service(type="LoadBalancer", ports=[{"port": 80}]),
    "k8s-externalips": _service(ports=[{"port": 80}], externalIPs=["20.1.2.3"]),
    "k8s-externalname": _service(type="ExternalName", externalName="huggingface.co"),
    "k8s-endpoints-external": _endpoint,
    "k8s-hostnetwork": _pod(hostNetwork=True),
    "k8s-privileged": _pod(hostPID=True),
    "k8s-proxy-env": _container(env=[{"name": "https_proxy", "value": "http://10.0.0.4:3128"}]),
    "k8s-image-origin": _container(image="nginx"),
    "k8s-hf-offline": _container(resources={"limits": {"nvidia.com/gpu": "1"}}),
    "k8s-default-deny-egress": _open_namespace,
    "k8s-static-egress": _pod({"annotations": {"kubernetes.azure.com/static-gateway-configuration": "gateway"}}),
    "k8s-svc-egress-gateway": _pod({"labels": {"kubernetes.azure.com/service-egress-gateway": "x"}}),
    "k8s-policy-allow-all": _wide_policy,
    "k8s-webhook-external": _webhook,
    "csi-nfs-storageclass": _nfs_class,
    "weights-share-writable": _writable_share,
}
CHECKS_PLANTED = tuple(_PLANTS)
