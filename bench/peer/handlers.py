"""`kopf run --standalone -m bench.peer.handlers`: state handlers for the parent, event handlers for its children.

What is idiomatic is taken from kopf's own walkthrough: create, update and resume share one function, a delete handler
removes what no owner reference can (the PersistentVolume), children report by `on.event`. Settings and persistence are
kopf's defaults. Two things are better than the walkthrough's: the client is asynchronous, and an event that says
nothing new (`memo`) writes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import kopf
from kubernetes.aio import client, config
from pydantic import ValidationError

from bench.peer.children import create_or_patch, delete_volume
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.objects.children import render
from hermetic.objects.names import MODEL_LABEL, Owner

PARENT = ("hermetic.dev", "v1alpha1", "modeldeployments")
OURS = {MODEL_LABEL: kopf.PRESENT}


@kopf.on.startup()
async def connect(memo: kopf.Memo, **_: Any) -> None:
    """One client for the life of the operator; every handler finds it in its memo."""
    await config.load_kube_config()
    memo.api_client = client.ApiClient()


@kopf.on.cleanup()
async def disconnect(memo: kopf.Memo, **_: Any) -> None:
    """Close the connections."""
    await memo.api_client.close()


@kopf.on.resume(*PARENT)
@kopf.on.create(*PARENT)
@kopf.on.update(*PARENT)
async def make_children(body: kopf.Body, memo: kopf.Memo, patch: kopf.Patch, **_: Any) -> None:
    """Everything that the spec asks for, one after the other as in the walkthrough."""
    for manifest in _children(body):
        try:
            await create_or_patch(memo.api_client, manifest)
        except client.ApiException as error:
            raise kopf.TemporaryError(f"{manifest['kind']}: {error.reason}", delay=10) from error
    patch.status["observedGeneration"] = body["metadata"]["generation"]


@kopf.on.delete(*PARENT)
async def remove_volume(body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """The one child that a namespaced object cannot own."""
    for manifest in _children(body):
        if manifest["kind"] == "PersistentVolume":
            await delete_volume(memo.api_client, manifest["metadata"]["name"])


@kopf.on.event("apps", "v1", "deployments", labels=OURS)
async def deployment_changed(event: kopf.RawEvent, body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """The parent is Ready when every replica is available."""
    desired, available = body["spec"]["replicas"], body["status"].get("availableReplicas") or 0
    if event["type"] == "DELETED" or memo.get("said") == (desired, available):
        return
    parent = await _parent_of(body, memo)
    condition = _ready(desired, available, parent["metadata"]["generation"])
    if not _holds(parent, condition):
        await _say(parent, memo, {"replicas": available, "conditions": [condition]})
    memo.said = (desired, available)


@kopf.on.event("v1", "services", labels=OURS)
async def service_changed(event: kopf.RawEvent, body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """The parent shows the load balancer's address."""
    ingresses = body["status"].get("loadBalancer", {}).get("ingress") or [{}]
    address, port = ingresses[0].get("ip"), body["spec"]["ports"][0]["port"]
    if event["type"] == "DELETED" or not address or memo.get("said") == address:
        return
    parent = await _parent_of(body, memo)
    endpoint = {"url": f"http://{address}:{port}/v1", "address": address}
    if parent.get("status", {}).get("endpoint") != endpoint:
        await _say(parent, memo, {"endpoint": endpoint})
    memo.said = address


def _children(body: kopf.Body) -> tuple[dict[str, Any], ...]:
    metadata = body["metadata"]
    try:
        spec = ModelDeploymentSpec.model_validate(dict(body["spec"]))
    except ValidationError as error:
        raise kopf.PermanentError(f"the spec cannot be read: {error}") from error
    return render(Owner(metadata["namespace"], metadata["name"], metadata["uid"]), spec)


async def _parent_of(child: kopf.Body, memo: kopf.Memo) -> dict[str, Any]:
    group, version, plural = PARENT
    parent: dict[str, Any] = await client.CustomObjectsApi(memo.api_client).get_namespaced_custom_object(
        group=group,
        version=version,
        plural=plural,
        namespace=child["metadata"]["namespace"],
        name=child["metadata"]["labels"][MODEL_LABEL],
    )
    return parent


async def _say(parent: dict[str, Any], memo: kopf.Memo, status: dict[str, Any]) -> None:
    group, version, plural = PARENT
    await client.CustomObjectsApi(memo.api_client).patch_namespaced_custom_object_status(
        group=group,
        version=version,
        plural=plural,
        namespace=parent["metadata"]["namespace"],
        name=parent["metadata"]["name"],
        body={"status": status},
        _content_type="application/merge-patch+json",
    )


def _ready(desired: int, available: int, generation: int) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": "True" if available >= desired else "False",
        "reason": "Serving" if available >= desired else "Starting",
        "message": f"{available} of {desired} replicas serve",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "observedGeneration": generation,
    }


def _holds(parent: dict[str, Any], condition: dict[str, Any]) -> bool:
    """Whether the parent says so already; since when does not matter."""
    conditions = parent.get("status", {}).get("conditions") or [{}]
    return {**conditions[0], "lastTransitionTime": ""} == {**condition, "lastTransitionTime": ""}
