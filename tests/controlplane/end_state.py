"""What is there in the end: everything a deployment leaves in its namespace, without what differs between two runs."""

from __future__ import annotations

import json
import re
from typing import Any

from testbed.api import Api
from testbed.errors import ApiError

Manifest = dict[str, Any]

COLLECTIONS = (
    "/api/v1/namespaces/{}/serviceaccounts",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "/apis/hermetic.dev/v1alpha1/namespaces/{}/modeldeployments",
)
VOLUMES = "/api/v1/persistentvolumes"

# counted, drawn or dated by the API server, and digests of what holds a uid
DRAWN = frozenset(
    {
        "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "lastTransitionTime", "clusterIP",
        "clusterIPs", "nodePort", "healthCheckNodePort", "hermetic.dev/intent",
        "hermetic.dev/pod-template",
    }
)  # fmt: skip
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SUFFIX = re.compile(r"(?<=-)[0-9a-f]{10}\b")  # of volume and claim: it follows the owner's uid


def end_state(api: Api, namespace: str) -> dict[str, Manifest]:
    """Every object that could be a child or an orphan, by kind and name, masked; children's own status left out."""
    found: dict[str, Manifest] = {}
    for collection in COLLECTIONS:
        for item in api.get(collection.format(namespace))["items"]:
            if item["metadata"]["name"] != "default":
                found[f"{collection.rsplit('/', 1)[-1]}/{item['metadata']['name']}"] = item
    for item in api.get(VOLUMES)["items"]:
        if item["spec"].get("claimRef", {}).get("namespace") == namespace:
            found[f"persistentvolumes/{item['metadata']['name']}"] = item
    text = json.dumps({name: _kept(name, item) for name, item in found.items()}, sort_keys=True)
    masked: dict[str, Manifest] = json.loads(
        SUFFIX.sub("SUFFIX", UUID.sub("UID", text.replace(namespace, "NAMESPACE")))
    )
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
    without: Manifest = _undrawn({**item, "status": status})
    return without


def _undrawn(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _undrawn(inner) for key, inner in value.items() if key not in DRAWN}
    return [_undrawn(inner) for inner in value] if isinstance(value, list) else value
