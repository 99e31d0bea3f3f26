"""Clients of a Gateway on the real node, and weights of a group of models: for tests, the benchmark and the demo."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.errors import BedError
from testbed.installation import REPOSITORY, wait_for
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode

LOAD = REPOSITORY / "testbed" / "load.py"


class Traffic:
    """A steady load of chat requests from the machine outside the cluster, half of them streamed.

    It lasts until `end`, and no longer than `seconds`.

    Every connection is kept for as long as the Gateway lets it. It begins once the Gateway answers: a gateway follows
    the pods of a model that has just become Ready a moment later.
    """

    def __init__(self, node: RunningNode, url: str, model: str, *, seconds: float, rate: int) -> None:
        program = (sys.executable, str(LOAD), url, "--model", model, "--streamed", "--keep-alive")
        self._end = Path(tempfile.mkdtemp(prefix="hermetic-load-")) / "end"
        self._command = (*program, "--rate", str(rate), "--seconds", str(seconds), "--until", str(self._end))
        self._node, self._seconds = node, seconds
        self._report: dict[str, Any] = {}
        until_it_answers(node, url)
        self._sender = threading.Thread(target=self._send)
        self._sender.start()

    @property
    def is_running(self) -> bool:
        return self._sender.is_alive()

    def end(self) -> None:
        """Send no further request."""
        self._end.touch()

    def report(self) -> dict[str, Any]:
        """What became of the requests, as testbed.load prints it; waits for the end."""
        self._sender.join()
        if not self._report:
            raise BedError("the load ended without a report")
        return self._report

    def _send(self) -> None:
        sent = self._node.from_client(*self._command, timeout=self._seconds + 90)
        self._report.update(json.loads(sent.stdout or "{}"))


def until_it_answers(node: RunningNode, url: str) -> None:
    """Wait until the list of models is there at a base URL, for the machine outside the cluster."""

    def answers() -> bool:
        return node.from_client("curl", "-sf", "--max-time", "2", f"{url}/models").returncode == 0

    wait_for(f"an answer at {url}", answers, timeout=60)


def weigh(kubectl: Kubectl, weights: Mapping[str, int]) -> None:
    """Edit `endpoint.gateway.weight` of ModelDeployments, one after the other as a commit is applied."""
    for name, weight in weights.items():
        patch = json.dumps({"spec": {"endpoint": {"gateway": {"weight": weight}}}})
        kubectl("patch", "mdep", name, "--type=merge", "--patch", patch)


def answered_by(node: RunningNode, kubectl: Kubectl, model: str) -> int:
    """How many requests the pods of a ModelDeployment have finished, by the metrics of their engines."""
    pods = kubectl.json("get", "pods", f"--selector=hermetic.dev/modeldeployment={model}")["items"]
    finished = 0.0
    for pod in pods:
        metrics = node.inside("curl", "-sf", f"http://{pod['status']['podIP']}:8000/metrics").stdout
        counts = [line for line in metrics.splitlines() if line.startswith("vllm:request_success_total")]
        finished += sum(float(line.rsplit(" ", 1)[1]) for line in counts)
    return int(finished)
