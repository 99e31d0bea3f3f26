"""One closing of seeded schedules of a gate on a real API server; `make test-closed-gates-real` runs 200 schedules.

`python -m tests.schedules replay SEED --closed-gates --real` shows one with its closing.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from testbed.errors import CannotRunError
from testbed.installation import wait_for
from testbed.programs import programs
from tests.sampling import Sample
from tests.schedules import gate_batches
from tests.schedules.gate_closing import SHORT, GateCluster, opened
from tests.schedules.gate_models import GateModel
from tests.schedules.gate_records import ClosedTime, broken_promises, seconds_of

CLOSINGS = (1, 16, 36, 111)
"""Seeds that draw an attestation that is withdrawn, a foreign node, and packets of the probe that are lost (two)."""
SAMPLE, MODELS = 1, 3
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

pytestmark = [pytest.mark.timeout(1800), pytest.mark.sampled(0)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GateCluster]:
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    with opened(tmp_path_factory.mktemp("gates")) as cluster:
        yield cluster


def test_no_pod_starts_behind_a_closed_gate_after_what_is_promised(
    cluster: GateCluster, sample: Sample, record_property: Callable[[str, object], None]
) -> None:
    for first in sample.of("closings of a gate on a real API server", CLOSINGS, SAMPLE):
        assert gate_batches.close_once(cluster, first, MODELS) == {}
    record_property("seconds until a waiting pod was removed, at most", f"{cluster.longest_removal:.1f}")


def test_schedules_show_a_cluster_without_the_policies(cluster: GateCluster) -> None:
    """Where nothing refuses Bindings, a node that comes after the end of the evidence starts what waits."""
    sealed = cluster.sealed
    sealed.open_gate()
    model = waiting_model(cluster)
    name = sealed.attest(lasts=SHORT)
    sealed.wait("it to count", lambda: name in sealed.condition("AttestationAccepted").get("message", ""))
    end = sealed.status["evidence"]["azure"]["expiresAt"]
    sealed.operator.stop(signal.SIGKILL)
    assert time.time() < seconds_of(end), "the operator has removed what waits"
    for name in ("hermetic-pod-gate", "hermetic-binding-gate"):
        sealed.api.delete(f"{BINDINGS}/{name}")
    wait_for("the end of the evidence", lambda: time.time() > seconds_of(end) + 5)
    cluster.add_node("real")
    records = cluster.records
    closed = ClosedTime(seconds_of(end), float("inf"), seconds_of(end), ())

    def broken() -> list[str]:
        return list(broken_promises(records.of((model.namespace.namespace,)), records.moments, closed))

    wait_for("a broken promise", broken, timeout=240)
    assert "was given a node" in broken()[0]


def waiting_model(cluster: GateCluster) -> GateModel:
    """Of the first seed whose pods are more than there are nodes."""
    seeds = (seed for seed in range(1, 100) if GateModel.situation_of(seed) == "pods without a node")
    model = GateModel(cluster.sealed, next(seeds))
    model.prepare()
    model.begin()
    cluster.sealed.wait("pods", model.has_pods)
    return model
