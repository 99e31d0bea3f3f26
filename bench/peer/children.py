"""Children through the official client's typed API, as its documentation shows: create, and patch what exists."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from kubernetes.aio import client

Manifest = dict[str, Any]

PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class Calls:
    """The part of the client's API that knows a kind, and how its methods call it."""

    api: type
    noun: str


CALLS = {
    "ServiceAccount": Calls(client.CoreV1Api, "namespaced_service_account"),
    "NetworkPolicy": Calls(client.NetworkingV1Api, "namespaced_network_policy"),
    "PersistentVolume": Calls(client.CoreV1Api, "persistent_volume"),
    "PersistentVolumeClaim": Calls(client.CoreV1Api, "namespaced_persistent_volume_claim"),
    "PodDisruptionBudget": Calls(client.PolicyV1Api, "namespaced_pod_disruption_budget"),
    "Service": Calls(client.CoreV1Api, "namespaced_service"),
    "Deployment": Calls(client.AppsV1Api, "namespaced_deployment"),
}


async def create_or_patch(api_client: client.ApiClient, manifest: Manifest) -> None:
    """Make the object, or bring it back to what the manifest says. Raises the client's ApiException."""
    calls, metadata = CALLS[manifest["kind"]], manifest["metadata"]
    api = calls.api(api_client)
    scope = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
    try:
        await getattr(api, f"create_{calls.noun}")(body=manifest, **scope)
    except client.ApiException as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
        await getattr(api, f"patch_{calls.noun}")(name=metadata["name"], body=manifest, _content_type=PATCH, **scope)


async def delete_volume(api_client: client.ApiClient, name: str) -> None:
    """Remove a PersistentVolume; gone already is as good."""
    try:
        await client.CoreV1Api(api_client).delete_persistent_volume(name=name)
    except client.ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
