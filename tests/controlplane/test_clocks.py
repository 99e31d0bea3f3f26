"""Clocks that are wrong: the operator's, ahead, behind and jumping, and those of two jump boxes.

The API server's clock is right throughout: it compares the moment in the Lease with its own time, and stamps imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from testbed.errors import CannotRunError
from testbed.installation import wait_for
from testbed.moved_clock import move
from testbed.programs import programs
from tests.attestations import an_ed25519_key
from tests.controlplane.deployments import Deployments, admitted, applied
from tests.controlplane.sealed_cluster import ATTESTATIONS, SealedCluster, a_finding, sealed, sealed_cluster
from tests.scenarios import a_baked_model

__all__ = ["sealed"]

pytestmark = pytest.mark.sampled(2, of="clocks that are wrong on a real API server")

LEASE = "/apis/coordination.k8s.io/v1/namespaces/hermetic-system/leases/hermetic"
UNTIL = "hermetic.dev/pods-until"
HOUR = 3600.0
CONFIRMED_SECONDS = 900
EVALUATED_SECONDS = 300
"""An operator evaluates again after so many seconds at most."""
OPEN = a_finding("Fail", "natgw-inventory", message="a NAT gateway is attached")
Move = Callable[[float], None]


@pytest.fixture(scope="module")
def clock_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file by which the operator's clock is moved."""
    return tmp_path_factory.mktemp("clock") / "seconds"


@pytest.fixture(scope="module")
def sealed_module(
    clock_file: Path, tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]
) -> Iterator[SealedCluster]:
    """A cluster whose operator has the clock of a file; every model must be proven, as it is by default."""
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    move(clock_file, 0.0)
    module, minimum = ("testbed.moved_clock", str(clock_file)), {"minimumEnforcement": "Enforce"}
    folder = tmp_path_factory.mktemp("clocks")
    with sealed_cluster(folder, component_logs, module=module, isolation=minimum) as cluster:
        yield cluster


@pytest.fixture
def move_clock(clock_file: Path) -> Iterator[Move]:
    """`move_clock(seconds)`: by how much the operator's clock is ahead. It is right afterwards."""
    yield lambda seconds: move(clock_file, seconds)
    move(clock_file, 0.0)


@dataclass(frozen=True)
class Home:
    """A namespace with a model of one pod that serves."""

    sealed: SealedCluster
    namespace: Deployments
    uids: frozenset[str]

    def is_unchanged(self) -> bool:
        return {pod["metadata"]["uid"] for pod in self.namespace.pods("llama")} == self.uids

    def is_admitting(self) -> bool:
        return admitted(self.namespace)


@pytest.fixture
def home(sealed: SealedCluster, move_clock: Move) -> Iterator[Home]:
    """A serving model, while every clock is right."""
    move_clock(0.0)
    namespace = sealed.namespace()
    sealed.open_gate()
    namespace.apply(a_baked_model("llama", endpoint={}, drainSeconds=5))
    namespace.until("llama", "Serving")
    yield Home(sealed, namespace, frozenset(pod["metadata"]["uid"] for pod in namespace.pods("llama")))
    sealed.api.delete(f"/api/v1/namespaces/{namespace.namespace}")


def moment(sealed: SealedCluster) -> str:
    """Until when the Lease admits pods; "" where it admits none."""
    annotations = sealed.api.get(LEASE)["metadata"].get("annotations") or {}
    return str(annotations.get(UNTIL, ""))


def seconds_from_now(stamp: str) -> float:
    return (datetime.fromisoformat(stamp) - datetime.now(UTC)).total_seconds() if stamp else 0.0


def bring(sealed: SealedCluster, *findings: dict[str, object], **options: object) -> str:
    """Apply an attestation beside those that are there, imported in a later second; returns its name."""
    imported = [item["metadata"]["creationTimestamp"] for item in sealed.api.get(ATTESTATIONS)["items"]]
    latest = max(map(datetime.fromisoformat, imported), default=datetime.min.replace(tzinfo=UTC))
    wait_for("the next second", lambda: datetime.now(UTC) >= latest + timedelta(seconds=1))
    manifest = sealed.attestation(*findings, **options)  # type: ignore[arg-type]
    applied(sealed.api, ATTESTATIONS, manifest)
    return str(manifest["metadata"]["name"])


def have_evaluated(sealed: SealedCluster) -> None:
    """Import a statement of a key that is not trusted: the operator evaluates everything again."""
    bring(sealed, key=an_ed25519_key(9, "stranger"))


@pytest.mark.timeout(900)
def test_clock_that_jumps_back_while_evidence_counts_admits_no_pod_until_it_is_right(
    sealed: SealedCluster, home: Home, move_clock: Move
) -> None:
    """Evidence of the future opens nothing, and what the operator writes into the Lease is over for the API server.

    Nothing else happens when the clock is right again: the next evaluation comes within five minutes.
    """
    move_clock(-HOUR)
    sealed.attest()
    wait_for("no pod to be admitted", lambda: not home.is_admitting(), timeout=90)
    assert seconds_from_now(moment(sealed)) <= 0
    home.namespace.change("llama", replicas=2)
    wait_for("it is told", lambda: home.namespace.condition("llama")["status"] == "False", timeout=90)
    assert home.is_unchanged()

    move_clock(0.0)
    sealed.until("Pass", timeout=EVALUATED_SECONDS + 60)
    home.namespace.wait("the second pod", lambda: len(home.namespace.pods("llama")) == 2, timeout=120)


