"""What remains of a message that is cut: the words of the server that failed, wherever they stand in the text."""

from __future__ import annotations

import pytest

from hermetic.api import conditions
from hermetic.api.condition_updates import ConditionUpdate, dated
from hermetic.api.conditions import Condition, ConditionType
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.reasons import Reason
from hermetic.api.text import cut_middle
from hermetic.engines.failure_signatures import LONGEST_LINE, diagnose, telling_line
from hermetic.errors import Forbidden, Rejected
from hermetic.kube.pod_bounds import SHORT_MESSAGE
from hermetic.kube.projections import LONGEST_WARNING, lean_pod, warned
from hermetic.plan.api_rejections import LONGEST_MESSAGE, refusal
from hermetic.plan.scheduling import unschedulable
from tests.scenarios import DIGEST, a_share_model
from tests.snapshots import NOW, a_snapshot, spec_of
from tests.unit.test_pod_diagnosis import a_container, of_container, waiting

IMAGE = f"contoso.azurecr.io/team/of/many/folders/vllm/vllm-openai@sha256:{DIGEST}"
PATH = "/var/lib/kubelet/plugins/kubernetes.io/csi/file.csi.azure.com/" + "0123456789abcdef" * 30


@pytest.mark.parametrize("length", [3, 10, 300, 4096])
@pytest.mark.parametrize("longest", [10, 299, 300, 4096])
def test_cut_text_has_its_length_and_keeps_both_ends(length: int, longest: int) -> None:
    text = "a" + "-" * (length - 2) + "z"
    result = cut_middle(text, longest)
    assert len(result) == min(length, longest)
    assert (result[0], result[-1]) == ("a", "z")


@pytest.mark.parametrize("excess", [-1, 0, 1, 100_000])
@pytest.mark.parametrize("character", ["a", "\u0000", "\U0001f600"], ids=["letter", "control", "beyond 16 bits"])
def test_written_condition_is_never_longer_than_the_crd_allows(excess: int, character: str) -> None:
    message = character * (conditions.LONGEST_MESSAGE + excess)
    written = dated(ConditionUpdate(ConditionType.READY, "False", Reason.SPEC_INVALID, message), 1, {}, NOW)

    assert Condition.model_validate(written).message == written["message"]
    assert len(written["message"]) == min(len(message), conditions.LONGEST_MESSAGE)
    assert written["message"].endswith("…") == (excess > 0)


# Shapes of containerd (errors of `resolve` and `fetch`), of runc and of the kubelet; each ends with the cause.
@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        (
            "ErrImagePull",
            f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": failed to authorize: '
            f"failed to fetch anonymous token: unexpected status from GET request to https://contoso.azurecr.io/oauth2/"
            f"token?scope=repository%3A{'x' * 200}: 401 Unauthorized",
            "401 Unauthorized",
        ),
        (
            "ErrImagePull",
            f'failed to pull and unpack image "{IMAGE}": failed to copy: httpReadSeeker: failed open: failed to do '
            f'request: Get "https://contoso.blob.core.windows.net/{"y" * 300}": dial tcp 10.0.0.9:443: i/o timeout',
            "i/o timeout",
        ),
        (
            "RunContainerError",
            f"failed to create containerd task: failed to create shim task: OCI runtime create failed: {PATH}: "
            "nvidia-container-cli: initialization error: driver not loaded",
            "driver not loaded",
        ),
        (
            "CreateContainerConfigError",
            f"failed to prepare subPath for volumeMount {PATH}: no such file or directory",
            "no such file or directory",
        ),
    ],
)
def test_the_end_of_what_a_kubelet_reports_is_shown(reason: str, message: str, cause: str) -> None:
    diagnosis = of_container(a_container(waiting(reason, message), image=IMAGE))
    assert diagnosis is not None
    assert cause in diagnosis.message
    assert len(diagnosis.message) < 700


def test_the_end_of_a_long_event_is_kept() -> None:
    event = {
        "reason": "FailedMount",
        "message": f"MountVolume failed: {PATH * 4}: reason given by server: no such file",
    }
    assert warned(event).message.endswith("no such file")
    assert len(warned(event).message) <= LONGEST_WARNING


@pytest.mark.parametrize("error", [Forbidden, Rejected])
def test_the_end_of_a_long_refusal_is_kept(error: type[Rejected]) -> None:
    text = f'admission webhook "x" denied the request: {"a field, " * 300}: spec.priority is set by nobody'
    rejection = refusal("Deployment 'llama'", error(text, status=403))
    assert rejection.message.startswith("Deployment 'llama': ")
    assert rejection.message.endswith("spec.priority is set by nobody")
    assert len(rejection.message) <= LONGEST_MESSAGE


def test_what_the_scheduler_adds_about_preemption_is_left_out() -> None:
    quoted = (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/1 nodes "
        "are available: 1 No preemption victims found for incoming pod."
    )
    text = unschedulable(spec_of(a_share_model()), a_snapshot(), quoted)
    assert text.endswith("the scheduler reports: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")


@pytest.mark.parametrize("before", [0, 20, 299, 2000])
@pytest.mark.parametrize("after", [0, 20, 2000])
def test_the_words_that_a_reason_is_read_from_are_shown(before: int, after: int) -> None:
    phrase = "CUDA out of memory"
    line = telling_line(f"E {'x' * before} {phrase} {'y' * after}")
    assert phrase in line
    assert len(line) <= LONGEST_LINE


def test_an_exception_without_a_known_cause_keeps_its_end() -> None:
    line = telling_line(f"RuntimeError: {PATH}: the answer of the driver is 42")
    assert line.startswith("RuntimeError")
    assert line.endswith("the answer of the driver is 42")


def test_a_pod_of_many_keeps_the_first_errors_that_its_container_left():
    """They are written at its end: the root cause first, then the end of the log."""
    cause = "ValueError: Free memory on device cuda:0 on startup is less than desired GPU memory utilization"
    ended = {"exitCode": 1, "message": f"{cause}\n--- end of the log:\n{'x' * 2000}"}
    status = {"containerStatuses": [{"name": "engine", "lastState": {"terminated": ended}}]}
    pod = {"metadata": {"name": "llama", "namespace": "inference"}, "status": status}

    lean_state = lean_pod(pod, longest=SHORT_MESSAGE)["status"]["containerStatuses"][0]["lastState"]["terminated"]

    assert diagnose(lean_state["message"]) is EngineReason.GPU_BUSY
    assert len(lean_state["message"]) == SHORT_MESSAGE
