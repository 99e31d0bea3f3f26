"""Whom the API server, its storage and its names call."""

from __future__ import annotations

from typing import Any

from testbed.kubernetes_plants.pieces import OUTSIDE, closed_namespace, manifest, put
from testbed.kubernetes_plants.plant import Manifests, plant

COREDNS = "AKS: Customize CoreDNS; CoreDNS: plug-ins"


def coredns(manifests: Manifests, key: str, text: str) -> str:
    """One more file among those that AKS's Corefile imports."""
    known = next(
        (
            manifest
            for manifest in manifests
            if manifest["kind"] == "ConfigMap" and manifest["metadata"]["name"] == "coredns-custom"
        ),
        {},
    )
    data = {**(known.get("data") or {}), key: text}
    return put(manifests, manifest("v1", "ConfigMap", "coredns-custom", "kube-system", data=data))


@plant("coredns-custom", "high", COREDNS)
def forwarder_outside(manifests: Manifests) -> str:
    """CoreDNS asks a public resolver for one zone."""
    return coredns(manifests, "way-out.server", "example.com:53 {\n    forward . tls://203.0.113.53\n}\n")


@plant("coredns-custom", "high", COREDNS)
def forwarder_by_grpc(manifests: Manifests) -> str:
    """CoreDNS asks a public resolver by gRPC."""
    return coredns(manifests, "way-out.server", "example.com:53 {\n    grpc . 203.0.113.53:443\n}\n")


@plant("coredns-custom", "high", COREDNS, verdict="Unknown")
def file_that_is_not_read(manifests: Manifests) -> str:
    """CoreDNS imports a file that the audit does not read."""
    return coredns(manifests, "way-out.override", "import /etc/coredns/more/*\n")


@plant("k8s-webhook-external", "medium", "Kubernetes: Dynamic admission control")
def webhook_outside(manifests: Manifests) -> str:
    """The API server calls a webhook outside with every object."""
    webhooks = [{"name": "a.example.com", "clientConfig": {"url": f"https://{OUTSIDE}/admit"}}]
    version, kind = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
    return put(manifests, manifest(version, kind, "way-out", webhooks=webhooks))


CONVERSION = "Kubernetes: Versions in CustomResourceDefinitions"


def converted_by(manifests: Manifests, **config: Any) -> str:
    """A definition of two versions whose objects this webhook converts. It stores none of them."""
    version = "apiextensions.k8s.io/v1"
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    spec = {
        "group": "ray.io",
        "names": {"plural": "rayclusters", "kind": "RayCluster"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True},
            {"name": "v1alpha1", "served": True, "storage": False},
        ],
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    return put(manifests, manifest(version, "CustomResourceDefinition", "rayclusters.ray.io", spec=spec))


@plant("k8s-webhook-external", "medium", CONVERSION)
def conversion_webhook_outside(manifests: Manifests) -> str:
    """The API server calls a webhook outside with every object of a kind."""
    return converted_by(manifests, url=f"https://{OUTSIDE}/convert")


@plant("k8s-webhook-external", "medium", CONVERSION, also=("k8s-externalname",))
def conversion_webhook_behind_an_alias(manifests: Manifests) -> str:
    """Objects of a kind are converted by a Service that is an alias of a name outside."""
    namespace = closed_namespace(manifests)
    named = {"type": "ExternalName", "externalName": OUTSIDE}
    put(manifests, manifest("v1", "Service", "converter", namespace, spec=named))
    return converted_by(manifests, service={"namespace": namespace, "name": "converter", "path": "/convert"})


@plant("k8s-apiservice-external", "low", "Kubernetes: API aggregation layer", also=("k8s-externalname",))
def aggregated_api_outside(manifests: Manifests) -> str:
    """An aggregated API is answered by a Service that is an alias of a name outside."""
    namespace = closed_namespace(manifests)
    named = {"type": "ExternalName", "externalName": OUTSIDE}
    put(manifests, manifest("v1", "Service", "metrics", namespace, spec=named))
    spec = {"service": {"namespace": namespace, "name": "metrics"}}
    return put(manifests, manifest("apiregistration.k8s.io/v1", "APIService", "v1beta1.planted.example.com", spec=spec))


@plant("k8s-apiservice-external", "low", "Kubernetes CSI: drivers", verdict="Unknown")
def driver_that_calls_a_cloud(manifests: Manifests) -> str:
    """A storage driver that is not known to stay inside."""
    return put(manifests, manifest("storage.k8s.io/v1", "CSIDriver", "s3.csi.example.com"))


@plant("csi-nfs-storageclass", "high", "azurefile-csi-driver: driver parameters")
def class_that_makes_service_endpoints(manifests: Manifests) -> str:
    """A storage class whose first share adds a service endpoint to every subnet."""
    nfs = {"protocol": "nfs"}
    made = manifest("storage.k8s.io/v1", "StorageClass", "way-out", provisioner="file.csi.azure.com", parameters=nfs)
    return put(manifests, made)


@plant("weights-share-writable", "medium", "azurefile-csi-driver: driver parameters")
def volume_that_is_written_to(manifests: Manifests) -> str:
    """A share without the mount option `ro`."""
    spec = {"csi": {"driver": "file.csi.azure.com", "volumeHandle": "x"}, "mountOptions": ["nconnect=4"]}
    return put(manifests, manifest("v1", "PersistentVolume", "way-out", spec=spec))


def _plugin(name: str, title: str, text: str, severity: str = "high") -> None:
    def made(manifests: Manifests) -> str:
        return coredns(manifests, "way-out.server", f"planted.example:53 {{\n{text}\n}}\n")

    made.__doc__ = title
    plant("coredns-custom", severity, COREDNS, name=name)(made)


_plugin("names_sent_by_dnstap", "CoreDNS sends each name to a public address.", "dnstap tcp://203.0.113.7:6000 full")
_plugin("names_sent_by_trace", "CoreDNS sends its traces to a name outside.", f"trace zipkin {OUTSIDE}:9411")
_plugin("zone_given_to_every_client", "CoreDNS gives the whole zone away.", "transfer {\n to *\n}", "medium")
_plugin("zone_given_to_a_server_outside", "CoreDNS gives a zone to a server outside.", "transfer {\n to 203.0.113.5\n}")
_plugin("zone_fetched_outside", "CoreDNS fetches a zone outside.", "secondary {\n transfer from 203.0.113.5\n}")
_plugin("names_kept_outside", "CoreDNS asks a store outside.", f"etcd {{\n endpoint https://{OUTSIDE}:2379\n}}")
_plugin("names_of_another_cloud", "CoreDNS asks another cloud.", "route53 example.org.:Z1")
_plugin("name_rewritten", "A name inside becomes one outside.", f"rewrite name hub.internal {OUTSIDE}", "medium")
_plugin("name_of_a_public_address", "A name inside has a public address.", "hosts {\n 203.0.113.7 hub\n}", "medium")
_plugin(
    "answer_made_up",
    "Answers hold a public address.",
    'template IN A x {\n answer "x 60 IN A 203.0.113.7"\n}',
    "medium",
)


@plant("coredns-custom", "high", "Kubernetes: NodeLocal DNSCache")
def cache_of_each_node_that_asks_outside(manifests: Manifests) -> str:
    """The cache on each node asks a public resolver."""
    data = {"Corefile": ".:53 {\n    cache 30\n    forward . 203.0.113.53\n}\n"}
    return put(manifests, manifest("v1", "ConfigMap", "node-local-dns", "kube-system", data=data))
