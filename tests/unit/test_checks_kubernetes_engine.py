"""Whether anything enforces network policies, and what goes around all of them."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.node_agents import TrustedNodeAgent
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.engine_settings import CiliumNodeConfig, FelixConfiguration
from hermetic.audit.estate.kubernetes.environment import NOT_KEPT
from hermetic.audit.estate.kubernetes.nodes import Node, StaticGatewayConfiguration
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.templates import DaemonSet
from hermetic.audit.model.findings import Severity, Verdict
from tests.kubernetes_estates import (
    CLUSTER,
    NODE,
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
    with_one,
)

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
CALICO = "calico-system"


# ------------------------------------------------------------------ engine


IMAGES = {
    "cilium": "mcr.microsoft.com/containernetworking/cilium/cilium:v1.17.7",
    "azure-npm": "mcr.microsoft.com/containernetworking/azure-npm:v1.6.33",
    "calico-node": "mcr.microsoft.com/oss/v2/calico/node:v3.30.3",
}


def agent(
    node: str, *, ready: bool = True, engine: str = "cilium", namespace: str = "kube-system", **spec: Any
) -> Manifest:
    """An engine's agent on a node."""
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return pod(
        f"{engine}-{node}",
        namespace,
        ownerReferences=owned("DaemonSet", engine),
        spec={"nodeName": node, "hostNetwork": True, "containers": [container(image=IMAGES[engine])], **spec},
        status={"phase": "Running", "conditions": [condition]},
    )


def gpu_node(name: str) -> Any:
    """A node with a GPU."""
    return manifest(Node, name, status={"addresses": [], "capacity": {"nvidia.com/gpu": "1"}})


def test_every_gpu_node_needs_a_ready_agent() -> None:
    more = [gpu_node("gpu-1"), gpu_node("gpu-2"), agent("gpu-1"), agent("gpu-2", ready=False)]
    assert verdicts("k8s-policy-engine-live", [*sealed_cluster(), *more]) == {"v1/Node gpu-2": OPEN}


def test_a_node_without_a_gpu_may_lack_the_agent_where_others_have_gpus() -> None:
    plain = manifest(Node, "cpu-1", status={"addresses": []})
    assert verdicts("k8s-policy-engine-live", with_one(plain)) == {CLUSTER: FINE}


def test_without_any_gpu_every_node_needs_the_agent() -> None:
    without = [item for item in sealed_cluster() if item["kind"] != "Node"]
    nodes = [manifest(Node, name, status={"addresses": []}) for name in (NODE, "cpu-1")]
    assert verdicts("k8s-policy-engine-live", [*without, *nodes]) == {"v1/Node cpu-1": OPEN}


@pytest.mark.parametrize(("engine", "namespace"), [("azure-npm", "kube-system"), ("calico-node", "calico-system")])
def test_the_other_engines_count_in_their_own_namespace(engine: str, namespace: str) -> None:
    other_manifests = [item for item in sealed_cluster() if "cilium" not in item["metadata"]["name"]]
    there = [manifest(DaemonSet, engine, namespace), agent(NODE, engine=engine, namespace=namespace), OF_TIGERA]
    assert verdicts("k8s-policy-engine-live", [*other_manifests, *there]) == {CLUSTER: FINE}
    elsewhere = [manifest(DaemonSet, engine, "default"), agent(NODE, engine=engine, namespace="default")]
    assert set(verdicts("k8s-policy-engine-live", [*other_manifests, *elsewhere]).values()) == {OPEN}


OWN = f"{REGISTRY}/cilium/cilium@sha256:{'0' * 64}"
OF_OUR_OWN = TrustedNodeAgent(namespace="kube-system", owner="DaemonSet/cilium", image=OWN, host_network=True)


def without_an_engine(*more: Any) -> list[Any]:
    """The sealed cluster without its engine, and more."""
    return [*(item for item in sealed_cluster() if not item["metadata"]["name"].startswith("cilium")), *more]


