"""Run the operator with the times of its autoscalers divided: `python -m bench.faster_autoscaler N KIND run ...`.

An hour of scaling takes minutes then. KIND `ours` divides what Hermetic renders; `default` renders the behaviour that
Kubernetes gives to an autoscaler without one (pkg/apis/autoscaling/v2/defaults.go), divided too.
"""

from __future__ import annotations

import copy
import sys
from typing import Any
from unittest.mock import patch

from hermetic.cli import main
from hermetic.objects import horizontal_pod_autoscaler as rendered

DEFAULT_DOWN = {
    "stabilizationWindowSeconds": 300,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_TIMES = ("stabilizationWindowSeconds", "periodSeconds")


def divided(value: Any, by: int) -> Any:
    """A copy in which every time is divided, and at least a second unless it is 0."""
    if isinstance(value, list):
        return [divided(item, by) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _seconds(item, by) if key in _TIMES else divided(item, by) for key, item in value.items()}


def _seconds(seconds: int, by: int) -> int:
    return max(1, seconds // by) if seconds else 0


def _renderer(by: int, kind: str) -> Any:
    original = rendered.horizontal_pod_autoscaler

    def render(*arguments: Any) -> dict[str, Any]:
        manifest = copy.deepcopy(original(*arguments))
        if kind == "default":
            manifest["spec"]["behavior"]["scaleDown"] = DEFAULT_DOWN
        manifest["spec"]["behavior"] = divided(manifest["spec"]["behavior"], by)
        return manifest

    return render


if __name__ == "__main__":
    factor, chosen = int(sys.argv.pop(1)), sys.argv.pop(1)
    with patch("hermetic.objects.children.horizontal_pod_autoscaler", _renderer(factor, chosen)):
        main()
