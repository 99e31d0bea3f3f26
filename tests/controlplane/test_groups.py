"""Models of several nodes on a real API server, with the real controller of StatefulSets and pods that kwok runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.times import timestamp
from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from testbed.processes import Component
from tests.controlplane.deployments import Deployments, failing, module_namespace
from tests.controlplane.test_tenant_rights import APPS, CORE, a_tenant
from tests.controlplane.write_counts import AuditLog, metric
from tests.scenarios import Manifest, a_baked_model, a_share_model, changed, reporting

TWO_NODES = {"count": 1, "nodes": 2}
RANK = "apps.kubernetes.io/pod-index"


def a_group_model(name: str, **spec: Any) -> Manifest:
    return reporting(a_baked_model(name, **{"accelerator": TWO_NODES, "endpoint": {}, "drainSeconds": 5, **spec}))


def group(home: Deployments, name: str, index: int = 0) -> Manifest:
    groups = home.get(name).get("status", {}).get("groups") or []
    return next((item for item in groups if item["name"] == f"{name}-group-{index}"), {})


def live_set(home: Deployments, name: str, index: int = 0) -> Manifest:
    live = home.child("apps/v1", "statefulsets", f"{name}-group-{index}")
    assert live is not None
    return live


def uids(home: Deployments, name: str) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in home.pods(name)}


def ready_since(pod: Manifest) -> str:
    conditions = pod["status"].get("conditions") or ()
    return next((str(item["lastTransitionTime"]) for item in conditions if item["type"] == "Ready"), "")


def created(pod: Manifest) -> str:
    return str(pod["metadata"]["creationTimestamp"])


def at_rest(home: Deployments, name: str) -> None:
    idle = ("hermetic_workqueue_depth", "hermetic_workqueue_oldest_age_seconds", "hermetic_events_unposted")
    home.until(name, "Serving", timeout=120)
    home.wait("nothing to do", lambda: not any(metric(home.operator, item) for item in idle))


@pytest.fixture(scope="module")
def home(
    hermetic: OperatorProcess,
    api: Api,
    kubectl: Kubectl,
    gpu_nodes: None,  # noqa: ARG001
    cloud_provider: Component,  # noqa: ARG001
) -> Iterator[Deployments]:
    with module_namespace(api, "groups") as namespace:
        yield Deployments(api, kubectl, namespace, hermetic)


def test_group_of_two_is_made_with_eleven_writes_and_clients_reach_rank_0_alone(
    controlplane: ControlPlane, home: Deployments
) -> None:
    since = AuditLog.from_now_on(controlplane.audit_log, home.namespace)
    home.apply(reporting(a_share_model("shared", accelerator=TWO_NODES)))
    home.until("shared", "Serving", timeout=120)
    at_rest(home, "shared")
    written = Counter(since.writes())
    assert written.total() <= 11, written
    assert (written["statefulsets"], written["networkpolicies"], written["services"]) == (1, 2, 2)
    assert group(home, "shared") == {"name": "shared-group-0", "state": "Serving", "pods": "2/2", "restarts": 0}
    selector = home.child("v1", "services", "shared")
    assert selector is not None
    assert selector["spec"]["selector"] == {"hermetic.dev/modeldeployment": "shared", RANK: "0"}
    nodes = {pod["spec"]["nodeName"] for pod in home.pods("shared")}
    assert len(nodes) == 2, "one pod on each node"
    address = home.child("v1", "services", "shared-group-0")
    assert address is not None
    env = {item["name"]: item.get("value") for item in home.pods("shared")[0]["spec"]["containers"][0]["env"]}
    assert env["HERMETIC_HEAD_ADDRESS"] == address["spec"]["clusterIP"]
    home.api.delete(f"{home.collection}/shared")


def test_pod_that_is_deleted_restarts_its_group_once_and_no_other(home: Deployments) -> None:
    home.apply(a_group_model("pair", replicas=2))
    at_rest(home, "pair")
    before = uids(home, "pair")
    # Times in a pod are whole seconds: a pod of the next second is known to be another one.
    home.wait(
        "a second later", lambda: all(ready_since(pod) < timestamp(datetime.now(UTC)) for pod in home.pods("pair"))
    )

    home.api.delete(f"{CORE.format(home.namespace)}/pods/pair-group-0-1")
    home.wait("one restart", lambda: group(home, "pair").get("restarts") == 1)
    at_rest(home, "pair")

    after = uids(home, "pair")
    assert {name for name in after if after[name] != before[name]} == {"pair-group-0-0", "pair-group-0-1"}
    assert group(home, "pair")["restarts"] == 1
    assert group(home, "pair", 1)["restarts"] == 0


def test_change_of_the_spec_replaces_one_group_after_the_other(home: Deployments) -> None:
    before = uids(home, "pair")
    home.change("pair", startupBudgetSeconds=900)

    def all_replaced() -> bool:
        now = uids(home, "pair")
        return all(now.get(name) not in (None, before[name]) for name in before)

    home.wait("both groups replaced", all_replaced)
    at_rest(home, "pair")
    pods = home.pods("pair")
    first, second = (
        [pod for pod in pods if pod["metadata"]["name"].startswith(f"pair-group-{index}-")] for index in (0, 1)
    )
    first, second = sorted((first, second), key=lambda group_pods: min(map(created, group_pods)))
    assert max(map(ready_since, first)) <= min(map(created, second)), "both groups at once"
    templates = {pod["metadata"]["labels"]["hermetic.dev/pod-template"] for pod in home.pods("pair")}
    assert len(templates) == 2, "one template for each group"


def test_operator_that_starts_again_writes_nothing(controlplane: ControlPlane, home: Deployments) -> None:
    at_rest(home, "pair")
    since = AuditLog.from_now_on(controlplane.audit_log, home.namespace)
    home.operator.stop()
    home.operator.start()
    label = {"metadata": {"labels": {"hermetic.test/barrier": "restart"}}}
    home.api.merge(f"{home.collection}/pair", label)
    at_rest(home, "pair")
    assert since.writes() == []


def test_scaled_down_and_up_and_to_zero(home: Deployments) -> None:
    home.change("pair", replicas=1)
    home.wait("two pods", lambda: len(home.pods("pair")) == 2)
    at_rest(home, "pair")
    home.change("pair", replicas=0)
    home.wait("no pods", lambda: not home.pods("pair"))
    home.change("pair", replicas=1)
    at_rest(home, "pair")
    assert len(home.pods("pair")) == 2


def test_engine_that_crashes_is_named_with_its_cause_and_its_group_waits_longer_each_time(home: Deployments) -> None:
    home.apply(failing(a_group_model("crash"), "crash-loop-kv-cache"))
    home.wait("two restarts", lambda: group(home, "crash").get("restarts", 0) >= 2, timeout=120)
    ready = home.until("crash", "GroupMemberFailed")
    assert "KV cache" in ready["message"]
    assert "pod 'crash-group-0-" in ready["message"]
    home.api.delete(f"{home.collection}/crash")


def test_more_pods_of_others_are_removed_and_fewer_restart_the_group(home: Deployments) -> None:
    scale = f"{APPS.format(home.namespace)}/statefulsets/pair-group-0/scale"
    before = uids(home, "pair")
    home.api.merge(scale, {"spec": {"replicas": 4}})
    home.wait("two pods again", lambda: live_set(home, "pair")["spec"]["replicas"] == 2 and len(home.pods("pair")) == 2)
    at_rest(home, "pair")
    assert uids(home, "pair") == before
    home.api.merge(scale, {"spec": {"replicas": 1}})
    home.wait(
        "new pods", lambda: len(home.pods("pair")) == 2 and not set(before.values()) & {*uids(home, "pair").values()}
    )
    at_rest(home, "pair")


# ---------------------------------------------------------------------- a tenant


@pytest.fixture(scope="module")
def tenant(home: Deployments, api: Api, cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Api:
    account = a_tenant(api, cluster, home.namespace, tmp_path_factory.mktemp("group-tenant") / "kubeconfig")

    def may() -> bool:
        try:
            account.get(f"{APPS.format(home.namespace)}/statefulsets")
        except ApiError as error:
            if error.status != 403:
                raise
            return False
        return True

    home.wait("the rights of a tenant", may)
    return account


CHANGES: dict[str, dict[str, Any]] = {
    "its template": {"spec": {"template": {"spec": {"dnsPolicy": "Default"}}}},
    "its ranks": {"spec": {"ordinals": {"start": 2}}},
    "how it replaces pods": {"spec": {"updateStrategy": {"type": "RollingUpdate"}}},
    "its group": {"metadata": {"labels": {"hermetic.dev/group": "7"}}},
    "whose it is": {"metadata": {"ownerReferences": []}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_others_do_not_change_what_the_pods_of_a_group_are(home: Deployments, tenant: Api, change: str) -> None:
    with pytest.raises(ApiError) as refused:
        tenant.merge(f"{APPS.format(home.namespace)}/statefulsets/pair-group-0", CHANGES[change])
    assert "hermetic-workloads" in str(refused.value)


@pytest.mark.parametrize("label", [RANK, "hermetic.dev/group", "statefulset.kubernetes.io/pod-name"])
def test_others_do_not_move_a_pod_to_another_rank_or_group(home: Deployments, tenant: Api, label: str) -> None:
    pod = f"{CORE.format(home.namespace)}/pods/pair-group-0-1"
    with pytest.raises(ApiError) as refused:
        tenant.merge(pod, {"metadata": {"labels": {label: "7"}}})
    assert "hermetic-workloads" in str(refused.value)


def test_others_do_not_orphan_the_pods_of_a_group(home: Deployments, tenant: Api) -> None:
    path = f"{APPS.format(home.namespace)}/statefulsets/pair-group-0"
    with pytest.raises(ApiError) as refused:
        tenant.delete(path + "?propagationPolicy=Orphan")
    assert "hermetic-orphans" in str(refused.value)


def test_deployment_of_a_tenant_with_the_name_of_the_model_changes_nothing(home: Deployments, tenant: Api) -> None:
    owned = live_set(home, "pair")["metadata"]
    deployment = {
        "metadata": {"name": "pair", "labels": owned["labels"], "ownerReferences": owned["ownerReferences"]},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
            },
        },
    }
    deployments = f"{APPS.format(home.namespace)}/deployments"
    tenant.create(deployments, deployment)
    before = uids(home, "pair")
    home.change("pair", startupBudgetSeconds=1100)
    home.wait("the change is carried out", lambda: not set(before.values()) & {*uids(home, "pair").values()})
    at_rest(home, "pair")
    tenant.delete(f"{deployments}/pair")


def test_stateful_set_that_a_tenant_deletes_is_made_again(home: Deployments, tenant: Api) -> None:
    before = live_set(home, "pair")["metadata"]["uid"]
    tenant.delete(f"{APPS.format(home.namespace)}/statefulsets/pair-group-0")
    home.wait(
        "another one",
        lambda: (
            (home.child("apps/v1", "statefulsets", "pair-group-0") or {"metadata": {"uid": before}})["metadata"]["uid"]
            != before
        ),
    )
    at_rest(home, "pair")


def test_model_does_not_change_between_one_node_and_several(home: Deployments) -> None:
    with pytest.raises(ApiError):
        home.apply(changed(a_group_model("pair"), accelerator={"count": 1}))
