"""Failure modes of pods and nodes that kwok simulates: without one they become Ready at once.

A pod's failure mode is the first of
    its annotation   hermetic.test/failure-mode: crash-loop
    its image        registry.test/vllm/failure-crash-loop@sha256:...       (last part of the repository)
    its namespace    team-a-failure-crash-loop
so that an image or a namespace that a user chose is enough, and the product needs no test switch.

Modes of pods: image-pull-back-off, mount-failed, never-ready, slow-start (Ready after three seconds), slow-pull and
slow-verify (started and Ready after twelve seconds of a pull, or of an init container), and every key of CRASHES. A
crashing container is restarted five times, one second apart, and then rests in CrashLoopBackOff. Its termination
message is that of the mode, or the pod's annotation `hermetic.test/termination-message`.

The kubelet of a node with the annotation `hermetic.test/failure-mode: lost` no longer answers; without it, it is back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

STAGES = Path(__file__).resolve().parent / "stages"
ANNOTATION = "hermetic.test/failure-mode"

NODE_MODE = f'.metadata.annotations["{ANNOTATION}"]'
POD_MODE = (
    f'[.metadata.annotations["{ANNOTATION}"],'
    ' (.spec.containers[].image | capture("(^|/)failure-(?<mode>[a-z0-9-]+)([:@]|$)") | .mode),'
    ' (.metadata.namespace | capture("-failure-(?<mode>[a-z0-9-]+)$") | .mode)]'
    " | map(values) | first"
)
MODE_OF = {"Pod": POD_MODE, "Node": NODE_MODE}
# `probe_simulator` or a test ends these pods with a termination message: without one they wait for ever.
ANSWERING = '.metadata.labels["app.kubernetes.io/component"] | select(. == "egress-probe" or . == "benchmark")'

WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"


@dataclass(frozen=True)
class Crash:
    """How a container ended: the kubelet's reason, the exit code, and the end of its log."""

    reason: str
    exit_code: int
    message: str


def _engine_error(cause: str) -> Crash:
    """vLLM prints the cause in a worker first and a wrapper that says nothing last."""
    return Crash("Error", 1, f"(EngineCore) {cause}\n{WRAPPER}\n")


CRASHES = {
    "crash-loop": _engine_error("AssertionError: something that no catalogue of failures lists"),
    "crash-loop-model-missing": Crash(
        "Error",
        1,
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name':"
        " '/models/weights'. Use `repo_type` argument if needed.\n",
    ),
    "crash-loop-no-weights": _engine_error("RuntimeError: Cannot find any model weights with `/models/weights`"),
    "crash-loop-truncated-weights": _engine_error(
        "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully"
        " covered"
    ),
    "crash-loop-kv-cache": _engine_error(
        "ValueError: To serve at least one request with the model's max seq len (131072), 16.0 GiB KV cache is needed,"
        " which is larger than the available KV cache memory (9.31 GiB). Based on the available memory, the estimated"
        " maximum model length is 76272."
    ),
    "crash-loop-bad-flag": Crash("Error", 2, "vllm: error: unrecognized arguments: --no-such-flag\n"),
    "oom-killed": Crash("OOMKilled", 137, ""),
}


def failure_stages() -> Iterator[dict[str, Any]]:
    """The stages of the files in `stages/`, their @marks@ filled in; the crash file once per crash."""
    for file in sorted(STAGES.glob("*.yaml")):
        text = file.read_text()
        for marks in _crash_marks() if "@mode@" in text else ({},):
            yield from yaml.safe_load_all(_filled(text, {"pod-mode": POD_MODE, "node-mode": NODE_MODE, **marks}))


def unless_a_failure_mode(stage: dict[str, Any]) -> dict[str, Any]:
    """A stock stage that excludes the pods and nodes with a failure mode, and the egress probe; deletion is for all."""
    spec = stage["spec"]
    if spec["next"].get("delete"):
        return stage
    kind = spec["resourceRef"]["kind"]
    foreign = [MODE_OF[kind], *([ANSWERING] if kind == "Pod" else [])]
    others = [{"key": key, "operator": "DoesNotExist"} for key in foreign]
    expressions = [*spec["selector"]["matchExpressions"], *others]
    return stage | {"spec": spec | {"selector": spec["selector"] | {"matchExpressions": expressions}}}


def _crash_marks() -> Iterator[dict[str, str]]:
    for mode, crash in CRASHES.items():
        # JSON of plain ASCII text is also a literal of Go's templates
        message = json.dumps(crash.message)
        yield {"mode": mode, "reason": crash.reason, "exit-code": str(crash.exit_code), "message": message}


def _filled(text: str, marks: dict[str, str]) -> str:
    return re.sub(r"@([a-z-]+)@", lambda mark: marks[mark[1]], text)
