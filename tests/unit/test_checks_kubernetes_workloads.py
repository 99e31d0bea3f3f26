"""Workloads: rights over the node, proxies, images, switches and keys; and what the platform and Hermetic may do."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.kubernetes_estates import (
    CLUSTER,
    OF_GATEKEEPER,
    OF_TIGERA,
    POLICY,
    REGISTRY,
    container,
    findings,
    owned,
    pod,
    sealed_cluster,
    verdicts,
)

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
WEB = "v1/Pod team/web"
DIGEST = f"@sha256:{'0' * 64}"


def web(*, spec: dict[str, Any] | None = None, **of_container: Any) -> Any:
    """The pod team/web of one container with these fields."""
    return pod("web", "team", spec={"containers": [container(**of_container)], **(spec or {})})


def verdict(check: str, *some: Any, policy: Policy = POLICY) -> Verdict:
    """The verdict about what was added, or about the cluster where nothing is said against it."""
    verdict_of = verdicts(check, [*sealed_cluster(), OF_TIGERA, OF_GATEKEEPER, *some], policy=policy)
    (only,) = verdict_of.values()
    return only


# ------------------------------------------------------------------ host network


OF_AKS = "mcr.microsoft.com/oss/v2/kubernetes/kube-proxy:v1.34.2"


def agent(name: str, namespace: str = "kube-system", kind: str = "DaemonSet", **spec: Any) -> Any:
    """A pod of this controller on the host's network."""
    owners = owned(kind, name, "v1" if kind == "Node" else "apps/v1")
    image = "mcr.microsoft.com/oss/v2/calico/node:v3.32.1" if namespace == "calico-system" else OF_AKS
    spec = {"containers": [container(image=image)], "hostNetwork": True, **spec}
    return pod(f"{name}-abcde", namespace, ownerReferences=owners, spec=spec)


@pytest.mark.parametrize(
    ("some", "resource"),
    [
        (web(spec={"hostNetwork": True}), WEB),
        (agent("miner"), "apps/v1/DaemonSet kube-system/miner"),
        (agent("kube-proxy", "team"), "apps/v1/DaemonSet team/kube-proxy"),
        (pod("kube-proxy", "kube-system", spec={"hostNetwork": True}), "v1/Pod kube-system/kube-proxy"),
        (agent("kube-proxy", kind="Job"), "apps/v1/Job kube-system/kube-proxy"),
    ],
)
def test_the_hosts_network_is_open_outside_the_platforms_own_list(some: Any, resource: str) -> None:
    assert verdicts("k8s-hostnetwork", [*sealed_cluster(), some]) == {resource: OPEN}


@pytest.mark.parametrize(
    "some",
    [
        agent("kube-proxy"),
        agent("azure-cns"),
        agent("calico-node", "calico-system"),
        pod(
            "kube-apiserver-cp-0",
            "kube-system",
            ownerReferences=owned("Node", "cp-0", "v1"),
            spec={"hostNetwork": True, "nodeName": "cp-0"},
        ),
        pod("web", "team", spec={"hostNetwork": True}, status={"phase": "Succeeded"}),
    ],
)
def test_the_platform_and_what_has_ended_may_have_the_hosts_network(some: Any) -> None:
    assert verdict("k8s-hostnetwork", some) is FINE


def test_a_thousand_replicas_are_one_finding_of_their_deployment() -> None:
    replicas = [
        pod(
            f"web-7d-{number}",
            "team",
            labels={"pod-template-hash": "7d"},
            ownerReferences=owned("ReplicaSet", "web-7d"),
            spec={"hostNetwork": True},
        )
        for number in range(1000)
    ]
    (finding,) = findings("k8s-hostnetwork", [*sealed_cluster(), *replicas])
    assert finding.resource == "apps/v1/Deployment team/web"
    assert len(finding.message) < 200
    assert len(finding.evidence) == 1


# ------------------------------------------------------------------ privileged


def volume(path: str) -> dict[str, Any]:
    """A pod spec with this folder of the node."""
    return {"volumes": [{"name": "v", "hostPath": {"path": path}}]}


@pytest.mark.parametrize(
    "some",
    [
        web(securityContext={"privileged": True}),
        web(securityContext={"capabilities": {"add": ["NET_ADMIN"]}}),
        web(securityContext={"capabilities": {"add": ["CAP_NET_RAW"]}}),
        web(securityContext={"capabilities": {"add": ["all"]}}),
        web(securityContext={"windowsOptions": {"hostProcess": True}}),
        web(spec={"hostPID": True}),
        web(spec={"securityContext": {"windowsOptions": {"hostProcess": True}}}),
        web(spec={"initContainers": [container(securityContext={"privileged": True})]}),
        web(spec={"ephemeralContainers": [container(securityContext={"privileged": True})]}),
        *(
            web(spec=volume(path))
            for path in ("/", "/etc", "/etc/cni/net.d", "/opt/cni/bin/", "/var/run/cilium", "/var/run", "/proc")
        ),
    ],
)
def test_rights_over_the_node_are_open(some: Any) -> None:
    assert verdicts("k8s-privileged", [*sealed_cluster(), some]) == {WEB: OPEN}


