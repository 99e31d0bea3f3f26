"""What the operator may do is what it does: every grant in manifests/rbac is used, and nothing is asked for in vain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import Api
from testbed.audit import Audited, requests
from testbed.cloud_provider import PLANT_PUBLIC
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.fleet import Pool
from testbed.installation import ACCOUNT, OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from testbed.processes import Component
from tests.controlplane.operating import StartOperator
from tests.scenarios import a_share_model, an_egress_audit, reporting

LEASE = "/apis/coordination.k8s.io/v1/namespaces/hermetic-system/leases/hermetic"
RBAC = Path(__file__).parents[2] / "manifests" / "rbac"
Grant = tuple[str, str]  # (verb, resource)


def grants() -> set[Grant]:
    """Every verb on every resource that the operator's roles name."""
    roles = [*_documents("clusterrole.yaml"), *_documents("role-lease.yaml")]
    rules = [rule for role in roles for rule in role["rules"]]
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


def _documents(name: str) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all((RBAC / name).read_text())


def used(log: Path, since: int) -> Iterator[Audited]:
    return (request for request in requests(log, since) if request.user == ACCOUNT)


def exercised(asked: list[Audited]) -> set[Grant]:
    """The grants that these requests needed. A PATCH that made an object needed "create" as well."""
    found = {(request.verb, request.resource) for request in asked if request.status < 400}
    return found | {("create", r.resource) for r in asked if r.verb == "patch" and r.status == 201}


def test_no_grant_names_a_secret_a_wildcard_or_a_way_to_more_rights() -> None:
    for verb, resource in grants():
        assert "*" not in (verb, resource)
        assert verb not in {"escalate", "bind", "impersonate", "deletecollection"}
        assert not resource.startswith(("secrets", "serviceaccounts/token", "nodes/proxy", "pods/", "namespaces"))


@pytest.fixture
def estate(fleet: Callable[..., list[str]], cloud_provider: Component) -> None:  # noqa: ARG001
    """GPU nodes, and somebody who gives load balancers their addresses."""
    fleet(Pool("gpu", "Standard_NC24ads_A100_v4"), 3)


@pytest.mark.usefixtures("estate")
def test_every_grant_is_used_and_nothing_is_asked_for_in_vain(
    controlplane: ControlPlane, start_operator: StartOperator, kubectl: Kubectl, api: Api, namespace: str
) -> None:
    since = controlplane.audit_log.stat().st_size
    with contextlib.suppress(ApiError):
        api.delete(LEASE)  # of an earlier operator of this session: its making is part of a whole life
    operator = start_operator()
    _live_a_whole_life(operator, kubectl.within(namespace), api, namespace)
    assert operator.stop() == 0  # watches are recorded when they end

    asked = list(used(controlplane.audit_log, since))
    refused = {(r.verb, r.resource, r.status) for r in asked if r.status == 403}
    assert not refused, "asked for without a grant"
    beyond = {(verb, resource) for verb, resource in exercised(asked) - grants() if not resource.startswith("/")}
    assert not beyond, "used without being granted by these manifests; discovery and /version are everybody's"
    assert not grants() - exercised(asked), "granted and never used"


def _live_a_whole_life(operator: OperatorProcess, ours: Kubectl, api: Api, namespace: str) -> None:
    """Created with two replicas, moved to another folder, scaled to one, given a public address, deleted."""
    path = f"/apis/hermetic.dev/v1alpha1/namespaces/{namespace}/modeldeployments/llama"
    core, policy = f"/api/v1/namespaces/{namespace}", f"/apis/policy/v1/namespaces/{namespace}"

    def ready() -> bool:
        live = api.get(path)
        conditions = {c["type"]: c for c in live.get("status", {}).get("conditions", [])}
        found = conditions.get("Ready", {})
        return (found.get("status"), found.get("observedGeneration")) == ("True", live["metadata"]["generation"])

    def claims() -> list[str]:
        return [item["metadata"]["name"] for item in api.get(f"{core}/persistentvolumeclaims")["items"]]

    ours.apply(an_egress_audit())
    ours.apply(reporting(a_share_model(replicas=2)))
    wait_for("Ready", ready, operator)
    (first,) = claims()
    share = {"account": "contosomodels", "share": "models", "folder": "llama-3-1-8b/bf16"}
    api.merge(path, {"spec": {"weights": {"azureFiles": share}, "replicas": 1}})
    wait_for("Ready with other weights", ready, operator)
    wait_for("the old claim gone", lambda: first not in claims(), operator)
    wait_for("no budget", lambda: not api.get(f"{policy}/poddisruptionbudgets")["items"], operator)
    chosen = f"hermetic.dev/namespace={namespace}"
    volumes = "/api/v1/persistentvolumes"
    wait_for("the old volume gone", lambda: len(api.get(volumes, labelSelector=chosen)["items"]) == 1, operator)
    api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": {PLANT_PUBLIC: "true"}}})
    api.merge(f"{core}/services/llama", {"metadata": {"annotations": {"touched": "yes"}}})
    wait_for("no Service", lambda: not _has_service(api, core), operator)
    api.delete("/apis/hermetic.dev/v1alpha1/egressaudits/cluster")


def _has_service(api: Api, core: str) -> bool:
    return any(
        item["metadata"]["name"] == "llama" and not item["metadata"].get("deletionTimestamp")
        for item in api.get(f"{core}/services")["items"]
    )
