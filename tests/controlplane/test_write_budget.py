"""What everything costs in writes, counted by the API server: a table of acts, each on a deployment at rest.

The rows share one deployment, so that they cost seconds; the last tests hold their sum against all that was written.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.installation import CONFIGURATION, OperatorProcess, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.processes import Component
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.write_counts import STATUS, AuditLog, by_the_api_server, by_the_operator, metric
from tests.scenarios import Manifest, a_baked_model, a_share_model, reporting

SHARE_CHILDREN = Counter(
    ["serviceaccounts", "networkpolicies", "persistentvolumes", "persistentvolumeclaims", "services", "deployments"]
)
BAKED_CHILDREN = Counter(["serviceaccounts", "networkpolicies", "services", "deployments"])
RELIST = "hermetic_last_relist_timestamp_seconds"

# at rest every child is as it should be, so rows that do not roll pods out cost no second status
MODEL = reporting(a_baked_model("phi"))
_barriers = itertools.count()


@dataclass
class Ledger:
    """One namespace with the operator at work, and what its acts have cost so far."""

    deployments: Deployments
    log: Path
    since: AuditLog
    spent: Counter[str] = field(default_factory=Counter)

    def cost(self, act: Callable[[Deployments], object]) -> tuple[list[str], int]:
        """What an act makes the operator write, in order, until it is at rest again; and how many Events."""
        audit = AuditLog.from_now_on(self.log, self.deployments.namespace)
        act(self.deployments)
        at_rest(self.deployments)
        self.spent += Counter(audit.writes())
        return audit.writes(), audit.events()


def at_rest(deployments: Deployments, name: str = "phi") -> None:
    """Wait until the operator has reconciled the deployment once more, and has nothing left to do.

    A label causes the reconcile: it costs nothing, as its own row shows.
    """
    reconciled = len(observations(deployments.operator, deployments.namespace, name))
    label = {"metadata": {"labels": {"hermetic.test/barrier": str(next(_barriers))}}}
    deployments.api.merge(f"{deployments.collection}/{name}", label)
    deployments.wait(
        "a reconcile after the act",
        lambda: len(observations(deployments.operator, deployments.namespace, name)) > reconciled,
    )
    idle = ("hermetic_workqueue_depth", "hermetic_workqueue_oldest_age_seconds", "hermetic_events_unposted")
    deployments.wait("nothing to do", lambda: not any(metric(deployments.operator, gauge) for gauge in idle))


def observations(operator: OperatorProcess, namespace: str, name: str) -> list[dict[str, str]]:
    lines = (line for line in operator.log_lines() if line.get("event") == "reconcile")
    return [line for line in lines if (line["ns"], line["name"]) == (namespace, name)]


# ---------------------------------------------------------------------- fixtures


@pytest.fixture(scope="module")
def hermetic(
    installed: None,  # noqa: ARG001
    api: Api,
    cluster: Path,
    tmp_path_factory: pytest.TempPathFactory,
    component_logs: dict[str, Path],
) -> Iterator[OperatorProcess]:
    """The operator with the shortest resync there is."""
    folder = tmp_path_factory.mktemp("budget")
    kubeconfig = operator_kubeconfig(api, cluster, folder / "operator.kubeconfig")
    process = OperatorProcess(folder, kubeconfig, {**CONFIGURATION, "resyncSeconds": 30}, "hermetic")
    component_logs["hermetic"] = process.component.log
    process.start()
    yield process
    process.stop()
    del component_logs["hermetic"]


@pytest.fixture(scope="module")
def ledger(
    controlplane: ControlPlane,
    hermetic: OperatorProcess,
    api: Api,
    kubectl: Kubectl,
    gpu_nodes: None,  # noqa: ARG001
    cloud_provider: Component,  # noqa: ARG001
) -> Iterator[Ledger]:
    """A deployment that serves, with an address, and an operator at rest."""
    with module_namespace(api, "budget") as namespace:
        deployments = Deployments(api, kubectl, namespace, hermetic)
        deployments.apply(MODEL)
        deployments.until("phi", "Serving")
        at_rest(deployments)
        yield Ledger(deployments, controlplane.audit_log, AuditLog.from_now_on(controlplane.audit_log, namespace))


# ---------------------------------------------------------------------- create


@pytest.mark.parametrize(
    ("manifest", "children"),
    [(reporting(a_share_model("llama")), SHARE_CHILDREN), (reporting(a_baked_model("other")), BAKED_CHILDREN)],
    ids=["share", "baked"],
)
def test_a_create_costs_its_children_one_status_and_one_more_per_visible_change(
    ledger: Ledger, manifest: Manifest, children: Counter[str]
) -> None:
    name = manifest["metadata"]["name"]

    def create(deployments: Deployments) -> None:
        deployments.apply(manifest)
        deployments.until(name, "Serving")
        at_rest(deployments, name)

    written, events = ledger.cost(create)

    settled = children.total()
    assert Counter(written[:settled]) == children
    assert written[settled - 1] == "deployments", "the workload comes after its network policy"
    assert written[settled] == STATUS
    assert set(written[settled + 1 :]) <= {STATUS}
    # a machine that is slow to bind the claim is trouble that is told, and told to be over
    slow = {"VolumeNotBound"} & {event["reason"] for event in ledger.deployments.events(name)}
    assert len(written) <= settled + 1 + 2 + 2 * len(slow), "the address and the first pod that serves are news"
    assert events <= len(written) - settled + 1, "an Event per condition that changed"


# ---------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Row:
    """An act on a deployment that serves, and what it costs; `statuses` is (least, most)."""

    what: str
    act: Callable[[Deployments], object]
    children: tuple[str, ...] = ()
    statuses: tuple[int, int] = (0, 0)


def core(plural: str, name: str = "phi") -> Callable[[Deployments], str]:
    return lambda deployments: f"/api/v1/namespaces/{deployments.namespace}/{plural}/{name}"


def group(of: str, plural: str, name: str = "phi") -> Callable[[Deployments], str]:
    return lambda deployments: f"/apis/{of}/namespaces/{deployments.namespace}/{plural}/{name}"


SERVICE, SERVICE_STATUS, ACCOUNT = core("services"), core("services", "phi/status"), core("serviceaccounts")
POLICY, WORKLOAD = group("networking.k8s.io/v1", "networkpolicies"), group("apps/v1", "deployments")
MODEL_ITSELF = group("hermetic.dev/v1alpha1", "modeldeployments")


def editing(path: Callable[[Deployments], str], **patch: object) -> Callable[[Deployments], object]:
    return lambda deployments: deployments.api.merge(path(deployments), patch)


def deleting(path: Callable[[Deployments], str]) -> Callable[[Deployments], object]:
    """Delete it by hand, and wait for its successor."""

    def act(deployments: Deployments) -> None:
        uid = deployments.api.get(path(deployments))["metadata"]["uid"]
        deployments.api.delete(path(deployments))
        deployments.wait("its return", lambda: deployments.api.get(path(deployments))["metadata"]["uid"] != uid)

    return act


def editing_away(
    path: Callable[[Deployments], str], patch: dict[str, object], back: Callable[[Manifest], bool]
) -> Callable[[Deployments], object]:
    """Change a field that is ours, and wait until it is corrected."""

    def act(deployments: Deployments) -> None:
        assert not back(deployments.api.merge(path(deployments), patch))
        deployments.wait("the correction", lambda: back(deployments.api.get(path(deployments))))

    return act


def changing(ready: str = "Serving", **spec: object) -> Callable[[Deployments], object]:
    """Change the spec as its user would, and wait until it says so of this generation."""

    def act(deployments: Deployments) -> None:
        deployments.change("phi", **spec)
        deployments.until("phi", ready)

    return act


A_FOREIGN_CONDITION = {
    "type": "Foreign",
    "status": "True",
    "reason": "Test",
    "message": "",
    "lastTransitionTime": "2026-11-21T12:00:00Z",
}
# RollingOut, Starting, two phases of the start of a pod, Serving: as many as the operator sees.
A_START = (1, 5)
IDLE = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"
ROWS = (
    Row("label on the ModelDeployment", editing(MODEL_ITSELF, metadata={"labels": {"team": "a"}})),
    Row("annotation on the ModelDeployment", editing(MODEL_ITSELF, metadata={"annotations": {"note": "b"}})),
    Row("the same manifest applied again", lambda deployments: deployments.apply(MODEL)),
    Row("foreign label on the Service", editing(SERVICE, metadata={"labels": {"team": "a"}})),
    Row("foreign annotation on the Deployment", editing(WORKLOAD, metadata={"annotations": {"team": "a"}})),
    Row("foreign condition on the Service", editing(SERVICE_STATUS, status={"conditions": [A_FOREIGN_CONDITION]})),
    Row("NetworkPolicy deleted", deleting(POLICY), ("networkpolicies",)),
    Row("ServiceAccount deleted", deleting(ACCOUNT), ("serviceaccounts",)),
    Row(
        "egress path added to the NetworkPolicy",
        editing_away(POLICY, {"spec": {"egress": [{}]}}, lambda live: not live["spec"].get("egress")),
        ("networkpolicies",),
    ),
    Row(
        "token mounted into the pods",
        editing_away(
            ACCOUNT, {"automountServiceAccountToken": True}, lambda live: live["automountServiceAccountToken"] is False
        ),
        ("serviceaccounts",),
    ),
    Row(
        "annotation of ours changed on the Service",
        editing_away(
            SERVICE,
            {"metadata": {"annotations": {IDLE: "99"}}},
            lambda live: live["metadata"]["annotations"][IDLE] != "99",
        ),
        ("services",),
    ),
    Row(
        "spec that concerns the Service",
        changing(endpoint={"internalLoadBalancer": {"idleTimeoutMinutes": 7}}),
        ("services",),
        (1, 1),
    ),
    Row(
        "spec that concerns Service and NetworkPolicy",
        changing(endpoint={"internalLoadBalancer": {"allowedSourceRanges": ["10.1.0.0/16"]}}),
        ("services", "networkpolicies"),
        (1, 1),
    ),
    Row("spec that concerns the pods", changing(drainSeconds=41), ("deployments",), A_START),
    Row("second replica", changing(replicas=2), ("deployments", "poddisruptionbudgets"), A_START),
    Row(
        "back to one replica",
        changing(replicas=1),
        ("deployments", "-poddisruptionbudgets"),
        (1, 3),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_an_act_costs(ledger: Ledger, row: Row) -> None:
    written, events = ledger.cost(row.act)

    counts = Counter(written)
    statuses = counts.pop(STATUS, 0)
    assert counts == Counter(row.children)
    least, most = row.statuses
    assert least <= statuses <= most
    assert events <= statuses, "no Event without a condition that changed"


# ---------------------------------------------------------------------- delete


@pytest.mark.parametrize(
    ("manifest", "cost"),
    [(a_baked_model("brief"), []), (a_share_model("brief"), ["-persistentvolumes"])],
    ids=["baked", "share"],
)
def test_a_delete_is_left_to_the_garbage_collector_but_for_the_volume(
    ledger: Ledger, manifest: Manifest, cost: list[str]
) -> None:
    def live_and_die(deployments: Deployments) -> None:
        deployments.apply(reporting(manifest))
        deployments.until("brief", "Serving")
        at_rest(deployments, "brief")
        deployments.api.delete(f"{deployments.collection}/brief")
        deployments.wait("nothing left", lambda: leftovers(deployments, "brief") == [])

    written, _ = ledger.cost(live_and_die)

    after = written[len(written) - written[::-1].index(STATUS) :]
    assert after == cost


def leftovers(deployments: Deployments, name: str) -> list[str]:
    selector = f"hermetic.dev/modeldeployment={name}"
    root, names = f"/api/v1/namespaces/{deployments.namespace}", []
    for path in (
        f"{root}/serviceaccounts", f"{root}/services", f"{root}/persistentvolumeclaims",
        f"/apis/apps/v1/namespaces/{deployments.namespace}/deployments",
    ):  # fmt: skip
        names += [item["metadata"]["name"] for item in deployments.api.get(path, labelSelector=selector)["items"]]
    chosen = f"{selector},hermetic.dev/namespace={deployments.namespace}"
    return names + [
        item["metadata"]["name"]
        for item in deployments.api.get("/api/v1/persistentvolumes", labelSelector=chosen)["items"]
    ]


# ---------------------------------------------------------------------- nothing, and all of it


def test_rest_and_resync_cost_nothing(ledger: Ledger) -> None:
    def rest(deployments: Deployments) -> None:
        listed = metric(deployments.operator, RELIST)
        deployments.wait("the next full list", lambda: metric(deployments.operator, RELIST) > listed)

    assert ledger.cost(rest) == ([], 0)


def test_a_restart_costs_nothing(ledger: Ledger) -> None:
    def restart(deployments: Deployments) -> None:
        reconciled = len(observations(deployments.operator, deployments.namespace, "phi"))
        assert deployments.operator.stop() == 0
        deployments.operator.start()
        deployments.wait(
            "a reconcile", lambda: len(observations(deployments.operator, deployments.namespace, "phi")) > reconciled
        )

    assert ledger.cost(restart) == ([], 0)


def test_nothing_was_written_but_what_the_acts_cost(ledger: Ledger) -> None:
    assert Counter(ledger.since.writes()) == ledger.spent


def test_the_operators_own_count_agrees_with_the_api_servers(ledger: Ledger) -> None:
    operator, log = ledger.deployments.operator, ledger.log
    offset, before = log.stat().st_size, by_the_operator(operator)
    ledger.deployments.change("phi", replicas=0)
    ledger.deployments.until("phi", "ScaledToZero")
    at_rest(ledger.deployments)

    wait_for("agreement", lambda: by_the_operator(operator) - before == by_the_api_server(log, offset), operator)

    assert by_the_operator(operator)["patch", "deployments", 200] > before["patch", "deployments", 200]
