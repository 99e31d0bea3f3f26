"""How it ends, and who writes next: one at a time, and never a Lease left behind by a process that was asked to go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

from testbed.api import Api
from testbed.faults import Delay, Fault
from testbed.installation import OperatorProcess, wait_for
from tests.controlplane.fault_fixtures import LEASE, ProxiedDeployments, arrives, lease_holder, terminated
from tests.controlplane.operator_fixtures import StartOperator
from tests.scenarios import a_baked_model, reporting

pytestmark = pytest.mark.sampled(3, of="shutdown")

PROMISED_SECONDS = 10


def test_at_rest_it_ends_at_once_and_lets_go_of_the_lease(operator: OperatorProcess, api: Api) -> None:
    assert lease_holder(api).startswith("operator-0_")

    code, seconds = terminated(operator)

    assert (code, lease_holder(api)) == (0, "")
    assert seconds < 5, "nothing was in hand"


def test_a_write_in_flight_is_finished_and_nothing_new_is_begun(
    start_behind: Callable[..., ProxiedDeployments], api: Api
) -> None:
    behind = start_behind(workers=1)
    behind.proxy.inject(Fault(Delay(2.0), methods=("PATCH",), path="/serviceaccounts/"))
    behind.apply(reporting(a_baked_model("phi")))
    arrives(behind.proxy, "/serviceaccounts/phi", behind.operator)
    behind.apply(reporting(a_baked_model("late")))

    code, seconds = terminated(behind.operator)

    assert (code, lease_holder(api)) == (0, "")
    assert seconds < PROMISED_SECONDS
    assert behind.child("v1", "serviceaccounts", "phi") is not None
    assert behind.proxy.writes("/late[?/]") == [], "a deployment was begun after the signal"


@pytest.fixture
def no_lease_left(api: Api) -> Iterator[None]:
    """A Lease that could not be given back would hold up the next test's operator until it ends."""
    yield
    if lease_holder(api):
        api.delete(LEASE)


@pytest.mark.usefixtures("no_lease_left")
@pytest.mark.parametrize("silent", ["/serviceaccounts/", "/"], ids=["one write", "everything"])
def test_an_answer_that_never_comes_does_not_hold_it_up(behind: ProxiedDeployments, silent: str) -> None:
    behind.proxy.inject(Fault(Delay(math.inf), path=silent))
    behind.apply(reporting(a_baked_model("phi")))
    arrives(behind.proxy, "/serviceaccounts/phi", behind.operator)

    code, seconds = terminated(behind.operator)

    assert code == 0
    assert seconds < PROMISED_SECONDS
    # What hangs may still be done: the Lease is left to run out, or a successor would write before it.
    assert lease_holder(behind.api) == f"operator-0_{behind.operator.folder}"


def test_a_second_operator_waits_takes_over_at_release_and_finds_nothing_to_write(
    start_behind: Callable[..., ProxiedDeployments], start_operator: StartOperator, api: Api
) -> None:
    leading = start_behind()
    leading.apply(reporting(a_baked_model("phi")))
    leading.until("phi", "Unschedulable")
    waiting = start_operator(wait=False, server=leading.proxy.server)
    waiting.component.start()
    lines = wait_for("word of the holder", lambda: [line for line in waiting.log_lines() if "because" in line], waiting)
    assert lines[0]["because"] == f"held by {lease_holder(api)}"
    assert not waiting.ready()
    before = len(leading.proxy.writes())

    code, _ = terminated(leading.operator)
    wait_for("takeover", waiting.ready, waiting, timeout=10)
    wait_for(
        "a reconcile of everything", lambda: "reconcile" in [line["event"] for line in waiting.log_lines()], waiting
    )

    assert code == 0
    assert lease_holder(api).startswith("operator-1_")
    assert len(leading.proxy.writes()) == before
