"""What operators call for objects of others: add-ons of AKS call from namespaces without default deny.

Sources: keda.sh/docs/latest (scalers, operate/cloud-events, concepts/authentication, authentication-providers),
learn.microsoft.com/azure/azure-monitor/containers/prometheus-metrics-scrape-crd, prometheus-operator.dev (API),
secrets-store-csi-driver.sigs.k8s.io/providers, Azure/secrets-store-csi-driver-provider-azure (pkg/provider/types),
open-policy-agent.github.io/gatekeeper/website/docs/externaldata, microsoft/retina (crds/).
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.addons import PodMonitor, SecretProviderClass
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.scalers import CloudEventSource, ScaledObject, TriggerAuthentication
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.result.run import evaluate
from testbed.kubernetes_plants.pieces import manifest, put
from tests.kubernetes_estates import POLICY, Manifest, estate, sealed_cluster

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


def findings_with(*added: Manifest) -> list[Finding]:
    manifests = copy.deepcopy(sealed_cluster())
    for manifest_added in added:
        put(manifests, manifest_added)
    return [finding for finding in evaluate(estate(manifests), POLICY) if finding.check == "k8s-other-ways"]


def worst(*added: Manifest) -> Verdict:
    verdicts = {finding.verdict for finding in findings_with(*added)}
    return OPEN if OPEN in verdicts else UNSEEN if UNSEEN in verdicts else FINE


def a_scaler(metadata: dict[str, str], kind: str = "metrics-api", of_kind: str = "ScaledObject") -> Manifest:
    spec = {"triggers": [{"type": kind, "metadata": metadata}]}
    return manifest("keda.sh/v1alpha1", of_kind, "s", "team", spec=spec)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"url": "https://api.example.com/queue?key=x"}, OPEN),
        ({"anything": "https://api.example.com"}, OPEN),
        ({"host": "db.example.com"}, OPEN),
        ({"host": "203.0.113.7"}, OPEN),
        ({"bootstrapServers": "kafka.team.svc:9092,kafka.example.com:9092"}, OPEN),
        ({"connection": "Server=tcp:db.example.com:1433;Database=x"}, OPEN),
        ({"connection": "Data Source=db.example.com,1433;Database=x"}, OPEN),
        ({"connection": "host=db.team.svc port=5432 dbname=x.y"}, FINE),
        ({"addresses": "10.0.0.1:6379, 203.0.113.7:6379"}, OPEN),
        ({"host": "amqp://user:secret@mq.example.com:5672/"}, OPEN),
        ({"url": "http://metrics.team.svc.cluster.local:8080/queue"}, FINE),
        ({"serverAddress": "http://prometheus.monitoring.svc:9090", "query": 'up{url="https://example.com:1"}'}, FINE),
        ({"host": "10.1.2.3"}, FINE),
        ({"topic": "orders.created", "bootstrapServers": "kafka.team.svc:9092"}, FINE),
        ({"namespace": "bus", "queueName": "jobs"}, FINE),
        ({"url": "https://queue.servicebus.windows.net"}, FINE),  # Azure's checks decide about its private endpoint
        ({"url": "http://$(HOST)/queue"}, UNSEEN),
        ({"host": "${HOST}"}, UNSEEN),
        ({"hostFromEnv": "RABBITMQ"}, UNSEEN),
        ({"connectionFromEnv": "BUS"}, UNSEEN),
    ],
)
@pytest.mark.parametrize("kind", ["ScaledObject", "ScaledJob"])
def test_a_scaler_is_open_where_its_trigger_names_what_is_outside(
    metadata: dict[str, str], expected: Verdict, kind: str
) -> None:
    assert worst(a_scaler(metadata, of_kind=kind)) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("aws-cloudwatch", OPEN), ("gcp-pubsub", OPEN), ("github-runner", OPEN), ("cpu", FINE), ("cron", FINE)],
)
def test_a_trigger_without_an_address_calls_the_service_of_its_vendor(kind: str, expected: Verdict) -> None:
    assert worst(a_scaler({"value": "50"}, kind)) is expected


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        ({"http": {"uri": "https://events.example.com/in"}}, OPEN),
        ({"azureEventGridTopic": {"endpoint": "https://topic.example.com/api/events"}}, OPEN),
        ({"http": {"uri": "http://events.team.svc/in"}}, FINE),
        ({"queue": {"server": "x"}}, UNSEEN),
    ],
)
@pytest.mark.parametrize("kind", ["CloudEventSource", "ClusterCloudEventSource"])
def test_an_event_source_is_open_where_its_receiver_is_outside(
    destination: Manifest, expected: Verdict, kind: str
) -> None:
    namespace = "" if kind.startswith("Cluster") else "team"
    source = manifest("eventing.keda.sh/v1alpha1", kind, "e", namespace, spec={"destination": destination})
    assert worst(source) is expected


@pytest.mark.parametrize(("namespace", "expected"), [("kube-system", Severity.HIGH), ("keda", Severity.MEDIUM)])
def test_an_operator_in_a_namespace_that_has_to_be_closed_makes_it_medium(namespace: str, expected: Severity) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "keda-operator", "controller": True}
    container = {"name": "k", "image": "mcr.microsoft.com/oss/v2/kedacore/keda:v2.17.2"}
    operator = manifest("v1", "Pod", "keda-operator-1", namespace, spec={"containers": [container]})
    operator["metadata"]["ownerReferences"] = [owner]
    (finding,) = findings_with(operator, a_scaler({"url": "https://api.example.com"}))
    assert (finding.verdict, finding.severity) == (OPEN, expected)
    assert finding.path_texts == ("keda.sh/v1alpha1/ScaledObject team/s -> operator of KEDA -> api.example.com",)


def test_the_cache_keeps_addresses_and_no_secret_and_keeps_them_when_it_is_read_again() -> None:
    metadata = {"host": "amqp://user:secret@mq.example.com/", "x": "https://a.example.com/token", "y": "secret"}
    projection = projected(ScaledObject, a_scaler(metadata))
    assert "secret" not in str(projection)
    assert "token" not in str(projection)
    assert projected(ScaledObject, projection) == projection
    uri = {"destination": {"http": {"uri": "https://e.example.com/token"}}}
    source = projected(CloudEventSource, manifest("eventing.keda.sh/v1alpha1", "CloudEventSource", "e", "t", spec=uri))
    assert "token" not in str(source)
    assert projected(CloudEventSource, source) == source


# ------------------------------------------------------------------ authentications of KEDA


def an_authentication(kind: str = "TriggerAuthentication", **spec: Any) -> Manifest:
    namespace = "" if kind.startswith("Cluster") else "team"
    return manifest("keda.sh/v1alpha1", kind, "a", namespace, spec=spec)


def a_secret(parameter: str) -> list[Manifest]:
    return [{"parameter": parameter, "name": "bus", "key": "value"}]


@pytest.mark.parametrize("kind", ["TriggerAuthentication", "ClusterTriggerAuthentication"])
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hashiCorpVault": {"address": "https://vault.example.com", "authentication": "token"}}, OPEN),
        ({"hashiCorpVault": {"address": "vault.example.com:8200"}}, OPEN),
        ({"hashiCorpVault": {"address": "http://vault.vault.svc:8200", "secrets": a_secret("password")}}, FINE),
        ({"hashiCorpVault": {"address": "http://vault.vault.svc:8200", "secrets": a_secret("host")}}, UNSEEN),
        ({"azureKeyVault": {"vaultUri": "https://contoso.vault.azure.net", "secrets": a_secret("password")}}, FINE),
        ({"azureKeyVault": {"vaultUri": "https://contoso.example.com"}}, OPEN),
        (
            {"azureKeyVault": {"vaultUri": "https://c.vault.azure.net",
                               "cloud": {"type": "Private", "activeDirectoryEndpoint": "https://login.example.com"}}},
            OPEN,
        ),
        ({"awsSecretManager": {"region": "eu-west-1", "secrets": a_secret("password")}}, OPEN),
        ({"gcpSecretManager": {"secrets": a_secret("password")}}, OPEN),
        ({"secretTargetRef": a_secret("host")}, UNSEEN),
        ({"secretTargetRef": a_secret("connection")}, UNSEEN),
        ({"configMapTargetRef": a_secret("bootstrapServers")}, UNSEEN),
        ({"env": [{"parameter": "address", "name": "REDIS", "containerName": "c"}]}, UNSEEN),
        ({"secretTargetRef": a_secret("password") + a_secret("username") + a_secret("apiKey")}, FINE),
        ({"podIdentity": {"provider": "azure-workload"}}, FINE),
        ({"hashiCorpVault": "vault.example.com"}, UNSEEN),
    ],
)  # fmt: skip
def test_an_authentication_is_open_where_its_server_is_outside_and_unknown_where_it_hides_an_address(
    spec: Manifest, expected: Verdict, kind: str
) -> None:
    assert worst(an_authentication(kind, **spec)) is expected


# ------------------------------------------------------------------ monitors of the metrics add-on


def a_monitor(endpoint: Any, kind: str = "PodMonitor") -> Manifest:
    field = "podMetricsEndpoints" if kind == "PodMonitor" else "endpoints"
    spec = {"selector": {"matchLabels": {"host": "a.example.com:80"}}, field: [endpoint]}
    return manifest("azmonitoring.coreos.com/v1", kind, "m", "team", spec=spec)


def relabelled(**rule: Any) -> Manifest:
    return {"port": "metrics", "relabelings": [rule]}


def with_a_port(**changed: Any) -> Manifest:
    rule = {
        "sourceLabels": ["__address__", "__meta_kubernetes_pod_annotation_prometheus_io_port"],
        "regex": r"([^:]+)(?::\d+)?;(\d+)",
        "replacement": "$1:$2",
        "targetLabel": "__address__",
    }
    return relabelled(**{**rule, **changed})


@pytest.mark.parametrize("kind", ["PodMonitor", "ServiceMonitor"])
@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ({"port": "metrics", "path": "/metrics", "interval": "30s"}, FINE),
        ({"port": "metrics", "proxyUrl": "http://proxy.example.com:3128"}, OPEN),
        ({"port": "metrics", "proxyUrl": "http://203.0.113.7:3128"}, OPEN),
        ({"port": "metrics", "proxyUrl": "http://proxy.team.svc:3128"}, FINE),
        ({"oauth2": {"tokenUrl": "https://login.example.com/token"}}, OPEN),
        ({"oauth2": {"tokenUrl": "http://dex.team.svc/token", "proxyUrl": "http://203.0.113.7:1"}}, OPEN),
        (relabelled(targetLabel="__address__", replacement="collector.example.com"), OPEN),
        (relabelled(targetLabel="__address__", replacement="203.0.113.7:443"), OPEN),
        (relabelled(targetLabel="__address__", replacement="3405803783:80"), OPEN),
        (relabelled(targetLabel="__address__", replacement="collector.team.svc:80"), FINE),
        (relabelled(targetLabel="__address__", sourceLabels=["__meta_kubernetes_pod_annotation_to"]), UNSEEN),
        (relabelled(targetLabel="${1}", sourceLabels=["x"]), UNSEEN),
        (relabelled(targetLabel="instance", replacement="collector.example.com:443"), FINE),
        (relabelled(targetLabel="__address__", action="hashmod", modulus=3405803784, sourceLabels=["x"]), UNSEEN),
        (with_a_port(), FINE),
        (with_a_port(regex=r".+;(.*)"), UNSEEN),
        (with_a_port(sourceLabels=["__meta_kubernetes_pod_annotation_to", "__address__"]), UNSEEN),
        (with_a_port(separator="@"), UNSEEN),
        (with_a_port(replacement="$2:$1"), UNSEEN),
        (relabelled(action="labelmap", regex="__meta_kubernetes_pod_label_(.+)"), FINE),
        (relabelled(action="labelmap", regex="__meta_kubernetes_pod_label_x(.+)"), UNSEEN),
        (relabelled(action="LabelMap", regex="(.+)", replacement="__${1}__"), UNSEEN),
        ({"metricRelabelings": [{"targetLabel": "node", "replacement": "node.example.com:9100"}]}, FINE),
        ("metrics", UNSEEN),
    ],
)
def test_a_monitor_is_open_where_it_scrapes_something_outside(endpoint: Any, expected: Verdict, kind: str) -> None:
    assert worst(a_monitor(endpoint, kind)) is expected


# ------------------------------------------------------------------ secrets store, Gatekeeper, Retina


def a_class_of_secrets(provider: str = "azure", **parameters: str) -> Manifest:
    spec = {"provider": provider, "parameters": parameters}
    return manifest("secrets-store.csi.x-k8s.io/v1", "SecretProviderClass", "c", "team", spec=spec)


@pytest.mark.parametrize(
    ("provider", "parameters", "expected"),
    [
        ("azure", {"keyvaultName": "contoso", "tenantId": "t", "objects": "array:\n- objectName: a.b.com:443\n"}, FINE),
        ("azure", {"keyvaultName": "evil.example.com/x"}, UNSEEN),
        ("azure", {"keyvaultName": "contoso", "cloudName": "AzureUSGovernment"}, FINE),
        ("azure", {"keyvaultName": "contoso", "cloudEnvFileName": "/var/lib/kubelet/pods/x/env.json"}, UNSEEN),
        ("azure", {"keyvaultName": "contoso", "cloudEnvFileName": ""}, FINE),
        ("vault", {"vaultAddress": "https://vault.example.com:8200", "roleName": "r"}, OPEN),
        ("vault", {"vaultAddress": "http://vault.vault.svc:8200", "roleName": "r"}, FINE),
        ("conjur", {"conjur.org/configurationVersion": "0.2.0", "applianceUrl": "https://conjur.example.com"}, OPEN),
        ("aws", {"objects": "x"}, OPEN),
        ("gcp", {"secrets": "x"}, OPEN),
    ],
)
def test_a_class_of_secrets_is_open_where_its_provider_asks_a_server_outside(
    provider: str, parameters: dict[str, str], expected: Verdict
) -> None:
    assert worst(a_class_of_secrets(provider, **parameters)) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://data.example.com/validate", OPEN),
        ("https://data.gatekeeper-system:8090/validate", FINE),
        ("https://data.gatekeeper-system.svc:8090/validate", FINE),
        ("https://other.gatekeeper-system:8090/validate", OPEN),  # no Service has this name
    ],
)
def test_gatekeeper_is_told_to_ask_outside(url: str, expected: Verdict) -> None:
    provider = manifest("externaldata.gatekeeper.sh/v1beta1", "Provider", "p", spec={"url": url, "timeout": 3})
    service = manifest("v1", "Service", "data", "gatekeeper-system", spec={"type": "ClusterIP"})
    assert worst(provider, service) is expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"hostPath": "/mnt/captures"}, FINE),
        ({"persistentVolumeClaim": "captures"}, FINE),
        ({"blobUpload": "secret"}, UNSEEN),
        ({"s3Upload": {"endpoint": "https://s3.example.com", "bucket": "b"}}, OPEN),
        ({"s3Upload": {"bucket": "b", "region": "eu-west-1"}}, OPEN),
        ({"s3Upload": {"endpoint": "http://minio.team.svc:9000", "bucket": "b"}}, FINE),
        ("elsewhere", UNSEEN),
    ],
)
def test_captured_packets_are_followed_to_their_store(output: Any, expected: Verdict) -> None:
    spec = {"captureConfiguration": {}, "outputConfiguration": output}
    assert worst(manifest("retina.sh/v1alpha1", "Capture", "c", "team", spec=spec)) is expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"destination": "stdout", "connectionConfiguration": ""}, FINE),
        ({"destination": "opentelemetry", "connectionConfiguration": "otel.example.com:4317"}, OPEN),
        ({"destination": "loganalytics", "connectionConfiguration": "workspace-key"}, UNSEEN),
    ],
)
def test_traces_of_packets_are_followed_to_their_receiver(output: Manifest, expected: Verdict) -> None:
    spec = {"traceConfiguration": [], "outputConfiguration": output}
    assert worst(manifest("retina.sh/v1alpha1", "TracesConfiguration", "t", spec=spec)) is expected


@pytest.mark.parametrize(
    ("operator", "namespace", "caller"),
    [
        ("ama-metrics", "kube-system", a_monitor({"proxyUrl": "http://proxy.example.com:3128"})),
        ("gatekeeper-audit", "gatekeeper-system", None),
        ("vault-csi-provider", "vault", a_class_of_secrets("vault", vaultAddress="https://vault.example.com")),
    ],
)
def test_an_operator_in_a_namespace_of_its_own_makes_it_medium(
    operator: str, namespace: str, caller: Manifest | None
) -> None:
    provider = manifest("externaldata.gatekeeper.sh/v1beta1", "Provider", "p", spec={"url": "https://d.example.com"})
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": operator, "controller": True}
    pod = manifest("v1", "Pod", f"{operator}-1", namespace, spec={"containers": [{"name": "k", "image": "x"}]})
    pod["metadata"]["ownerReferences"] = [owner]
    (finding,) = findings_with(pod, caller or provider)
    expected = Severity.HIGH if namespace == "kube-system" else Severity.MEDIUM
    assert (finding.verdict, finding.severity) == (OPEN, expected)


def test_gatekeeper_of_azure_policy_makes_it_high() -> None:
    """Its namespace is left out of the check for default deny."""
    image = "mcr.microsoft.com/oss/v2/open-policy-agent/gatekeeper:v3.20.1-1"
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gatekeeper-audit", "controller": True}
    spec = {"containers": [{"name": "k", "image": image}]}
    pod = manifest("v1", "Pod", "gatekeeper-audit-1", "gatekeeper-system", spec=spec)
    pod["metadata"]["ownerReferences"] = [owner]
    template = manifest("templates.gatekeeper.sh/v1", "ConstraintTemplate", "t", spec={})
    provider = manifest("externaldata.gatekeeper.sh/v1beta1", "Provider", "p", spec={"url": "https://d.example.com"})
    (finding,) = findings_with(pod, template, provider)
    assert (finding.verdict, finding.severity) == (OPEN, Severity.HIGH)


@pytest.mark.parametrize(
    ("kind", "caller"),
    [
        (PodMonitor, a_monitor({"proxyUrl": "http://user:secret@proxy.example.com:3128/token"})),
        (SecretProviderClass, a_class_of_secrets("vault", vaultAddress="https://u:secret@v.example.com/token")),
        (TriggerAuthentication, an_authentication(hashiCorpVault={
            "address": "https://v.example.com", "credential": {"token": "secret"}, "secrets": a_secret("host")})),
    ],
)  # fmt: skip
def test_the_cache_keeps_addresses_of_a_caller_alone(kind: Any, caller: Manifest) -> None:
    projection = projected(kind, caller)
    assert "example.com" in str(projection)
    assert "secret" not in str(projection)
    assert "token" not in str(projection)
    assert projected(kind, projection) == projection


def test_a_caller_that_was_written_in_the_form_of_the_cache_is_read_safely() -> None:
    hostile = manifest("azmonitoring.coreos.com/v1", "PodMonitor", "m", "team", spec={"addresses": {"a": 5}})
    assert worst(hostile) is UNSEEN
