"""What the Lease shows the API server about pods: until when they are let in, and where they need no proof."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.times import timestamp
from hermetic.controller.pod_gate import PodGate
from hermetic.kinds import EGRESS_AUDIT, MODEL_DEPLOYMENT
from hermetic.kube.store import Store
from hermetic.plan.pod_gate import (
    ENFORCED,
    MOST_MODELS,
    PODS_UNTIL,
    UNPROVEN,
    enforced_models,
    pods_until,
    unproven_namespaces,
)
from hermetic.plan.snapshot import IsolationEvidence
from tests.fakes.clocks import HandClock
from tests.snapshots import NOW, evidence

HOUR = timedelta(hours=1)


def policy(**isolation: Any) -> Configuration:
    return Configuration.model_validate({"isolation": isolation})


@pytest.mark.parametrize(
    "gate_evidence",
    [
        None,
        evidence("Fail"),
        evidence("Unknown"),
        evidence(None),
        evidence(sources=frozenset({"azure"})),
        evidence(observed_at=None),
        evidence(observed_at=NOW + HOUR),
        evidence(expires_at=NOW),
        evidence(age=timedelta(days=1)),
        evidence(confirmed_at=None),
        evidence(confirmed_at=NOW - timedelta(minutes=15)),
    ],
)
def test_no_pod_is_let_in_where_the_gate_is_closed(gate_evidence: IsolationEvidence | None) -> None:
    assert pods_until(policy(), gate_evidence, NOW) == ""


@pytest.mark.parametrize(
    ("gate_evidence", "until"),
    [
        (evidence(), "2026-11-24T12:15:00Z"),
        (evidence(expires_at=NOW + timedelta(minutes=3)), "2026-11-24T12:03:00Z"),
        (evidence(age=timedelta(hours=23, minutes=50)), "2026-11-24T12:10:00Z"),
        (evidence(confirmed_at=NOW - timedelta(minutes=14)), "2026-11-24T12:01:00Z"),
        (evidence(expires_at=None), "2026-11-24T12:15:00Z"),
    ],
)
def test_pods_are_let_in_until_the_first_of_the_ends(gate_evidence: IsolationEvidence, until: str) -> None:
    """Evidence that expires, that grows too old, and that the operator does not come to again."""
    assert pods_until(policy(), gate_evidence, NOW) == until


FLOORS: dict[str, tuple[dict[str, Any], str]] = {
    "by default": ({}, ""),
    "everywhere": ({"minimumEnforcement": "Off"}, "*"),
    "a sandbox": ({"overrides": [{"minimumEnforcement": "Report", "namespaces": ["lab", "dev"]}]}, "dev,lab"),
    "all but one": (
        {"minimumEnforcement": "Report", "overrides": [{"minimumEnforcement": "Enforce", "namespaces": ["prod"]}]},
        "*,-prod",
    ),
    "the strictest counts": (
        {
            "overrides": [
                {"minimumEnforcement": "Off", "namespaces": ["lab"]},
                {"minimumEnforcement": "Enforce", "namespaces": ["*"]},
            ]
        },
        "",
    ),
    "availability first": ({"replacements": "Admit"}, "*"),
}


@pytest.mark.parametrize(("isolation", "expected"), FLOORS.values(), ids=list(FLOORS))
def test_the_namespaces_that_need_no_proof_are_those_of_the_configuration(
    isolation: dict[str, Any], expected: str
) -> None:
    assert unproven_namespaces(policy(**isolation)) == expected
    names = expected.split(",")
    for namespace in ("lab", "dev", "prod", "other"):
        admitted = namespace in names or ("*" in names and f"-{namespace}" not in names)
        configured = policy(**isolation).isolation
        assert admitted == (configured.replacements == "Admit" or configured.minimum_of(namespace) != "Enforce")


MODELS = [("lab", "strict", "Enforce"), ("lab", "loose", "Report"), ("dev", "free", "Off"), ("prod", "x", "Enforce")]


@pytest.mark.parametrize(
    ("isolation", "expected"),
    [
        ({}, "dev/free,lab/loose,lab/strict,prod/x"),
        ({"minimumEnforcement": "Report"}, "lab/strict,prod/x"),
        (FLOORS["a sandbox"][0], "lab/strict,prod/x"),
        (FLOORS["all but one"][0], "lab/strict,prod/x"),
        ({"replacements": "Admit", "minimumEnforcement": "Off"}, ""),
        ({"replacements": "Admit"}, ""),
    ],
)
def test_models_whose_pods_wait_for_a_proof_are_named(isolation: dict[str, Any], expected: str) -> None:
    assert enforced_models(policy(**isolation), MODELS) == expected
    assert enforced_models(policy(**isolation), MODELS[::-1]) == expected


def test_too_many_models_are_named_by_namespace_the_largest_first() -> None:
    """A tenant with thousands of models makes the list coarse for that namespace alone."""
    few = [("lab", f"m{number}", "Enforce") for number in range(3)]
    many = [("flood", f"m{number}", "Enforce") for number in range(MOST_MODELS)]
    assert enforced_models(policy(), many).count(",") == MOST_MODELS - 1
    assert enforced_models(policy(), [*few, *many]) == "flood/*,lab/m0,lab/m1,lab/m2"
    namespaces = [(f"n{number}", name, "Enforce") for number in range(MOST_MODELS + 1) for name in ("a", "b")]
    assert enforced_models(policy(), namespaces) == "*"
    assert enforced_models(policy(), namespaces[2:]).count("/*") == MOST_MODELS


def test_the_longest_list_fits_into_the_annotations_of_an_object() -> None:
    """The API server refuses an object with more than 262,144 characters of annotations: the Lease would be lost."""
    models = [(f"n{number:062}", f"m{number:045}", "Enforce") for number in range(MOST_MODELS)]
    assert len(enforced_models(policy(), models)) < 262_144 - 4096


def test_the_lease_names_them_once_every_model_was_listed() -> None:
    store = Store(policy(minimumEnforcement="Report"))
    gate = PodGate(policy(minimumEnforcement="Report"), store, HandClock(start=NOW))
    for number, (name, isolation) in enumerate({"strict": {}, "loose": {"enforcement": "Report"}}.items(), 1):
        metadata = {"namespace": "lab", "name": name, "uid": name, "resourceVersion": str(number)}
        store.put({"kind": "ModelDeployment", "metadata": metadata, "spec": {"isolation": isolation}})
        store.note_listed(MODEL_DEPLOYMENT, None, "1")
        assert ENFORCED not in gate.annotations(), "the list is not at its end"
    store.sweep(MODEL_DEPLOYMENT, {"strict", "loose"}, 3)
    assert gate.annotations()[ENFORCED] == "lab/strict"


@pytest.mark.parametrize(
    ("isolation", "enforcement", "unnamed"),
    [
        ({}, "Report", True),
        ({}, "Enforce", True),
        ({"minimumEnforcement": "Off"}, "Report", False),
        ({"minimumEnforcement": "Off"}, "Enforce", True),
        ({"replacements": "Admit"}, "Enforce", False),
    ],
)
def test_new_model_is_named_before_the_next_renewal_where_its_pods_wait_for_a_proof(
    isolation: dict[str, Any], enforcement: str, unnamed: bool
) -> None:
    store = Store(policy(**isolation))
    gate = PodGate(policy(**isolation), store, HandClock(start=NOW))
    metadata = {"namespace": "lab", "name": "new", "uid": "u", "resourceVersion": "2"}
    model = {"kind": "ModelDeployment", "metadata": metadata, "spec": {"isolation": {"enforcement": enforcement}}}
    assert not gate.is_unnamed(model), "the models were not listed yet: the first renewal names them"
    store.note_listed(MODEL_DEPLOYMENT, None, "1")
    store.sweep(MODEL_DEPLOYMENT, set(), 1)
    gate.annotations()
    assert gate.is_unnamed(model) is unnamed
    store.put(model)
    gate.annotations()
    assert not gate.is_unnamed(model)


def a_gate(store: Store) -> tuple[PodGate, list[str]]:
    renewal_calls: list[str] = []
    gate = PodGate(policy(), store, HandClock(start=NOW))
    gate.renew = lambda: renewal_calls.append("now")
    return gate, renewal_calls


def an_audit(version: int, verdict: str = "Pass", lasts: timedelta = HOUR) -> dict[str, Any]:
    moment, end = timestamp(NOW - HOUR), timestamp(NOW + lasts)
    azure = {"digest": "sha256:" + "a" * 64, "observedAt": moment, "expiresAt": end, "signedBy": "platform"}
    input_fields = {"azure": azure, "kubernetes": {"observedAt": moment}, "probe": {"observedAt": moment, "nodes": 1}}
    return {
        "kind": "EgressAudit",
        "metadata": {"name": "cluster", "uid": "u", "generation": 1, "resourceVersion": str(version)},
        "status": {"observedGeneration": 1, "verdict": verdict, "evidence": input_fields},
    }


def test_what_an_earlier_process_said_stays_until_this_one_knows() -> None:
    """Until everything was listed and the evidence was judged, to say "closed" would refuse pods at every upgrade."""
    store = Store(policy())
    gate, renewal_calls = a_gate(store)
    gate.refresh()
    assert gate.annotations() == {UNPROVEN: ""}
    store.put(an_audit(2))
    store.note_listed(EGRESS_AUDIT, None, "2")
    gate.refresh()
    assert gate.annotations() == {UNPROVEN: ""}, "the status says Pass, and this process has not computed it"
    assert renewal_calls == []


def test_a_gate_that_opens_or_closes_is_said_at_once_and_nothing_else() -> None:
    store = Store(policy())
    gate, renewal_calls = a_gate(store)
    store.note_listed(EGRESS_AUDIT, None, "1")
    assert gate.annotations()[PODS_UNTIL] == ""
    store.put(an_audit(2))
    store.record_evaluation(confirmed_at=NOW)
    gate.refresh()
    assert len(renewal_calls) == 1, "it opens"
    assert gate.annotations()[PODS_UNTIL] == timestamp(NOW + timedelta(minutes=15))
    gate.refresh()
    assert len(renewal_calls) == 1, "open as before"
    store.put(an_audit(3, "Fail"))
    gate.refresh()
    assert len(renewal_calls) == 2, "it closes"
    assert gate.annotations()[PODS_UNTIL] == ""


def test_evidence_that_ends_earlier_is_said_at_once_and_a_later_end_with_the_next_renewal() -> None:
    """An operator that dies right after a shorter attestation leaves no moment after its end."""
    store = Store(policy())
    gate, renewal_calls = a_gate(store)
    store.note_listed(EGRESS_AUDIT, None, "1")
    store.put(an_audit(2))
    store.record_evaluation(confirmed_at=NOW)
    gate.annotations()
    for version, (minutes, renewals) in enumerate([(5, 1), (10, 1), (3, 2)], start=3):
        store.put(an_audit(version, lasts=timedelta(minutes=minutes)))
        gate.refresh()
        assert len(renewal_calls) == renewals
        gate.annotations()
