"""The chart gives the objects of manifests/, and refuses values that it does not know."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from hermetic.api.configuration import Configuration
from hermetic.api.times import timestamp
from hermetic.audit.attestation.renewal import renewal_commands
from hermetic.cli.installation import Installation, rights
from shipping.chart import CHART, files
from shipping.values import VALUES
from testbed.installation import REPOSITORY
from testbed.kubectl import Kubectl
from testbed.programs import programs
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

DIGEST = "sha256:" + "1" * 64
IMAGE = {"registry": "contoso.azurecr.io", "digest": DIGEST}
NAMESPACE_OF_THE_RELEASE = ("Namespace", None, "hermetic-system")


@pytest.fixture(scope="module")
def helm() -> Path:
    return programs("helm")["helm"]


@pytest.fixture
def rendered(helm, tmp_path):
    """The objects of `helm template` for values, by kind, namespace and name."""

    def render(*, namespace="hermetic-system", **values):
        return by_name(yaml.safe_load_all(output_of(helm, tmp_path, "template", namespace, {"image": IMAGE, **values})))

    return render


def output_of(helm, folder, verb, namespace, values, *options, chart=CHART) -> str:
    """What helm prints for these values; raises with what it says where it refuses."""
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    name = [] if verb == "lint" else ["hermetic"]
    command = [helm, verb, *name, chart, "--namespace", namespace, "--values", file, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stdout + done.stderr)
    return done.stdout


def by_name(manifests):
    """Objects by kind, namespace and name; of a ConfigMap with a digest in its name, the name without it."""
    objects = {}
    for manifest in manifests:
        if not manifest:
            continue
        manifest = json.loads(re.sub(r"hermetic-config-[a-z0-9]{10}", "hermetic-config", json.dumps(manifest)))  # noqa: PLW2901
        metadata = manifest["metadata"]
        if "config.yaml" in manifest.get("data", {}):
            manifest["data"] = {"config.yaml": yaml.safe_load(manifest["data"]["config.yaml"])}
        if metadata.get("annotations", {}).pop("helm.sh/resource-policy", None) == "keep":
            assert manifest["kind"] == "CustomResourceDefinition"
        if not metadata.get("annotations", True):
            del metadata["annotations"]
        key = (manifest["kind"], metadata.get("namespace"), metadata["name"])
        assert key not in objects, key
        objects[key] = manifest
    return objects


def test_the_chart_is_what_the_manifests_say():
    stale = [name for name, text in files().items() if (CHART / name).read_text(encoding="utf-8") != text]

    assert stale == [], "run `make generate`"
    on_disk = {path.relative_to(CHART).as_posix() for path in CHART.rglob("*") if path.is_file()}
    assert on_disk == set(files())


@pytest.fixture
def built(tmp_path):
    """The objects of an overlay of manifests/default, by kind, namespace and name."""

    def build(**more):
        overlay = tmp_path / "overlay"
        overlay.mkdir()
        image = {"name": "hermetic-operator", "newName": "contoso.azurecr.io/hermetic", "digest": DIGEST}
        kustomization = {"resources": ["../manifests/default"], "images": [image], **more}
        overlay.joinpath("kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        for folder in ("manifests", "crds"):
            (tmp_path / folder).symlink_to(REPOSITORY / folder)
        kubectl = Kubectl(programs("kubernetes")["kubectl"], tmp_path / "none")
        return by_name(yaml.safe_load_all(kubectl("kustomize", "--load-restrictor=LoadRestrictionsNone", str(overlay))))

    return build


def test_with_its_defaults_it_gives_the_objects_of_manifests_default(rendered, built):
    expected = built()
    # Helm keeps its records in the namespace of the release, so it is made before.
    del expected[NAMESPACE_OF_THE_RELEASE]

    # `hermetic-allowed` is made of the configuration, which kustomize cannot read.
    manifests = rendered(allowed={"install": False})

    assert manifests.keys() == expected.keys()
    for key, manifest in expected.items():
        assert manifests[key] == manifest, key


def test_an_overlay_names_the_api_server_and_gets_the_policy_of_the_chart(rendered, built):
    ranges = [{"op": "replace", "path": "/spec/egress/0/to", "value": [{"ipBlock": {"cidr": "10.0.0.4/32"}}]}]
    patch = {"target": {"kind": "NetworkPolicy", "name": "hermetic-operator"}, "patch": yaml.safe_dump(ranges)}
    key = ("NetworkPolicy", "hermetic-system", "hermetic-operator")

    manifests = built(components=["../manifests/network-policy"], patches=[patch])

    assert manifests[key] == rendered(networkPolicy={"apiServers": ["10.0.0.4/32"]})[key]


METRICS = {"podMonitor": "monitoring.coreos.com/v1", "rules": True, "dashboard": True}


def test_what_is_for_prometheus_and_grafana_is_that_of_the_component(rendered, built):
    expected = built(components=["../manifests/observability"])
    del expected[NAMESPACE_OF_THE_RELEASE]

    assert rendered(allowed={"install": False}, metrics=METRICS) == expected


def test_azure_managed_prometheus_reads_a_monitor_of_its_own_group(rendered):
    manifests = rendered(metrics={"podMonitor": "azmonitoring.coreos.com/v1"})

    assert manifests["PodMonitor", "hermetic-system", "hermetic-operator"]["apiVersion"] == "azmonitoring.coreos.com/v1"
    assert not [key for key in manifests if key[0] == "PrometheusRule"]


@pytest.mark.parametrize(
    ("namespace", "config"),
    [
        ("hermetic-system", {"watchNamespaces": ["team-a", "team-b"]}),
        ("hermetic-system", {"watchNamespaces": ["default", "team-a"]}),
        ("models-operator", {}),
        ("models-operator", {"watchNamespaces": ["team-a"], "probeNamespace": "models-probe"}),
    ],
)
def test_names_and_namespaces_are_those_that_hermetic_rbac_gives(rendered, namespace, config):
    expected = by_name(copy.deepcopy(rights(installed(namespace, config))))
    del expected["Namespace", None, namespace]
    ours = {"CustomResourceDefinition", "Deployment", "PodDisruptionBudget"}

    manifests = rendered(namespace=namespace, config=config)

    written_config = manifests.pop(("ConfigMap", namespace, "hermetic-config"))["data"]["config.yaml"]
    assert {key: manifest for key, manifest in manifests.items() if key[0] not in ours} == expected
    assert written_config.get("lease", {}).get("namespace", "hermetic-system") == namespace
    assert {key[1] for key in manifests if key[0] in {"ConfigMap", "Deployment", "PodDisruptionBudget"}} == {namespace}


def installed(namespace, config):
    return Installation(Configuration.model_validate({**config, "lease": {"namespace": namespace}}))


@pytest.mark.parametrize(
    "config",
    [
        {"registries": [{"host": "contoso.azurecr.io", "namespaces": ["*"]}]},
        {
            "registries": [
                {"host": "contoso.azurecr.io", "repositories": ["nim", "vllm/vllm-openai"], "namespaces": ["a", "b"]},
                {"host": "mirror.internal:5000", "namespaces": ["b"]},
            ]
        },
        {"shares": [{"account": "models", "share": "weights", "namespaces": ["a", "*"]}]},
        {"shares": [{"account": "models", "share": "w", "folders": ["llama", "phi/4"], "namespaces": ["a", "b"]}]},
        {"shares": [{"account": "m-1", "share": "w", "server": "m.internal", "folders": ["x"], "namespaces": ["a"]}]},
        {"shares": [{"server": "nas.internal", "path": "/exports/models", "namespaces": ["a", "b"]}]},
        {"shares": [{"server": "10.0.0.9", "path": "/models", "folders": ["one", "two/three"], "namespaces": ["a"]}]},
        {"watchNamespaces": ["a", "b"], "registries": [], "shares": []},
        {"integrity": {"verifiers": [f"contoso.azurecr.io/hermetic@sha256:{digit * 64}" for digit in "ab"]}},
    ],
)
def test_what_the_account_may_use_is_what_hermetic_rbac_says(rendered, config):
    [expected] = (right for right in rights(installed("hermetic-system", config)) if right["kind"] == "ConfigMap")

    manifest = rendered(config=config)["ConfigMap", "hermetic-system", "hermetic-allowed"]

    assert manifest == expected


def test_the_policy_of_the_network_is_that_of_the_component(rendered):
    [expected] = yaml.safe_load_all((REPOSITORY / "manifests/network-policy/networkpolicy.yaml").read_text())
    expected["spec"]["egress"][0]["to"] = [{"ipBlock": {"cidr": address}} for address in ("10.0.0.4/32", "fd00::4/128")]

    manifests = rendered(networkPolicy={"apiServers": ["10.0.0.4/32", "fd00::4/128"]})

    assert manifests["NetworkPolicy", "hermetic-system", "hermetic-operator"] == expected


def test_without_a_cluster_to_ask_no_policy_guesses_the_api_server(rendered):
    """Source: https://helm.sh/docs/chart_template_guide/functions_and_pipelines, lookup: empty without a cluster."""
    assert ("NetworkPolicy", "hermetic-system", "hermetic-operator") not in rendered()


