"""A thousand attestations in one cluster, as where old ones are never removed: the newest counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermetic.audit.attestation.choosing import authenticated, choose_among
from hermetic.audit.attestation.custom_resource import as_object
from hermetic.audit.attestation.verification import Expected
from hermetic.audit.model.findings import Verdict
from tests.attestations import CLUSTER, NOW, a_finding, a_report, an_ed25519_key, signed, trust

KEY, STRANGER = an_ed25519_key(), an_ed25519_key(9, "stranger")
MANY = 1000
OPEN = a_finding("Fail", "natgw-inventory")


@pytest.fixture(scope="module")
def candidates() -> dict[str, Any]:
    """Of MANY hours, observed one minute after the other, every tenth by a stranger; by name."""
    authenticated_by_name: dict[str, Any] = {}
    for number in range(MANY):
        observed = NOW - timedelta(minutes=MANY - number)
        key = STRANGER if number % 10 == 5 else KEY
        manifest = as_object(signed(key, a_report(observed=observed), now=observed + timedelta(seconds=30)))
        authenticated_by_name[manifest["metadata"]["name"]] = authenticated(manifest, trust(KEY))
    return authenticated_by_name


def test_newest_of_a_thousand_attestations_counts_and_strangers_are_refused_by_name(candidates):
    choice = choose_among(candidates, Expected(CLUSTER), NOW)

    assert len(candidates) == MANY
    assert choice.name == max(name for name, candidate in candidates.items() if name not in choice.refused)
    assert len(choice.refused) == MANY // 10
    assert choice.newer_fails == ()


def test_one_fail_that_is_newer_than_a_thousand_others_counts(candidates):
    report = a_report(OPEN, observed=NOW - timedelta(seconds=20), verdict="Fail")
    manifest = as_object(signed(KEY, report, now=NOW - timedelta(seconds=10)))
    name = manifest["metadata"]["name"]
    choice = choose_among({**candidates, name: authenticated(manifest, trust(KEY))}, Expected(CLUSTER), NOW)

    assert choice.name == name
    assert choice.accepted is not None
    assert choice.accepted.read_report.verdict == Verdict.FAIL.value