@pytest.mark.parametrize(
    "forged",
    [
        [manifest(DaemonSet, "calico-node", CALICO), agent(NODE, engine="calico-node", namespace=CALICO)],
        [
            OF_TIGERA,
            manifest(DaemonSet, "calico-node", CALICO),
            agent(NODE, engine="calico-node", namespace=CALICO, hostNetwork=False),
        ],
        [
            OF_TIGERA,
            manifest(DaemonSet, "calico-node", CALICO),
            agent(NODE, engine="calico-node", namespace=CALICO, containers=[container()]),
        ],
        [
            OF_TIGERA,
            manifest(DaemonSet, "calico-node", CALICO),
            agent(NODE, engine="calico-node", namespace=CALICO, containers=[container(image="mcr.microsoft.com/cli")]),
        ],
        [manifest(DaemonSet, "cilium", "kube-system"), agent(NODE, containers=[container(image=OWN)])],
        [manifest(DaemonSet, "cilium", "kube-system"), agent(NODE, hostNetwork=False)],
        [
            manifest(DaemonSet, "azure-npm", "kube-system"),
            agent(NODE, engine="azure-npm", containers=[container(image=IMAGES["azure-npm"]), container(image=OWN)]),
        ],
    ],
)
def test_a_name_makes_no_engine(forged: list[Any]) -> None:
    (finding,) = findings("k8s-policy-engine-live", without_an_engine(*forged))
    assert (finding.resource, finding.verdict, finding.reason) == (f"v1/Node {NODE}", UNSEEN, "AgentNotRecognised")
    images = {part["image"] for pod in forged if pod["kind"] == "Pod" for part in pod["spec"]["containers"]}
    is_of_microsoft = all(image.startswith("mcr.microsoft.com/") for image in images)
    assert ("--exceptions" if is_of_microsoft else "trustedNodeAgents") in finding.remedy
    beside_the_real_one = [item for item in forged if item["metadata"]["name"] != f"cilium-{NODE}"]
    assert verdicts("k8s-policy-engine-live", [*sealed_cluster(), *beside_the_real_one]) == {CLUSTER: FINE}


def test_an_engine_of_our_own_is_one_where_the_policy_trusts_it_with_the_host_network() -> None:
    own = without_an_engine(
        manifest(DaemonSet, "cilium", "kube-system"), agent(NODE, containers=[container(image=OWN)])
    )
    for host_network, expected in ((True, {CLUSTER: FINE}), (False, {f"v1/Node {NODE}": UNSEEN})):
        trusted = OF_OUR_OWN.model_copy(update={"host_network": host_network})
        policy = POLICY.model_copy(update={"trusted_node_agents": (trusted,)})
        assert verdicts("k8s-policy-engine-live", own, policy=policy) == expected


def cilium_config(**data: Any) -> Manifest:
    """Cilium's ConfigMap; keywords are spelt with underscores."""
    settings = {key.replace("_", "-"): value for key, value in data.items()}
    return manifest(ConfigMap, "cilium-config", "kube-system", data=settings)


def node_config(**defaults: Any) -> Manifest:
    settings = {key.replace("_", "-"): value for key, value in defaults.items()}
    return manifest(CiliumNodeConfig, "some", "kube-system", spec={"nodeSelector": {}, "defaults": settings})


SETTINGS: list[tuple[dict[str, Any], Verdict]] = [
    ({}, FINE),
    ({"enable_policy": "default"}, FINE),
    ({"enable_policy": "Always", "policy_audit_mode": "false"}, FINE),
    ({"enable_k8s_networkpolicy": "true", "enable_cilium_network_policy": "true"}, FINE),
    ({"labels": "k8s:app", "static_cnp_path": ""}, FINE),
    ({"enable_policy": "never"}, OPEN),
    ({"enable_policy": " NEVER\n"}, OPEN),
    ({"policy_audit_mode": "true"}, OPEN),
    ({"policy_audit_mode": "T"}, OPEN),
    ({"policy_audit_mode": "1"}, OPEN),
    ({"enable_k8s_networkpolicy": "false"}, OPEN),
    ({"enable_policy": "sometimes"}, UNSEEN),
    ({"policy_audit_mode": "on"}, UNSEEN),
    ({"enable_cilium_network_policy": "false"}, UNSEEN),
    ({"enable_cilium_clusterwide_network_policy": "false"}, UNSEEN),
    ({"static_cnp_path": "/policies"}, UNSEEN),
    ({"policy_audit_mode": True}, UNSEEN),
    ({"enable_policy": "n" * 300}, UNSEEN),
]