def test_ids_of_the_operator_are_above_ten_thousand_and_yours_to_choose(rendered):
    for values, user, group in (
        ({}, 10001, 10001),
        ({"runAsUser": 2147483647, "runAsGroup": 20000}, 2147483647, 20000),
    ):
        (deployment,) = (manifest for key, manifest in rendered(**values).items() if key[0] == "Deployment")
        security = deployment["spec"]["template"]["spec"]["securityContext"]
        assert (security["runAsUser"], security["runAsGroup"]) == (user, group)


def test_keys_of_labels_that_models_may_have_are_in_the_list_of_what_is_allowed(rendered):
    metadata = {
        "labels": {"environment": "production", "area": "risk"},
        "propagatedLabels": ["cost-centre"],
        "propagatedAnnotations": ["example.com/contact"],
    }
    manifest = rendered(config={"modelMetadata": metadata})["ConfigMap", "hermetic-system", "hermetic-allowed"]
    assert manifest["data"]["labels"].splitlines() == ["area", "cost-centre", "environment"]
    assert manifest["data"]["annotations"] == "example.com/contact"


@pytest.mark.parametrize(
    ("values", "said_once_installed", "not_said"),
    [
        ({}, "No NetworkPolicy limits the operator's pod", "stolen token"),
        ({"networkPolicy": {"apiServers": ["10.0.0.4/32"]}}, "No registry is allowed yet", "No NetworkPolicy"),
        ({}, "No registry is allowed yet", "stolen token"),
        ({"config": {"registries": [{"host": "a.io", "namespaces": ["*"]}]}}, "may write in every", "No registry"),
        ({"config": {"watchNamespaces": ["a"]}, "allowed": {"install": False}}, "stolen token", "may write in every"),
    ],
)
def test_its_notes_say_what_is_still_open(helm, tmp_path, values, said_once_installed, not_said):
    output = output_of(helm, tmp_path, "install", "hermetic-system", {"image": IMAGE, **values}, "--dry-run=client")
    notes = output.partition("NOTES:")[2]

    assert "kubectl rollout status deployment/hermetic-operator -n hermetic-system" in notes
    assert said_once_installed in notes
    assert not_said not in notes


