"""What is there in the end: everything a deployment leaves in its namespace, without what differs between two runs."""

from __future__ import annotations

import json
import re
from typing import Any

from hermetic.kinds import MODEL_DEPLOYMENT, PERSISTENT_VOLUME
from testbed.api import Api
from testbed.errors import ApiError
from tests.kubernetes_models import OF_KUBERNETES

Manifest = dict[str, Any]

COLLECTIONS = tuple(kind.path("{}") for kind in (*OF_KUBERNETES, MODEL_DEPLOYMENT) if kind.namespaced)
VOLUMES = PERSISTENT_VOLUME.path()

# counted, drawn or dated by the API server, and digests of what holds a uid
DRAWN = frozenset(
    {
        "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "lastTransitionTime", "clusterIP",
        "clusterIPs", "nodePort", "healthCheckNodePort", "hermetic.dev/intent",
        "hermetic.dev/pod-template", "deployment.kubernetes.io/revision",
    }
)  # fmt: skip
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ADDRESS = re.compile(r"\b10(?:\.\d{1,3}){3}\b")  # of a load balancer: each Service has its own
SUFFIX = re.compile(r"(?<=-)[0-9a-f]{10}\b")  # of volume and claim: it follows the owner's uid


def end_state(api: Api, namespace: str) -> dict[str, Manifest]:
    """Every object that could be a child or an orphan, by kind and name, masked; children's own status left out."""
    state: dict[str, Manifest] = {}
    for collection in COLLECTIONS:
        for item in api.get(collection.format(namespace))["items"]:
            if item["metadata"]["name"] != "default":
                state[f"{collection.rsplit('/', 1)[-1]}/{item['metadata']['name']}"] = item
    for item in api.get(VOLUMES)["items"]:
        if item["spec"].get("claimRef", {}).get("namespace") == namespace:
            state[f"persistentvolumes/{item['metadata']['name']}"] = item
    text = json.dumps({name: _kept(name, item) for name, item in state.items()}, sort_keys=True)
    for drawn, mask in ((UUID, "UID"), (ADDRESS, "ADDRESS"), (SUFFIX, "SUFFIX")):
        text = drawn.sub(mask, text.replace(namespace, "NAMESPACE"))
    masked: dict[str, Manifest] = json.loads(text)
    return masked


def is_gone(api: Api, path: str) -> bool:
    """Whether there is nothing at this path."""
    try:
        api.get(path)
    except ApiError as error:
        return error.status == 404
    return False


def _kept(name: str, item: Manifest) -> Manifest:
    phase = {"phase": item.get("status", {}).get("phase")}
    status = item.get("status", {}) if name.startswith("modeldeployments/") else phase
    without: Manifest = _undrawn({**item, "status": _relative(status, item["metadata"].get("generation", 0))})
    return without


def _relative(value: Any, generation: int) -> Any:
    """Observed generations as how many are behind: how often a spec was edited is not part of the end."""
    if isinstance(value, dict):
        return {
            key: generation - inner if key == "observedGeneration" else _relative(inner, generation)
            for key, inner in value.items()
        }
    return [_relative(inner, generation) for inner in value] if isinstance(value, list) else value


def _undrawn(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _undrawn(inner) for key, inner in value.items() if key not in DRAWN}
    return [_undrawn(inner) for inner in value] if isinstance(value, list) else value