@pytest.mark.parametrize(("settings", "expected"), SETTINGS)
@pytest.mark.parametrize("written", [cilium_config, node_config])
def test_settings_of_cilium_may_switch_enforcement_off(written: Any, settings: Any, expected: Verdict) -> None:
    assert set(verdicts("k8s-policy-engine-live", with_one(written(**settings))).values()) == {expected}


def test_settings_of_cilium_count_where_cilium_runs() -> None:
    other_manifests = [item for item in sealed_cluster() if "cilium" not in item["metadata"]["name"]]
    npm = [manifest(DaemonSet, "azure-npm", "kube-system"), agent(NODE, engine="azure-npm")]
    left_over = [cilium_config(enable_policy="never"), node_config(enable_policy="never")]
    assert verdicts("k8s-policy-engine-live", [*other_manifests, *npm, *left_over]) == {CLUSTER: FINE}


def test_a_config_map_of_another_name_or_namespace_is_none_of_ciliums() -> None:
    for name, namespace in (("cilium-config", "team"), ("cilium", "kube-system")):
        config_map = manifest(ConfigMap, name, namespace, data={"enable-policy": "never"})
        assert verdicts("k8s-policy-engine-live", with_one(config_map)) == {CLUSTER: FINE}


def test_settings_that_are_not_known_are_unknown_at_medium_where_they_hold_for_some_nodes() -> None:
    (finding,) = findings("k8s-policy-engine-live", with_one(node_config(bpf_lb_acceleration="native")))
    assert (finding.verdict, finding.severity, finding.reason) == (UNSEEN, Severity.MEDIUM, "NodeSettingsNotKnown")
    assert verdicts("k8s-policy-engine-live", with_one(cilium_config(bpf_lb_acceleration="native"))) == {CLUSTER: FINE}


def test_of_settings_that_no_check_reads_the_value_is_not_kept() -> None:
    projection = projected(CiliumNodeConfig, node_config(hubble_token="secret", enable_policy="never"))
    assert projection["spec"] == {"defaults": {"hubble-token": NOT_KEPT, "enable-policy": "never"}}
    assert projected(ConfigMap, cilium_config(bpf_x="y", labels="a"))["engineSettings"] == {"labels": "a"}


def test_settings_that_no_agent_reads_are_no_finding() -> None:
    """The agents read those of their own namespace: docs.cilium.io, cilium-dbg build-config, cilium-node-config."""
    of_a_tenant = manifest(CiliumNodeConfig, "mine", "team", spec={"defaults": {"policy-audit-mode": "true"}})
    assert verdicts("k8s-policy-engine-live", with_one(of_a_tenant)) == {CLUSTER: FINE}


@pytest.mark.parametrize("kind", [ConfigMap, CiliumNodeConfig])
def test_settings_of_cilium_that_may_not_be_read_are_unknown(kind: Any) -> None:
    assert verdicts("k8s-policy-engine-live", sealed_cluster(), forbidden=[kind]) == {CLUSTER: UNSEEN}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, FINE),
        ({"bpfEnabled": False, "chainInsertMode": "Insert", "dropActionOverride": "LogAndDrop"}, FINE),
        ({"dropActionOverride": "Accept"}, OPEN),
        ({"dropActionOverride": "LogAndAccept"}, OPEN),
        ({"interfacePrefix": "eth"}, UNSEEN),
        ({"chainInsertMode": "Append"}, UNSEEN),
    ],
)
def test_settings_of_calico_may_switch_enforcement_off(spec: Any, expected: Verdict) -> None:
    other_manifests = [item for item in sealed_cluster() if "cilium" not in item["metadata"]["name"]]
    there = [manifest(DaemonSet, "calico-node", CALICO), agent(NODE, engine="calico-node", namespace=CALICO)]
    felix = manifest(FelixConfiguration, "default", spec=spec)
    verdict_of = verdicts("k8s-policy-engine-live", [*other_manifests, *there, felix, OF_TIGERA])
    assert set(verdict_of.values()) == {expected}
    assert verdicts("k8s-policy-engine-live", with_one(felix)) == {CLUSTER: FINE}


