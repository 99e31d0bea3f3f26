"""Objects of a model stay with their owner: others cannot keep what the operator would correct, replace or remove."""

from __future__ import annotations

from functools import partial

import pytest

from testbed.errors import ApiError
from tests.controlplane.test_tenant_rights import APPS, CHILDREN, CORE, MODEL, Tenancy, tenancy
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


@pytest.mark.parametrize("kind", CHILDREN)
def test_others_take_none_away_from_its_owner(tenancy: Tenancy, kind: str) -> None:
    """Else the operator corrects it no more, or its pods go on, whatever the operator's Deployment says."""
    core = CORE.format(tenancy.deployments.namespace)
    other = tenancy.tenant.create(f"{core}/configmaps", {"metadata": {"generateName": "mine-"}})["metadata"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": other["name"], "uid": other["uid"]}
    path = tenancy.first(*CHILDREN[kind])
    (ours,) = tenancy.deployments.api.get(path)["metadata"]["ownerReferences"]
    for owners in ([{**owner, "controller": True}], [ours, owner], [{**ours, "controller": False}], None):
        with pytest.raises(ApiError) as refused:
            tenancy.tenant.merge(path, {"metadata": {"ownerReferences": owners}})
        assert (refused.value.status, "metadata.ownerReferences" in str(refused.value)) == (422, True)


@pytest.mark.parametrize("plural", ["deployments", "replicasets"])
def test_others_leave_no_pod_behind(tenancy: Tenancy, plural: str) -> None:
    """As 'kubectl delete --cascade=orphan' asks for it, or the finalizer of before that flag."""
    path, tenant = tenancy.first(APPS, plural), tenancy.tenant
    for options in ("propagationPolicy=Orphan", "orphanDependents=true"):
        assert "propagationPolicy" in tenancy.refused(partial(tenant.delete, f"{path}?{options}"))
    tenant.merge(path, {"metadata": {"finalizers": ["orphan"]}})
    assert "propagationPolicy" in tenancy.refused(lambda: tenant.delete(path))
    tenant.merge(path, {"metadata": {"finalizers": None}})


def test_others_take_no_pod_out_of_its_set(tenancy: Tenancy) -> None:
    path = tenancy.first(CORE, "pods")
    patch = {"metadata": {"labels": {"pod-template-hash": "mine"}}}
    assert "pod-template-hash" in tenancy.refused(lambda: tenancy.tenant.merge(path, patch))
