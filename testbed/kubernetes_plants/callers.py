"""Objects by which operators and add-ons are told to call something outside."""

from __future__ import annotations

from typing import Any

from testbed.kubernetes_plants.pieces import OUTSIDE, closed_namespace, manifest, put
from testbed.kubernetes_plants.plant import Manifest, Manifests, plant

OTHER = "k8s-other-ways"


@plant(OTHER, "high", "KEDA: Metrics API scaler")
def scaler_that_asks_outside(manifests: Manifests) -> str:
    """KEDA asks a URL outside how many pods there should be."""
    trigger = {"type": "metrics-api", "metadata": {"url": f"https://{OUTSIDE}/queue", "valueLocation": "length"}}
    namespace, spec = closed_namespace(manifests), {"scaleTargetRef": {"name": "shop"}, "triggers": [trigger]}
    return put(manifests, manifest("keda.sh/v1alpha1", "ScaledObject", "out", namespace, spec=spec))


@plant(OTHER, "high", "KEDA: CloudEvents")
def events_sent_outside(manifests: Manifests) -> str:
    """KEDA sends its events to a URL outside."""
    namespace, spec = closed_namespace(manifests), {"destination": {"http": {"uri": f"https://{OUTSIDE}/events"}}}
    return put(manifests, manifest("eventing.keda.sh/v1alpha1", "CloudEventSource", "out", namespace, spec=spec))


def authentication(manifests: Manifests, **spec: Any) -> str:
    """planted/out, which gives triggers their parameters."""
    return put(
        manifests, manifest("keda.sh/v1alpha1", "TriggerAuthentication", "out", closed_namespace(manifests), spec=spec)
    )


@plant(OTHER, "high", "KEDA: Hashicorp Vault secret")
def secrets_of_a_vault_outside(manifests: Manifests) -> str:
    """KEDA fetches the secrets of a trigger from a server outside."""
    return authentication(manifests, hashiCorpVault={"address": f"https://{OUTSIDE}", "authentication": "token"})


@plant(OTHER, "high", "KEDA: RabbitMQ queue scaler", verdict="Unknown")
def address_of_a_trigger_in_a_secret(manifests: Manifests) -> str:
    """KEDA takes the host that it calls from a Secret."""
    return authentication(manifests, secretTargetRef=[{"parameter": "host", "name": "bus", "key": "host"}])


MONITORS = "Azure Monitor: Customize collection using CRDs; Prometheus Operator: API reference"


def monitor(manifests: Manifests, kind: str, field: str, endpoint: Manifest) -> str:
    """planted/out, which the metrics add-on scrapes by."""
    spec = {"selector": {}, field: [{"port": "metrics", **endpoint}]}
    version = "azmonitoring.coreos.com/v1"
    return put(manifests, manifest(version, kind, "out", closed_namespace(manifests), spec=spec))


@plant(OTHER, "high", MONITORS)
def pods_scraped_by_a_proxy_outside(manifests: Manifests) -> str:
    """The metrics add-on scrapes pods by a proxy outside."""
    return monitor(manifests, "PodMonitor", "podMetricsEndpoints", {"proxyUrl": f"http://{OUTSIDE}:3128"})


@plant(OTHER, "high", MONITORS)
def scraped_address_replaced(manifests: Manifests) -> str:
    """The metrics add-on scrapes a name outside in place of each pod."""
    rule = {"targetLabel": "__address__", "replacement": f"{OUTSIDE}:443"}
    return monitor(manifests, "ServiceMonitor", "endpoints", {"relabelings": [rule]})


@plant(OTHER, "high", MONITORS, verdict="Unknown")
def scraped_address_taken_from_an_annotation(manifests: Manifests) -> str:
    """The metrics add-on scrapes what an annotation of the pod names."""
    rule = {"sourceLabels": ["__meta_kubernetes_pod_annotation_target"], "targetLabel": "__address__"}
    return monitor(manifests, "PodMonitor", "podMetricsEndpoints", {"relabelings": [rule]})


@plant(OTHER, "high", "Secrets Store CSI Driver: HashiCorp Vault provider")
def secrets_store_outside(manifests: Manifests) -> str:
    """A provider of the secrets store asks a server outside."""
    spec = {"provider": "vault", "parameters": {"vaultAddress": f"https://{OUTSIDE}:8200", "roleName": "shop"}}
    version, namespace = "secrets-store.csi.x-k8s.io/v1", closed_namespace(manifests)
    return put(manifests, manifest(version, "SecretProviderClass", "out", namespace, spec=spec))


@plant(OTHER, "high", "Gatekeeper: External data")
def admission_data_sent_outside(manifests: Manifests) -> str:
    """Gatekeeper sends data of objects to a server outside."""
    spec = {"url": f"https://{OUTSIDE}/validate", "timeout": 3}
    return put(manifests, manifest("externaldata.gatekeeper.sh/v1beta1", "Provider", "out", spec=spec))


def backend(manifests: Manifests, **spec: Any) -> str:
    """planted/out, to which routes of Envoy Gateway and of its AI gateway may lead."""
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("gateway.envoyproxy.io/v1alpha1", "Backend", "out", namespace, spec=spec))


@plant(OTHER, "high", "Envoy Gateway: Backend Routing")
def backend_of_a_model_provider(manifests: Manifests) -> str:
    """A gateway sends prompts to a provider of models."""
    return backend(manifests, endpoints=[{"fqdn": {"hostname": OUTSIDE, "port": 443}}])


@plant(OTHER, "high", "Envoy Gateway: Backend Routing")
def backend_that_the_client_chooses(manifests: Manifests) -> str:
    """A gateway sends requests to whatever host they name."""
    return backend(manifests, type="DynamicResolver")


@plant(OTHER, "high", "Envoy AI Gateway: BackendSecurityPolicy")
def tokens_of_another_cloud(manifests: Manifests) -> str:
    """The controller of an AI gateway signs in at a cloud on the internet."""
    spec = {"type": "AWSCredentials", "awsCredentials": {"region": "eu-north-1"}}
    version, namespace = "aigateway.envoyproxy.io/v1beta1", closed_namespace(manifests)
    return put(manifests, manifest(version, "BackendSecurityPolicy", "out", namespace, spec=spec))


def capture(manifests: Manifests, **output: Any) -> str:
    """planted/out, which captures the packets of pods."""
    namespace, spec = closed_namespace(manifests), {"captureConfiguration": {}, "outputConfiguration": output}
    return put(manifests, manifest("retina.sh/v1alpha1", "Capture", "out", namespace, spec=spec))


@plant(OTHER, "high", "Retina: Capture CRD")
def packets_stored_outside(manifests: Manifests) -> str:
    """Captured packets are stored in a bucket outside."""
    return capture(manifests, s3Upload={"endpoint": f"https://{OUTSIDE}", "bucket": "packets"})


@plant(OTHER, "high", "Retina: Capture CRD", verdict="Unknown")
def packets_stored_by_a_url_in_a_secret(manifests: Manifests) -> str:
    """Captured packets are stored by a URL that is in a Secret."""
    return capture(manifests, blobUpload="store")


@plant(OTHER, "high", "Retina: TracesConfiguration CRD")
def traces_sent_outside(manifests: Manifests) -> str:
    """Traces of packets are sent to a receiver outside."""
    output = {"destination": "opentelemetry", "connectionConfiguration": f"{OUTSIDE}:4317"}
    spec = {"traceConfiguration": [], "outputConfiguration": output}
    return put(manifests, manifest("retina.sh/v1alpha1", "TracesConfiguration", "out", spec=spec))
