"""Namespaces of tests: made with what pods need, and afterwards emptied of whatever takes from others.

The namespaces themselves stay in a cluster that ends with the session. To end one, the controller-manager asks the API
server two questions about every kind that there is, and five times over where pods are slow to go: as much processor
time as most tests take.
"""

from __future__ import annotations

import os

from testbed.api import Api
from testbed.errors import ApiError
from testbed.processes import wait_until

LABELS = {"hermetic.test/namespace": "true"}
# Owners before what they own, so that nothing comes back. The rest holds no node, address or volume.
TAKING = (
    "/apis/hermetic.dev/v1alpha1/namespaces/{}/modeldeployments",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
)


def make_namespace(api: Api, name: str, **labels: str) -> None:
    """Make it, and wait for its default service account: pods are refused before."""
    api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": {**LABELS, **labels}}})
    wait_until("service account", lambda: _has_account(api, name), ())


def empty_namespace(api: Api, name: str) -> None:
    """Delete what takes from others, without waiting. A cluster that is not the session's own loses the namespace."""
    if os.environ.get("HERMETIC_TEST_KUBECONFIG"):
        api.delete(f"/api/v1/namespaces/{name}")
        return
    for collection in TAKING:
        try:
            api.delete(f"{collection.format(name)}?propagationPolicy=Background")
        except ApiError as error:
            if error.status != 404:  # before the CRDs are applied, there is no such kind
                raise


def _has_account(api: Api, namespace: str) -> bool:
    try:
        api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True