@pytest.mark.parametrize(
    "some",
    [
        web(securityContext={"privileged": False, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
        web(spec=volume("/mnt/models")),
        web(spec=volume("/etcetera")),
        agent("csi-azurefile-node", containers=[container(image=OF_AKS, securityContext={"privileged": True})]),
        agent("ama-logs", containers=[container(image=OF_AKS, securityContext={"privileged": True})], **volume("/")),
    ],
)
def test_harmless_rights_and_the_platforms_own_pass(some: Any) -> None:
    assert verdict("k8s-privileged", some) is FINE


def test_the_probe_may_have_the_hosts_network_but_no_rights_over_the_node() -> None:
    labels = {"app.kubernetes.io/name": "hermetic", "app.kubernetes.io/component": "egress-probe"}
    spec = {"containers": [container(securityContext={"privileged": True})]}
    owners = owned("Job", "probe-1", "batch/v1")
    probe = pod("probe-1", "hermetic-probe", labels=labels, spec=spec, ownerReferences=owners)
    assert verdict("k8s-privileged", probe) is OPEN


# ------------------------------------------------------------------ proxies


def variable(name: str, value: str | None = None, **source: Any) -> dict[str, Any]:
    """One variable."""
    return {
        "name": name,
        **({"value": value} if value is not None else {}),
        **({"valueFrom": source} if source else {}),
    }


SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (variable("HTTP_PROXY", "http://10.0.0.4:3128"), OPEN),
        (variable("https_proxy", "http://10.0.0.4:3128"), OPEN),
        (variable("All_Proxy", "socks5://x"), OPEN),
        (variable("HTTPS_PROXY", **SECRET), OPEN),
        (variable("HTTP_PROXY", ""), FINE),
        (variable("NO_PROXY", "10.0.0.0/8"), FINE),
        (variable("PROXY_URL", "x"), FINE),
    ],
)
def test_a_proxy_is_open_in_every_form(env: dict[str, Any], expected: Verdict) -> None:
    assert verdict("k8s-proxy-env", web(env=[env])) is expected


def test_a_secret_taken_whole_is_unknown_and_does_not_decide() -> None:
    (finding,) = findings("k8s-proxy-env", [*sealed_cluster(), web(envFrom=[{"secretRef": {"name": "s"}}])])
    assert (finding.resource, finding.verdict, finding.severity) == (WEB, UNSEEN, Severity.MEDIUM)


# ------------------------------------------------------------------ images


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (f"{REGISTRY}/vllm{DIGEST}", FINE),
        (f"CONTOSO.azurecr.io/vllm{DIGEST}", FINE),
        ("nginx", OPEN),
        ("library/nginx:1", OPEN),
        ("docker.io/nginx", OPEN),
        ("ghcr.io/x/y:1", OPEN),
        ("mcr.microsoft.com/x:1", OPEN),
        (f"other.azurecr.io/vllm{DIGEST}", OPEN),
        ("localhost:5000/x", OPEN),
        (f"contoso.azurecr.io.evil.example/vllm{DIGEST}", OPEN),
    ],
)
def test_images_come_from_approved_registries_only(image: str, expected: Verdict) -> None:
    assert verdict("k8s-image-origin", web(image=image)) is expected


def test_the_platforms_registry_is_approved_in_its_own_namespaces_only() -> None:
    own = pod("metrics", "kube-system", spec={"containers": [container(image="mcr.microsoft.com/oss/x:1")]})
    assert verdict("k8s-image-origin", own) is FINE


def gatekeeper(name: str, namespace: str = "gatekeeper-system", **fields: Any) -> Any:
    """A pod of a Deployment, as Azure Policy runs it."""
    return pod(
        f"{name}-65844778cb-x",
        namespace,
        labels={"pod-template-hash": "65844778cb"},
        ownerReferences=owned("ReplicaSet", f"{name}-65844778cb"),
        spec={"containers": [container(image="mcr.microsoft.com/oss/open-policy-agent/gatekeeper:v3", **fields)]},
    )


@pytest.mark.parametrize("name", ["gatekeeper-audit", "gatekeeper-controller"])
@pytest.mark.parametrize("check", ["k8s-image-origin", "k8s-default-deny-egress"])
def test_azure_policy_is_the_platforms_own(check: str, name: str) -> None:
    assert verdict(check, gatekeeper(name)) is FINE


@pytest.mark.parametrize("check", ["k8s-image-origin", "k8s-default-deny-egress"])
@pytest.mark.parametrize("some", [gatekeeper("miner"), gatekeeper("gatekeeper-audit", "team")])
def test_nothing_else_is_excused_by_azure_policys_namespace_or_names(check: str, some: Any) -> None:
    assert verdict(check, some) is OPEN


