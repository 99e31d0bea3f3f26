"""Templates of a model from before: others cannot start pods of them again, by a ReplicaSet that was left."""

from __future__ import annotations

import pytest

from testbed.errors import ApiError
from tests.controlplane.test_tenant_fences import APPS, CORE, MODEL, Tenancy, tenancy
from tests.scenarios import a_baked_model, reporting

__all__ = ["tenancy"]


def test_no_replicaset_of_an_earlier_template_is_left(tenancy: Tenancy) -> None:
    deployments = tenancy.deployments
    deployments.apply(reporting(a_baked_model("older", replicas=1, endpoint={})))
    deployments.until("older", "Serving")
    deployments.change("older", drainSeconds=44)
    deployments.until("older", "Serving")
    path = f"{APPS.format(deployments.namespace)}/replicasets"
    deployments.wait(
        "one ReplicaSet",
        lambda: len(deployments.api.get(path, labelSelector=f"{MODEL}=older")["items"]) == 1,
    )


@pytest.mark.parametrize(("root", "plural"), [(APPS, "replicasets"), (CORE, "pods")])
def test_others_take_none_away_from_its_owner(tenancy: Tenancy, root: str, plural: str) -> None:
    """Else its pods go on, or come again, whatever the operator's Deployment says."""
    core = CORE.format(tenancy.deployments.namespace)
    other = tenancy.tenant.create(f"{core}/configmaps", {"metadata": {"generateName": "mine-"}})["metadata"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": other["name"], "uid": other["uid"], "controller": True}
    path = tenancy.first(root, plural)
    for owners in ([owner], None):
        with pytest.raises(ApiError) as refused:
            tenancy.tenant.merge(path, {"metadata": {"ownerReferences": owners}})
        assert (refused.value.status, "metadata.ownerReferences" in str(refused.value)) == (422, True)
