"""What would run although no pod shows it, what pods are configured to call, and the tokens that they hold."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.names import host_outside, outside
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.templates import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from hermetic.audit.model.findings import Severity, Verdict
from tests.kubernetes_estates import CLUSTER, Manifest, container, findings, manifest, owned, pod, verdicts, with_one

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
OPEN_TEMPLATE = {"spec": {"hostNetwork": True, "containers": [container()]}}


def verdict(check: str, changed: Manifest) -> Verdict:
    """The verdict about what was added, or about the cluster where nothing is said against it."""
    (only,) = verdicts(check, with_one(changed)).values()
    return only


# ------------------------------------------------------------------ templates


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (Deployment, {"replicas": 0, "template": OPEN_TEMPLATE}, OPEN),
        (Deployment, {"replicas": 3, "paused": True, "template": OPEN_TEMPLATE}, OPEN),
        (Deployment, {"replicas": 3, "template": OPEN_TEMPLATE}, OPEN),
        (StatefulSet, {"replicas": 0, "template": OPEN_TEMPLATE}, OPEN),
        (Job, {"suspend": True, "template": OPEN_TEMPLATE}, OPEN),
        (Job, {"template": OPEN_TEMPLATE}, FINE),
        (Job, {"managedBy": "kueue.x-k8s.io/multikueue", "template": OPEN_TEMPLATE}, OPEN),
        (ReplicaSet, {"replicas": 0, "template": OPEN_TEMPLATE}, OPEN),
        (ReplicaSet, {"replicas": 1, "template": OPEN_TEMPLATE}, OPEN),
        (ReplicaSet, {"replicas": 0, "template": "x"}, UNSEEN),
        (ReplicationController, {"replicas": 0, "template": OPEN_TEMPLATE}, OPEN),
        (DaemonSet, {"template": OPEN_TEMPLATE}, OPEN),
        (DaemonSet, {"template": "x"}, UNSEEN),
        (CronJob, {"jobTemplate": {"spec": {"template": OPEN_TEMPLATE}}}, OPEN),
        (CronJob, {"suspend": True, "jobTemplate": {"spec": {"template": OPEN_TEMPLATE}}}, OPEN),
        (CronJob, {}, FINE),
        (Deployment, {"replicas": 0, "template": {"spec": {"hostNetwork": "yes"}}}, UNSEEN),
        (Deployment, {"replicas": 0, "template": "x"}, UNSEEN),
        (CronJob, {"jobTemplate": "x"}, UNSEEN),
    ],
)
def test_a_template_that_no_pod_shows_is_judged_as_its_pod_would_be(
    kind: Any, spec: Manifest, expected: Verdict
) -> None:
    some = manifest(kind, "night", "inference", spec=spec)
    verdict_of = verdicts("k8s-hostnetwork", with_one(some))
    version = kind.TYPE.rpartition("/")[0]
    assert verdict_of == {CLUSTER if expected is FINE else f"{version}/{kind.KIND} inference/night": expected}


LIVE: dict[Any, Manifest] = {
    Deployment: {"replicas": 2, "updatedReplicas": 1},
    StatefulSet: {"replicas": 2, "updatedReplicas": 1},
    ReplicaSet: {"replicas": 1},
    ReplicationController: {"replicas": 1},
    DaemonSet: {"currentNumberScheduled": 3, "updatedNumberScheduled": 1},
    Job: {"active": 1},
}


@pytest.mark.parametrize("kind", LIVE)
def test_a_template_of_which_there_are_pods_is_not_even_kept(kind: Any) -> None:
    workload = manifest(kind, "web", "team", spec={"replicas": 2, "template": OPEN_TEMPLATE}, status=LIVE[kind])
    projection = projected(kind, workload)
    assert (projection["spec"], "status" in projection) == ({}, False)
    assert verdict("k8s-hostnetwork", workload) is FINE


def test_a_paused_controller_is_judged_by_the_pods_of_its_latest_template() -> None:
    spec = {"replicas": 2, "paused": True, "template": OPEN_TEMPLATE}
    with_pods, changed = (
        manifest(Deployment, "web", "team", spec=spec, status={"replicas": 2, "updatedReplicas": updated})
        for updated in (2, 0)
    )
    assert projected(Deployment, with_pods)["spec"] == {}
    assert verdict("k8s-hostnetwork", changed) is OPEN


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (Deployment, {"replicas": 2, "updatedReplicas": 0}),
        (StatefulSet, {"replicas": 2, "currentReplicas": 2}),
        (ReplicaSet, {"replicas": 0}),
        (ReplicationController, {"replicas": 0}),
        (DaemonSet, {"currentNumberScheduled": 3, "updatedNumberScheduled": 0}),
        (DaemonSet, {"desiredNumberScheduled": 0}),
        (Job, {"active": 0, "conditions": [{"type": "Suspended", "status": "False"}]}),
        (Job, {"active": 0, "conditions": [{"type": "Failed", "status": "False"}]}),
        (Job, {"failed": 1, "conditions": "x"}),
    ],
)
def test_a_template_of_which_there_is_no_pod_counts_although_pods_are_asked_for(kind: Any, status: Manifest) -> None:
    workload = manifest(kind, "web", "team", spec={"replicas": 2, "template": OPEN_TEMPLATE}, status=status)
    assert verdict("k8s-hostnetwork", workload) is OPEN


@pytest.mark.parametrize("condition", ["Complete", "Failed"])
def test_a_job_that_has_ended_runs_no_more(condition: str) -> None:
    status = {"conditions": [{"type": condition, "status": "True"}]}
    workload = manifest(Job, "once", "team", spec={"template": OPEN_TEMPLATE}, status=status)
    assert verdict("k8s-hostnetwork", workload) is FINE


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (owned("Deployment", "web"), FINE),
        (owned("Rollout", "web", "argoproj.io/v1alpha1"), OPEN),
        (owned("Deployment", "web", "example.com/v1"), OPEN),
        ([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"}], OPEN),
    ],
)
def test_what_a_deployment_ran_before_does_not_count(owner: list[Manifest], expected: Verdict) -> None:
    spec = {"replicas": 0, "template": OPEN_TEMPLATE}
    workload = manifest(ReplicaSet, "web-1", "team", spec=spec, ownerReferences=owner)
    assert verdict("k8s-hostnetwork", workload) is expected


def test_a_daemon_set_of_the_platform_without_a_node_for_it_is_the_platforms() -> None:
    agent = {"hostNetwork": True, "containers": [container(image="mcr.microsoft.com/oss/csi:v1")]}
    workload = manifest(DaemonSet, "csi-azuredisk-node-win", "kube-system", spec={"template": {"spec": agent}})
    assert verdict("k8s-hostnetwork", workload) is FINE


def test_a_template_in_a_namespace_without_policies_is_open() -> None:
    spec = {"jobTemplate": {"spec": {"template": {"spec": {"containers": [container()]}}}}}
    verdict_of = verdicts("k8s-default-deny-egress", with_one(manifest(CronJob, "night", "team", spec=spec)))
    assert verdict_of == {"v1/Namespace team": OPEN}


@pytest.mark.parametrize("kind", [Deployment, StatefulSet, ReplicaSet, ReplicationController, DaemonSet, Job, CronJob])
def test_templates_that_may_not_be_listed_leave_their_checks_unknown(kind: Any) -> None:
    verdict_of = verdicts("k8s-privileged", with_one(pod("app-2")), forbidden=[kind])
    assert verdict_of == {CLUSTER: UNSEEN}


# ------------------------------------------------------------------ addresses outside


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("https://hf-mirror.example.com/x?token=1", ["https://hf-mirror.example.com"]),
        ("https://user:secret@pypi.example.com:8443/simple", ["https://pypi.example.com"]),
        ("git+https://git.example.com/x", ["https://git.example.com"]),
        ("curl http://203.0.113.7/a; curl http://10.0.0.1/b", ["http://203.0.113.7"]),
        ("grpc://[2001:db8::1]:4317", ["grpc://[2001:db8::1]"]),
        ("s3://weights/llama", ["s3://weights"]),
        ("hf://meta-llama/x", ["hf://meta-llama"]),
        ("https://EXAMPLE.com.", ["https://EXAMPLE.com."]),
        ("https://example.com:", ["https://example.com"]),
        ("https://example\u3002com/x", ["https://example\u3002com"]),
        ("https://example%2ecom/x", ["https://example%2ecom"]),
        ("https://\uff18.\uff18.\uff18.\uff18/", ["https://\uff18.\uff18.\uff18.\uff18"]),
        ("http://\u6a21\u578b.team.svc/", []),
        ("http://%s:8000 http://*:80 tcp://$(POD_IP):1", []),
        ("tcp://10.0.0.1:443", []),
        ("http://otel.monitoring.svc:4317", []),
        ("http://collector:4317", []),
        ("https://acct.blob.core.windows.net/x", []),
        ("https://acct.blob.core.windows.net.example.com/x", ["https://acct.blob.core.windows.net.example.com"]),
        ("https://login.microsoftonline.com/", []),
        ("https://contoso.azurecr.io", []),
        ("file:///models", []),
        ("unix:///run/x.sock", []),
        ("no address at all", []),
    ],
)
def test_of_a_text_the_hosts_outside_are_kept_and_nothing_else(text: str, hosts: list[str]) -> None:
    assert list(outside(text)) == hosts


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("collector.example.com:4317", "collector.example.com"),
        ("203.0.113.7:4317", "203.0.113.7"),
        ("mirror.example.com/path", "mirror.example.com"),
        ("collector:4317", ""),
        ("otel.team.svc:4317", ""),
        ("10.0.0.1:4317", ""),
        ("true", ""),
        ("two words.com", ""),
        ("134744072", "134744072"),
        ("0x08080808:4317", "0x08080808"),
        ("8.8.2056", "8.8.2056"),
        ("010.8.8.8", "010.8.8.8"),
        ("167772161", ""),
        ("4294967296", ""),
        ("4317", ""),
    ],
)
def test_a_host_without_a_scheme_is_seen_too(text: str, host: str) -> None:
    assert host_outside(text) == host


GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def with_variable(name: str, value: Any, **fields: Any) -> Manifest:
    """The pod inference/app-2 with this variable; with `**GPU` a model server."""
    variable = {"name": name, "valueFrom": value} if isinstance(value, dict) else {"name": name, "value": value}
    return pod("app-2", spec={"containers": [container(env=[variable], **fields)]})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (with_variable("HF_ENDPOINT", "https://hub.example.com"), OPEN),
        (with_variable("hf_endpoint", "hub.example.com"), OPEN),
        (with_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://203.0.113.7:4318"), OPEN),
        (with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "otel.monitoring.svc:4317"), FINE),
        (with_variable("ANYTHING", "https://hub.example.com"), FINE),
        (with_variable("ANYTHING", "https://hub.example.com", **GPU), OPEN),
        (with_variable("STORE", "https://acct.blob.core.windows.net/models", **GPU), FINE),
        (with_variable("HF_ENDPOINT", {"secretKeyRef": {"name": "s", "key": "k"}}), UNSEEN),
        (with_variable("ANYTHING", {"configMapKeyRef": {"name": "c", "key": "k"}}, **GPU), FINE),
        (pod("app-2", spec={"containers": [container(envFrom=[{"secretRef": {"name": "s"}}], **GPU)]}), UNSEEN),
        (pod("app-2", spec={"containers": [container(envFrom=[{"secretRef": {"name": "s"}}])]}), FINE),
        (
            pod("app-2", spec={"containers": [container(command=["sh", "-c", "wget http://x.example.com"], **GPU)]}),
            OPEN,
        ),
        (pod("app-2", spec={"containers": [container(args=["--model", "/models/llama"], **GPU)]}), FINE),
        (pod("app-2", spec={"dnsConfig": {"nameservers": ["10.0.0.10"]}, "containers": [container()]}), FINE),
        (pod("app-2", spec={"hostAliases": [{"ip": "10.0.0.1"}], "containers": [container()]}), FINE),
        (pod("app-2", spec={"containers": [container(readinessProbe={"httpGet": {"port": 80}})]}), FINE),
        (pod("app-2", spec={"containers": [container(startupProbe={"tcpSocket": {"host": "127.0.0.1"}})]}), FINE),
        (pod("app-2", spec={"containers": [container(startupProbe={"tcpSocket": {"host": "x.example.com"}})]}), OPEN),
    ],
)
def test_a_pod_is_open_where_it_is_told_of_what_is_outside(changed: Manifest, expected: Verdict) -> None:
    assert verdict("k8s-outside-endpoint", changed) is expected


def from_the_pod(path: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize("field", ["args", "command", "env"])
@pytest.mark.parametrize(
    ("text", "env", "expected"),
    [
        ("collector.example.com:4317", {}, OPEN),
        ("--otlp=collector.example.com:4317/v1", {}, OPEN),
        ('{"traces": "collector.example.com:4317"}', {}, OPEN),
        ("sh -c 'nc 203.0.113.7:443'", {}, OPEN),
        ("user:secret@mirror.example.com:8443", {}, OPEN),
        ("[2600::1]:443", {}, OPEN),
        ("https://api.example.com:$(PORT)/v1", {}, OPEN),
        ("collector.monitoring.svc:4317", {}, FINE),
        ("[fd00::1]:443 0.0.0.0:8000 10.1.2.3:80 localhost:80", {}, FINE),
        ("models.vault.azure.net:443", {}, FINE),
        ("meta/llama-3.1:8 llama-3.1:8 sha256:123 12:30 1.5:3 app.main:app", {}, FINE),
        ("https://$(HOST)/v1", {}, UNSEEN),
        ("https://${HOST}:443", {}, UNSEEN),
        ("curl -s http://$HOST/x", {}, UNSEEN),
        ("https://$(HOST)", {"HOST": {"value": "api.example.com"}}, UNSEEN),
        ("https://$(NAME)", {"NAME": from_the_pod("metadata.name")}, UNSEEN),
        ("https://$(NOTE)", {"NOTE": from_the_pod("metadata.annotations['host']")}, UNSEEN),
        ("https://$(IP).api.example.com", {"IP": from_the_pod("status.podIP")}, UNSEEN),
        ("https://$(IP)$(HOST)", {"IP": from_the_pod("status.podIP")}, UNSEEN),
        ("http://$(IP):4317", {"IP": from_the_pod("status.hostIP")}, FINE),
        ("http://web.$(TEAM).svc:80", {"TEAM": from_the_pod("metadata.namespace")}, FINE),
        ("http://127.0.0.1:$(PORT)", {}, FINE),
        ("file://$(FOLDER)/x", {}, FINE),
        ("https://$(USER):$(PASSWORD)@10.1.2.3/x", {}, FINE),
    ],
)
def test_an_address_of_a_model_server_needs_no_scheme_and_may_be_made_of_variables(
    field: str, text: str, env: dict[str, Any], expected: Verdict
) -> None:
    variables = [{"name": name, **source} for name, source in env.items()]
    settings = {"env": [*variables, {"name": "ANYTHING", "value": text}]} if field == "env" else {field: [text]}
    accelerated_pod = pod("app-2", spec={"containers": [container(**{"env": variables, **settings}, **GPU)]})
    assert verdict("k8s-outside-endpoint", accelerated_pod) is expected
    assert "secret" not in str(projected(Pod, accelerated_pod))


def test_of_an_address_with_a_credential_the_host_alone_is_kept() -> None:
    projection = projected(
        Pod, with_variable("PIP_INDEX_URL", "https://user:secret@pypi.example.com/simple?key=secret", **GPU)
    )
    assert "secret" not in str(projection)
    assert projection["spec"]["containers"][0]["env"] == [
        {"name": "PIP_INDEX_URL", "value": "https://pypi.example.com"}
    ]


def test_arguments_and_plain_probes_are_not_kept() -> None:
    fields = {
        "args": ["--api-key", "secret"],
        "livenessProbe": {"httpGet": {"port": 80}},
        "ports": [{"containerPort": 1}],
    }
    projection = projected(Pod, pod("app-2", spec={"containers": [container(**fields)]}))
    assert projection["spec"]["containers"][0].keys() == {"name", "image"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("npm_config_https_proxy", "http://10.9.9.9:3128", OPEN),
        ("CORP_PROXY", "proxy:3128", OPEN),
        ("socks_proxy", "socks5://10.9.9.9", OPEN),
        ("USE_PROXY", "true", FINE),
        ("NO_PROXY", "10.0.0.0/8", FINE),
        ("no_proxy", "https://x", FINE),
    ],
)
def test_a_proxy_of_any_name_counts(name: str, value: str, expected: Verdict) -> None:
    assert verdict("k8s-proxy-env", with_variable(name, value)) is expected


# ------------------------------------------------------------------ tokens and folders


def mounts(*volumes: Manifest, labels: Manifest | None = None, gpu: bool = True) -> Manifest:
    """The pod inference/app-2 with these volumes."""
    return pod(
        "app-2", spec={"volumes": list(volumes), "containers": [container(**(GPU if gpu else {}))]}, labels=labels
    )


TOKEN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
FOREIGN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "api://AzureADTokenExchange"}}]}}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (mounts(FOREIGN), (OPEN, Severity.MEDIUM)),
        (mounts(TOKEN, FOREIGN), (OPEN, Severity.MEDIUM)),
        (mounts(TOKEN), (OPEN, Severity.LOW)),
        (mounts(labels={"azure.workload.identity/use": "true"}), (OPEN, Severity.MEDIUM)),
        (mounts({"name": "s", "secret": {"secretName": "ngc-api"}}), (OPEN, Severity.MEDIUM)),
        (
            mounts({"name": "s", "projected": {"sources": [{"secret": {"name": "team-hf-token"}}]}}),
            (OPEN, Severity.MEDIUM),
        ),
        (mounts({"name": "s", "secret": {"secretName": "llama-tls"}}), (FINE, Severity.MEDIUM)),
        (mounts({"name": "s", "secret": {"secretName": "github"}}), (FINE, Severity.MEDIUM)),
        (mounts(FOREIGN, gpu=False), (FINE, Severity.MEDIUM)),
    ],
)
def test_a_model_server_holds_no_token(changed: Manifest, expected: tuple[Verdict, Severity]) -> None:
    (finding,) = findings("k8s-model-token", with_one(changed))
    assert (finding.verdict, finding.severity) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", OPEN), ("//", OPEN), ("/.", OPEN), ("/mnt/../etc", OPEN), ("//etc", OPEN), ("/etc/", OPEN),
        ("/root/.kube", OPEN), ("/home", OPEN), ("/usr/bin", OPEN), ("/opt/bin", OPEN), ("/dev", OPEN),
        ("/dev/disk/by-id/x", OPEN), ("/var/lib/docker", OPEN), ("/var", OPEN), ("/var/run/secrets", OPEN),
        ("/run/containerd/containerd.sock", OPEN), ("/sys/fs/bpf", OPEN), ("/boot", OPEN), ("/etc/ssl", OPEN),
        ("C:\\", OPEN), (r"\\.\pipe\docker_engine", OPEN), ("relative", OPEN), ("", OPEN),
        ("/mnt/models", FINE), ("/data", FINE), ("/var/log", FINE), ("/var/log/pods", FINE), ("/etc/localtime", FINE),
        ("/etc/ssl/certs", FINE), ("/usr/share/zoneinfo", FINE), ("/dev/shm", FINE), ("/variants", FINE),
    ],
)  # fmt: skip
def test_a_folder_of_the_node_is_open_where_it_is_the_systems_own(path: str, expected: Verdict) -> None:
    mounting_pod = pod(
        "app-2", spec={"volumes": [{"name": "h", "hostPath": {"path": path}}], "containers": [container()]}
    )
    assert verdict("k8s-privileged", mounting_pod) is expected
