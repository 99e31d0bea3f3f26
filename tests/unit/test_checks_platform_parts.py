"""A part of the platform is known by namespace, controller and images together; others are judged."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from hermetic.audit.estate.kubernetes.policies import NetworkPolicy
from hermetic.audit.findings import Verdict
from hermetic.audit.policy import Policy
from tests.kubernetes_estates import (
    OF_GATEKEEPER,
    OF_TIGERA,
    POLICY,
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

OF_AKS = "mcr.microsoft.com/oss/v2/something:v1"
IMAGES = {
    "calico-system": "mcr.microsoft.com/oss/v2/calico/node:v3.32.1",
    "tigera-operator": "mcr.microsoft.com/oss/tigera/operator:v1",
}
PRIVILEGED = {"securityContext": {"privileged": True}}
SOCKET = [{"name": "s", "hostPath": {"path": "/run/containerd/containerd.sock"}}]
GROUPS = (OF_TIGERA, OF_GATEKEEPER)
RIGHTS = ("k8s-privileged", "k8s-hostnetwork")
OPEN, FINE = Verdict.FAIL, Verdict.PASS


def part(
    kind: str, name: str, namespace: str = "kube-system", *, image: str = "", account: str = "", **spec: Any
) -> Manifest:
    """A pod with rights over its node, made by this controller."""
    version = {"ImageJob": "eraser.sh/v1", "Node": "v1"}.get(kind, "apps/v1")
    owner, labels = owned(kind, name, version), {}
    if kind == "Deployment":
        owner, labels = owned("ReplicaSet", f"{name}-7d9"), {"pod-template-hash": "7d9"}
    image = image or IMAGES.get(namespace, OF_AKS)
    whole = {"containers": [container(image=image, **PRIVILEGED)], "volumes": SOCKET, "serviceAccountName": account}
    return pod(f"{name}-x2b4c", namespace, labels=labels, ownerReferences=owner, spec={**whole, **spec})


def verdict_about(
    check: str, one: Manifest, policy: Policy = POLICY, *, groups: tuple[Manifest, ...] = GROUPS
) -> Verdict:
    """The one verdict about the sealed cluster with this pod, where Calico and Azure Policy are installed."""
    found = set(verdicts(check, [*sealed_cluster(), *groups, one], policy=policy).values())
    assert len(found) == 1
    return found.pop()


class Known(NamedTuple):
    """A documented part."""

    kind: str
    name: str
    namespace: str
    account: str
    on_host: bool

    def pod(self, **other: Any) -> Manifest:
        fields = {"kind": self.kind, "namespace": self.namespace, "hostNetwork": True, **other}
        kind, namespace = fields.pop("kind"), fields.pop("namespace")
        return part(kind, self.name, namespace, account=self.account, **fields)


DOCUMENTED = [
    Known("DaemonSet", "cilium", "kube-system", "cilium", True),
    Known("DaemonSet", "azure-cns", "kube-system", "azure-cns", True),
    Known("DaemonSet", "azure-npm", "kube-system", "azure-npm", True),
    Known("DaemonSet", "acns-security-agent", "kube-system", "", True),
    Known("DaemonSet", "retina-agent", "kube-system", "", True),
    Known("DaemonSet", "csi-azurefile-node", "kube-system", "", True),
    Known("DaemonSet", "cloud-node-manager", "kube-system", "", True),
    Known("DaemonSet", "ama-logs", "kube-system", "", False),
    Known("Deployment", "ama-logs-rs", "kube-system", "", False),
    Known("Deployment", "ama-metrics", "kube-system", "ama-metrics-serviceaccount", False),
    Known("DaemonSet", "ama-metrics-node", "kube-system", "ama-metrics-serviceaccount", False),
    Known("DaemonSet", "ama-metrics-node-xl", "kube-system", "ama-metrics-serviceaccount", False),
    Known("DaemonSet", "microsoft-defender-collector-ds", "kube-system", "microsoft-defender-collector-sa", False),
    Known("DaemonSet", "microsoft-defender-publisher-ds", "kube-system", "", False),
    Known("ImageJob", "imagejob-8xkz2", "kube-system", "eraser-imagejob-pods", False),
    Known("DaemonSet", "calico-node", "calico-system", "calico-node", True),
    Known("Deployment", "tigera-operator", "tigera-operator", "tigera-operator", True),
]


@pytest.mark.parametrize("known", DOCUMENTED, ids=lambda known: known.name)
class TestDocumentedParts:
    def test_may_do_what_is_documented(self, known: Known) -> None:
        one = known.pod(hostNetwork=known.on_host)
        assert [verdict_about(check, one) for check in (*RIGHTS, "k8s-default-deny-egress", "k8s-image-origin")] == [
            FINE
        ] * 4

    def test_by_the_mirror_in_an_allowed_registry_too(self, known: Known) -> None:
        of_microsoft = IMAGES.get(known.namespace, OF_AKS)
        mirrored = of_microsoft.replace("mcr.microsoft.com", f"{REGISTRY}/aks-managed-repository")
        one = known.pod(hostNetwork=known.on_host, image=mirrored)
        assert [verdict_about(check, one) for check in RIGHTS] == [FINE, FINE]

    @pytest.mark.parametrize(
        "other", [{"image": f"{REGISTRY}/tools:1"}, {"namespace": "team"}, {"kind": "StatefulSet"}]
    )
    def test_with_another_image_namespace_or_controller_they_are_judged(
        self, known: Known, other: dict[str, str]
    ) -> None:
        assert [verdict_about(check, known.pod(**other)) for check in RIGHTS] == [OPEN, OPEN]

    def test_the_nodes_network_is_for_those_only_that_need_it(self, known: Known) -> None:
        assert verdict_about("k8s-hostnetwork", known.pod()) is (FINE if known.on_host else OPEN)


# What a tenant with ClusterRole `edit` in a namespace of his own can write: names, labels, service accounts, images,
# owner references. What he cannot write is the namespace.
AS_A_TENANT = [
    part("DaemonSet", "kube-proxy", "team", account="kube-proxy", hostNetwork=True),
    part("DaemonSet", "cilium", "kube-systems", hostNetwork=True),
    part("DaemonSet", "cilium", "Kube-System", hostNetwork=True),
    part("ImageJob", "imagejob-x", "team", account="eraser-imagejob-pods", hostNetwork=True),
    part("Node", "kube-apiserver", "team", hostNetwork=True),
    part("Deployment", "gatekeeper-audit", "gatekeeper-system", hostNetwork=True),
    part("Deployment", "istiod-asm-1-24", "aks-istio-system", hostNetwork=True),
    part("Deployment", "nginx", "app-routing-system", hostNetwork=True),
    part("DaemonSet", "nvidia-device-plugin-daemonset", "gpu-resources", hostNetwork=True),
    part("DaemonSet", "calico-node", "calico-system", image="mcr.microsoft.com/azure-cli:2", hostNetwork=True),
    part("Deployment", "tigera-operator", "tigera-operator", image="mcr.microsoft.com/powershell", hostNetwork=True),
    part("DaemonSet", "source-controller", "flux-system", hostNetwork=True),
    part("DaemonSet", "acstor-agent", "acstor", hostNetwork=True),
    part(
        "DaemonSet",
        "cilium",
        "team",
        hostNetwork=True,
        containers=[container(image="mcr.microsoft.com/azure-cli", command=["sh", "-c", "sleep 1"], **PRIVILEGED)],
    ),
]


@pytest.mark.parametrize(
    "one", AS_A_TENANT, ids=lambda one: f"{one['metadata']['namespace']}-{one['metadata']['name']}"
)
@pytest.mark.parametrize("check", RIGHTS)
def test_a_tenant_cannot_look_like_the_platform(check: str, one: Manifest) -> None:
    assert verdict_about(check, one) is OPEN


@pytest.mark.parametrize(
    "image",
    [
        "mcr.microsoft.com.evil.example/oss/v2/x:1",
        "evil.azurecr.io/aks-managed-repository/oss/v2/x:1",  # a mirror in a registry that the policy does not allow
        f"{REGISTRY}/tools/aks-managed-repository/x:1",
        f"{REGISTRY}/aks-managed-repository-2/x:1",
        "aks-managed-repository/x:1",
        "docker.io/mcr.microsoft.com/x:1",
        "microsoft/x",
        f"{REGISTRY}/aks-managed-repository/",
        "mcr.microsoft.com",
    ],
)
@pytest.mark.parametrize("check", RIGHTS)
def test_an_image_that_only_looks_like_microsofts_is_judged(check: str, image: str) -> None:
    assert verdict_about(check, part("DaemonSet", "cilium", image=image, hostNetwork=True)) is OPEN


@pytest.mark.parametrize("sort", ["initContainers", "ephemeralContainers", "containers"])
@pytest.mark.parametrize("check", RIGHTS)
def test_one_foreign_container_in_a_part_is_enough(check: str, sort: str) -> None:
    one = part("DaemonSet", "cilium", hostNetwork=True)
    one["spec"].setdefault(sort, []).append(container(name="debug", image=f"{REGISTRY}/tools:1"))
    assert verdict_about(check, one) is OPEN


@pytest.mark.parametrize(
    "name", ["cilium-2", "ama-metrics-node-", "ama-metrics-nodes", "xcilium", "azuresecuritylinuxagent"]
)
def test_what_is_not_documented_is_not_known(name: str) -> None:
    assert verdict_about("k8s-privileged", part("DaemonSet", name)) is OPEN


def test_an_image_job_is_told_by_its_service_account_and_group() -> None:
    assert verdict_about("k8s-privileged", part("ImageJob", "imagejob-x", account="default")) is OPEN
    forged = part("ImageJob", "imagejob-x", account="eraser-imagejob-pods")
    forged["metadata"]["ownerReferences"][0]["apiVersion"] = "eraser.example/v1"
    assert verdict_about("k8s-privileged", forged) is OPEN


def test_a_static_pod_belongs_to_its_own_node() -> None:
    one = part("Node", "cp-0", hostNetwork=True, nodeName="cp-0", image="registry.k8s.io/kube-apiserver:v1.36.0")
    one["metadata"]["name"] = "kube-apiserver-cp-0"
    assert verdict_about("k8s-hostnetwork", one) is FINE
    one["spec"]["nodeName"] = "aks-gpu-0"
    assert verdict_about("k8s-hostnetwork", one) is OPEN


class TestThePlatformsNamespaces:
    """Its namespace alone excuses no pod from a policy, and its policies are for its own pods."""

    def test_a_pod_of_its_own_image_needs_no_policy(self) -> None:
        assert verdict_about("k8s-default-deny-egress", pod("coredns", "kube-system", spec=_of(OF_AKS))) is FINE

    @pytest.mark.parametrize("namespace", ["kube-system", "calico-system", "tigera-operator"])
    def test_a_foreign_one_does(self, namespace: str) -> None:
        assert verdict_about("k8s-default-deny-egress", pod("tool", namespace, spec=_of(f"{REGISTRY}/tool:1"))) is OPEN

    def test_a_wide_rule_of_the_platform_excuses_no_foreign_pod(self) -> None:
        wide = manifest(
            NetworkPolicy, "konnectivity-agent", "kube-system",
            spec={"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]},
        )  # fmt: skip
        own = [*sealed_cluster(), wide]
        assert set(verdicts("k8s-policy-allow-all", own).values()) == {FINE}
        foreign = [*own, pod("tool", "kube-system", spec=_of(f"{REGISTRY}/tool:1"))]
        assert OPEN in verdicts("k8s-policy-allow-all", foreign).values()


def _of(image: str) -> Manifest:
    return {"containers": [container(image=image)]}


def test_images_of_managed_proxies_are_aks_s_and_their_egress_is_judged() -> None:
    gateway = part("Deployment", "aks-istio-ingressgateway-internal-asm-1-24", "aks-istio-ingress")
    assert verdict_about("k8s-image-origin", gateway) is FINE
    assert verdict_about("k8s-default-deny-egress", gateway) is OPEN
    assert verdict_about("k8s-privileged", gateway) is OPEN


@pytest.mark.parametrize("namespace", ["gatekeeper-system", "calico-system", "tigera-operator"])
@pytest.mark.parametrize("check", ["k8s-default-deny-egress", "k8s-image-origin"])
def test_a_namespace_that_any_account_could_make_runs_its_own_project_alone(check: str, namespace: str) -> None:
    one = part("Deployment", "gatekeeper-audit", namespace, image="mcr.microsoft.com/azure-cli:2")
    assert verdict_about(check, one) is OPEN


def test_the_message_names_what_it_has() -> None:
    (found,) = findings("k8s-privileged", [*sealed_cluster(), part("DaemonSet", "miner")])
    assert "privileged container" in found.message


@pytest.mark.parametrize("known", [one for one in DOCUMENTED if one.namespace in IMAGES], ids=lambda one: one.name)
@pytest.mark.parametrize("check", [*RIGHTS, "k8s-default-deny-egress"])
def test_a_namespace_of_the_platforms_name_is_a_tenants_where_the_platform_runs_nothing_in_it(
    check: str, known: Known
) -> None:
    one = known.pod(hostNetwork=check == "k8s-hostnetwork")
    assert verdict_about(check, one, groups=(OF_GATEKEEPER,)) is OPEN
    assert verdict_about(check, one, groups=(OF_TIGERA,)) is (
        FINE if check != "k8s-hostnetwork" or known.on_host else OPEN
    )


def test_azure_policys_namespace_too() -> None:
    one = part("Deployment", "gatekeeper-audit", "gatekeeper-system")
    one["spec"] = {"containers": [container(image="mcr.microsoft.com/oss/v2/open-policy-agent/gatekeeper:v3")]}
    assert verdict_about("k8s-default-deny-egress", one, groups=()) is OPEN
    assert verdict_about("k8s-default-deny-egress", one) is FINE