@pytest.mark.parametrize(
    ("hours_old", "hours_valid", "is_renewed"),
    [(1, 24, False), (17, 24, False), (19, 24, True), (120, 168, False), (130, 168, True)],
)
def test_its_notes_name_the_expiry_of_the_evidence_and_the_commands_from_three_quarters_on(
    helm, tmp_path, hours_old, hours_valid, is_renewed
):
    """`lookup` is empty without a cluster: a copy of the chart has the object in its place."""
    observed = datetime.now(UTC) - timedelta(hours=hours_old)
    azure = {"observedAt": timestamp(observed), "expiresAt": timestamp(observed + timedelta(hours=hours_valid))}
    audit = {"spec": {"cluster": "/subscriptions/s/aks"}, "status": {"evidence": {"azure": azure}}}
    copied = shutil.copytree(CHART, tmp_path / "copy")
    notes = copied / "templates" / "NOTES.txt"
    text = notes.read_text()
    lookup = 'lookup "hermetic.dev/v1alpha1" "EgressAudit" "" "cluster"'
    is_served = '.Capabilities.APIVersions.Has "hermetic.dev/v1alpha1/EgressAudit"'
    assert lookup in text
    assert is_served in text
    notes.write_text(text.replace(lookup, f"fromJson `{json.dumps(audit)}`").replace(is_served, "true"))

    install = ("install", "hermetic-system", {"image": IMAGE}, "--dry-run=client")
    printed = output_of(helm, tmp_path, *install, chart=copied).partition("NOTES:")[2]

    assert f"The isolation evidence expires at {azure['expiresAt']}." in printed
    for command in renewal_commands("/subscriptions/s/aks"):
        assert (command in printed) is is_renewed


