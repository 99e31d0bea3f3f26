"""A first pod: a node can be Ready and yet unable to start a container."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.api import Api, Json
from testbed.errors import ComponentError
from testbed.node.config import PAUSE_IMAGE
from testbed.processes import Component, wait_until

PODS = "/api/v1/namespaces/default/pods"
SECONDS = 30
CANARY: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "canary"},
    "spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "canary", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}],
    },
}


def run_canary(api: Api, node: str, components: Sequence[Component]) -> None:
    """Raises ComponentError with the pod's own warnings when it does not come to run on the node."""
    api.create(PODS, {**CANARY, "spec": {**CANARY["spec"], "nodeName": node}})
    try:
        wait_until("running first pod", lambda: _phase(api) in {"Running", "Failed"}, components, SECONDS)
    except ComponentError as error:
        if warnings := _warnings(api):
            raise ComponentError(f"the node is Ready, but no pod runs on it\n{warnings}") from error
        raise
    if _phase(api) == "Failed":
        raise ComponentError(f"the first pod failed\n{_warnings(api)}")
    api.delete(f"{PODS}/canary")
    wait_until("end of the first pod", lambda: not api.get(PODS)["items"], components, SECONDS)


def _phase(api: Api) -> str:
    return str(api.get(f"{PODS}/canary")["status"]["phase"])


def _warnings(api: Api) -> str:
    chosen = "involvedObject.name=canary,type=Warning"
    events = api.get("/api/v1/namespaces/default/events", fieldSelector=chosen)["items"]
    return "\n".join(f"{event['reason']}: {event['message']}" for event in events)
