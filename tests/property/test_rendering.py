"""Whatever a user may write: the pod stays restricted and sealed, names fit, and the bytes depend on the spec alone."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hermetic.api.public_services import PUBLIC_SIDE
from hermetic.api.reserved_flags import ENVIRONMENT
from hermetic.engines.vllm.tables import TABLES
from hermetic.objects.children import render
from hermetic.objects.names import Owner
from tests.kubernetes_models import MODELS
from tests.pod_security import violations
from tests.property.manifests import manifests
from tests.renderings import OWNER_UID
from tests.scenarios import Manifest, changed
from tests.snapshots import rendered, spec_of

PRIVATE_RANGES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")


def pod_of(manifest: Manifest) -> Manifest:
    return rendered(manifest)["Deployment"]["spec"]["template"]["spec"]


@given(manifests())
def test_every_pod_is_restricted(manifest):
    assert violations(pod_of(manifest)) == []


@given(manifests())
def test_every_child_is_one_that_kubernetes_accepts(manifest):
    for kind, child in rendered(manifest).items():
        MODELS[kind].model_validate(child)


@given(manifests())
def test_every_pod_is_sealed(manifest):
    pod = pod_of(manifest)
    (engine,) = pod["containers"]
    environment = {variable["name"]: variable.get("value") for variable in engine["env"]}
    assert environment["HF_HUB_OFFLINE"] == environment["DO_NOT_TRACK"] == environment["VLLM_NO_USAGE_STATS"] == "1"
    assert not {name.upper() for name in environment} & {"HF_TOKEN", "NGC_API_KEY", "HTTP_PROXY", "HTTPS_PROXY"}
    assert len(environment) == len(engine["env"]), "a name that is set twice"
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert all(mount.get("readOnly") for mount in engine["volumeMounts"] if mount["name"] in {"weights", "tls"})


@given(manifests(), st.data())
def test_every_variable_of_ours_is_reserved_or_gives_way_to_the_user_s(manifest, data):
    """Server-side apply refuses a list in which one name occurs twice."""
    ours = [variable["name"] for variable in pod_of(manifest)["containers"][0]["env"]]
    free = sorted(name for name in ours if name not in ENVIRONMENT)
    chosen = data.draw(st.lists(st.sampled_from(free), unique=True)) if free else []
    (engine,) = manifest["spec"]["engine"].items()
    fields = {**engine[1], "extraEnv": [{"name": name, "value": "x"} for name in chosen]}
    names = [v["name"] for v in pod_of(changed(manifest, engine={engine[0]: fields}))["containers"][0]["env"]]
    assert len(names) == len(set(names))


@given(manifests())
def test_every_policy_lets_nothing_out_and_only_named_clients_in(manifest):
    policy = rendered(manifest)["NetworkPolicy"]["spec"]
    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [])
    assert all(rule["from"] and rule["ports"] for rule in policy["ingress"])
    assert [peer for rule in policy["ingress"] for peer in rule["from"]] == clients_of(manifest)


def clients_of(manifest: Manifest) -> list[Manifest]:
    """Who may connect by the spec: the ranges of the load balancer, those of private networks by default, and pods."""
    endpoint = manifest["spec"].get("endpoint") or {}
    balancer = endpoint.get("internalLoadBalancer")
    ranges = [] if balancer is None else balancer.get("allowedSourceRanges") or PRIVATE_RANGES
    pods = [
        {side: without_empty(selector) for side, selector in client.items() if selector is not None}
        for client in endpoint.get("allowedClients") or ()
    ]
    return [*({"ipBlock": {"cidr": prefix}} for prefix in ranges), *pods]


def without_empty(selector: Manifest) -> Manifest:
    return {key: value for key, value in selector.items() if value}


@given(manifests())
def test_every_load_balancer_is_private(manifest):
    service = rendered(manifest)["Service"]
    annotations = service["metadata"]["annotations"]
    assert service["spec"]["type"] in {"ClusterIP", "LoadBalancer"}
    if service["spec"]["type"] == "LoadBalancer":
        assert annotations["service.beta.kubernetes.io/azure-load-balancer-internal"] == "true"
    assert not set(annotations) & set(PUBLIC_SIDE)


@given(manifests())
def test_every_flag_is_known_to_the_version(manifest):
    vllm = manifest["spec"]["engine"].get("vllm")
    if vllm is None:
        return
    table = TABLES.table_for(vllm["version"])
    flags = [word for word in pod_of(manifest)["containers"][0]["args"] if word.startswith("-")]
    assert all(table.knows(word) for word in flags)


@given(manifests(), st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_every_name_and_label_fits(manifest, namespace):
    for child in render(Owner(namespace, manifest["metadata"]["name"], OWNER_UID), spec_of(manifest)):
        assert len(child["metadata"]["name"]) <= (63 if child["kind"] == "Service" else 253)
        assert all(len(value) <= 63 for value in child["metadata"]["labels"].values())
    assert all(len(volume["name"]) <= 63 for volume in pod_of(manifest)["volumes"])


@given(manifests())
def test_rendering_is_a_function_of_the_spec(manifest):
    assert json.dumps(rendered(manifest)) == json.dumps(rendered(json.loads(json.dumps(manifest))))


@given(
    manifests(), st.integers(0, 9), st.sampled_from(["Enforce", "Report", "Off"]), st.sampled_from(["Replace", "Surge"])
)
def test_pods_are_the_same_whatever_their_number_and_whatever_is_asked_of_the_proof(manifest, replicas, asked, rollout):
    other = changed(manifest, replicas=replicas, isolation={"enforcement": asked}, rollout=rollout)
    other["metadata"]["labels"] = {"team": "somebody"}
    before, after = rendered(manifest)["Deployment"], rendered(other)["Deployment"]
    mark = "hermetic.dev/pod-template"
    assert before["spec"]["template"] == after["spec"]["template"]
    assert before["metadata"]["annotations"][mark] == after["metadata"]["annotations"][mark]


@given(manifests())
def test_secrets_are_named_in_the_pod_and_nowhere_else(manifest):
    """Labels, annotations and Services are read by more people than pods are."""
    endpoint = manifest["spec"]["endpoint"]
    named = {endpoint[part]["secretName"] for part in ("tls", "apiKey") if part in endpoint}
    for kind, child in rendered(manifest).items():
        text = json.dumps(child)
        assert all((name in text) == (kind == "Deployment") for name in named)