def test_clock_that_is_behind_by_less_than_is_allowed_changes_nothing(
    sealed: SealedCluster, home: Home, move_clock: Move
) -> None:
    move_clock(-60.0)
    newest = sealed.attest()
    sealed.wait("an evaluation", lambda: newest in sealed.condition("AttestationAccepted").get("message", ""))
    assert sealed.status["verdict"] == "Pass"
    assert home.is_admitting()


def test_operator_that_starts_with_a_clock_that_is_behind_admits_no_pod(
    sealed: SealedCluster, home: Home, move_clock: Move
) -> None:
    """It reads evidence, and a round of the probe, that were made after its own now."""
    sealed.operator.stop()
    move_clock(-2 * HOUR)
    sealed.operator.start()
    wait_for("no pod to be admitted", lambda: not home.is_admitting(), timeout=90)
    sealed.wait("a verdict", lambda: sealed.status["verdict"] != "Pass", timeout=90)
    assert home.is_unchanged()

    move_clock(0.0)
    have_evaluated(sealed)
    sealed.until("Pass", timeout=120)
    wait_for("a pod to be admitted", home.is_admitting, timeout=90)


def test_clock_that_is_ahead_ends_evidence_early_and_leaves_no_moment_after_its_end(
    sealed: SealedCluster, home: Home, move_clock: Move
) -> None:
    """By as much as it is ahead; for the API server the moment is never later than the end of the evidence."""
    lasts = timedelta(hours=2)
    name = sealed.attest(lasts=lasts)
    sealed.wait("its evidence", lambda: name in sealed.condition("AttestationAccepted").get("message", ""))
    end = sealed.status["evidence"]["azure"]["expiresAt"]
    move_clock(HOUR)
    sealed.attest(lasts=lasts)
    wait_for("a later moment", lambda: seconds_from_now(moment(sealed)) > CONFIRMED_SECONDS + 60, timeout=90)
    assert seconds_from_now(moment(sealed)) <= HOUR + CONFIRMED_SECONDS
    assert moment(sealed) <= sealed.status["evidence"]["azure"]["expiresAt"]

    move_clock(2 * HOUR + 60)
    have_evaluated(sealed)
    wait_for("the evidence to have ended for it", lambda: moment(sealed) == "", timeout=90)
    sealed.until("Unknown", "IsolationEvidenceStale", timeout=90)
    assert seconds_from_now(end) > 0, "it has not ended for anybody else"
    assert home.is_unchanged()

    move_clock(0.0)
    have_evaluated(sealed)
    sealed.until("Pass", timeout=120)


def test_fail_that_is_imported_while_the_clock_is_wrong_closes(
    sealed: SealedCluster, home: Home, move_clock: Move
) -> None:
    """Behind, the Fail is of the future as evidence; it makes the verdict Unknown at least."""
    for seconds in (-3 * HOUR, HOUR):
        move_clock(seconds)
        name = bring(sealed, OPEN, says={"verdict": "Fail"})
        wait_for("no pod to be admitted", lambda: not home.is_admitting(), timeout=90)
        sealed.wait("not Pass", lambda: sealed.status["verdict"] != "Pass", timeout=90)
        move_clock(0.0)
        have_evaluated(sealed)
        sealed.wait("Fail, once the clock is right", lambda: sealed.status["verdict"] == "Fail", timeout=120)
        assert home.is_unchanged()
        sealed.api.delete(f"{ATTESTATIONS}/{name}")
        sealed.attest()
        sealed.until("Pass", timeout=120)


def test_two_jump_boxes_with_different_clocks(sealed: SealedCluster, home: Home) -> None:
    """The clock of the first is three hours ahead, that of the second three hours behind."""
    ahead, behind = timedelta(hours=3), timedelta(hours=-3)
    refused = bring(sealed, ahead=ahead)
    sealed.wait(
        "it is refused", lambda: {"name": refused, "reason": "FromTheFuture"} in sealed.status.get("refusals", ())
    )
    assert sealed.status["verdict"] == "Pass"
    assert home.is_admitting()

    fail = bring(sealed, OPEN, ahead=ahead, says={"verdict": "Fail"})
    assert fail in sealed.until("Unknown", "AttestationContradicted")["message"]
    wait_for("no pod to be admitted", lambda: not home.is_admitting())
    sealed.attest()
    sealed.until("Pass", timeout=120)

    older = bring(sealed, OPEN, ahead=behind, says={"verdict": "Fail"})
    assert older in sealed.until("Unknown", "AttestationContradicted")["message"]
    wait_for("no pod to be admitted", lambda: not home.is_admitting())
    sealed.attest()
    sealed.until("Pass", timeout=120)
    assert home.is_unchanged()
