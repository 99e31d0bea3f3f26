"""What the checks of GPUs in pods, faults of nodes and floors become: the condition, the status and the diagnosis."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.accelerator_reasons import ACCELERATOR_FINDINGS, AcceleratorReason
from hermetic.api.configuration import Configuration
from hermetic.cli.status.remedies import remedy_for
from hermetic.controller.condition_events import announcements
from hermetic.in_container.accelerator_checks import Finding, termination_message
from hermetic.kube.pod_bounds import LARGEST_WHOLE
from hermetic.kube.projections import lean_pod, node
from hermetic.objects.accelerator_checks import CHECKER
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from testbed.installation import CONFIGURATION
from tests.renderings import SHARES
from tests.scenarios import Manifest, a_share_model
from tests.snapshots import NOW, a_snapshot, an_a100_node, carried_out, conditions, owner_of, serving, spec_of

NODE = "aks-gpu-12345678-vmss000000"
UUID = "GPU-8a9f0c6e-1f5b-4a53-8f5e-0a1b2c3d4e5f"
FIGURES = {
    "driver": "580.159.04",
    "gpus": 1,
    "product": "NVIDIA A100 80GB PCIe",
    "teraflops": 250.5,
    "memoryGBs": 1700.1,
    "hostToDeviceGBs": 25.9,
    "deviceToHostGBs": 24.2,
}
POLICIES = ("Require", "Warn", "Off")


def a_model(policy: str | None = "Require", **accelerator: Any) -> Manifest:
    preflight = {"preflight": {"policy": policy}} if policy is not None else {}
    return a_share_model(accelerator={**preflight, **accelerator})


def configured(**preflight: Any) -> Configuration:
    return Configuration.model_validate({**CONFIGURATION, "shares": SHARES, "preflight": preflight})


def applied(manifest: Manifest, **facts: Any) -> ClusterSnapshot:
    """The snapshot in which the operator has written all children."""
    snapshot = a_snapshot(owner_of(manifest), nodes=(an_a100_node(NODE),), **facts)
    for _ in range(3):
        snapshot = carried_out(snapshot, plan(spec_of(manifest), snapshot, NOW))
    return snapshot


def result(*findings: Finding, omitted: int = 0, **fields: Any) -> str:
    verdict = findings[0].level if findings else "Pass"
    document = {"verdict": verdict, "seconds": 4.2, **FIGURES, "findings": list(findings), **fields}
    message = json.loads(termination_message(document))
    return json.dumps({**message, "omitted": message["omitted"] + omitted})


def terminated(message: str, code: int = 0) -> dict[str, Any]:
    return {"state": {"terminated": {"exitCode": code, "message": message}}}


def backing_off(message: str) -> dict[str, Any]:
    return {
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        "lastState": {"terminated": {"exitCode": 1, "message": message}},
    }


def a_pod(snapshot: ClusterSnapshot, shape: dict[str, Any], number: int = 0, **spec: Any) -> dict[str, Any]:
    """A pod of the present template, as the store keeps it."""
    name = snapshot.owner.name
    template = snapshot.children["Deployment", name]["spec"]["template"]
    controller = {"kind": "ReplicaSet", "name": f"{name}-5d9c", "controller": True}
    return lean_pod(
        {
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{number}",
                "namespace": "inference",
                "uid": f"u{number}",
                "resourceVersion": "1",
                "creationTimestamp": f"2026-11-24T11:00:0{number}Z",
                "labels": template["metadata"]["labels"],
                "ownerReferences": [controller],
            },
            "spec": {**template["spec"], "nodeName": NODE, **spec},
            "status": {"phase": "Pending", "initContainerStatuses": [{"name": CHECKER, "restartCount": 0, **shape}]},
        }
    )


def checked(snapshot: ClusterSnapshot, *messages: str) -> ClusterSnapshot:
    """The snapshot in which pods ended their checks with these termination messages."""
    return replace(snapshot, pods=tuple(a_pod(snapshot, terminated(text), n) for n, text in enumerate(messages)))


def status_of(manifest: Manifest, snapshot: ClusterSnapshot) -> dict[str, Any]:
    spec = spec_of(manifest)
    return status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW)


def healthy(manifest: Manifest, snapshot: ClusterSnapshot) -> tuple[str, str, str]:
    condition = conditions(status_of(manifest, snapshot))["AcceleratorsHealthy"]
    return condition["status"], condition["reason"], condition["message"]


@pytest.fixture
def snapshot() -> ClusterSnapshot:
    return applied(a_model())


def init_containers(snapshot: ClusterSnapshot) -> dict[str, dict[str, Any]]:
    pod = snapshot.children["Deployment", snapshot.owner.name]["spec"]["template"]["spec"]
    return {container["name"]: container for container in pod.get("initContainers", ())}


# ---------------------------------------------------------------------- what is rendered


def test_checks_run_before_the_weights_with_the_gpus_of_the_engine_and_without_the_weights():
    verifier = {"verifiers": [f"contoso.azurecr.io/hermetic@sha256:{'1' * 64}"], "minimumPolicy": "Warn"}
    policy = Configuration.model_validate({**CONFIGURATION, "shares": SHARES, "integrity": verifier})
    snapshot = applied(a_model(count=8), policy=policy)
    pod = snapshot.children["Deployment", "llama"]["spec"]["template"]["spec"]
    check, engine = pod["initContainers"][0], pod["containers"][0]
    assert [container["name"] for container in pod["initContainers"]][:2] == [CHECKER, "verify-weights"]
    assert check["image"] == engine["image"]
    assert check["securityContext"] == {**engine["securityContext"], "readOnlyRootFilesystem": True}
    for kind in ("requests", "limits"):
        assert check["resources"][kind]["nvidia.com/gpu"] == engine["resources"][kind]["nvidia.com/gpu"] == "8"
    assert {mount["mountPath"] for mount in check["volumeMounts"]} == {"/dev/shm", "/tmp"}
    assert "env" not in check


@pytest.mark.parametrize("requested", [None, *POLICIES])
@pytest.mark.parametrize("minimum", POLICIES)
def test_policy_in_effect_is_the_stricter_of_spec_and_minimum(requested, minimum):
    snapshot = applied(a_model(requested), policy=configured(minimumPolicy=minimum))
    effective = min(requested or "Warn", minimum, key=POLICIES.index)
    arguments = init_containers(snapshot).get(CHECKER, {"args": []})["args"]
    assert ("--policy" in arguments, effective in arguments) == ((False, False) if effective == "Off" else (True, True))


def without_checks(manifest: Manifest) -> ClusterSnapshot:
    """The snapshot that a release without the checks has left."""
    off = {**manifest, "spec": {**manifest["spec"], "accelerator": {"preflight": {"policy": "Off"}}}}
    return applied(off)


def test_upgrade_restarts_no_pod_and_the_next_change_of_the_pods_brings_the_checks():
    manifest = a_model(None)
    snapshot = without_checks(manifest)
    assert plan(spec_of(manifest), snapshot, NOW).apply == ()
    assert healthy(manifest, snapshot)[:2] == ("Unknown", "PreflightNotRun")
    manifest["spec"]["engine"]["vllm"]["extraArgs"] = ["--enable-prefix-caching"]
    assert CHECKER in init_containers(carried_out(snapshot, plan(spec_of(manifest), snapshot, NOW)))


@pytest.mark.parametrize(("requested", "minimum"), [("Warn", "Off"), ("Require", "Off"), (None, "Require")])
def test_checks_that_somebody_asked_for_do_not_wait_for_another_change(requested, minimum):
    manifest, snapshot = a_model(requested), without_checks(a_model(None))
    snapshot = replace(snapshot, policy=configured(minimumPolicy=minimum))
    assert CHECKER in init_containers(carried_out(snapshot, plan(spec_of(manifest), snapshot, NOW)))


def test_container_of_the_checks_that_others_removed_comes_back():
    manifest = a_model(None)
    snapshot = applied(manifest)
    init_containers(snapshot)[CHECKER]["name"] = "another"
    assert CHECKER in init_containers(carried_out(snapshot, plan(spec_of(manifest), snapshot, NOW)))


# ---------------------------------------------------------------------- results


def test_gpus_are_healthy_when_a_pod_says_so(snapshot):
    assert healthy(a_model(), snapshot)[:2] == ("Unknown", "PreflightPending")
    after = checked(snapshot, result(), result())
    assert healthy(a_model(), after)[:2] == ("True", "AcceleratorsChecked")
    assert status_of(a_model(), after)["accelerators"] == [
        {
            "pod": f"llama-{number}",
            "node": NODE,
            "verdict": "Pass",
            "gpus": 1,
            "driver": "580.159.04",
            "seconds": 4,
            "teraflops": 250,
            "memoryGBs": 1700,
            "hostGBs": 24,
        }
        for number in (1, 0)
    ]


LEVELS = [("Fail", "False"), ("Unknown", "Unknown"), ("Warn", "True")]


@pytest.mark.parametrize("policy", ["Require", "Warn"])
@pytest.mark.parametrize(("level", "truth"), LEVELS)
@pytest.mark.parametrize("reason", sorted(ACCELERATOR_FINDINGS))
def test_every_finding_at_every_level_has_its_condition_node_and_gpu(policy, level, truth, reason):
    manifest = a_model(policy)
    after = checked(applied(manifest), result(Finding(level, reason.value, UUID, "telling words")), result())
    status, word, message = healthy(manifest, after)
    warned = AcceleratorReason.ACCELERATORS_CHECKED_WITH_WARNINGS.value
    assert (status, word) == (truth, warned if level == "Warn" else reason.value)
    assert all(part in message for part in (UUID, NODE, "telling words"))
    assert message.endswith(f"kubectl cordon {NODE}") == (level == "Fail")


@pytest.mark.parametrize("reason", sorted(ACCELERATOR_FINDINGS))
def test_engine_that_does_not_start_names_gpu_node_and_way_out(snapshot, reason):
    failed = a_pod(snapshot, backing_off(result(Finding("Fail", reason.value, UUID, "telling words"))))
    ready = conditions(status_of(a_model(), serving(replace(snapshot, pods=(failed,)), 0, replicas=1)))["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", reason.value)
    for part in (UUID, f"kubectl cordon {NODE}", "Resource.Hpc.Unhealthy.", "repeats the checks on this node"):
        assert part in ready["message"]
    assert ready["message"].endswith("kubectl delete pod llama-0 --namespace inference")


def test_fault_under_warn_leaves_the_model_ready():
    manifest = a_model("Warn")
    after = serving(checked(applied(manifest), result(Finding("Fail", "RowRemapPending", UUID, "x"))), 1)
    assert conditions(status_of(manifest, after))["Available"]["status"] == "True"
    assert healthy(manifest, after)[:2] == ("False", "RowRemapPending")


def test_fault_is_an_event_and_has_a_command(snapshot):
    manifest = a_model()
    before = status_of(manifest, snapshot)
    after = status_of(manifest, checked(snapshot, result(Finding("Fail", "NvLinkInactive", UUID, "x"))))
    assert "NvLinkInactive" in {event.reason for event in announcements(before, after)}
    remedy = remedy_for("NvLinkInactive", "inference", "llama", "llama-0", "")
    assert remedy is not None
    assert remedy.commands == ("kubectl logs llama-0 --namespace inference --container check-accelerators",)


def test_status_is_bounded_and_shows_faults_first(snapshot):
    pods = [a_pod(snapshot, terminated(result()), number) for number in range(9)]
    more = [a_pod(snapshot, terminated(result()), number % 9) for number in range(9, 40)]
    for number, pod in enumerate(more):
        pod["metadata"]["name"] = f"llama-more-{number}"
    faulty = a_pod(snapshot, terminated(result(Finding("Fail", "GpuMissing", "", "x"))), 0)
    faulty["metadata"]["name"] = "llama-zz"
    shown = status_of(a_model(), replace(snapshot, pods=(*pods, *more, faulty)))["accelerators"]
    assert (len(shown), shown[0]["pod"]) == (16, "llama-zz")


# ---------------------------------------------------------------------- messages that are no result

VALID = json.loads(result())
FAULT = Finding("Fail", "GpuMissing", "", "x")._asdict()


def without(field: str) -> str:
    return json.dumps({name: value for name, value in VALID.items() if name != field})


HOSTILE = {
    "empty": "",
    "no JSON": "Traceback (most recent call last):",
    "cut": result()[:-7],
    "the end of a longer one": result()[9:],
    "null": "null",
    "a list": json.dumps([VALID]),
    "deep": "[" * 4000,
    "a verdict that is not known": json.dumps({**VALID, "verdict": "Healthy"}),
    "a list as verdict": json.dumps({**VALID, "verdict": ["Pass"]}),
    "Pass beside a fault": json.dumps({**VALID, "findings": [FAULT]}),
    "Pass beside faults that were omitted": json.dumps({**VALID, "omitted": 3}),
    "Warn without a finding": json.dumps({**VALID, "verdict": "Warn"}),
    "a reason of another part": json.dumps({**VALID, "verdict": "Fail", "findings": [{**FAULT, "reason": "Serving"}]}),
    "a reason that nothing has": json.dumps({**VALID, "verdict": "Fail", "findings": [{**FAULT, "reason": "X"}]}),
    "a finding that passes": json.dumps({**VALID, "findings": [{**FAULT, "level": "Pass"}]}),
    "findings as text": json.dumps({**VALID, "findings": "none"}),
    "a number that is none": json.dumps({**VALID, "peerGBs": float("nan")}),
    "an infinite number": json.dumps({**VALID, "seconds": float("inf")}),
    "a negative number": json.dumps({**VALID, "hostToDeviceGBs": -1}),
    "a number as text": json.dumps({**VALID, "gpus": "1"}),
    "true as a number": json.dumps({**VALID, "gpus": True}),
    "a number of a thousand digits": without("gpus")[:-1] + ', "gpus": 1' + "0" * 1000 + "}",
    "more GPUs than a node has": json.dumps({**VALID, "gpus": 4096}),
    **{f"without {field}": without(field) for field in ("verdict", "seconds", "findings", "omitted")},
}


@pytest.mark.parametrize("message", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("policy", ["Require", "Warn"])
def test_message_that_is_no_result_is_unknown(policy, message):
    manifest = a_model(policy)
    status, reason, _ = healthy(manifest, checked(applied(manifest), message, result()))
    assert (status, reason) == ("Unknown", "PreflightUnreadable")


@pytest.mark.parametrize("size", [0, 1, 255, 256, 1000, 1001, 2048, 4095, 4096, 4097, 65536])
def test_message_of_every_size_leaves_a_valid_status(snapshot, size):
    text = "\u202e\x1b[31m" + "g" * size
    message = json.dumps(
        {**VALID, "verdict": "Fail", "driver": text, "findings": [{**FAULT, "gpu": text, "message": text}]}
    )
    written = status_of(a_model(), checked(snapshot, message))
    condition = conditions(written)["AcceleratorsHealthy"]
    assert condition["status"] in ("False", "Unknown")
    assert len(condition["message"]) <= 2048
    assert "\u202e" not in json.dumps(written, ensure_ascii=False)


def test_pass_of_a_container_that_failed_is_no_pass(snapshot):
    pod = a_pod(snapshot, terminated(result(), code=137))
    assert healthy(a_model(), replace(snapshot, pods=(pod,)))[:2] == ("Unknown", "PreflightUnreadable")


def test_pass_of_fewer_gpus_than_the_pod_has_is_no_pass():
    manifest = a_model(count=8)
    assert healthy(manifest, checked(applied(manifest), result(gpus=1)))[:2] == ("Unknown", "PreflightUnreadable")
    assert healthy(manifest, checked(applied(manifest), result(gpus=8)))[:2] == ("True", "AcceleratorsChecked")


def forged(snapshot: ClusterSnapshot) -> dict[str, dict[str, Any]]:
    """Pods of a tenant with ClusterRole edit, whose checks say Pass."""
    template = snapshot.children["Deployment", "llama"]["spec"]["template"]["spec"]
    check = template["initContainers"][0]

    def of(**fields: Any) -> dict[str, Any]:
        return a_pod(snapshot, terminated(result()), initContainers=[{**check, **fields}])

    nobodys = a_pod(snapshot, terminated(result()))
    del nobodys["metadata"]["ownerReferences"]
    another_account = a_pod(snapshot, terminated(result()))
    another_account["metadata"]["ownerReferences"][0]["kind"] = "Job"
    return {
        "another image": of(image=f"contoso.azurecr.io/vllm/vllm-openai@sha256:{'f' * 64}"),
        "another command": of(command=["sh", "-c", "echo pass >/dev/termination-log"]),
        "another argument": of(args=[*check["args"], "--count", "0"]),
        "a variable": of(env=[{"name": "LD_PRELOAD", "value": "/tmp/x.so"}]),
        "another volume": a_pod(snapshot, terminated(result()), volumes=[]),
        "another namespace of processes": a_pod(snapshot, terminated(result()), shareProcessNamespace=True),
        "no controller": nobodys,
        "a controller of another kind": another_account,
    }


@pytest.mark.parametrize("kind", forged(applied(a_model())))
def test_pass_of_a_pod_that_was_not_rendered_is_no_pass(snapshot, kind):
    pod = forged(snapshot)[kind]
    assert healthy(a_model(), replace(snapshot, pods=(pod,)))[:2] == ("Unknown", "NotAsRendered")
    assert "accelerators" not in status_of(a_model(), replace(snapshot, pods=(pod,)))


def test_store_keeps_the_longest_result_whole(snapshot):
    findings = [Finding("Fail", "RowRemapPending", f"{UUID}{number}", "x" * 300) for number in range(64)]
    pod = a_pod(snapshot, terminated(result(*findings)))
    assert len(json.dumps(pod)) < LARGEST_WHOLE
    assert healthy(a_model(), replace(snapshot, pods=(pod,)))[:2] == ("False", "RowRemapPending")


def test_pod_of_an_earlier_template_says_nothing(snapshot):
    pod = a_pod(snapshot, terminated(result(Finding("Fail", "GpuMissing", "", "x"))))
    pod["metadata"]["labels"]["hermetic.dev/pod-template"] = "0" * 16
    assert healthy(a_model(), replace(snapshot, pods=(pod,)))[:2] == ("Unknown", "PreflightPending")


# ---------------------------------------------------------------------- conditions of nodes

CONDITIONS = (
    "GPUMissing",
    "NVLinkStatusInactive",
    "XIDErrors",
    "IBLinkFlapping",
    "GPUClockThrottling",
    "UnhealthyNvidiaDevicePlugin",
)


def a_node(name: str, *statuses: tuple[str, str]) -> Any:
    reported = [{"type": kind, "status": truth} for kind, truth in (("Ready", "True"), *statuses)]
    return node({"metadata": {"name": name}, "status": {"conditions": reported}})


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", CONDITIONS)
def test_fault_that_a_node_reports_makes_its_model_unhealthy(policy, kind):
    manifest = a_model(policy)
    snapshot = checked(applied(manifest), result()) if policy != "Off" else None
    if snapshot is None:
        bare = applied(manifest)
        snapshot = replace(bare, pods=(a_pod(bare, {}),))
    status, reason, message = healthy(manifest, replace(snapshot, nodes=(a_node(NODE, (kind, "True")),)))
    assert (status, reason) == ("False", "NodeReportsFault")
    assert f"'{NODE}' has the condition {kind}" in message
    assert message.endswith(f"kubectl cordon {NODE}")


@pytest.mark.parametrize("truth", ["False", "Unknown"])
@pytest.mark.parametrize("kind", CONDITIONS)
def test_condition_of_a_node_that_is_not_true_is_neither_fault_nor_pass(snapshot, kind, truth):
    nodes = (a_node(NODE, (kind, truth)), a_node("another", ("GPUMissing", "True")))
    assert healthy(a_model(), replace(checked(snapshot, result()), nodes=nodes))[0] == "True"
    assert healthy(a_model(), replace(snapshot, nodes=nodes))[:2] == ("Unknown", "PreflightPending")


# ---------------------------------------------------------------------- floors


@pytest.mark.parametrize(
    ("floor", "expected"),
    [
        ({"hostGBs": 25}, ("False", "BelowFloor")),
        ({"hostGBs": 24}, ("True", "AcceleratorsChecked")),
        ({"teraflops": 251}, ("False", "BelowFloor")),
        ({"memoryGBs": 1701}, ("False", "BelowFloor")),
        ({"peerGBs": 900}, ("True", "AcceleratorsChecked")),
    ],
)
def test_floor_of_the_configuration_decides(floor, expected):
    policy = configured(floors={"Standard_NC24ads_A100_v4": floor})
    after = checked(applied(a_model(), policy=policy), result())
    status, reason, message = healthy(a_model(), after)
    assert (status, reason) == expected
    assert (next(iter(floor)) in message) == (status == "False")


def test_floor_that_is_not_confirmed_warns(snapshot):
    """21 GB/s is published for another program (azurehpc-health-checks)."""
    status, reason, message = healthy(a_model(), checked(snapshot, result(hostToDeviceGBs=12.5)))
    assert (status, reason) == ("True", "AcceleratorsCheckedWithWarnings")
    assert "hostGBs is 12.5, below the floor of 21" in message


def test_floor_of_another_size_says_nothing(snapshot):
    after = replace(snapshot, policy=configured(floors={"Standard_ND96isr_H100_v5": {"hostGBs": 48}}))
    assert healthy(a_model(), checked(after, result()))[:2] == ("True", "AcceleratorsChecked")


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_parts_of_gpus_have_no_floor(resource):
    policy = configured(floors={"Standard_NC24ads_A100_v4": {"hostGBs": 900}})
    manifest = a_model(resource=resource)
    assert healthy(manifest, checked(applied(manifest, policy=policy), result()))[0] == "True"


SHARED = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
PARTS_BY_THE_NAME_OF_WHOLE_GPUS = {
    "shared by time": ("nvidia.com/gpu", "Standard_NC24ads_A100_v4", 4, SHARED),
    "more than the VM has": ("nvidia.com/gpu", "Standard_NC24ads_A100_v4", 4, {}),
    "partitions by their mode": (
        "amd.com/gpu", "Standard_ND96isr_MI300X_v5", 64, {"amd.com/gpu.compute-memory-partition": "cpx_nps4"}
    ),
    "partitions by their memory": ("amd.com/gpu", "Standard_ND96isr_MI300X_v5", 64, {"amd.com/gpu.vram": "24G"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS_BY_THE_NAME_OF_WHOLE_GPUS)
def test_parts_of_gpus_by_the_name_of_whole_ones_have_no_floor(name):
    resource, size, listed, labels = PARTS_BY_THE_NAME_OF_WHOLE_GPUS[name]
    manifest = a_model(resource=resource)
    after = checked(applied(manifest, policy=configured(floors={size: {"hostGBs": 900}})), result())
    whole_node = replace(an_a100_node(NODE, instance_type=size), gpus={resource: 1})
    assert healthy(manifest, replace(after, nodes=(whole_node,)))[:2] == ("False", "BelowFloor")
    cut_node = replace(whole_node, gpus={resource: listed}, labels=labels)
    assert healthy(manifest, replace(after, nodes=(cut_node,)))[:2] == ("True", "AcceleratorsChecked")


def test_all_reduce_over_some_gpus_of_a_machine_has_no_floor():
    floors = {"Standard_NC96ads_A100_v4": {"allReduceGBs": 900}}
    for count, expected in ((2, "True"), (4, "False")):
        manifest = a_model(count=count)
        snapshot = applied(manifest, policy=configured(floors=floors))
        nodes = (an_a100_node(NODE, instance_type="Standard_NC96ads_A100_v4"),)
        after = replace(checked(snapshot, result(gpus=count, allReduceGBs=100)), nodes=nodes)
        assert healthy(manifest, after)[0] == expected


def test_every_reason_of_the_program_is_explained():
    assert all(reason.meaning and reason.remedy for reason in ACCELERATOR_FINDINGS)
