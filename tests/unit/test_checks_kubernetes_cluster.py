"""Storage classes, shares, CoreDNS, webhooks and aggregated APIs."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calls import (
    ApiService,
    ConfigMap,
    CsiDriver,
    CustomResourceDefinition,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.kubernetes.volumes import PersistentVolume, StorageClass
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from tests.kubernetes_estates import CLUSTER, container, findings, manifest, pod, sealed_cluster, verdicts, with_one

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


def verdict(check: str, *some: Any, policy: Policy | None = None) -> Verdict:
    """The verdict about what was added, or about the cluster where nothing is said against it."""
    verdict_of = verdicts(check, [*sealed_cluster(), *some], policy=policy or Policy())
    (only,) = verdict_of.values()
    return only


@pytest.mark.parametrize(
    ("provisioner", "parameters", "expected"),
    [
        ("file.csi.azure.com", {"protocol": "nfs"}, OPEN),
        ("file.csi.azure.com", {"Protocol": "NFS"}, OPEN),
        ("file.csi.azure.com", {"fsType": "nfs"}, OPEN),
        ("kubernetes.io/azure-file", {"protocol": "nfs"}, OPEN),
        ("file.csi.azure.com", {"protocol": "nfs", "networkEndpointType": "serviceEndpoint"}, OPEN),
        ("file.csi.azure.com", {"protocol": "nfs", "networkEndpointType": "PrivateEndpoint"}, UNSEEN),
        ("file.csi.azure.com", {"protocol": "nfs", "networkEndpointType": "privateEndpoint"}, FINE),
        ("file.csi.azure.com", {"protocol": "nfs", "NETWORKENDPOINTTYPE": "privateEndpoint"}, FINE),
        ("file.csi.azure.com", {"protocol": "smb"}, FINE),
        ("file.csi.azure.com", None, FINE),
        ("disk.csi.azure.com", {"protocol": "nfs"}, FINE),
        ("blob.csi.azure.com", {"protocol": "nfs"}, OPEN),
        ("blob.csi.azure.com", {"protocol": "nfs", "networkEndpointType": "privateEndpoint"}, UNSEEN),
        ("blob.csi.azure.com", {"protocol": "fuse"}, FINE),
    ],
)
def test_an_nfs_class_needs_a_private_endpoint(provisioner: str, parameters: Any, expected: Verdict) -> None:
    some = manifest(StorageClass, "nfs", provisioner=provisioner, parameters=parameters)
    verdict_of = verdicts("csi-nfs-storageclass", with_one(some))
    assert verdict_of == {CLUSTER if expected is FINE else "storage.k8s.io/v1/StorageClass nfs": expected}


def volume(options: list[str] | None, **source: Any) -> Any:
    """A PersistentVolume, read-only in every way but for its mount options."""
    spec = {"accessModes": ["ReadOnlyMany"], **source, **({"mountOptions": options} if options is not None else {})}
    return manifest(PersistentVolume, "weights", spec=spec)


FILES = {"csi": {"driver": "file.csi.azure.com", "readOnly": True, "volumeAttributes": {"protocol": "nfs"}}}


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        (volume(["ro", "nconnect=4"], **FILES), FINE),
        (volume(["nconnect=4"], **FILES), OPEN),
        (volume(None, **FILES), OPEN),
        (volume(["rw"], nfs={"server": "s", "path": "/p", "readOnly": True}), OPEN),
        (volume(["ro"], nfs={"server": "s", "path": "/p"}), FINE),
        (volume(None, azureFile={"shareName": "s"}), OPEN),
        (volume(None, csi={"driver": "disk.csi.azure.com"}), FINE),
    ],
)
def test_only_the_mount_option_makes_a_share_read_only(some: Any, expected: Verdict) -> None:
    assert verdict("weights-share-writable", some) is expected


@pytest.mark.parametrize(
    ("source", "mount", "expected"),
    [
        ({"nfs": {"server": "s", "path": "/p"}}, {}, OPEN),
        ({"nfs": {"server": "s", "path": "/p", "readOnly": True}}, {}, FINE),
        ({"nfs": {"server": "s", "path": "/p"}}, {"readOnly": True}, FINE),
        ({"csi": {"driver": "file.csi.azure.com"}}, {}, OPEN),
        ({"csi": {"driver": "secrets-store.csi.k8s.io"}}, {}, FINE),
        ({"emptyDir": {}}, {}, FINE),
    ],
)
def test_a_share_that_a_pod_names_itself_counts_as_well(source: Any, mount: Any, expected: Verdict) -> None:
    mounts = [{"name": "v", "mountPath": "/models", **mount}]
    some = pod("web", spec={"containers": [container(volumeMounts=mounts)], "volumes": [{"name": "v", **source}]})
    assert verdict("weights-share-writable", some) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("forward . 8.8.8.8", OPEN),
        ("forward . tls://9.9.9.9:853 {", OPEN),
        ("forward . dns.google", OPEN),
        ("forward . [2001:4860:4860::8888]:53", OPEN),
        ("    forward example.com 10.1.0.4 1.1.1.1", OPEN),
        (". { forward . 1.1.1.1 }", OPEN),
        ("grpc . 1.1.1.1", OPEN),
        ("forward . 10.1.0.99", UNSEEN),
        ("forward . {$UPSTREAM}", UNSEEN),
        ("forward . /etc/upstream.conf", UNSEEN),
        ("forward . 10.1.0.53:53", FINE),
        (". { forward . 10.1.0.53 }", FINE),
        ("forward . /etc/resolv.conf {", FINE),
        ("forward . 168.63.129.16", FINE),
        ('"forward" . 8.8.8.8', OPEN),
        ('forward "." "8.8.8.8"', OPEN),
        ('log "x # y" { forward . 8.8.8.8', OPEN),
        ("forward#away . 8.8.8.8", OPEN),
        ("for{$NOTHING}ward . 8.8.8.8", OPEN),
        ("for\rward . 8.8.8.8", OPEN),
        ("forward", UNSEEN),
        ("import other.conf", UNSEEN),
        ("import *", UNSEEN),
        ("import custom/*", UNSEEN),
        ('"import" ../x.server', UNSEEN),
        ("import /tmp/x.server", UNSEEN),
        ("import {$WHERE}.server", UNSEEN),
        ("import elsewhere", UNSEEN),
        ("import", UNSEEN),
        ("import y.server", FINE),
        ("import /etc/coredns/custom/*.override", FINE),
        ("import mine", FINE),
        ('log "forward . 8.8.8.8"', FINE),
        ('log "\\" forward . 8.8.8.8"', FINE),
        ("# forward . 8.8.8.8", FINE),
        ("log", FINE),
    ],
)
@pytest.mark.parametrize("key", ["x.server", "x.override"])
def test_coredns_forwards_to_declared_resolvers_only(line: str, expected: Verdict, key: str) -> None:
    custom = manifest(
        ConfigMap, "coredns-custom", "kube-system", data={key: f"(mine) {{\nlog\n}}\nexample.com:53 {{\n{line}\n}}\n"}
    )
    policy = Policy(allowedDnsServers=("10.1.0.53",))
    verdict_of = verdicts("coredns-custom", with_one(custom), policy=policy)
    assert verdict_of == {CLUSTER if expected is FINE else "v1/ConfigMap kube-system/coredns-custom": expected}


def test_what_coredns_does_not_import_is_not_even_kept() -> None:
    from hermetic.audit.estate.kubernetes.projection import projected

    custom = manifest(ConfigMap, "coredns-custom", "kube-system", data={"notes": "forward . 8.8.8.8", "a.server": "x"})
    assert projected(ConfigMap, custom)["data"] == {"a.server": "x"}


def test_what_coredns_imports_in_binary_is_not_read_and_not_passed() -> None:
    from hermetic.audit.estate.kubernetes.projection import projected

    custom = manifest(ConfigMap, "coredns-custom", "kube-system", binaryData={"a.server": "eA==", "logo.png": "eA=="})
    assert projected(ConfigMap, custom)["binaryData"] == {"a.server": "(not kept)"}
    assert verdicts("coredns-custom", with_one(custom)) == {"v1/ConfigMap kube-system/coredns-custom": UNSEEN}


def test_a_corefile_that_stands_elsewhere_is_unknown() -> None:
    other_manifests = [item for item in sealed_cluster() if item["kind"] != "ConfigMap"]
    assert verdicts("coredns-custom", other_manifests) == {CLUSTER: UNSEEN}


def test_another_configmap_of_that_name_configures_no_forwarder() -> None:
    elsewhere = manifest(ConfigMap, "coredns-custom", "team", data={"x.server": "forward . 8.8.8.8"})
    assert verdict("coredns-custom", elsewhere) is FINE


@pytest.mark.parametrize("kind", [ValidatingWebhookConfiguration, MutatingWebhookConfiguration])
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"url": "https://hooks.example.com/validate"}, OPEN),
        ({"url": "https://20.1.2.3:8443"}, OPEN),
        ({"url": "https://[2603:1000::1]/x"}, OPEN),
        ({"url": "not a url"}, OPEN),
        ({"url": "https://hooks\u3002example\u3002com/x"}, OPEN),
        ({"url": "https://hooks%E3%80%82com/x"}, OPEN),
        ({"url": "https://admission:9443/x"}, FINE),
        ({"url": "https://hook.team.svc:443"}, FINE),
        ({"url": "https://10.1.0.9/x"}, FINE),
        ({"service": {"namespace": "team", "name": "hook"}}, FINE),
    ],
)
def test_a_webhook_is_open_where_its_url_leads_outside(kind: Any, config: Any, expected: Verdict) -> None:
    some = manifest(kind, "hook", webhooks=[{"name": "a.example.com", "clientConfig": config}])
    assert verdict("k8s-webhook-external", some) is expected


def converted(config: Any = None, **spec: Any) -> Any:
    """A definition whose objects this webhook converts; without one, its objects are not converted."""
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    conversion = {"strategy": "Webhook", "webhook": webhook} if config is not None else {"strategy": "None"}
    names = {"plural": "trains", "kind": "Train"}
    spec = {"group": "ray.io", "names": names, "conversion": conversion, **spec}
    return manifest(CustomResourceDefinition, "trains.ray.io", spec=spec)


def converter(**service: Any) -> tuple[Any, Any]:
    """A definition whose objects the Service team/converter converts."""
    reference = {"namespace": "team", "name": "converter", "path": "/convert"}
    return converted({"service": reference}), manifest(Service, "converter", "team", spec=service)


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        ((converted({"url": "https://convert.example.com/x"}),), OPEN),
        ((converted({"url": "https://20.1.2.3:8443"}),), OPEN),
        ((converted({"url": "not a url"}),), OPEN),
        ((converted({"url": "https://convert.team.svc:443"}),), FINE),
        ((converted({"url": "https://10.1.0.9/x"}),), FINE),
        ((converted(),), FINE),
        ((converted(conversion=None),), FINE),
        ((converted(conversion="?"),), UNSEEN),
        ((converted(conversion={"webhook": {"clientConfig": {"url": 7}}}),), UNSEEN),
        (converter(selector={"app": "converter"}), FINE),
        (converter(type="ExternalName", externalName="convert.example.com"), OPEN),
        (converter(type="ExternalName", externalName="convert.other.svc.cluster.local"), FINE),
        (converter(type="ClusterIP"), UNSEEN),
        (converter()[:1], UNSEEN),
    ],
)
def test_a_conversion_webhook_is_open_where_it_leads_outside(some: tuple[Any, ...], expected: Verdict) -> None:
    assert verdict("k8s-webhook-external", *some) is expected


@pytest.mark.parametrize("kind", [CustomResourceDefinition, Service])
def test_conversion_webhooks_are_unknown_where_they_may_not_be_listed(kind: Any) -> None:
    assert verdicts("k8s-webhook-external", sealed_cluster(), forbidden=[kind]) == {CLUSTER: UNSEEN}


def test_what_ends_a_conversion_deletes_no_definition() -> None:
    outside = converted({"url": "https://convert.example.com"})
    (finding,) = findings("k8s-webhook-external", [*sealed_cluster(), outside])
    assert finding.resource == "apiextensions.k8s.io/v1/CustomResourceDefinition trains.ray.io"
    assert "kubectl patch customresourcedefinition trains.ray.io " in finding.remedy
    assert "delete" not in finding.remedy


def aggregated(**service: Any) -> tuple[Any, Any]:
    """An APIService that the Service team/metrics answers."""
    reference = {"namespace": "team", "name": "metrics"}
    return (
        manifest(ApiService, "v1beta1.metrics.k8s.io", spec={"service": reference}),
        manifest(Service, "metrics", "team", spec=service),
    )


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        (aggregated(selector={"app": "metrics"}), FINE),
        (aggregated(type="ExternalName", externalName="metrics.example.com"), OPEN),
        (aggregated(type="ExternalName", externalName="metrics.other.svc.cluster.local"), FINE),
        (aggregated(type="ClusterIP"), UNSEEN),
        (aggregated()[:1], UNSEEN),
        ((manifest(ApiService, "v1.", spec={}),), FINE),
        ((manifest(CsiDriver, "file.csi.azure.com"),), FINE),
        ((manifest(CsiDriver, "cloud.example.com"),), UNSEEN),
    ],
)
def test_an_aggregated_api_or_an_unknown_driver_is_worth_a_look(some: tuple[Any, ...], expected: Verdict) -> None:
    assert verdict("k8s-apiservice-external", *some) is expected
