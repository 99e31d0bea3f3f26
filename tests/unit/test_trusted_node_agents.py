"""`trustedNodeAgents`: what it takes, what it excuses, and nothing wider."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.audit.exceptions import Exceptions
from hermetic.audit.findings import Finding, Verdict
from hermetic.audit.policy import Policy
from hermetic.audit.run import audit, evaluate
from hermetic.cli.audit.files import read_policy
from hermetic.errors import InputError
from testbed.textbook import own
from testbed.textbook.aks import Plane
from testbed.textbook.objects import Machine
from tests.kubernetes_estates import REGISTRY, Manifest, container, estate, findings, owned, pod, sealed_cluster

DIGEST = f"sha256:{'a' * 64}"
OTHER_DIGEST = f"sha256:{'b' * 64}"
PLUG_IN = f"{REGISTRY}/nvidia/k8s-device-plugin"
VALIDATOR = f"{REGISTRY}/nvidia/gpu-operator-validator"
OWNER = "nvidia-device-plugin-daemonset"
NAMESPACE = "gpu-resources"
ENTRY = {"namespace": NAMESPACE, "owner": f"DaemonSet/{OWNER}", "image": f"{PLUG_IN}@{DIGEST}"}
FOLDER = [{"name": "device-plugin", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]
OPEN, FINE = Verdict.FAIL, Verdict.PASS


def policy(*entries: Any, registries: tuple[str, ...] = (REGISTRY,)) -> Policy:
    return Policy.model_validate({"allowedRegistries": registries, "trustedNodeAgents": entries})


def plug_in(
    image: str = f"{PLUG_IN}@{DIGEST}", *, owner: str = OWNER, kind: str = "DaemonSet", **fields: Any
) -> Manifest:
    """The device plug-in as use-nvidia-gpu.md of azure-aks-docs has it, from a registry of our own."""
    spec = {"containers": [container(image=image)], "volumes": FOLDER, **fields.pop("spec", {})}
    namespace = fields.pop("namespace", NAMESPACE)
    return pod(f"{owner}-x2b4c", namespace, ownerReferences=owned(kind, owner), spec=spec, **fields)


def finding_about(one: Manifest, check: str = "k8s-privileged", by: Policy | None = None) -> Finding:
    (found,) = findings(check, [*sealed_cluster(), one], policy=by or policy(ENTRY))
    return found


class TestWhatItExcuses:
    def test_without_an_entry_the_plug_in_is_judged(self) -> None:
        assert finding_about(plug_in(), by=policy()).verdict is OPEN

    @pytest.mark.parametrize("image", [f"{PLUG_IN}@{DIGEST}", f"{PLUG_IN}:v0.18.0@{DIGEST}"])
    def test_by_digest(self, image: str) -> None:
        assert finding_about(plug_in(image)).verdict is FINE

    @pytest.mark.parametrize("image", [f"{PLUG_IN}@{DIGEST}", f"{PLUG_IN}:v0.18.0", PLUG_IN])
    def test_by_repository(self, image: str) -> None:
        assert finding_about(plug_in(image), by=policy({**ENTRY, "image": PLUG_IN})).verdict is FINE

    def test_a_controller_with_several_images_by_an_entry_for_each(self) -> None:
        one = plug_in(spec={"initContainers": [container(name="init", image=f"{VALIDATOR}@{DIGEST}")]})
        assert finding_about(one).verdict is OPEN
        assert finding_about(one, by=policy(ENTRY, {**ENTRY, "image": VALIDATOR})).verdict is FINE

    def test_a_deployment_too(self) -> None:
        one = plug_in(owner="gpu-operator-5f7", kind="ReplicaSet", labels={"pod-template-hash": "5f7"})
        assert finding_about(one, by=policy({**ENTRY, "owner": "Deployment/gpu-operator"})).verdict is FINE

    def test_every_right_over_the_node(self) -> None:
        rights = {
            "hostPID": True,
            "containers": [container(image=f"{PLUG_IN}@{DIGEST}", securityContext={"privileged": True})],
            "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
        }
        assert finding_about(plug_in(spec=rights)).verdict is FINE


class TestWhatItDoesNotExcuse:
    @pytest.mark.parametrize(
        "one",
        [
            plug_in(f"{PLUG_IN}@{OTHER_DIGEST}"),
            plug_in(f"{PLUG_IN}:v0.18.0"),
            plug_in(f"{REGISTRY}/tools@{DIGEST}"),
            plug_in(f"other.azurecr.io/nvidia/k8s-device-plugin@{DIGEST}"),
            plug_in(f"{REGISTRY}/nvidia/k8s-device-plugin/x@{DIGEST}"),
            plug_in(f"{REGISTRY}/team/nvidia/k8s-device-plugin@{DIGEST}"),
            plug_in(owner="miner"),
            plug_in(owner=f"{OWNER}-2"),
            plug_in(kind="Job"),
            plug_in(namespace="team"),
            plug_in(spec={"initContainers": [container(name="i", image=f"{REGISTRY}/tools:1")]}),
            plug_in(spec={"ephemeralContainers": [container(name="e", image=f"{REGISTRY}/tools:1")]}),
            pod(OWNER, NAMESPACE, spec={"containers": [container(image=f"{PLUG_IN}@{DIGEST}")], "volumes": FOLDER}),
        ],
    )
    def test_another_image_owner_or_namespace(self, one: Manifest) -> None:
        assert finding_about(one).verdict is OPEN

    def test_and_the_message_names_the_image(self) -> None:
        assert f"not its image {PLUG_IN}@{OTHER_DIGEST}" in finding_about(plug_in(f"{PLUG_IN}@{OTHER_DIGEST}")).message

    def test_the_nodes_network(self) -> None:
        assert finding_about(plug_in(spec={"hostNetwork": True}), "k8s-hostnetwork").verdict is OPEN

    def test_open_egress(self) -> None:
        assert finding_about(plug_in(), "k8s-default-deny-egress").verdict is OPEN

    def test_another_pod_in_its_namespace(self) -> None:
        found = findings("k8s-privileged", [*sealed_cluster(), plug_in(), plug_in(owner="miner")], policy=policy(ENTRY))
        assert [(one.resource, one.verdict) for one in found] == [(f"apps/v1/DaemonSet {NAMESPACE}/miner", OPEN)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"namespace": "gpu-*"}, "namespace"),
        ({"namespace": ""}, "namespace"),
        ({"owner": "*"}, "Kind"),
        ({"owner": "DaemonSet/*"}, "kind"),
        ({"owner": "nvidia-device-plugin-daemonset"}, "kind"),
        ({"owner": "DaemonSet gpu/x"}, "kind"),
        ({"image": f"{PLUG_IN}:v0.18.0"}, "without a tag"),
        ({"image": f"{PLUG_IN}:v0.18.0@{DIGEST}"}, "without a tag"),
        ({"image": "nvidia/k8s-device-plugin"}, "with its registry"),
        ({"image": REGISTRY}, "with its registry"),
        ({"image": f"{REGISTRY}/*"}, "with its registry"),
        ({"image": f"{PLUG_IN}@sha256:abc"}, "with its registry"),
        ({"image": "other.azurecr.io/nvidia/k8s-device-plugin"}, "allowedRegistries"),
        ({"name": "x"}, "name"),
    ],
)
def test_an_entry_that_is_not_exact_is_refused(change: dict[str, str], words: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    entry = {**ENTRY, **change}
    file.write_text(json.dumps({"allowedRegistries": [REGISTRY], "trustedNodeAgents": [entry]}))
    with pytest.raises(InputError) as refused:
        read_policy(file, "sealed")
    assert "trustedNodeAgents" in str(refused.value)
    assert words.lower() in str(refused.value).lower()


@pytest.mark.parametrize("left_out", sorted(ENTRY))
def test_all_three_keys_are_required(left_out: str) -> None:
    with pytest.raises(ValidationError):
        policy({key: value for key, value in ENTRY.items() if key != left_out})


def _notes(*manifests: Manifest, by: Policy) -> tuple[str, ...]:
    seen, now = estate([*sealed_cluster(), *manifests]), datetime(2026, 9, 1, tzinfo=UTC)
    return audit(seen, evaluate(seen, by), by, Exceptions(), started_at=now, finished_at=now, version="x").notes


def test_an_entry_that_meets_nothing_is_noted() -> None:
    stale = {**ENTRY, "image": f"{PLUG_IN}@{OTHER_DIGEST}"}
    assert _notes(plug_in(), by=policy(ENTRY)) == ()
    (note,) = _notes(plug_in(), by=policy(ENTRY, stale))
    assert OTHER_DIGEST in note
    assert "counts for nothing" in note


class TestTheOperator:
    def test_knows_the_same_list(self) -> None:
        registry = {"host": REGISTRY, "namespaces": ["*"]}
        configuration = Configuration.model_validate({"registries": [registry], "trustedNodeAgents": [ENTRY]})
        assert tuple(configuration.trusted_node_agents) == policy(ENTRY).trusted_node_agents

    def test_refuses_an_image_from_a_registry_that_is_not_listed(self) -> None:
        with pytest.raises(ValidationError, match="trustedNodeAgents"):
            Configuration.model_validate({"trustedNodeAgents": [ENTRY]})


def test_the_gpu_operator_in_the_docs_is_a_list_of_agents() -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    [block] = [one for one in page.split("```") if one.startswith("yaml\n# part of policy.yaml")]
    document = yaml.safe_load(block.removeprefix("yaml\n"))
    assert len(Policy.model_validate({"allowedRegistries": [REGISTRY], **document}).trusted_node_agents) == 15


def _documented(text: str) -> list[dict[str, str]]:
    """The entries of this block of docs/audit.md, with the registry of the textbook estates."""
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    [block] = [one for one in page.split("```") if one.startswith(f"yaml\n{text}")]
    document = yaml.safe_load(block.removeprefix("yaml\n").replace("contoso.azurecr.io", own.REGISTRY))
    return [{**one, "image": one["image"].partition("@")[0]} for one in document["trustedNodeAgents"]]


@pytest.mark.parametrize(
    ("installed", "text"), [(own.gpu_operator, "# part of policy.yaml"), (own.device_plugin, "# policy.yaml")]
)
def test_what_is_documented_for_gpu_pools_passes_with_the_entries_in_the_docs(installed: Any, text: str) -> None:
    machine = Machine("aks-gpu-0", "10.1.0.4", "gpu", "User", "/subscriptions/s", 1)
    some = [*sealed_cluster(), *installed(Plane((machine, replace(machine, name="aks-sys-0", mode="System"))))]
    without = policy(registries=(REGISTRY, own.REGISTRY))
    named = policy(*_documented(text), registries=(REGISTRY, own.REGISTRY))
    assert {one.verdict for one in findings("k8s-privileged", some, policy=without)} == {OPEN}
    for check in ("k8s-privileged", "k8s-default-deny-egress", "k8s-hostnetwork", "k8s-image-origin"):
        assert {one.verdict for one in findings(check, some, policy=named)} == {FINE}, check


class TestANetworkPlugInOfOnesOwn:
    """Cilium or Calico from a registry of one's own: `networkPlugin: none` with outbound type `none`."""

    IMAGES = (f"{REGISTRY}/cilium/cilium:v1.19.0@{DIGEST}", f"{REGISTRY}/cilium/startup@{OTHER_DIGEST}")

    def agent(self, *images: str, namespace: str = "kube-system", **spec: Any) -> Manifest:
        """Its agent as its chart makes it."""
        containers = [
            container(name=f"c{number}", image=image, securityContext={"privileged": True})
            for number, image in enumerate(images or self.IMAGES)
        ]
        whole = {"hostNetwork": True, "containers": containers, **spec}
        return pod("cilium-x", namespace, ownerReferences=owned("DaemonSet", "cilium"), spec=whole)

    @pytest.mark.parametrize("check", ["k8s-hostnetwork", "k8s-privileged"])
    @pytest.mark.parametrize("namespace", ["kube-system", "calico-system", "cilium"])
    def test_the_entry_that_the_remedy_shows_settles_it(self, check: str, namespace: str) -> None:
        one = self.agent(namespace=namespace)
        before = finding_about(one, check, by=policy())
        assert before.verdict is OPEN
        (stanza,) = re.findall(r"trustedNodeAgents: \[\{.*?\}\]", before.remedy)
        entries = yaml.safe_load(stanza)["trustedNodeAgents"]
        assert finding_about(one, check, by=policy(*entries)).verdict is FINE
        by_key = {"registries": [{"host": REGISTRY, "namespaces": ["*"]}], "trustedNodeAgents": entries}
        assert Configuration.model_validate(by_key).trusted_node_agents[0].host_network

    def test_the_nodes_network_needs_it_in_words_and_by_digest(self) -> None:
        entry = {"namespace": "kube-system", "owner": "DaemonSet/cilium", "image": self.IMAGES[1]}
        one = self.agent(self.IMAGES[1])
        assert finding_about(one, "k8s-hostnetwork", by=policy(entry)).verdict is OPEN
        assert finding_about(one, "k8s-hostnetwork", by=policy({**entry, "hostNetwork": True})).verdict is FINE
        with pytest.raises(ValidationError, match="sha256:DIGEST"):
            policy({**entry, "image": f"{REGISTRY}/cilium/startup", "hostNetwork": True})

    def test_every_image_must_be_named_so(self) -> None:
        entry = {"namespace": "kube-system", "owner": "DaemonSet/cilium", "image": self.IMAGES[1], "hostNetwork": True}
        one = self.agent()
        assert finding_about(one, "k8s-hostnetwork", by=policy(entry)).verdict is OPEN

    def test_another_digest_is_judged(self) -> None:
        entry = {"namespace": "kube-system", "owner": "DaemonSet/cilium", "image": self.IMAGES[1], "hostNetwork": True}
        one = self.agent(f"{REGISTRY}/cilium/startup@{DIGEST}")
        assert finding_about(one, "k8s-hostnetwork", by=policy(entry)).verdict is OPEN

    def test_of_an_image_by_tag_the_remedy_says_what_is_missing(self) -> None:
        found = finding_about(self.agent(f"{REGISTRY}/cilium/cilium:v1"), "k8s-hostnetwork", by=policy())
        assert f"image: {REGISTRY}/cilium/cilium@sha256:DIGEST" in found.remedy
        assert "put that digest in place of DIGEST" in found.remedy

    def test_of_another_registry_it_says_that_it_must_be_allowed(self) -> None:
        found = finding_about(self.agent(f"quay.io/cilium/cilium@{DIGEST}"), "k8s-hostnetwork", by=policy())
        assert "quay.io under `allowedRegistries`" in found.remedy

    def test_a_pod_of_no_controller_is_no_agent(self) -> None:
        one = self.agent()
        del one["metadata"]["ownerReferences"]
        assert "trustedNodeAgents" not in finding_about(one, "k8s-hostnetwork", by=policy()).remedy
