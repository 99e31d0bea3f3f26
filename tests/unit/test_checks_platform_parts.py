"""A part of the platform is known by namespace, controller and images together; others are judged."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, NamedTuple

import pytest
import yaml

from hermetic.api.node_agents import TrustedNodeAgent
from hermetic.audit.estate.kubernetes.policies import NetworkPolicy
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.exceptions import Exceptions
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
    pod_spec = {"containers": [container(image=image, **PRIVILEGED)], "volumes": SOCKET, "serviceAccountName": account}
    return pod(f"{name}-x2b4c", namespace, labels=labels, ownerReferences=owner, spec={**pod_spec, **spec})


def verdict_about(
    check: str, changed: Manifest, policy: Policy = POLICY, *, groups: tuple[Manifest, ...] = GROUPS
) -> Verdict:
    """The one verdict about the sealed cluster with this pod, where Calico and Azure Policy are installed."""
    pod_verdicts = set(verdicts(check, [*sealed_cluster(), *groups, changed], policy=policy).values())
    assert len(pod_verdicts) == 1
    return pod_verdicts.pop()


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
    Known("DaemonSet", "azure-cns-win", "kube-system", "azure-cns", True),
    Known("DaemonSet", "azure-npm-win", "kube-system", "azure-npm", True),
    Known("DaemonSet", "retina-agent-win", "kube-system", "", True),
    Known("DaemonSet", "windows-kube-proxy-initializer", "kube-system", "", True),
    Known("DaemonSet", "aks-secrets-store-csi-driver-windows", "kube-system", "", False),
    Known("DaemonSet", "aks-secrets-store-provider-azure-windows", "kube-system", "", True),
    Known("DaemonSet", "ama-logs", "kube-system", "", False),
    Known("DaemonSet", "ama-logs-xs", "kube-system", "", False),
    Known("DaemonSet", "ama-logs-xl", "kube-system", "", False),
    Known("DaemonSet", "ama-metrics-win-node", "kube-system", "", False),
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


@pytest.mark.parametrize("component", DOCUMENTED, ids=lambda component: component.name)
class TestDocumentedParts:
    def test_may_do_what_is_documented(self, component: Known) -> None:
        platform_pod = component.pod(hostNetwork=component.on_host)
        assert [
            verdict_about(check, platform_pod) for check in (*RIGHTS, "k8s-default-deny-egress", "k8s-image-origin")
        ] == [FINE] * 4

    def test_by_the_mirror_in_an_allowed_registry_too(self, component: Known) -> None:
        of_microsoft = IMAGES.get(component.namespace, OF_AKS)
        mirrored = of_microsoft.replace("mcr.microsoft.com", f"{REGISTRY}/aks-managed-repository")
        platform_pod = component.pod(hostNetwork=component.on_host, image=mirrored)
        assert [verdict_about(check, platform_pod) for check in RIGHTS] == [FINE, FINE]

    @pytest.mark.parametrize(
        "other", [{"image": f"{REGISTRY}/tools:1"}, {"namespace": "team"}, {"kind": "StatefulSet"}]
    )
    def test_with_another_image_namespace_or_controller_they_are_judged(
        self, component: Known, other: dict[str, str]
    ) -> None:
        assert [verdict_about(check, component.pod(**other)) for check in RIGHTS] == [OPEN, OPEN]

    def test_the_nodes_network_is_for_those_only_that_need_it(self, component: Known) -> None:
        assert verdict_about("k8s-hostnetwork", component.pod()) is (FINE if component.on_host else OPEN)


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
    "changed",
    AS_A_TENANT,
    ids=lambda tenant_pod: f"{tenant_pod['metadata']['namespace']}-{tenant_pod['metadata']['name']}",
)
@pytest.mark.parametrize("check", RIGHTS)
def test_a_tenant_cannot_look_like_the_platform(check: str, changed: Manifest) -> None:
    assert verdict_about(check, changed) is OPEN


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
    platform_pod = part("DaemonSet", "cilium", hostNetwork=True)
    platform_pod["spec"].setdefault(sort, []).append(container(name="debug", image=f"{REGISTRY}/tools:1"))
    assert verdict_about(check, platform_pod) is OPEN


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
    platform_pod = part(
        "Node", "cp-0", hostNetwork=True, nodeName="cp-0", image="registry.k8s.io/kube-apiserver:v1.36.0"
    )
    platform_pod["metadata"]["name"] = "kube-apiserver-cp-0"
    assert verdict_about("k8s-hostnetwork", platform_pod) is FINE
    platform_pod["spec"]["nodeName"] = "aks-gpu-0"
    assert verdict_about("k8s-hostnetwork", platform_pod) is OPEN


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
    platform_pod = part("Deployment", "gatekeeper-audit", namespace, image="mcr.microsoft.com/azure-cli:2")
    assert verdict_about(check, platform_pod) is OPEN


def test_the_message_names_what_it_has() -> None:
    (finding,) = findings("k8s-privileged", [*sealed_cluster(), part("DaemonSet", "miner")])
    assert "privileged container" in finding.message


@pytest.mark.parametrize(
    "component",
    [documented for documented in DOCUMENTED if documented.namespace in IMAGES],
    ids=lambda documented: documented.name,
)
@pytest.mark.parametrize("check", [*RIGHTS, "k8s-default-deny-egress"])
def test_a_namespace_of_the_platforms_name_is_a_tenants_where_the_platform_runs_nothing_in_it(
    check: str, component: Known
) -> None:
    platform_pod = component.pod(hostNetwork=check == "k8s-hostnetwork")
    assert verdict_about(check, platform_pod, groups=(OF_GATEKEEPER,)) is OPEN
    assert verdict_about(check, platform_pod, groups=(OF_TIGERA,)) is (
        FINE if check != "k8s-hostnetwork" or component.on_host else OPEN
    )


def test_azure_policys_namespace_too() -> None:
    platform_pod = part("Deployment", "gatekeeper-audit", "gatekeeper-system")
    platform_pod["spec"] = {"containers": [container(image="mcr.microsoft.com/oss/v2/open-policy-agent/gatekeeper:v3")]}
    assert verdict_about("k8s-default-deny-egress", platform_pod, groups=()) is OPEN
    assert verdict_about("k8s-default-deny-egress", platform_pod) is FINE


@pytest.mark.parametrize("path", ["mirror/quay/calico/node", "mirror/quay/tigera/operator", "oss/v2/calico/node"])
def test_part_of_calico_by_each_path_that_aks_uses_passes(path: str) -> None:
    """github.com/Azure/AKS/issues/4999, 5675: mcr.microsoft.com/mirror/quay/calico/typha:v3.28.4."""
    agent = part("DaemonSet", "calico-node", "calico-system", image=f"mcr.microsoft.com/{path}:v1", hostNetwork=True)
    assert [verdict_about(check, agent) for check in RIGHTS] == [FINE, FINE]


@pytest.mark.parametrize("path", ["mirror/quay/other/tools", "mirror/docker/calico/node", "calico/node"])
def test_part_of_calico_by_another_path_fails(path: str) -> None:
    agent = part("DaemonSet", "calico-node", "calico-system", image=f"mcr.microsoft.com/{path}:v1", hostNetwork=True)
    assert [verdict_about(check, agent) for check in RIGHTS] == [OPEN, OPEN]


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("app-routing-system", "nginx"), ("app-routing-system", "external-dns"), ("aks-istio-system", "istiod")],
)
def test_controller_of_an_add_on_with_its_bare_name_runs_microsofts_images(namespace: str, name: str) -> None:
    own = part("Deployment", name, namespace)
    assert verdict_about("k8s-image-origin", own) is FINE
    assert verdict_about("k8s-image-origin", part("Deployment", f"x{name}", namespace)) is OPEN


OF_DEFENDER = "mcr.microsoft.com/azuredefender/stable"


def test_sensor_of_defender_with_its_third_container_may_do_what_is_documented() -> None:
    """github.com/Azure/AKS, release 2026-05-29: sensor v0.10 from Kubernetes 1.36 on, with an anti-malware collector.

    Images: learn.microsoft.com/azure/defender-for-cloud/defender-for-containers-introduction.
    """
    names = ("pod-collector", "low-level-collector", "anti-malware-collector")
    containers = [container(name=name, image=f"{OF_DEFENDER}/{name}:1.0.21", **PRIVILEGED) for name in names]
    init = [container(name="init", image=f"{OF_DEFENDER}/old-file-cleaner:1.1.64")]
    sensor = part("DaemonSet", "microsoft-defender-collector-ds", containers=containers, initContainers=init)
    assert verdict_about("k8s-privileged", sensor) is FINE
    assert verdict_about("k8s-image-origin", sensor) is FINE
    containers.append(container(name="debug", image=f"{REGISTRY}/tools:1"))
    assert verdict_about("k8s-privileged", sensor) is OPEN


# What a chart or AKS installs under names that no document gives to a part of AKS. The sensor by Helm or Arc:
# learn.microsoft.com/azure/defender-for-cloud/defender-for-containers-verify-deployment (namespace mdc, DaemonSet
# microsoft-defender-collectors-ds). DRANET: kubernetes-sigs/dranet, deployments/helm/dranet (kube-system, dranet);
# learn.microsoft.com/azure/aks/managed-support-for-dranet does not name the DaemonSet of AKS.
NOT_NAMED = [
    ("microsoft-defender-collectors-ds", "mdc", f"{OF_DEFENDER}/pod-collector:1.0.264"),
    ("microsoft-defender-collectors-ds", "kube-system", f"{OF_DEFENDER}/pod-collector:1.0.264"),
    ("dranet", "kube-system", "mcr.microsoft.com/oss/v2/kubernetes-sigs/dranet:v1.4.0"),
    ("aks-network-dra", "kube-system", "mcr.microsoft.com/aks/network-dra:v1"),
]


@pytest.mark.parametrize(("name", "namespace", "image"), NOT_NAMED)
def test_agent_of_microsofts_images_that_no_document_names_is_settled_by_an_exception(
    name: str, namespace: str, image: str
) -> None:
    agent = part("DaemonSet", name, namespace, image=image)
    (finding,) = findings("k8s-privileged", [*sealed_cluster(), *GROUPS, agent])
    assert finding.verdict is OPEN
    assert "trustedNodeAgents" not in finding.remedy
    assert "allowedRegistries" not in finding.remedy
    assert f"accept apps/v1/DaemonSet {namespace}/{name} by an exception" in " ".join(finding.remedy.split())
    resource = f"apps/v1/DaemonSet {namespace}/{name}"
    fields = {"reason": "an add-on that we need", "owner": "platform-team", "expiry": "2027-01-01"}
    exception = {"check": "k8s-privileged", "resource": resource, **fields}
    exceptions = Exceptions.model_validate({"exceptions": [exception]})
    ((accepted,), _) = exceptions.applied((finding,), date(2026, 12, 1))
    assert accepted.verdict is Verdict.EXCEPTED


@pytest.mark.parametrize(("name", "namespace", "image"), NOT_NAMED)
def test_the_same_agent_from_a_registry_of_ones_own_is_settled_by_the_entry_of_its_remedy(
    name: str, namespace: str, image: str
) -> None:
    copy = f"{image.replace('mcr.microsoft.com', REGISTRY).rpartition(':')[0]}@sha256:{'a' * 64}"
    agent = part("DaemonSet", name, namespace, image=copy, hostNetwork=True)
    for check in RIGHTS:
        (before,) = (
            candidate for candidate in findings(check, [*sealed_cluster(), *GROUPS, agent]) if candidate.verdict is OPEN
        )
        (entries,) = re.findall(r"trustedNodeAgents: (\[\{.*?\}\])", before.remedy)
        named = POLICY.model_copy(update={"trusted_node_agents": _entries(entries)})
        assert verdict_about(check, agent, named) is FINE


def _entries(text: str) -> tuple[TrustedNodeAgent, ...]:
    return tuple(TrustedNodeAgent.model_validate(entry) for entry in yaml.safe_load(text))


def test_log_agent_of_cilium_passes_with_the_logs_of_its_node_alone() -> None:
    """github.com/Azure/AKS, release 2026-04-02: cilium-fluent-bit from Kubernetes 1.34 on; its spec is not public."""
    logs = [{"name": "logs", "hostPath": {"path": "/var/log"}}]
    plain: dict[str, Any] = {
        "containers": [container(image="mcr.microsoft.com/oss/v2/fluent/fluent-bit:v4")],
        "volumes": logs,
    }
    assert verdict_about("k8s-privileged", part("DaemonSet", "cilium-fluent-bit", **plain)) is FINE
    assert verdict_about("k8s-privileged", part("DaemonSet", "cilium-fluent-bit", volumes=logs)) is OPEN