def test_azure_policy_has_no_rights_over_a_node() -> None:
    assert verdict("k8s-privileged", gatekeeper("gatekeeper-audit", securityContext={"privileged": True})) is OPEN


def test_without_an_approved_registry_public_ones_are_open_and_private_ones_unknown() -> None:
    some = [*sealed_cluster(), web(image="quay.io/x/y")]
    (by_cluster, public) = sorted(
        findings("k8s-image-origin", some, policy=Policy()), key=lambda origin_finding: origin_finding.resource
    )
    assert (by_cluster.resource, by_cluster.verdict) == (CLUSTER, UNSEEN)
    assert REGISTRY in by_cluster.message
    assert (public.resource, public.verdict, public.severity) == (WEB, OPEN, Severity.MEDIUM)


# ------------------------------------------------------------------ offline


ON = [variable("HF_HUB_OFFLINE", "1"), variable("TRANSFORMERS_OFFLINE", "1")]
GPU = {"limits": {"nvidia.com/gpu": "1"}}
SHIELD = variable("NIM_DISABLE_MODEL_DOWNLOAD", "1")
NIM_IMAGE = f"{REGISTRY}/nim/meta/llama{DIGEST}"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"resources": GPU, "env": ON}, FINE),
        ({"resources": GPU, "env": [variable("HF_HUB_OFFLINE", "true"), ON[1]]}, FINE),
        ({"resources": GPU, "env": ON[:1]}, OPEN),
        ({"resources": GPU}, OPEN),
        ({"resources": {"requests": {"nvidia.com/mig-1g.10gb": "1"}}}, OPEN),
        ({"resources": {"claims": [{"name": "gpu"}]}}, OPEN),
        ({"resources": {"claims": [{"name": "gpu"}]}, "env": ON}, FINE),
        ({"resources": GPU, "env": [variable("HF_HUB_OFFLINE", "0"), ON[1]]}, OPEN),
        ({"resources": GPU, "env": [variable("HF_HUB_OFFLINE", **SECRET), ON[1]]}, UNSEEN),
        ({"resources": GPU, "envFrom": [{"secretRef": {"name": "s"}}]}, UNSEEN),
        ({"resources": GPU, "env": ON, "image": NIM_IMAGE}, OPEN),
        ({"resources": GPU, "env": [*ON, SHIELD], "image": NIM_IMAGE}, FINE),
        ({"resources": GPU, "env": [*ON, variable("NIM_LOG_LEVEL", "INFO")]}, OPEN),
        ({"resources": GPU, "env": [*ON, variable("NIM_DISABLE_MODEL_DOWNLOAD", "true")], "image": NIM_IMAGE}, OPEN),
        ({}, FINE),
    ],
)
def test_a_container_with_a_gpu_is_told_to_stay_offline(fields: dict[str, Any], expected: Verdict) -> None:
    assert verdict("k8s-hf-offline", web(**fields)) is expected


WITH_GPU = {"resources": GPU}
CHECKER = container(name="check-accelerators", **WITH_GPU)
SERVER = container(name="engine", env=ON, **WITH_GPU)


@pytest.mark.parametrize(
    ("init_containers", "containers", "expected"),
    [
        ([CHECKER], [SERVER], FINE),
        ([CHECKER], [container(name="engine", **WITH_GPU)], OPEN),
        ([CHECKER], [container()], OPEN),
        ([{**CHECKER, "restartPolicy": "Always"}], [SERVER], OPEN),
        ([{**SERVER, "restartPolicy": "Always"}], [container()], FINE),
        ([{**CHECKER, "env": [variable("HF_TOKEN", "hf_x")]}], [SERVER], OPEN),
    ],
)
def test_an_init_container_that_prepares_for_a_model_server_needs_no_switch(
    init_containers: list[Any], containers: list[Any], expected: Verdict
) -> None:
    spec = {"initContainers": init_containers, "containers": containers}
    assert verdict("k8s-hf-offline", pod("web", "team", spec=spec)) is expected


@pytest.mark.parametrize(
    "env", [variable("HF_TOKEN", "hf_x"), variable("NGC_API_KEY", **SECRET), variable("HUGGING_FACE_HUB_TOKEN", "x")]
)
def test_a_key_to_a_hub_is_open_in_any_pod_and_any_form(env: dict[str, Any]) -> None:
    (finding,) = findings("k8s-hf-offline", [*sealed_cluster(), web(env=[env])])
    assert (finding.verdict, finding.reason) == (OPEN, "HubKey")
    assert env["name"] in finding.message


def test_an_empty_key_is_none() -> None:
    assert verdict("k8s-hf-offline", web(env=[variable("HF_TOKEN", "")])) is FINE
