"""`status.adapters`: which of the pods that serve have loaded each adapter, and with which digest it was verified.

No engine is asked: vLLM ends when it cannot load an adapter of its command line (`init_static_loras` in
vllm/entrypoints/openai/models/serving.py raises), and SGLang loads those of `--lora-paths` before it serves. So a pod
of a template with the adapter that is ready has loaded it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hermetic.api.condition_updates import is_true
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.adapters import adapter_argument
from hermetic.objects.pod import ENGINE, verbatim
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.weights_verification import verifications

State = Literal["Pending", "RollingOut", "Serving"]


def adapter_states(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> list[dict[str, str]]:
    """The list `status.adapters`, in the order of the spec."""
    arguments = _engine_arguments(snapshot.workload.template)
    ready = [pod for pod in snapshot.pods if is_true(pod, "Ready") and not pod["metadata"].get("deletionTimestamp")]
    present = sum(snapshot.workload.is_present(pod) for pod in ready)
    results = {name: result for _, verified in verifications(snapshot) for name, result in verified.adapters.items()}
    states = []
    for adapter in spec.adapters:
        loaded = present if verbatim(adapter_argument(spec, adapter)) in arguments else 0
        verification = {"verification": results[adapter.name]} if adapter.name in results else {}
        states.append({"name": adapter.name, "state": _state(loaded, len(ready)), **verification})
    return states


def _state(loaded: int, ready: int) -> State:
    if not loaded:
        return "Pending"
    return "Serving" if loaded == ready else "RollingOut"


def _engine_arguments(template: Mapping[str, Any]) -> frozenset[str]:
    containers = (template.get("spec") or {}).get("containers") or ()
    return frozenset(
        argument
        for container in containers
        if container.get("name") == ENGINE
        for argument in container.get("args", ())
    )
