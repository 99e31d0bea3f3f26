"""What happens to pods and nodes that kwok plays: by default they get Ready at once; a fate makes them fail.

A pod's fate is the first of
    its annotation   hermetic.test/fate: crash-loop
    its image        registry.test/vllm/fate-crash-loop@sha256:...       (last part of the repository)
    its namespace    team-a-fate-crash-loop
so a product that knows nothing of tests meets a fate through an image or a namespace that its user chose.

Pod fates: image-pull-back-off, mount-failed, never-ready, slow-start (Ready after three seconds), and every key of
CRASHES. A crashing container is restarted five times, one second apart, and then rests in CrashLoopBackOff. Its
termination message is that of the fate, or the pod's annotation `hermetic.test/termination-message`.

A node with the annotation `hermetic.test/fate: lost` is one whose kubelet fell silent; without it, it comes back.
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
ANNOTATION = "hermetic.test/fate"

NODE_FATE = f'.metadata.annotations["{ANNOTATION}"]'
POD_FATE = (
    f'[.metadata.annotations["{ANNOTATION}"],'
    ' (.spec.containers[].image | capture("(^|/)fate-(?<fate>[a-z0-9-]+)([:@]|$)") | .fate),'
    ' (.metadata.namespace | capture("-fate-(?<fate>[a-z0-9-]+)$") | .fate)]'
    " | map(values) | first"
)
FATE_OF = {"Pod": POD_FATE, "Node": NODE_FATE}
# What its pods say is for somebody else to play (`probe_player`): where nobody does, they wait for ever.
PROBES = '.metadata.labels["app.kubernetes.io/component"] | select(. == "egress-probe")'

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


def own_stages() -> Iterator[dict[str, Any]]:
    """The stages of the files in `stages/`, their @marks@ filled in; the crash file once per crash."""
    for file in sorted(STAGES.glob("*.yaml")):
        text = file.read_text()
        for marks in _crash_marks() if "@fate@" in text else ({},):
            yield from yaml.safe_load_all(_filled(text, {"pod-fate": POD_FATE, "node-fate": NODE_FATE, **marks}))


def unless_fated(stage: dict[str, Any]) -> dict[str, Any]:
    """A stock stage that leaves alone what we play ourselves: fates and the egress probe. Deletion comes to all."""
    spec = stage["spec"]
    if spec["next"].get("delete"):
        return stage
    kind = spec["resourceRef"]["kind"]
    foreign = [FATE_OF[kind], *([PROBES] if kind == "Pod" else [])]
    unfated = [{"key": key, "operator": "DoesNotExist"} for key in foreign]
    expressions = [*spec["selector"]["matchExpressions"], *unfated]
    return stage | {"spec": spec | {"selector": spec["selector"] | {"matchExpressions": expressions}}}


def _crash_marks() -> Iterator[dict[str, str]]:
    for fate, crash in CRASHES.items():
        # JSON of plain ASCII text is also a literal of Go's templates
        message = json.dumps(crash.message)
        yield {"fate": fate, "reason": crash.reason, "exit-code": str(crash.exit_code), "message": message}


def _filled(text: str, marks: dict[str, str]) -> str:
    return re.sub(r"@([a-z-]+)@", lambda mark: marks[mark[1]], text)
