"""Why pods do not serve: words of kubelet, scheduler and engine become one reason, the same while nothing changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermetic.api.condition_updates import ConditionReason
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.pod_reasons import PodReason
from hermetic.api.reasons import Reason
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.plan.pod_diagnosis import PodDiagnosis, diagnose_pods
from hermetic.plan.snapshot import Warned
from testbed.failure_modes import CRASHES
from tests.scenarios import VLLM_IMAGE, a_baked_model
from tests.snapshots import NOW, OWNER, a_snapshot, an_a100_node, children_of, reporting_of, spec_of


def a_pod(name: str = "llama-7d9-x", *, created: int = 0, **status: Any) -> dict[str, Any]:
    stamp = (NOW + timedelta(seconds=created)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "creationTimestamp": stamp},
        "status": {"phase": "Pending", **status},
    }


def a_container(state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {"name": "engine", "image": VLLM_IMAGE, "ready": False, "state": state or {}, "restartCount": 0, **status}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def ended(code: int = 1, message: str = "", *, lasted: float = 20, reason: str = "Error") -> dict[str, Any]:
    began = NOW - timedelta(days=2)
    over = began + timedelta(seconds=lasted)
    stamps = {"startedAt": f"{began:%Y-%m-%dT%H:%M:%SZ}", "finishedAt": f"{over:%Y-%m-%dT%H:%M:%SZ}"}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **stamps}}


def found(*pods: dict[str, Any], spec: dict[str, Any] | None = None, **facts: Any) -> PodDiagnosis | None:
    manifest = a_baked_model("llama", **(spec or {}))
    children = children_of(manifest)
    mark = children["Deployment", "llama"]["spec"]["template"]["metadata"]["labels"][TEMPLATE_LABEL]
    present = tuple(_of_template(pod, mark) for pod in pods)
    return diagnose_pods(spec_of(manifest), a_snapshot(**{"pods": present, "children": children, **facts}), NOW)


def _of_template(pod: dict[str, Any], mark: str) -> dict[str, Any]:
    labels = {TEMPLATE_LABEL: mark, **pod["metadata"].get("labels", {})}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}


def of_container(*statuses: dict[str, Any], **facts: Any) -> PodDiagnosis | None:
    return found(a_pod(containerStatuses=list(statuses)), **facts)


def reason_of(diagnosis: PodDiagnosis | None) -> ConditionReason | None:
    return None if diagnosis is None else diagnosis.reason


# ---------------------------------------------------------------------- images and configuration

PULL_ERROR = 'failed to resolve image: failed to do request: Head "https://contoso.azurecr.io/v2/": no such host'


@pytest.mark.parametrize(
    "reason",
    ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"],
)
def test_image_that_cannot_be_pulled_is_told_with_its_cause(reason):
    diagnosis = of_container(a_container(waiting(reason, PULL_ERROR)))
    assert diagnosis == PodDiagnosis(
        PodReason.IMAGE_PULL_FAILED, f"image '{VLLM_IMAGE}' cannot be pulled: {PULL_ERROR}"
    )
    assert not PodReason.IMAGE_PULL_FAILED.needs_human, "the registry may come back"


# Printed by a kubelet with containerd: https://github.com/FoundationDB/fdb-kubernetes-operator/issues/2294
NO_PLATFORM = f'failed to pull and unpack image "{VLLM_IMAGE}": no match for platform in manifest: not found'


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_image_without_the_platform_of_the_node_is_told_with_what_to_import(reason):
    diagnosis = of_container(a_container(waiting(reason, NO_PLATFORM)))
    assert diagnosis is not None
    assert diagnosis.reason is PodReason.IMAGE_PULL_FAILED
    assert diagnosis.message.endswith("import the image that is for linux/arm64 and linux/amd64")
    assert "processor" not in of_container(a_container(waiting(reason, PULL_ERROR))).message


def test_back_off_and_error_of_one_pull_read_the_same_so_that_the_status_does_not_flap():
    error = of_container(a_container(waiting("ErrImagePull", PULL_ERROR)))
    back_off = f'Back-off pulling image "{VLLM_IMAGE}": ErrImagePull: {PULL_ERROR}'
    assert of_container(a_container(waiting("ImagePullBackOff", back_off))) == error


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('secret "llama-key" not found', PodReason.REFERENCE_NOT_FOUND),
        ("couldn't find key token in Secret inference/llama-key", PodReason.CONTAINER_CONFIG_INVALID),
        ("container has runAsNonRoot and image will run as root", PodReason.CONTAINER_CONFIG_INVALID),
    ],
)
def test_configuration_that_the_kubelet_refuses_is_told_apart_from_a_missing_secret(message, reason):
    diagnosis = of_container(a_container(waiting("CreateContainerConfigError", message)))
    assert diagnosis == PodDiagnosis(reason, message)


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_waiting_alone_is_no_trouble(reason):
    assert of_container(a_container(waiting(reason))) is None


# ---------------------------------------------------------------------- engines that end


@pytest.mark.parametrize("mode", sorted(set(CRASHES) - {"crash-loop", "oom-killed"}))
@pytest.mark.parametrize("state", [waiting("CrashLoopBackOff"), {"running": {}}], ids=["backing off", "running again"])
def test_cause_that_the_engine_named_is_told_from_the_first_end_on(mode, state):
    crash = CRASHES[mode]
    diagnosis = of_container(a_container(state, lastState=ended(crash.exit_code, crash.message), restartCount=1))
    assert diagnosis is not None
    assert diagnosis.reason not in {PodReason.CRASH_LOOP, Reason.STARTING}
    assert diagnosis.reason.needs_human
    assert f"exit code {crash.exit_code}" in diagnosis.message


def test_same_crash_reads_the_same_at_every_restart():
    crash = CRASHES["crash-loop-kv-cache"]
    diagnoses = {
        of_container(a_container(state, lastState=ended(1, crash.message), restartCount=count))
        for state_name, state in {"off": waiting("CrashLoopBackOff", "back-off 5m0s"), "on": {"running": {}}}.items()
        for count in range(1, 50)
    }
    assert len(diagnoses) == 1


def test_unexplained_end_is_forgiven_once_and_then_told_with_its_last_words():
    crash_message = "AssertionError: something new"
    for count, reason in ((1, None), (2, PodReason.CRASH_LOOP), (9, PodReason.CRASH_LOOP)):
        state = waiting("CrashLoopBackOff")
        diagnosis = of_container(a_container(state, lastState=ended(139, crash_message), restartCount=count))
        assert reason_of(diagnosis) is reason
    assert diagnosis is not None
    assert diagnosis.message.startswith(f"container 'engine' ends again and again, exit code 139: {crash_message}")
    assert "kubectl logs --previous" in diagnosis.message


def test_engine_that_ends_without_a_word_and_with_success_is_a_crash_loop_all_the_same():
    diagnosis = of_container(a_container(waiting("CrashLoopBackOff"), lastState=ended(0), restartCount=3))
    assert diagnosis is not None
    assert diagnosis.reason is PodReason.CRASH_LOOP
    assert diagnosis.message.startswith("container 'engine' ends again and again, exit code 0; ")


def test_memory_is_blamed_before_anything_else():
    state, last = waiting("CrashLoopBackOff"), ended(137, "CUDA out of memory", reason="OOMKilled")
    diagnosis = found(
        a_pod(containerStatuses=[a_container(state, lastState=last, restartCount=1)]),
        spec={"resources": {"memory": "96Gi"}},
    )
    assert diagnosis == PodDiagnosis(PodReason.OUT_OF_MEMORY, "container 'engine' used more memory than 96Gi")


@pytest.mark.parametrize(
    ("lasted", "reason"),
    [
        (20, None),
        (1199, None),
        (1200, PodReason.STARTUP_BUDGET_EXCEEDED),
        (1225, PodReason.STARTUP_BUDGET_EXCEEDED),
        (1400, PodReason.STARTUP_BUDGET_EXCEEDED),
        (86400, None),
    ],
    ids=["at once", "just before", "at the budget", "after the sleep before its end", "after its grace", "after a day"],
)
def test_end_for_slowness_is_told_apart_from_a_crash_and_from_an_engine_that_served(lasted, reason):
    last = ended(137, lasted=lasted)
    diagnosis = of_container(a_container({"running": {}}, lastState=last, restartCount=1, started=False))
    assert reason_of(diagnosis) is reason
    if diagnosis is not None:
        assert "`startupBudgetSeconds` 1200" in diagnosis.message


def test_init_container_that_fails_is_told_by_its_name():
    link = a_container({"terminated": {"exitCode": 1, "message": "cp: cannot access '/weights/.'"}}, name="link-cache")
    diagnosis = found(a_pod(initContainerStatuses=[{**link, "restartCount": 4}]))
    assert diagnosis is not None
    assert diagnosis.reason is PodReason.CRASH_LOOP
    assert "'link-cache'" in diagnosis.message


def test_init_container_that_did_its_work_is_no_trouble():
    done = a_container({"terminated": {"exitCode": 0, "reason": "Completed"}}, name="link-cache")
    assert found(a_pod(initContainerStatuses=[done], containerStatuses=[a_container({"running": {}})])) is None


def test_init_container_that_succeeded_after_failures_is_no_trouble_while_the_engine_starts():
    done = {
        **a_container({"terminated": {"exitCode": 0, "reason": "Completed"}}, name="verify-weights"),
        "restartCount": 4,
    }
    after = {**done, "lastState": ended(1, "DigestMismatch")}
    assert found(a_pod(initContainerStatuses=[after], containerStatuses=[a_container({"running": {}})])) is None


# ---------------------------------------------------------------------- scheduling and volumes


def unschedulable_pod(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return a_pod(conditions=[condition])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('persistentvolumeclaim "staged-weights" not found', PodReason.REFERENCE_NOT_FOUND),
        ("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.", PodReason.VOLUME_NOT_BOUND),
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", PodReason.UNSCHEDULABLE),
        ("0/1 nodes are available: 1 node(s) had untolerated taint {sku: gpu}.", PodReason.UNSCHEDULABLE),
        ("", PodReason.UNSCHEDULABLE),
    ],
)
def test_scheduler_s_words_become_a_reason_that_passes_by_itself(message, reason):
    diagnosis = found(unschedulable_pod(message), nodes=(an_a100_node(),))
    assert diagnosis is not None
    assert diagnosis.reason is reason
    assert message in diagnosis.message
    assert not reason.needs_human


MOUNT_ERROR = 'MountVolume.MountDevice failed for volume "weights" : mount.nfs: access denied by server'


def a_warned_pod(reason: str, message: str, **status: Any) -> PodDiagnosis | None:
    pod = a_pod(**status)
    return found(pod, warnings={pod["metadata"]["uid"]: Warned(reason, message)})


def test_mount_that_fails_is_told_from_the_event():
    diagnosis = a_warned_pod("FailedMount", MOUNT_ERROR, containerStatuses=[a_container(waiting("ContainerCreating"))])
    assert diagnosis == PodDiagnosis(PodReason.MOUNT_FAILED, MOUNT_ERROR)


GLOBAL_MOUNT = "/var/lib/kubelet/plugins/kubernetes.io/csi/file.csi.azure.com/" + "0" * 64 + "/globalmount"
LONG_MOUNT_ERROR = (
    f'MountVolume.MountDevice failed for volume "hermetic-inference-llama" : rpc error: code = Internal desc = volume('
    f"contosomodels#models#) mount contosomodels.file.core.windows.net:/contosomodels/models/llama on {GLOBAL_MOUNT} "
    f"failed with mount failed: exit status 32 Mounting command: mount Mounting arguments: -t nfs4 -o ro,vers=4.1 "
    f"contosomodels.file.core.windows.net:/contosomodels/models/llama {GLOBAL_MOUNT} Output: "
)


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (
            "mount.nfs4: mounting x failed, reason given by server: No such file or directory",
            "No such file or directory",
        ),
        ("mount.nfs4: access denied by server while mounting x", "access denied by server while mounting x"),
        ("mount.nfs4: Connection timed out", "Connection timed out"),
        ("mount.nfs: Failed to resolve server x: Name or service not known", "Failed to resolve server x"),
        ("mount error(13): Permission denied", "mount error(13): Permission denied"),
    ],
)
def test_long_mount_error_begins_with_the_words_of_the_server(output, cause):
    diagnosis = a_warned_pod("FailedMount", LONG_MOUNT_ERROR + output)
    assert diagnosis is not None
    assert diagnosis.reason is PodReason.MOUNT_FAILED
    assert diagnosis.message.startswith(cause)
    assert "hermetic-inference-llama" in diagnosis.message
    assert "contosomodels.file.core.windows.net:/contosomodels/models/llama" in diagnosis.message
    assert len(diagnosis.message) < 600


def test_mount_error_that_the_kubelet_cut_still_names_the_folder():
    cut = LONG_MOUNT_ERROR + "mount.nfs: mounting contosomodels.file.core.windows.net:/contosomodels/mod"
    diagnosis = a_warned_pod("FailedMount", cut)
    assert diagnosis is not None
    assert "contosomodels.file.core.windows.net:/contosomodels/models/llama" in diagnosis.message


def test_long_mount_error_without_such_words_keeps_its_end():
    diagnosis = a_warned_pod("FailedMount", f"MountVolume.SetUp failed {'x' * 900} the disk is not attached")
    assert diagnosis is not None
    assert diagnosis.message.endswith("the disk is not attached")


@pytest.mark.parametrize("kind", ["secret", "configmap"])
def test_missing_secret_of_a_volume_is_told_as_what_it_is(kind):
    diagnosis = a_warned_pod("FailedMount", f'MountVolume.SetUp failed for volume "tls" : {kind} "llama-tls" not found')
    assert diagnosis == PodDiagnosis(
        PodReason.REFERENCE_NOT_FOUND, f"{kind} 'llama-tls' does not exist in the namespace"
    )


@pytest.mark.parametrize(
    "status",
    [a_container({"running": {}}), a_container(waiting("CrashLoopBackOff"), lastState=ended(1), restartCount=1)],
    ids=["running", "has run"],
)
def test_mount_that_failed_before_the_container_ran_is_over(status):
    assert a_warned_pod("FailedMount", MOUNT_ERROR, containerStatuses=[status]) is None


@pytest.mark.parametrize("reason", ["BackOff", "Unhealthy", "FailedScheduling", "Failed"])
def test_other_warnings_are_told_by_the_state_itself(reason):
    assert a_warned_pod(reason, "whatever", containerStatuses=[a_container({"running": {}})]) is None


# ---------------------------------------------------------------------- what the Deployment says


def of_deployment(*conditions: dict[str, Any], generation: int = 1) -> PodDiagnosis | None:
    manifest = a_baked_model("llama")
    fields = {"observedGeneration": generation, "conditions": list(conditions)}
    snapshot = reporting_of(a_snapshot(OWNER, children=children_of(manifest)), "Deployment", fields)
    return diagnose_pods(spec_of(manifest), snapshot, NOW)


def replica_failure(message: str) -> dict[str, Any]:
    return {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('pods "llama-7d9-x" is forbidden: exceeded quota: gpus, requested: 1, limited: 0', Reason.QUOTA_EXCEEDED),
        (
            'pods "llama-7d9-x" is forbidden: violates PodSecurity "restricted:latest": privileged',
            Reason.POD_SECURITY_VIOLATION,
        ),
        ('pods "llama-7d9-x" is forbidden: ValidatingAdmissionPolicy denied', Reason.ADMISSION_DENIED),
        ("unable to create: because it is being terminated", Reason.NAMESPACE_TERMINATING),
    ],
)
def test_pods_that_are_refused_are_told_by_the_deployment(message, reason):
    assert reason_of(of_deployment(replica_failure(message))) is reason


def test_refusal_does_not_name_a_pod_that_will_have_another_name_at_the_next_attempt():
    why = "is forbidden: exceeded quota: gpus"
    diagnoses = {of_deployment(replica_failure(f'pods "llama-7d9-{chance}" {why}')) for chance in ("abcde", "fghij")}
    assert diagnoses == {PodDiagnosis(Reason.QUOTA_EXCEEDED, "pods are refused: exceeded quota: gpus")}


def test_deadline_of_the_deployment_is_the_last_resort():
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    assert reason_of(of_deployment(stuck)) is PodReason.STARTUP_BUDGET_EXCEEDED
    assert reason_of(of_deployment(stuck, replica_failure("exceeded quota"))) is Reason.QUOTA_EXCEEDED


def test_what_the_deployment_said_of_an_earlier_generation_is_over():
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    assert of_deployment(stuck, generation=0) is None


def test_deployment_that_progresses_is_no_trouble():
    assert of_deployment({"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}) is None


# ---------------------------------------------------------------------- which pod is reported

PULLING = a_container(waiting("ErrImagePull", "x"))
LOOPING = a_container(waiting("CrashLoopBackOff"), lastState=ended(1, "unrecognized arguments"), restartCount=3)


def test_newest_pod_speaks_first_whatever_the_order_in_which_they_were_seen():
    older = a_pod("llama-old", created=0, containerStatuses=[PULLING])
    newer = a_pod("llama-new", created=60, containerStatuses=[LOOPING])
    assert found(older, newer) == found(newer, older)
    assert reason_of(found(older, newer)) is EngineReason.ENGINE_ARGUMENTS_REFUSED


def test_pod_that_serves_or_goes_away_is_not_asked():
    serving = a_pod("a", containerStatuses=[LOOPING], conditions=[{"type": "Ready", "status": "True"}])
    leaving = a_pod("b", containerStatuses=[PULLING])
    leaving["metadata"]["deletionTimestamp"] = "2026-11-24T12:00:00Z"
    assert found(serving, leaving) is None


def test_pod_without_trouble_lets_the_next_speak():
    loading = a_pod("a", created=60, containerStatuses=[a_container({"running": {}})])
    assert reason_of(found(loading, a_pod("b", containerStatuses=[PULLING]))) is PodReason.IMAGE_PULL_FAILED


def test_pod_of_an_earlier_template_is_leaving_whatever_ails_it():
    """The change that fixes a crash must not be called stuck for the crash that it fixes."""
    earlier = a_pod("a", containerStatuses=[LOOPING])
    earlier["metadata"]["labels"] = {TEMPLATE_LABEL: "another"}
    assert found(earlier) is None
    assert reason_of(found(earlier, a_pod("b", containerStatuses=[PULLING]))) is PodReason.IMAGE_PULL_FAILED


def test_no_pod_no_deployment_no_trouble():
    assert found() is None
    assert found(a_pod(containerStatuses=[PULLING]), children={}) is None


@pytest.mark.parametrize(
    "status",
    [{}, {"containerStatuses": None}, {"conditions": None}, {"containerStatuses": [{"name": "engine"}]}],
    ids=str,
)
def test_bare_status_of_a_young_pod_is_read_without_complaint(status):
    assert found(a_pod(**status)) is None


@pytest.mark.parametrize(
    ("seconds_ago", "is_reported"), [(0, False), (2, False), (3, True), (3600, True), (-3600, True)],
    ids=["now", "just now", "long enough", "long ago", "by a clock that is ahead"],
)  # fmt: skip
def test_a_pod_that_the_scheduler_has_only_just_refused_is_no_news(seconds_ago: int, is_reported: bool) -> None:
    pod = unschedulable_pod("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    moment = (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    pod["status"]["conditions"][0]["lastTransitionTime"] = moment
    pod_diagnosis = found(pod)
    assert (pod_diagnosis is not None) is is_reported
