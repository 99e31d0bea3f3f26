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
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.exceptions import Exceptions
from hermetic.audit.result.run import audit, evaluate
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


def finding_about(changed: Manifest, check: str = "k8s-privileged", by: Policy | None = None) -> Finding:
    (finding,) = findings(check, [*sealed_cluster(), changed], policy=by or policy(ENTRY))
    return finding


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
        agent = plug_in(spec={"initContainers": [container(name="init", image=f"{VALIDATOR}@{DIGEST}")]})
        assert finding_about(agent).verdict is OPEN
        assert finding_about(agent, by=policy(ENTRY, {**ENTRY, "image": VALIDATOR})).verdict is FINE

    def test_a_deployment_too(self) -> None:
        agent = plug_in(owner="gpu-operator-5f7", kind="ReplicaSet", labels={"pod-template-hash": "5f7"})
        assert finding_about(agent, by=policy({**ENTRY, "owner": "Deployment/gpu-operator"})).verdict is FINE

    def test_every_right_over_the_node(self) -> None:
        rights = {
            "hostPID": True,
            "containers": [container(image=f"{PLUG_IN}@{DIGEST}", securityContext={"privileged": True})],
            "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
        }
        assert finding_about(plug_in(spec=rights)).verdict is FINE


class TestWhatItDoesNotExcuse:
    @pytest.mark.parametrize(
        "changed",
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
    def test_another_image_owner_or_namespace(self, changed: Manifest) -> None:
        assert finding_about(changed).verdict is OPEN

    def test_and_the_message_names_the_image(self) -> None:
        assert f"not its image {PLUG_IN}@{OTHER_DIGEST}" in finding_about(plug_in(f"{PLUG_IN}@{OTHER_DIGEST}")).message

    def test_the_nodes_network(self) -> None:
        assert finding_about(plug_in(spec={"hostNetwork": True}), "k8s-hostnetwork").verdict is OPEN

    def test_open_egress(self) -> None:
        assert finding_about(plug_in(), "k8s-default-deny-egress").verdict is OPEN

    def test_another_pod_in_its_namespace(self) -> None:
        privileged_findings = findings(
            "k8s-privileged", [*sealed_cluster(), plug_in(), plug_in(owner="miner")], policy=policy(ENTRY)
        )
        assert [(finding.resource, finding.verdict) for finding in privileged_findings] == [
            (f"apps/v1/DaemonSet {NAMESPACE}/miner", OPEN)
        ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"namespace": "gpu-*"}, "namespace"),
        ({"namespace": ""}, "namespace"),
        ({"owner": "*"}, "Kind"),
        ({"owner": "DaemonSet/*-plugin"}, "kind"),
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
def test_an_entry_that_is_not_exact_is_refused(change: dict[str, str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    entry = {**ENTRY, **change}
    file.write_text(json.dumps({"allowedRegistries": [REGISTRY], "trustedNodeAgents": [entry]}))
    with pytest.raises(InputError) as refused:
        read_policy(file, "sealed")
    assert "trustedNodeAgents" in str(refused.value)
    assert message.lower() in str(refused.value).lower()


@pytest.mark.parametrize("left_out", sorted(ENTRY))
def test_all_three_keys_are_required(left_out: str) -> None:
    with pytest.raises(ValidationError):
        policy({key: value for key, value in ENTRY.items() if key != left_out})


def _notes(*manifests: Manifest, by: Policy) -> tuple[str, ...]:
    observed_estate, now = estate([*sealed_cluster(), *manifests]), datetime(2026, 9, 1, tzinfo=UTC)
    return audit(
        observed_estate, evaluate(observed_estate, by), by, Exceptions(), started_at=now, finished_at=now, version="x"
    ).notes


def test_an_entry_that_meets_nothing_is_noted() -> None:
    stale = {**ENTRY, "image": f"{PLUG_IN}@{OTHER_DIGEST}"}
    assert _notes(plug_in(), by=policy(ENTRY)) == ()
    (note,) = _notes(plug_in(), by=policy(ENTRY, stale))
    assert OTHER_DIGEST in note
    assert "is ignored" in note


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
    [block] = [block_text for block_text in page.split("```") if block_text.startswith("yaml\n# part of policy.yaml")]
    document = yaml.safe_load(block.removeprefix("yaml\n"))
    assert len(Policy.model_validate({"allowedRegistries": [REGISTRY], **document}).trusted_node_agents) <= 5


def _documented(text: str) -> list[dict[str, str]]:
    """The entries of this block of docs/audit.md, with the registry of the textbook estates."""
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    [block] = [block_text for block_text in page.split("```") if block_text.startswith(f"yaml\n{text}")]
    document = yaml.safe_load(block.removeprefix("yaml\n").replace("contoso.azurecr.io", own.REGISTRY))
    return [
        {**trusted_agent, "image": trusted_agent["image"].partition("@")[0]}
        for trusted_agent in document["trustedNodeAgents"]
    ]


@pytest.mark.parametrize(
    ("installed", "text"), [(own.gpu_operator, "# part of policy.yaml"), (own.device_plugin, "# policy.yaml")]
)
def test_what_is_documented_for_gpu_pools_passes_with_the_entries_in_the_docs(installed: Any, text: str) -> None:
    machine = Machine("aks-gpu-0", "10.1.0.4", "gpu", "User", "/subscriptions/s", 1)
    some = [*sealed_cluster(), *installed(Plane((machine, replace(machine, name="aks-sys-0", mode="System"))))]
    without = policy(registries=(REGISTRY, own.REGISTRY))
    named = policy(*_documented(text), registries=(REGISTRY, own.REGISTRY))
    assert {finding.verdict for finding in findings("k8s-privileged", some, policy=without)} == {OPEN}
    for check in ("k8s-privileged", "k8s-default-deny-egress", "k8s-hostnetwork", "k8s-image-origin"):
        assert {finding.verdict for finding in findings(check, some, policy=named)} == {FINE}, check


# The agents of the chart and the path of each image, as its values name it below nvcr.io. Source: NVIDIA/gpu-operator
# at a22dbf6, deployments/gpu-operator/values.yaml (repository, image) and assets/*/*daemonset.yaml (names).
IMAGES_OF_THE_CHART = {
    "gpu-feature-discovery": "nvidia/k8s-device-plugin",
    "nvidia-cc-manager": "nvidia/cloud-native/k8s-cc-manager",
    "nvidia-container-toolkit-daemonset": "nvidia/k8s/container-toolkit",
    "nvidia-dcgm": "nvidia/cloud-native/dcgm",
    "nvidia-dcgm-exporter": "nvidia/k8s/dcgm-exporter",
    "nvidia-device-plugin-daemonset": "nvidia/k8s-device-plugin",
    "nvidia-device-plugin-mps-control-daemon": "nvidia/k8s-device-plugin",
    "nvidia-driver-daemonset": "nvidia/driver",
    "nvidia-driver-daemonset-6.8.0-1052-azure-ubuntu24.04": "nvidia/driver",
    "nvidia-kata-sandbox-device-plugin-daemonset": "nvidia/cloud-native/nvidia-sandbox-device-plugin",
    "nvidia-mig-manager": "nvidia/cloud-native/k8s-mig-manager",
    "nvidia-node-status-exporter": "nvidia/gpu-operator",
    "nvidia-operator-validator": "nvidia/gpu-operator",
    "nvidia-sandbox-device-plugin-daemonset": "nvidia/kubevirt-gpu-device-plugin",
    "nvidia-sandbox-validator": "nvidia/gpu-operator",
    "nvidia-vfio-manager": "nvidia/cloud-native/k8s-driver-manager",
    "nvidia-vgpu-device-manager": "nvidia/cloud-native/vgpu-device-manager",
}
BESIDE_AN_AGENT = ("nvidia/gpu-operator", "nvidia/cloud-native/k8s-driver-manager", "nvidia/cloud-native/nvidia-fs",
                   "nvidia/cloud-native/gdrdrv")  # fmt: skip


@pytest.mark.parametrize("agent", IMAGES_OF_THE_CHART)
def test_entries_in_the_docs_name_each_agent_of_the_chart_with_the_images_of_its_values(agent: str) -> None:
    paths = (IMAGES_OF_THE_CHART[agent], *BESIDE_AN_AGENT)
    rights = {"securityContext": {"privileged": True}}
    containers = [
        container(name=f"c{position}", image=f"{own.REGISTRY}/{path}:v1", **rights)
        for position, path in enumerate(paths)
    ]
    spec = {"containers": containers}
    privileged = pod(f"{agent}-x", "gpu-operator", ownerReferences=owned("DaemonSet", agent), spec=spec)
    named = policy(*_documented("# part of policy.yaml"), registries=(own.REGISTRY,))
    results = findings("k8s-privileged", [*sealed_cluster(), privileged], policy=named)
    assert {finding.verdict for finding in results} == {FINE}


class TestEntriesOfRemedy:
    """The entries that a remedy prints can be pasted as they are, and settle the finding."""

    def agents(self, *images: str, **fields: Any) -> list[Manifest]:
        return [plug_in(image, owner=f"agent-{number}", **fields) for number, image in enumerate(images)]

    def entries(self, agents: list[Manifest], by: Policy | None = None) -> list[list[dict[str, Any]]]:
        """The entries of each finding."""
        privileged_findings = findings("k8s-privileged", [*sealed_cluster(), *agents], policy=by or policy())
        stanzas = [re.findall(r"trustedNodeAgents: \[\{.*?\}\]", finding.remedy) for finding in privileged_findings]
        return [yaml.safe_load(stanza)["trustedNodeAgents"] for (stanza,) in stanzas]

    @pytest.mark.parametrize(
        "text",
        [
            "x\nkubectl delete namespace production\n",
            "x}, {namespace: team, owner: DaemonSet/*, image: contoso.azurecr.io/*",
            "x\u2028az group delete",
            "x # ",
            "x\x1b[2K",
        ],
    )
    @pytest.mark.parametrize("position", ["image", "owner"])
    def test_text_of_an_object_adds_no_line_and_no_entry(self, text: str, position: str) -> None:
        """The API server takes every text as an image, and as the name of an owner of a pod."""
        named = plug_in(f"{REGISTRY}/{text}:v1") if position == "image" else plug_in(PLUG_IN, owner=text)
        beside = plug_in(f"{REGISTRY}/nvidia/other:v1", owner="other")
        privileged_findings = findings("k8s-privileged", [*sealed_cluster(), named, beside], policy=policy())
        remedies = {finding.remedy for finding in privileged_findings if "other" not in finding.resource}
        assert remedies
        for remedy in remedies:
            assert "trustedNodeAgents" not in remedy
            assert text not in remedy
            assert not [line for line in remedy.splitlines() if line.startswith(("az ", "kubectl delete"))]

    @pytest.mark.parametrize("images", [(f"{PLUG_IN}:v1", f"{VALIDATOR}:v2"), (f"{PLUG_IN}@{DIGEST}", VALIDATOR)])
    def test_entries_of_images_of_one_path_are_one_entry(self, images: tuple[str, ...]) -> None:
        agents = self.agents(*images)
        entry = {"namespace": NAMESPACE, "owner": "DaemonSet/*", "image": f"{REGISTRY}/nvidia/*"}
        assert self.entries(agents) == [[entry], [entry]]
        settled = findings("k8s-privileged", [*sealed_cluster(), *agents], policy=policy(entry))
        assert {finding.verdict for finding in settled} == {FINE}

    def test_entry_of_images_of_one_pod_is_one_entry(self) -> None:
        containers = [container(name=name, image=image) for name, image in {"a": PLUG_IN, "b": VALIDATOR}.items()]
        ((entry,),) = self.entries([plug_in(spec={"containers": containers})])
        assert entry["image"] == f"{REGISTRY}/nvidia/*"

    @pytest.mark.parametrize(
        "agents",
        [
            [plug_in(PLUG_IN)],
            [plug_in(f"{PLUG_IN}:v1"), plug_in(f"{PLUG_IN}:v2", owner="another-version")],
            [plug_in(PLUG_IN), plug_in(f"{REGISTRY}/nfd/worker", owner="another-path")],
            [plug_in(PLUG_IN), plug_in(VALIDATOR, owner="elsewhere", namespace="team")],
            [plug_in(f"{REGISTRY}/a"), plug_in(f"{REGISTRY}/b", owner="without-path")],
            [plug_in(PLUG_IN), plug_in(VALIDATOR, owner="without-rights", spec={"volumes": []})],
            [plug_in(PLUG_IN, kind="StatefulSet"), plug_in(VALIDATOR, owner="stateful", kind="StatefulSet")],
        ],
        ids=["alone", "one repository", "paths", "namespaces", "registry alone", "no rights", "not a DaemonSet"],
    )
    def test_entries_of_other_images_name_each_image_by_digest(self, agents: list[Manifest]) -> None:
        some = [entry for entries in self.entries(agents) for entry in entries]
        assert some
        assert all("*" not in entry["owner"] and "@sha256:" in entry["image"] for entry in some)

    def test_entries_with_the_nodes_network_name_each_image_by_digest(self) -> None:
        some = self.entries(self.agents(PLUG_IN, VALIDATOR, spec={"hostNetwork": True}))
        assert all("@sha256:" in entry["image"] and entry["hostNetwork"] for entries in some for entry in entries)


class TestANetworkPlugInOfOnesOwn:
    """Cilium or Calico from a registry of one's own: `networkPlugin: none` with outbound type `none`."""

    IMAGES = (f"{REGISTRY}/cilium/cilium:v1.19.0@{DIGEST}", f"{REGISTRY}/cilium/startup@{OTHER_DIGEST}")

    def agent(self, *images: str, namespace: str = "kube-system", **spec: Any) -> Manifest:
        """Its agent as its chart makes it."""
        containers = [
            container(name=f"c{number}", image=image, securityContext={"privileged": True})
            for number, image in enumerate(images or self.IMAGES)
        ]
        pod_spec = {"hostNetwork": True, "containers": containers, **spec}
        return pod("cilium-x", namespace, ownerReferences=owned("DaemonSet", "cilium"), spec=pod_spec)

    @pytest.mark.parametrize("check", ["k8s-hostnetwork", "k8s-privileged"])
    @pytest.mark.parametrize("namespace", ["kube-system", "calico-system", "cilium"])
    def test_the_entry_that_the_remedy_shows_settles_it(self, check: str, namespace: str) -> None:
        agent = self.agent(namespace=namespace)
        before = finding_about(agent, check, by=policy())
        assert before.verdict is OPEN
        (stanza,) = re.findall(r"trustedNodeAgents: \[\{.*?\}\]", before.remedy)
        entries = yaml.safe_load(stanza)["trustedNodeAgents"]
        assert finding_about(agent, check, by=policy(*entries)).verdict is FINE
        by_key = {"registries": [{"host": REGISTRY, "namespaces": ["*"]}], "trustedNodeAgents": entries}
        assert Configuration.model_validate(by_key).trusted_node_agents[0].host_network

    def test_the_nodes_network_needs_it_in_words_and_by_digest(self) -> None:
        entry = {"namespace": "kube-system", "owner": "DaemonSet/cilium", "image": self.IMAGES[1]}
        agent = self.agent(self.IMAGES[1])
        assert finding_about(agent, "k8s-hostnetwork", by=policy(entry)).verdict is OPEN
        assert finding_about(agent, "k8s-hostnetwork", by=policy({**entry, "hostNetwork": True})).verdict is FINE
        with pytest.raises(ValidationError, match="sha256:DIGEST"):
            policy({**entry, "image": f"{REGISTRY}/cilium/startup", "hostNetwork": True})

    def test_every_image_must_be_named_so(self) -> None:
        entry = {"namespace": "kube-system", "owner": "DaemonSet/cilium", "image": self.IMAGES[1], "hostNetwork": True}
        agent = self.agent()
        assert finding_about(agent, "k8s-hostnetwork", by=policy(entry)).verdict is OPEN

    def test_another_digest_is_judged(self) -> None:
        entry = {"namespace": "kube-system", "owner": "DaemonSet/cilium", "image": self.IMAGES[1], "hostNetwork": True}
        agent = self.agent(f"{REGISTRY}/cilium/startup@{DIGEST}")
        assert finding_about(agent, "k8s-hostnetwork", by=policy(entry)).verdict is OPEN

    def test_of_an_image_by_tag_the_remedy_says_what_is_missing(self) -> None:
        finding = finding_about(self.agent(f"{REGISTRY}/cilium/cilium:v1"), "k8s-hostnetwork", by=policy())
        assert f"image: {REGISTRY}/cilium/cilium@sha256:DIGEST" in finding.remedy
        assert "put that digest in place of DIGEST" in finding.remedy

    def test_of_another_registry_it_says_that_it_must_be_allowed(self) -> None:
        finding = finding_about(self.agent(f"quay.io/cilium/cilium@{DIGEST}"), "k8s-hostnetwork", by=policy())
        assert "quay.io under `allowedRegistries`" in finding.remedy

    def test_a_pod_of_no_controller_is_no_agent(self) -> None:
        agent = self.agent()
        del agent["metadata"]["ownerReferences"]
        assert "trustedNodeAgents" not in finding_about(agent, "k8s-hostnetwork", by=policy()).remedy


PREFIX = {"namespace": NAMESPACE, "owner": "DaemonSet/*", "image": f"{REGISTRY}/nvidia/*"}


@pytest.mark.parametrize(
    ("owner", "image", "expected"),
    [
        ("nvidia-driver-daemonset-6.8.0-1021-azure-ubuntu22.04", f"{REGISTRY}/nvidia/driver:595", FINE),
        ("nvidia-device-plugin-mps-control-daemon", f"{REGISTRY}/nvidia/cloud/k8s-device-plugin:v1", FINE),
        ("gpu-feature-discovery", f"{REGISTRY}/nvidiax/tools:1", OPEN),
        ("gpu-feature-discovery", f"{REGISTRY}/tools/nvidia/tools:1", OPEN),
        ("gpu-feature-discovery", "evil.azurecr.io/nvidia/driver:1", OPEN),
    ],
)
def test_entry_with_a_prefix_trusts_what_is_below_its_path(owner: str, image: str, expected: Verdict) -> None:
    """github.com/NVIDIA/gpu-operator at a22dbf6: object_controls.go names a DaemonSet for each kernel."""
    assert finding_about(plug_in(image, owner=owner), by=policy(PREFIX)).verdict is expected


def test_entry_with_a_prefix_of_names_trusts_no_other_controller() -> None:
    entry = {**PREFIX, "owner": "DaemonSet/nvidia-driver-daemonset-*"}
    image = f"{REGISTRY}/nvidia/driver:595"
    assert finding_about(plug_in(image, owner="nvidia-driver-daemonset-6.8"), by=policy(entry)).verdict is FINE
    assert finding_about(plug_in(image, owner="nvidia-driver"), by=policy(entry)).verdict is OPEN
    assert (
        finding_about(plug_in(image, owner="nvidia-driver-daemonset-6.8", kind="Job"), by=policy(entry)).verdict is OPEN
    )
    elsewhere = plug_in(image, owner="nvidia-driver-daemonset-6.8", namespace="team")
    assert finding_about(elsewhere, by=policy(entry)).verdict is OPEN


@pytest.mark.parametrize(
    "change",
    [
        {"image": f"{REGISTRY}/*"},
        {"image": "*"},
        {"image": f"{REGISTRY}/nvidia*"},
        {"image": f"{REGISTRY}/*/driver"},
        {"owner": "*"},
        {"owner": "*/x"},
        {"owner": "DaemonSet/*-driver"},
        {"namespace": "*"},
        {"hostNetwork": True},
    ],
)
def test_entry_with_a_bare_prefix_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        policy({**PREFIX, **change})
