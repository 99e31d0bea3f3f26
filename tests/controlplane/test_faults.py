"""What the network and the API server can do to an operator, through a proxy that does it on purpose."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.faults import Answer, CutWatch, DropAfter, DropBefore, Fault
from testbed.installation import wait_for
from tests.controlplane.fault_fixtures import ProxiedDeployments, terminated
from tests.scenarios import a_baked_model, a_share_model, changed, reporting

pytestmark = pytest.mark.sampled(4, of="faults of the API server")

StartBehind = Callable[..., ProxiedDeployments]
CHILDREN = r"/(deployments|services|serviceaccounts|networkpolicies|persistentvolume)"
MANY = 40  # two hundred are made in memory, by tests/controller/test_operator.py


def children_stand(behind: ProxiedDeployments, name: str = "phi") -> bool:
    return bool(behind.workload(name)) and behind.condition(name).get("observedGeneration") == 1


def test_writes_that_were_done_but_not_answered_are_done_once(behind: ProxiedDeployments) -> None:
    behind.proxy.inject(Fault(DropAfter(), methods=("PATCH",), path=CHILDREN, times=6))
    behind.apply(reporting(a_share_model()))

    behind.wait("every child", lambda: _stands_whole(behind))
    assert set(_children(behind).values()) == {1}


def _stands_whole(behind: ProxiedDeployments) -> bool:
    return all(_children(behind).values()) and bool(behind.condition("llama"))


def _children(behind: ProxiedDeployments) -> dict[str, int]:
    """How many children of each kind there are in the namespace, volumes for it included."""
    paths = {
        "deployments": "/apis/apps/v1/namespaces/{}/deployments",
        "services": "/api/v1/namespaces/{}/services",
        "serviceaccounts": "/api/v1/namespaces/{}/serviceaccounts",
        "networkpolicies": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
        "persistentvolumeclaims": "/api/v1/namespaces/{}/persistentvolumeclaims",
        "persistentvolumes": "/api/v1/persistentvolumes",
    }
    chosen = dict.fromkeys(paths, "app.kubernetes.io/managed-by=hermetic")
    chosen["persistentvolumes"] = f"hermetic.dev/namespace={behind.namespace}"
    return {
        name: len(behind.api.get(path.format(behind.namespace), labelSelector=chosen[name])["items"])
        for name, path in paths.items()
    }


def test_connections_that_break_at_random_only_cost_time(behind: ProxiedDeployments) -> None:
    behind.proxy.inject(Fault(DropBefore(), methods=("PATCH",), path=CHILDREN, probability=0.4, times=12))
    behind.proxy.inject(Fault(Answer(500), methods=("PATCH",), path=CHILDREN, probability=0.4, times=12))
    behind.apply(reporting(a_share_model()))

    behind.wait("every child", lambda: _stands_whole(behind), 120)


def test_patience_that_the_api_server_asks_for_is_given(behind: ProxiedDeployments) -> None:
    behind.proxy.inject(Fault(Answer(429, retry_after=3), methods=("PATCH",), path="/deployments/phi", times=1))
    behind.apply(reporting(a_baked_model()))
    behind.wait("the refusal", lambda: any(line.get("again_in") or line.get("because") for line in _of(behind, "phi")))
    refused = time.monotonic()
    behind.wait("the workload", lambda: behind.workload("phi"))

    assert time.monotonic() - refused > 1.5, "it did not wait"
    assert len(behind.writes_to("/deployments/phi")) == 2


def _of(behind: ProxiedDeployments, name: str) -> list[dict[str, Any]]:
    return [line for line in behind.reconciles(name) if line["result"] == "retried"]


def test_a_poisoned_object_does_not_hold_the_others_up(behind: ProxiedDeployments) -> None:
    behind.proxy.inject(Fault(Answer(500), methods=("PATCH",), path="/serviceaccounts/poisoned"))
    behind.apply(reporting(a_baked_model("poisoned")), *(reporting(a_baked_model(f"m{n}")) for n in range(MANY - 1)))

    def others_stand() -> bool:
        models = behind.api.get(behind.collection)["items"]
        return sum("status" in model and bool(model["status"].get("conditions")) for model in models) >= MANY - 1

    behind.wait("the others", others_stand, 120)
    assert behind.workload("poisoned") is None
    waits = [line["again_in"] for line in _of(behind, "poisoned")]
    assert waits, "it was never tried"
    assert len(waits) < 12, "it is tried with growing pauses"

    behind.proxy.lift()
    behind.wait("the poisoned one", lambda: behind.workload("poisoned"), 120)


def test_what_happens_while_the_watches_are_cut_is_not_missed(behind: ProxiedDeployments) -> None:
    behind.apply(reporting(a_baked_model()))
    behind.wait("the workload", lambda: children_stand(behind))
    for expired in (False, True):
        behind.proxy.cut_watches(expired=expired)
        _comes_back(behind, f"/api/v1/namespaces/{behind.namespace}/serviceaccounts/phi")


def _comes_back(behind: ProxiedDeployments, path: str) -> None:
    gone = _uid(behind.api, path)
    behind.api.delete(path)
    behind.wait("another of its name", lambda: _uid(behind.api, path) not in {"", gone}, 90)


def _uid(api: Api, path: str) -> str:
    try:
        return str(api.get(path)["metadata"]["uid"])
    except ApiError as error:
        if error.status != 404:
            raise
        return ""


def test_an_api_server_that_restarts_in_the_middle_finds_the_work_done(
    behind: ProxiedDeployments, controlplane: ControlPlane
) -> None:
    behind.proxy.at_write(3, controlplane.stop_apiserver)
    behind.apply(reporting(a_share_model()))
    wait_for("a dead API server", lambda: not _answers(behind.api))
    controlplane.start_apiserver()
    behind.wait("every child", lambda: _stands_whole(behind), 120)
    assert set(_children(behind).values()) == {1}


def _answers(api: Api) -> bool:
    try:
        api.get("/version")
    except (OSError, ApiError):
        return False
    return True


OF_PHI = "/modeldeployments/phi|/deployments/phi|/services/phi"


def test_a_rival_that_writes_all_the_time_neither_stops_us_nor_makes_us_write(behind: ProxiedDeployments) -> None:
    behind.apply(reporting(a_baked_model()))
    # Else the status that its pod leads to, seconds later, is refused by the rival as often as chance has it.
    settled = {"Serving", "Unschedulable"}  # another test may have left a node with a GPU
    behind.wait("the pod's state", lambda: behind.condition("phi", "Available").get("reason") in settled)
    landed, sent = len(behind.landed(OF_PHI)), len(behind.writes_to(OF_PHI))
    for number in range(100):
        behind.api.merge(f"{behind.collection}/phi", {"metadata": {"annotations": {"rival": str(number)}}})
    behind.change("phi", rollout="Surge")
    behind.wait(
        "the change", lambda: (behind.workload("phi") or {})["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 1
    )

    live = behind.get("phi")
    assert live["metadata"]["annotations"]["rival"] == "99", "what the rival wrote stays"
    landed, sent = len(behind.landed(OF_PHI)) - landed, len(behind.writes_to(OF_PHI)) - sent
    assert landed <= 4, "one Deployment and the words about it"
    assert sent <= 12, "of a hundred changes between, a few are met on the way, and no write is refused for long"


def test_a_deployment_that_is_made_anew_under_its_name_adopts_nothing(behind: ProxiedDeployments) -> None:
    behind.apply(reporting(a_share_model()))
    behind.wait("every child", lambda: _stands_whole(behind))
    first = behind.get("llama")["metadata"]["uid"]
    behind.api.delete(f"{behind.collection}/llama")
    behind.apply(changed(reporting(a_share_model()), drainSeconds=7))

    def of_the_second() -> bool:
        second = behind.get("llama")["metadata"]["uid"]
        owners = [
            owner["uid"]
            for owner in (behind.workload("llama") or {"metadata": {}})["metadata"].get("ownerReferences", [])
        ]
        return second != first and owners == [second]

    behind.wait("children of the second", of_the_second, 120)


PRIMARY = "/modeldeployments|/egressaudits"


ENDS = {
    "list 404": Fault(Answer(404), methods=("GET",), path=PRIMARY, times=2),
    "410": Fault(Answer(410), methods=("WATCH",), path=PRIMARY, times=4),
    "404": Fault(Answer(404), methods=("WATCH",), path=PRIMARY, times=4),
    "403": Fault(Answer(403), methods=("WATCH",), path=PRIMARY, times=4),
    "503": Fault(Answer(503), methods=("WATCH",), path=PRIMARY, times=4),
    "429": Fault(Answer(429, retry_after=1), methods=("WATCH",), path=PRIMARY, times=4),
    "error 500": Fault(CutWatch(error=500), path=PRIMARY, times=4),
    "error 504": Fault(CutWatch(error=504), path=PRIMARY, times=4),
    "error 410": Fault(CutWatch(error=410), path=PRIMARY, times=4),
}


@pytest.mark.timeout(900)
def test_no_end_of_a_watch_ends_the_process(behind: ProxiedDeployments) -> None:
    """kopf takes some of these for the end. What is applied afterwards is served by the same process all the same."""
    pid = behind.operator.component.pid
    for number, (name, fault) in enumerate(ENDS.items()):
        _serves_after(behind, fault, f"after-{number}", name)
        assert behind.operator.component.pid == pid, name
    code, seconds = terminated(behind.operator)
    assert code == 0
    assert seconds < 12


def _serves_after(behind: ProxiedDeployments, fault: Fault, model: str, name: str) -> None:
    behind.wait(
        "watches",
        lambda: (
            {open_watch.resource for open_watch in behind.proxy.open_watches} >= {"modeldeployments", "egressaudits"}
        ),
    )
    behind.proxy.inject(fault)
    behind.proxy.cut_watches(PRIMARY, expired="GET" in fault.methods)
    behind.wait(f"faults of {name} used up", lambda: fault.hits == fault.times, 120)
    behind.apply(reporting(a_baked_model(model)))
    behind.wait(f"the workload after {name}", lambda: behind.workload(model), 120)