def test_without_an_engine_every_policy_is_without_effect() -> None:
    other_manifests = [item for item in sealed_cluster() if item["kind"] != "DaemonSet"]
    assert verdicts("k8s-policy-engine-live", other_manifests) == {CLUSTER: OPEN}


def test_a_pod_that_only_bears_the_engines_name_is_no_agent() -> None:
    other_manifests = [item for item in sealed_cluster() if item["kind"] != "Pod"]
    condition = {"type": "Ready", "status": "True"}
    fake = pod("cilium-x", "kube-system", labels={"k8s-app": "cilium"}, status={"conditions": [condition]})
    assert verdicts("k8s-policy-engine-live", [*other_manifests, fake]) == {f"v1/Node {NODE}": OPEN}


# ------------------------------------------------------------------ around


@pytest.mark.parametrize(
    ("spec", "severity"),
    [
        ({}, Severity.CRITICAL),
        ({"provisionPublicIps": True}, Severity.CRITICAL),
        ({"provisionPublicIps": False, "publicIpPrefixId": "/subscriptions/s/prefix"}, Severity.CRITICAL),
        ({"provisionPublicIps": False}, Severity.HIGH),
    ],
)
def test_a_static_egress_gateway_is_open_whether_or_not_it_is_used(spec: Any, severity: Severity) -> None:
    """github.com/Azure/kube-egress-gateway: without provisionPublicIps its addresses are those of the subnet."""
    gateway = manifest(StaticGatewayConfiguration, "out", "team", spec=spec)
    (finding,) = findings("k8s-static-egress", [*sealed_cluster(), gateway])
    assert (finding.verdict, finding.severity) == (OPEN, severity)
    assert any("internet" in path for path in finding.path_texts) == (severity is Severity.CRITICAL)


def test_pods_that_ask_for_a_gateway_are_one_finding_of_their_workload() -> None:
    some = [
        pod(
            f"web-7d-{number}",
            "team",
            annotations={"kubernetes.azure.com/static-gateway-configuration": "out"},
            labels={"pod-template-hash": "7d"},
            ownerReferences=owned("ReplicaSet", "web-7d"),
        )
        for number in range(3)
    ]
    assert verdicts("k8s-static-egress", [*sealed_cluster(), *some]) == {"apps/v1/Deployment team/web": OPEN}


@pytest.mark.parametrize("value", ["nat-1", ""])
def test_the_label_of_the_service_gateway_is_open_whatever_its_value(value: str) -> None:
    labels = {"kubernetes.azure.com/service-egress-gateway": value}
    verdict_of = verdicts("k8s-svc-egress-gateway", [*sealed_cluster(), pod("p", "team", labels=labels)])
    assert verdict_of == {"v1/Pod team/p": OPEN}


def test_a_pod_that_has_ended_leaves_by_no_gateway() -> None:
    ended = pod("p", "team", labels={"kubernetes.azure.com/service-egress-gateway": "x"}, status={"phase": "Failed"})
    assert verdicts("k8s-svc-egress-gateway", [*sealed_cluster(), ended]) == {CLUSTER: FINE}


def test_nothing_that_is_kept_of_a_pod_is_a_value_of_its_spec() -> None:
    from hermetic.audit.estate.kubernetes.projection import projected

    secret = "hf_secret"
    typed = pod(
        "p",
        annotations={"kubectl.kubernetes.io/last-applied-configuration": secret, "note": secret},
        spec={"containers": [container(env=[{"name": "HF_TOKEN", "value": secret}, {"name": "X", "value": secret}])]},
    )
    projection = projected(Pod, typed)
    assert secret not in str(projection)
    assert projection["spec"]["containers"][0]["env"] == [{"name": "HF_TOKEN", "value": "(not kept)"}]
