"""A claim of a model that was deleted: others cannot put one of its name, on a volume of theirs, in its place."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from testbed.errors import ApiError
from tests.controlplane.test_tenant_rights import CORE, MODEL, Tenancy, tenancy
from tests.scenarios import a_share_model, reporting

__all__ = ["tenancy"]


def a_claim(name: str, volume: str | None, storage_class: str | None) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            **({"volumeName": volume} if volume is not None else {}),
            **({"storageClassName": storage_class} if storage_class is not None else {}),
        },
    }


def test_no_claim_of_others_takes_the_place_of_that_of_a_model(tenancy: Tenancy) -> None:
    deployments, tenant = tenancy.deployments, tenancy.tenant
    core = CORE.format(deployments.namespace)
    deployments.apply(reporting(a_share_model("llama", replicas=1, endpoint={})))
    deployments.until("llama", "Serving")
    (ours,) = deployments.api.get(f"{core}/persistentvolumeclaims", labelSelector=f"{MODEL}=llama")["items"]
    name, volume = ours["metadata"]["name"], ours["spec"]["volumeName"]

    tenant.delete(f"{core}/persistentvolumeclaims/{name}")
    for pod in tenant.get(f"{core}/pods", labelSelector=f"{MODEL}=llama")["items"]:
        with contextlib.suppress(ApiError):
            tenant.delete(f"{core}/pods/{pod['metadata']['name']}")
    for other, storage_class in (("mine", ""), (None, "mine"), (None, None), (volume, "mine"), (f"{volume}0", "")):
        with pytest.raises(ApiError) as refused:
            tenant.create(f"{core}/persistentvolumeclaims", a_claim(name, other, storage_class))
        assert (refused.value.status, "spec.volumeName" in str(refused.value)) == (422, True), refused.value
    tenant.create(f"{core}/persistentvolumeclaims", a_claim("my-weights-of-2026", None, "mine"))
