"""The network plug-in of AKS's service mesh add-on is known where the add-on's webhook shows that it is installed.

Sources: learn.microsoft.com/azure/aks/istio-cni (DaemonSet and namespace), istio/istio manifests/charts/istio-cni
(rights and folders); the images of the add-on are mcr.microsoft.com/oss/istio and, of later revisions, oss/v2/istio.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calls import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from hermetic.audit.model.findings import Verdict
from tests.kubernetes_estates import (
    REGISTRY,
    Manifest,
    container,
    findings,
    manifest,
    owned,
    pod,
    sealed_cluster,
    verdicts,
)

MESH, NAME = "aks-istio-system", "azure-service-mesh-istio-cni-addon-node"
IMAGE = "mcr.microsoft.com/oss/v2/istio/install-cni:v1.27.7-1"
CAPABILITIES = {"add": ["NET_ADMIN", "NET_RAW", "SYS_PTRACE", "SYS_ADMIN", "DAC_OVERRIDE"], "drop": ["ALL"]}
FOLDERS = ("/opt/cni/bin", "/proc", "/etc/cni/net.d", "/var/run/istio-cni", "/var/run/netns")
CHECKS = ("k8s-privileged", "k8s-image-origin", "k8s-hostnetwork")


def hook(
    name: str = "istio-sidecar-injector-asm-1-27-aks-istio-system", space: str = MESH, kind: Any = None
) -> Manifest:
    webhooks = [{"name": "rev.istio.io", "clientConfig": {"service": {"namespace": space, "name": "istiod-asm-1-27"}}}]
    return manifest(kind or MutatingWebhookConfiguration, name, webhooks=webhooks)


def plug_in(
    name: str = NAME,
    namespace: str = MESH,
    *,
    image: str = IMAGE,
    kind: str = "DaemonSet",
    context: Manifest | None = None,
    folders: tuple[str, ...] = FOLDERS,
    **spec: Any,
) -> Manifest:
    volumes = [{"name": f"v{number}", "hostPath": {"path": path}} for number, path in enumerate(folders)]
    rights = {"capabilities": CAPABILITIES, **(context or {})}
    containers = [container(name="install-cni", image=image, securityContext=rights)]
    spec = {"containers": containers, "volumes": volumes, **spec}
    return pod(f"{name}-x2b4c", namespace, ownerReferences=owned(kind, name), spec=spec)


def failed_checks(*manifests: Manifest, **how: Any) -> set[str]:
    """The checks that do not pass in a sealed cluster with these objects."""
    cluster = [*sealed_cluster(), *manifests]
    return {check for check in CHECKS if set(verdicts(check, cluster, **how).values()) != {Verdict.PASS}}


@pytest.mark.parametrize("image", [IMAGE, "mcr.microsoft.com/oss/istio/install-cni:1.25.3-distroless"])
def test_plug_in_of_the_add_on_may_have_its_rights(image: str) -> None:
    assert failed_checks(hook(), plug_in(image=image)) == set()


HOOKS = {
    "no hook": (),
    "hook of an own mesh": (hook("istio-sidecar-injector", "istio-system"),),
    "hook that calls another namespace": (hook(space="team"),),
    "hook by another name": (hook("istio-sidecar-injector-asm-1-27-team"),),
    "hook that calls nothing": (manifest(MutatingWebhookConfiguration, hook()["metadata"]["name"]),),
    "validating hook": (hook(kind=ValidatingWebhookConfiguration),),
    "unreadable hook": ({**hook(), "webhooks": "x"},),
}


@pytest.mark.parametrize("hooks", HOOKS.values(), ids=HOOKS)
def test_plug_in_without_the_hook_of_the_add_on_fails(hooks: tuple[Manifest, ...]) -> None:
    assert "k8s-privileged" in failed_checks(*hooks, plug_in())


def test_plug_in_with_unreadable_hooks_fails() -> None:
    assert "k8s-privileged" in failed_checks(hook(), plug_in(), forbidden=[MutatingWebhookConfiguration])


# What the webhook of the add-on puts into a pod without the plug-in: istio/istio, manifests/charts/istio-control/
# istio-discovery/files/injection-template.yaml.
def injected(image: str = "mcr.microsoft.com/oss/v2/istio/proxyv2:v1.27.7-1", **of_container: Any) -> Manifest:
    """A pod of the Deployment team/web that was injected without the plug-in."""
    rights = {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}, "privileged": False}
    init = container(name="istio-init", image=image, securityContext=rights)
    spec = {"initContainers": [init], "containers": [container(**of_container)]}
    labels = {"pod-template-hash": "5f7"}
    return pod("web-5f7-abcde", "team", labels=labels, ownerReferences=owned("ReplicaSet", "web-5f7"), spec=spec)


def remedy_for(manifest: Manifest) -> str:
    (finding,) = findings("k8s-privileged", [*sealed_cluster(), manifest])
    assert finding.verdict is Verdict.FAIL
    return finding.remedy


RESTART = "kubectl --namespace team rollout restart deployment.apps/web"


@pytest.mark.parametrize("path", ["oss/istio", "oss/v2/istio"])
def test_pod_injected_by_the_add_on_is_mended_by_its_plug_in(path: str) -> None:
    remedy = remedy_for(injected(f"mcr.microsoft.com/{path}/proxyv2:1.27.7"))
    assert "az aks mesh enable-istio-cni --subscription " in remedy
    assert RESTART in remedy


def test_pod_injected_by_a_mesh_of_ones_own_is_mended_by_its_plug_in() -> None:
    remedy = remedy_for(injected(f"{REGISTRY}/istio/proxyv2:1.27.7"))
    assert "az aks" not in remedy
    assert "Istio CNI" in remedy
    assert RESTART in remedy


def test_injected_pod_without_a_controller_is_not_restarted_by_one() -> None:
    bare = injected()
    del bare["metadata"]["ownerReferences"]
    remedy = remedy_for(bare)
    assert "enable-istio-cni" in remedy
    assert "rollout" not in remedy


def test_injected_pod_with_a_right_of_its_own_keeps_the_remedy_for_workloads() -> None:
    remedy = remedy_for(injected(securityContext={"privileged": True}))
    assert "enable-istio-cni" not in remedy
    assert "Take the right that the finding names out" in remedy or "any other workload" in remedy.lower()


OTHERS = {
    "another namespace": plug_in(namespace="team"),
    "another name": plug_in(f"{NAME}-2"),
    "another kind": plug_in(kind="StatefulSet"),
    "another image of Microsoft": plug_in(image="mcr.microsoft.com/azure-cli:2.70.0"),
    "another project": plug_in(image="mcr.microsoft.com/oss/v2/kubernetes/kubectl:v1"),
    "another registry": plug_in(image="example.com/oss/istio/install-cni:1"),
    "a folder of the kubelet": plug_in(folders=(*FOLDERS, "/var/lib/kubelet")),
    "the root of the node": plug_in(folders=("/",)),
    "a path that leads up": plug_in(folders=("/opt/cni/bin/../../..",)),
    "privileged": plug_in(context={"privileged": True}),
    "every capability": plug_in(context={"capabilities": {"add": ["ALL"]}}),
    "another capability": plug_in(context={"capabilities": {"add": ["NET_ADMIN", "SYS_MODULE"]}}),
    "unmasked /proc": plug_in(context={"procMount": "Unmasked"}),
    "host process of Windows": plug_in(securityContext={"windowsOptions": {"hostProcess": True}}),
    "processes of the node": plug_in(hostPID=True),
    "memory of the node": plug_in(hostIPC=True),
    "another container": plug_in(ephemeralContainers=[container(image="mcr.microsoft.com/azure-cli:2.70.0")]),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_pod_unlike_the_plug_in_fails(other: Manifest) -> None:
    assert "k8s-privileged" in failed_checks(hook(), other)


def test_plug_in_on_the_network_of_its_node_fails() -> None:
    assert failed_checks(hook(), plug_in(hostNetwork=True)) == {"k8s-hostnetwork"}
