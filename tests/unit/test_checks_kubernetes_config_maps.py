"""What pods take from ConfigMaps and Secrets, and what the ConfigMap of a mesh says: both ways, and Unknown."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.config_values import LONGEST, MORE, MOST_VARIABLES
from hermetic.audit.estate.kubernetes.mesh import ServiceEntry
from hermetic.audit.estate.kubernetes.names import outside
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.model.findings import Finding, Severity, Verdict
from tests.kubernetes_estates import CLUSTER, Manifest, container, findings, manifest, pod, sealed_cluster, verdicts

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
SWITCHES = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
POD = "v1/Pod inference/app-2"


def settings(name: str = "settings", namespace: str = "inference", **data: str) -> Manifest:
    """A ConfigMap."""
    return manifest(ConfigMap, name, namespace, data=data)


def whole(name: str = "settings", prefix: str = "") -> Manifest:
    """All of a ConfigMap as variables."""
    return {"configMapRef": {"name": name}, **({"prefix": prefix} if prefix else {})}


def key(variable: str, of: str = "k", name: str = "settings", source: str = "configMapKeyRef") -> Manifest:
    """One variable from a ConfigMap or a Secret."""
    return {"name": variable, "valueFrom": {source: {"name": name, "key": of}}}


def app(**fields: Any) -> Manifest:
    """A pod with this container."""
    return pod("app-2", spec={"containers": [container(**fields)]})


def found(check: str, *some: Manifest, **how: Any) -> Finding:
    """What a check says of the sealed cluster with these objects."""
    (only,) = findings(check, [*sealed_cluster(), *some], **how)
    return only


@pytest.mark.parametrize(
    ("data", "fields", "verdict"),
    [
        ({"HF_ENDPOINT": "https://hub.example.com"}, {"envFrom": [whole()]}, OPEN),
        ({"HF_ENDPOINT": "hub.example.com"}, {"envFrom": [whole()]}, OPEN),
        ({"HF_ENDPOINT": "Hub.Example.Com"}, {"envFrom": [whole()]}, OPEN),
        ({"ENDPOINT": "hub.example.com"}, {"envFrom": [whole(prefix="HF_")]}, OPEN),
        ({"k": "hub.example.com:8443"}, {"env": [key("HF_ENDPOINT")]}, OPEN),
        ({"k": "http://hub.team.svc"}, {"env": [key("HF_ENDPOINT")]}, FINE),
        ({"HF_ENDPOINT": "134744072"}, {"envFrom": [whole()]}, OPEN),
        ({"HF_ENDPOINT": "0x08080808:8443"}, {"envFrom": [whole()]}, OPEN),
        ({"HF_ENDPOINT": "http://134744072/"}, {"envFrom": [whole()]}, OPEN),
        ({"HF_ENDPOINT": "167772161"}, {"envFrom": [whole()]}, FINE),
        ({"BATCH": "16777216"}, {"envFrom": [whole()], **GPU}, FINE),
        ({"k": "hub"}, {"env": [key("HF_ENDPOINT")]}, FINE),
        ({"k": "https://hub.example.com"}, {"env": [key("ANYTHING")]}, FINE),
        ({"k": "https://hub.example.com"}, {"env": [key("ANYTHING")], **GPU}, OPEN),
        ({"k": "hub.example.com:8443"}, {"env": [key("ANYTHING")], **GPU}, OPEN),
        ({"k": "https://${HOST}"}, {"env": [key("ANYTHING")], **GPU}, UNSEEN),
        ({"A": "https://hub.example.com"}, {"envFrom": [whole()], **GPU}, OPEN),
        ({"A": "config.yaml", "B": "text"}, {"envFrom": [whole()], **GPU}, FINE),
        ({"HF_ENDPOINT": "https://x.example.com"}, {"envFrom": [whole("another")]}, FINE),
        (
            {"HF_ENDPOINT": "https://x.example.com"},
            {"envFrom": [whole()], "env": [{"name": "HF_ENDPOINT", "value": "http://hub.team.svc"}]},
            FINE,
        ),
        ({}, {"env": [key("HF_ENDPOINT", source="secretKeyRef")]}, UNSEEN),
        ({}, {"envFrom": [{"secretRef": {"name": "s"}}], **GPU}, UNSEEN),
    ],
)
def test_an_address_outside_counts_wherever_the_variable_comes_from(
    data: dict[str, str], fields: dict[str, Any], verdict: Verdict
) -> None:
    finding = found("k8s-outside-endpoint", settings(**data), app(**fields))
    assert (finding.verdict, finding.resource) == (verdict, CLUSTER if verdict is FINE else POD)


def test_a_config_map_of_another_namespace_is_not_the_pods() -> None:
    other = settings(namespace="team", HF_ENDPOINT="https://hub.example.com")
    assert found("k8s-outside-endpoint", other, app(envFrom=[whole()])).verdict is FINE


@pytest.mark.parametrize(
    ("data", "fields", "expected"),
    [
        ({"HTTPS_PROXY": "http://10.9.9.9:3128"}, {"envFrom": [whole()]}, (OPEN, Severity.HIGH)),
        ({"HTTPS_PROXY": "proxy"}, {"envFrom": [whole()]}, (OPEN, Severity.HIGH)),
        ({"PROXY": "proxy"}, {"envFrom": [whole(prefix="HTTP_")]}, (OPEN, Severity.HIGH)),
        ({"k": "proxy:3128"}, {"env": [key("CORP_PROXY")]}, (OPEN, Severity.HIGH)),
        ({"k": "true"}, {"env": [key("USE_PROXY")]}, (FINE, Severity.HIGH)),
        ({"HTTPS_PROXY": ""}, {"envFrom": [whole()]}, (FINE, Severity.HIGH)),
        ({"A": "b"}, {"envFrom": [whole()]}, (FINE, Severity.HIGH)),
        ({}, {"env": [key("HTTPS_PROXY", source="secretKeyRef")]}, (OPEN, Severity.HIGH)),
        ({}, {"env": [key("CORP_PROXY", source="secretKeyRef")]}, (UNSEEN, Severity.HIGH)),
        ({}, {"envFrom": [{"secretRef": {"name": "s"}}]}, (UNSEEN, Severity.MEDIUM)),
    ],
)
def test_a_proxy_counts_wherever_the_variable_comes_from(
    data: dict[str, str], fields: dict[str, Any], expected: tuple[Verdict, Severity]
) -> None:
    finding = found("k8s-proxy-env", settings(**data), app(**fields))
    assert (finding.verdict, finding.severity) == expected


@pytest.mark.parametrize(
    ("data", "fields", "verdict"),
    [
        (SWITCHES, {"envFrom": [whole()]}, FINE),
        ({**SWITCHES, "HF_HUB_OFFLINE": "0"}, {"envFrom": [whole()]}, OPEN),
        ({"HF_HUB_OFFLINE": "1"}, {"envFrom": [whole()]}, OPEN),
        ({**SWITCHES, "NIM_LOG_LEVEL": "INFO"}, {"envFrom": [whole()]}, OPEN),
        ({**SWITCHES, "NIM_LOG_LEVEL": "INFO", "NIM_DISABLE_MODEL_DOWNLOAD": "1"}, {"envFrom": [whole()]}, FINE),
        ({**SWITCHES, "LOG_LEVEL": "INFO"}, {"envFrom": [whole(), whole(prefix="NIM_")]}, OPEN),
        ({"k": "1"}, {"env": [key("HF_HUB_OFFLINE"), key("TRANSFORMERS_OFFLINE")]}, FINE),
        ({"k": "0"}, {"env": [key("HF_HUB_OFFLINE"), key("TRANSFORMERS_OFFLINE")]}, OPEN),
        ({**SWITCHES, "HF_TOKEN": "hf_x"}, {"envFrom": [whole()]}, OPEN),
        ({**SWITCHES, "TOKEN": "hf_x"}, {"envFrom": [whole(), whole(prefix="HF_")]}, OPEN),
        (SWITCHES, {"envFrom": [whole(), {"secretRef": {"name": "s"}}]}, FINE),
        ({}, {"envFrom": [{"secretRef": {"name": "s"}}]}, UNSEEN),
    ],
)
def test_a_model_server_is_set_offline_from_a_config_map_too(
    data: dict[str, str], fields: dict[str, Any], verdict: Verdict
) -> None:
    assert found("k8s-hf-offline", settings(**data), app(**fields, **GPU)).verdict is verdict


@pytest.mark.parametrize("check", ["k8s-proxy-env", "k8s-outside-endpoint", "k8s-hf-offline"])
@pytest.mark.parametrize("fields", [{"envFrom": [whole()]}, {"env": [key("HF_ENDPOINT")]}])
def test_config_maps_that_may_not_be_listed_make_their_pods_unknown(check: str, fields: dict[str, Any]) -> None:
    finding = found(check, app(**fields, **GPU), forbidden=[ConfigMap])
    assert (finding.verdict, finding.resource) == (UNSEEN, POD)
    assert "list v1/configmaps" in finding.message


@pytest.mark.parametrize("check", ["k8s-proxy-env", "k8s-outside-endpoint"])
def test_they_matter_to_no_pod_that_takes_nothing_from_them(check: str) -> None:
    assert found(check, app(), forbidden=[ConfigMap]).verdict is FINE


def test_the_order_that_settles_a_secret_shows_names_and_no_values() -> None:
    finding = found("k8s-outside-endpoint", app(env=[key("HF_ENDPOINT", name="hub", source="secretKeyRef")]))
    assert "kubectl --namespace inference describe secret hub" in finding.remedy


def test_of_a_config_map_no_text_is_kept() -> None:
    data = {
        "app.conf": "user=admin\npassword=secret\n",
        "TOKEN": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.secret",
        "URL": "https://user:secret@hub.example.com/path?key=secret",
        "INSIDE": "http://secret.team.svc:8080",
        "WORD": "secret",
    }
    projection = projected(ConfigMap, settings(**data))
    assert "secret" not in str(projection)
    assert projection["variables"] == {
        "TOKEN": "not-kept.example", "URL": "https://hub.example.com", "INSIDE": "(not kept)://"
    }  # fmt: skip
    assert "data" not in projection


def test_a_config_map_without_anything_of_note_is_forgotten() -> None:
    projection = projected(ConfigMap, settings(**{"ca.crt": "-----BEGIN", "log": "info"}))
    assert not ConfigMap.is_relevant(projection)
    assert ConfigMap.is_relevant(projected(ConfigMap, settings(log="true")))


def test_what_is_kept_of_a_big_config_map_is_bounded_and_its_pods_are_unknown() -> None:
    data = {f"KEY_{number}": "https://x.example.com" for number in range(5 * MOST_VARIABLES)}
    variables = projected(ConfigMap, settings(**data))["variables"]
    assert (len(variables), MORE in variables) == (MOST_VARIABLES + 1, True)
    finding = found("k8s-proxy-env", settings(**data), app(envFrom=[whole()]))
    assert (finding.verdict, finding.reason) == (UNSEEN, "EnvironmentNotSeen")
    assert "SECRET_NAME" not in finding.remedy


def test_a_value_that_no_variable_can_hold_is_not_looked_into() -> None:
    long = settings(HF_ENDPOINT="https://hub.example.com/" + "x" * LONGEST)
    assert "variables" not in projected(ConfigMap, long)


def test_a_text_of_one_endless_word_is_read() -> None:
    size = 4_000_000  # days, if the time grew with the square
    assert list(outside("a" * size + " https://x.example.com " + "b" * size)) == ["https://x.example.com"]


# ------------------------------------------------------------------ the mesh

REGISTRY_ONLY = "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n"
ZIPKIN = "defaultConfig: {tracing: {zipkin: {address: '%s'}}}\n"
PROVIDER = "extensionProviders: [{name: x, opentelemetry: {service: '%s', port: 4317}}]\n"
VARIABLE = "defaultConfig: {proxyMetadata: {%s: '%s'}}\n"
ZIPKINS = manifest(Service, "zipkin", "istio-system", spec={"type": "ClusterIP"})
ENTRY = manifest(ServiceEntry, "inside", "team", spec={"hosts": ["x.team.svc"], "resolution": "DNS"})


def mesh(text: str, name: str = "istio", **more: str) -> Manifest:
    """The ConfigMap of a mesh."""
    return manifest(ConfigMap, name, "istio-system", data={"mesh": text, **more})


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        (REGISTRY_ONLY, {}, None),
        ("", {}, (OPEN, Severity.MEDIUM)),
        ("outboundTrafficPolicy: {mode: ALLOW_ANY}", {}, (OPEN, Severity.MEDIUM)),
        (REGISTRY_ONLY + ZIPKIN % "zipkin.istio-system:9411", {}, None),
        (REGISTRY_ONLY + ZIPKIN % "zipkin.app:9411", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + ZIPKIN % "collector.example.com:9411", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + ZIPKIN % "203.0.113.7:9411", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "defaultConfig: {statsdUdpAddress: '198.51.100.7:8125'}", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "defaultConfig: {statsd_udp_address: '198.51.100.7:8125'}", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "defaultConfig: {zipkinAddress: 'zipkin.example.com:9411'}", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "defaultConfig: {zipkinAddress: 'zipkin.istio-system:9411'}", {}, None),
        (REGISTRY_ONLY + "defaultConfig: {envoyMetricsServiceAddress: 'm.example.com:1'}", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "caCertificates: [{spiffeBundleUrl: 'https://b.example.com/x'}]", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "ingressService: istio-ingressgateway", {}, None),
        (REGISTRY_ONLY + VARIABLE % ("CA_ADDR", "ca.example.com:443"), {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + VARIABLE % ("ca_addr", "134744072:443"), {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + VARIABLE % ("ANY", "198.51.100.7"), {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + VARIABLE % ("ANY", "https://x.example.com/y"), {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + VARIABLE % ("ANY", "ca.example.com"), {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + VARIABLE % ("ISTIO_META_DNS_CAPTURE", "true"), {}, None),
        (REGISTRY_ONLY + VARIABLE % ("ISTIO_META_ISTIO_VERSION", "1.26.2"), {}, None),
        (REGISTRY_ONLY + VARIABLE % ("CA_ADDR", "istiod.istio-system.svc:15012"), {}, None),
        (REGISTRY_ONLY + VARIABLE % ("TRUST_DOMAIN", "corp.example.com"), {}, None),
        (REGISTRY_ONLY + VARIABLE % ("MINIMUM_DRAIN_DURATION", "5s"), {}, None),
        (REGISTRY_ONLY + VARIABLE % ("PROV_CERT", "/etc/certs/cert.pem"), {}, None),
        (REGISTRY_ONLY + PROVIDER % "otel.team.svc.cluster.local", {}, None),
        (REGISTRY_ONLY + PROVIDER % "team/otel.example.com", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "extensionProviders: [{name: x, stackdriver: {}}]", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "defaultConfig: {discoveryAddress: 'istiod.example.com:15012'}", {}, (OPEN, Severity.HIGH)),
        (REGISTRY_ONLY + "configSources: [{address: 'xds://mcp.example.com'}]", {}, (OPEN, Severity.HIGH)),
        (
            "outboundTrafficPolicy: {mode: REGISTRY_ONLY, egressProxy: {host: out.example.com}}",
            {},
            (OPEN, Severity.HIGH),
        ),
        (
            REGISTRY_ONLY,
            {"meshNetworks": "networks: {far: {gateways: [{address: 203.0.113.7, port: 15443}]}}"},
            (OPEN, Severity.HIGH),
        ),
        (REGISTRY_ONLY, {"meshNetworks": "networks: {near: {gateways: [{address: 10.0.0.7, port: 15443}]}}"}, None),
        (REGISTRY_ONLY + "x: [", {}, (UNSEEN, Severity.HIGH)),
        ("- a list", {}, (UNSEEN, Severity.HIGH)),
        (REGISTRY_ONLY + "x" * 300_000, {}, (UNSEEN, Severity.HIGH)),
        (
            REGISTRY_ONLY
            + "a: &a [1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n",
            {},
            (UNSEEN, Severity.HIGH),
        ),
    ],
)
def test_the_settings_of_a_mesh(text: str, more: dict[str, str], expected: tuple[Verdict, Severity] | None) -> None:
    some = findings("k8s-mesh-egress", [*sealed_cluster(), ENTRY, ZIPKINS, mesh(text, **more)])
    verdict_of = {finding.resource: (finding.verdict, finding.severity) for finding in some}
    if expected is None:
        assert verdict_of == {CLUSTER: (FINE, Severity.HIGH)}
    else:
        assert verdict_of == {"v1/ConfigMap istio-system/istio": expected}


@pytest.mark.parametrize(
    ("of_aks", "shared", "expected"),
    [
        ("", None, {"istio-asm-1-26": OPEN}),
        ("", "", {"istio-asm-1-26": OPEN}),
        ("", REGISTRY_ONLY, {}),
        (REGISTRY_ONLY, "", {}),
        (
            "",
            "outboundTrafficPolicy: {mode: ALLOW_ANY}",
            {"istio-asm-1-26": OPEN, "istio-shared-configmap-asm-1-26": OPEN},
        ),
    ],
)
def test_with_the_add_on_the_settings_are_in_two_config_maps(
    of_aks: str, shared: str | None, expected: dict[str, Verdict]
) -> None:
    some = [mesh(of_aks, "istio-asm-1-26")]
    some += [mesh(shared, "istio-shared-configmap-asm-1-26")] if shared is not None else []
    found_verdicts = verdicts("k8s-mesh-egress", [*sealed_cluster(), ENTRY, *some])
    assert found_verdicts == (
        {f"v1/ConfigMap istio-system/{name}": verdict for name, verdict in expected.items()} or {CLUSTER: FINE}
    )


def test_a_mesh_whose_settings_are_nowhere_is_unknown() -> None:
    finding = found("k8s-mesh-egress", ENTRY)
    assert (finding.verdict, finding.reason, finding.severity) == (UNSEEN, "MeshConfigNotSeen", Severity.MEDIUM)


def test_a_mesh_whose_settings_may_not_be_read_is_unknown() -> None:
    finding = found("k8s-mesh-egress", ENTRY, forbidden=[ConfigMap])
    assert (finding.verdict, finding.severity) == (UNSEEN, Severity.HIGH)


def test_without_a_mesh_its_settings_matter_to_nothing() -> None:
    assert found("k8s-mesh-egress", forbidden=[ConfigMap]).verdict is FINE