def test_a_changed_configuration_restarts_the_operator(helm, tmp_path):
    names = {
        re.findall(r"hermetic-config-[0-9a-f]{10}", output_of(helm, tmp_path, "template", "hermetic-system", values))[0]
        for values in ({"image": IMAGE}, {"image": IMAGE, "config": {"workers": 4}})
    }

    assert len(names) == 2


def test_what_is_optional_is_there_when_it_is_asked_for(rendered):
    manifests = rendered(
        image={**IMAGE, "pullSecrets": ["one", "two"]},
        crds={"install": False},
        priorityClassName="system-cluster-critical",
        config={"httpPort": 9090},
        networkPolicy={"apiServers": ["10.0.0.4/32"], "port": 6443},
    )

    (deployment,) = (manifest for key, manifest in manifests.items() if key[0] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["containers"][0]["ports"] == [{"name": "http", "containerPort": 9090}]
    assert not [key for key in manifests if key[0] == "CustomResourceDefinition"]
    policy = manifests["NetworkPolicy", "hermetic-system", "hermetic-operator"]["spec"]
    assert policy["egress"] == [
        {"to": [{"ipBlock": {"cidr": "10.0.0.4/32"}}], "ports": [{"protocol": "TCP", "port": 6443}]}
    ]
    assert policy["podSelector"]["matchLabels"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


SYSTEM_POOL = {
    "nodeSelector": {"kubernetes.azure.com/mode": "system"},
    "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
}


def test_labels_of_the_installation_are_on_every_object_as_kustomize_puts_them(rendered, built):
    ours = {"contoso.example/team": "platform", "cost-center": "4711"}
    expected = built(
        labels=[{"pairs": ours, "includeTemplates": True}],
        components=["../manifests/observability", "../manifests/network-policy"],
    )
    del expected[NAMESPACE_OF_THE_RELEASE]

    manifests = rendered(
        commonLabels=ours, allowed={"install": False}, metrics=METRICS, networkPolicy={"apiServers": ["10.0.0.4/32"]}
    )

    labels = {key: manifest["metadata"]["labels"] for key, manifest in manifests.items()}
    assert labels == {key: manifest["metadata"]["labels"] for key, manifest in expected.items()}
    key = ("Deployment", "hermetic-system", "hermetic-operator")
    assert manifests[key] == expected[key]
    everything = rendered(commonLabels=ours, config={"watchNamespaces": ["a", "b"]})
    all_labels = {key: manifest["metadata"]["labels"] for key, manifest in everything.items()}
    assert [key for key, labels in all_labels.items() if not ours.items() <= labels.items()] == []


def test_the_operator_runs_where_and_with_what_the_platform_says(rendered):
    manifests = rendered(podAnnotations={"contoso.example/owner": "platform"}, **SYSTEM_POOL)

    template = manifests["Deployment", "hermetic-system", "hermetic-operator"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"contoso.example/owner": "platform"}
    assert template["spec"]["tolerations"] == SYSTEM_POOL["tolerations"]
    # The image is for every processor of the nodes.
    assert template["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", **SYSTEM_POOL["nodeSelector"]}


def test_the_registry_is_that_of_every_image(helm, tmp_path):
    values = {"image": {**IMAGE, "registry": "mirror.internal:5000/a"}}
    images = re.findall(
        r"^\s*image: (.*)$", output_of(helm, tmp_path, "template", "hermetic-system", values), re.MULTILINE
    )

    assert images == [f"mirror.internal:5000/a/hermetic@{DIGEST}"]


def test_crds_stay_when_the_release_goes(helm, tmp_path):
    manifests = yaml.safe_load_all(output_of(helm, tmp_path, "template", "hermetic-system", {"image": IMAGE}))
    crds = [manifest for manifest in manifests if manifest and manifest["kind"] == "CustomResourceDefinition"]

    assert len(crds) == 3
    assert all(crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for crd in crds)


def test_lint_finds_nothing(helm, tmp_path):
    assert "0 chart(s) failed" in output_of(helm, tmp_path, "lint", "hermetic-system", {"image": IMAGE}, "--strict")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "image"),
        ({"image": {**IMAGE, "digest": "v0.1.0"}}, "digest"),
        ({"image": {**IMAGE, "tag": "latest"}}, "tag"),
        ({"image": {**IMAGE, "registry": "https://contoso.azurecr.io"}}, "registry"),
        ({"image": IMAGE, "replicas": 2}, "replicas"),
        ({"image": IMAGE, "crd": {"install": True}}, "crd"),
        ({"image": IMAGE, "crds": {"install": "yes"}}, "install"),
        ({"image": IMAGE, "config": {"watchNamespace": ["a"]}}, "watchNamespace"),
        ({"image": IMAGE, "config": {"registries": [{"hosts": "a", "namespaces": ["*"]}]}}, "registries"),
        ({"image": IMAGE, "config": {"lease": {"namespace": "a"}}}, "lease"),
        ({"image": IMAGE, "networkPolicy": {"apiServers": ["10.0.0.4"]}}, "apiServers"),
        ({"image": IMAGE, "resources": {"claims": []}}, "claims"),
        ({"image": IMAGE, "metrics": {"podMonitor": "monitoring.coreos.com/v2"}}, "podMonitor"),
        ({"image": IMAGE, "global": {"imageRegistry": "a"}}, "global"),
        ({"image": IMAGE, "commonLabels": {"app.kubernetes.io/name": "other"}}, "app.kubernetes.io/name"),
        ({"image": IMAGE, "commonLabels": {"team": "a b"}}, "team"),
        ({"image": IMAGE, "tolerations": [{"keys": "sku"}]}, "tolerations"),
        ({"image": IMAGE, "podAnnotations": {"a": 1}}, "podAnnotations"),
        ({"image": IMAGE, "nodeSelector": ["a"]}, "nodeSelector"),
    ],
)
def test_values_that_it_does_not_know_are_refused_by_name(helm, tmp_path, values, named):
    with pytest.raises(ValueError, match=named):
        output_of(helm, tmp_path, "template", "hermetic-system", values)


def test_every_key_of_the_schema_is_described_and_every_object_closed():
    def look(schema, path):
        if "properties" in schema:
            assert schema.get("additionalProperties") is False, path
        for name, value_schema in schema.get("properties", {}).items():
            yield (*path, name), value_schema
            yield from look(value_schema, (*path, name))
        if isinstance(schema.get("items"), dict):
            yield from look(schema["items"], (*path, "[]"))

    schema = json.loads((CHART / "values.schema.json").read_text())
    keys = dict(look(schema, ()))

    inner = {"requests", "limits"}
    undescribed = [path for path, value_schema in keys.items() if not value_schema.get("description")]
    assert [path for path in undescribed if path[-1] not in inner] == []
    assert {tuple(value.path.split(".")) for value in VALUES} <= keys.keys()
