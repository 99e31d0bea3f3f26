"""A newer authentic Fail that is refused as evidence: it never opens the gate, and it stops an older Pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hermetic.api.egressaudit import MOST_IMPORTS, EgressAuditSpec
from hermetic.api.times import timestamp
from hermetic.audit.attestation.choosing import authenticated, choose_among
from hermetic.audit.attestation.custom_resource import as_object
from hermetic.audit.attestation.imports import first_imports, read_imports, status_imports
from hermetic.audit.attestation.verification import Expected, Newest, authenticate
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.verdict.inputs import ProbeRound, VerdictInputs
from hermetic.audit.verdict.overall import standing_of
from hermetic.signing.keys import TrustedKeys, trusted
from tests.attestations import (
    CA,
    CLUSTER,
    NOW,
    OBSERVED,
    OTHER_CLUSTER,
    UID,
    a_finding,
    a_report,
    an_ed25519_key,
    provenance,
    signed,
    trust,
)

KEY = an_ed25519_key()
STRANGER = an_ed25519_key(seed=9, name="stranger")
HERE = Expected(CLUSTER, CA, UID, "sealed", 86400)
MINUTE = timedelta(minutes=1)
PASS = signed(KEY)
OPEN = a_finding("Fail", "natgw-inventory", message="a NAT gateway is attached")
EARLY, LATE = OBSERVED + 5 * MINUTE, OBSERVED + 40 * MINUTE
FINE = Finding("k8s-public-lb", "cluster", Verdict.PASS, Severity.CRITICAL, "NoPublicService", "no Service is public")


def fail(observed: Any = OBSERVED + 30 * MINUTE, key: Any = KEY, about: Any = None, **how: Any) -> Any:
    cluster = about.scope.cluster_arm_id if about is not None else CLUSTER
    report = a_report(OPEN, observed=observed, cluster=cluster, **{"verdict": "Fail", **how.pop("says", {})})
    return signed(key, report, about=about, now=how.pop("now", observed + 5 * MINUTE), **how)


def standing(
    *envelopes: Any, expected: Expected = HERE, imported: Any = None, keys: TrustedKeys | None = None, **spec: Any
) -> Any:
    objects = [as_object(envelope) for envelope in envelopes]
    candidates = {stored["metadata"]["name"]: authenticated(stored, keys or trust(KEY)) for stored in objects}
    digests = [envelope.digest for envelope in envelopes]
    moments = imported if isinstance(imported, dict) else dict.fromkeys(digests, imported) if imported else None
    choice = choose_among(candidates, expected, NOW, moments)
    image = "contoso.azurecr.io/hermetic@sha256:" + "a" * 64
    audit_spec = EgressAuditSpec.model_validate({"cluster": CLUSTER, "probe": {"image": image}, **spec})
    audit_standing = standing_of(audit_spec, VerdictInputs(choice, (FINE,), NOW, ProbeRound(NOW, 1)), NOW)
    return audit_standing.verdict, audit_standing.conditions[0].reason.value, audit_standing.conditions[0].message


@pytest.mark.parametrize(
    ("envelope", "refusal"),
    [
        (fail(about=provenance(ca=None, uid=None)), "ScopeIncomplete"),
        (fail(about=provenance(uid="3f1c2d4e-0000-4000-8000-00000000dead")), "OtherCluster"),
        (fail(valid_for=timedelta(hours=1)), "Expired"),
        (fail(says={"profile": "filtered"}), "OtherProfile"),
        (fail(observed=NOW + timedelta(hours=5)), "FromTheFuture"),
    ],
)
def test_a_newer_fail_that_is_refused_makes_the_pass_unknown_and_is_named(envelope: Any, refusal: str) -> None:
    verdict, reason, message = standing(PASS, envelope)
    assert (verdict, reason) == (Verdict.UNKNOWN, "AttestationContradicted")
    assert refusal in message
    assert "hermetic audit --azure" in message


def test_a_newer_fail_of_another_policy_makes_the_pass_unknown() -> None:
    def of_policy(digest: str) -> Any:
        about = provenance()
        return replace(about, inputs=about.inputs.model_copy(update={"policy": digest}))

    pinned, other = "sha256:" + "0a" * 32, "sha256:" + "0b" * 32
    expected = replace(HERE, policy_digests=(pinned,))
    passed = signed(KEY, about=of_policy(pinned))
    verdict, reason, message = standing(passed, fail(about=of_policy(other)), expected=expected)
    assert (verdict, reason) == (Verdict.UNKNOWN, "AttestationContradicted")
    assert "OtherPolicy" in message


def test_a_newer_fail_of_a_key_after_its_end_makes_the_pass_unknown() -> None:
    """A key that is being replaced: its holder still sees the estate, so its Fail is not dropped."""
    until = OBSERVED + MINUTE
    retired = replace(KEY.public, not_after=until)
    verdict, reason, message = standing(PASS, fail(), keys=trusted([retired]))
    assert (verdict, reason) == (Verdict.UNKNOWN, "AttestationContradicted")
    assert "KeyExpired" in message
    assert standing(PASS, keys=trusted([retired]))[0] is Verdict.PASS


def test_a_pass_of_a_key_after_its_end_is_refused_and_opens_nothing() -> None:
    retired = trusted([replace(KEY.public, not_after=OBSERVED - MINUTE)])
    verdict, reason, message = standing(PASS, keys=retired)
    assert (verdict, reason) == (Verdict.UNKNOWN, "AttestationRefused")
    assert "KeyExpired" in message


@pytest.mark.parametrize(
    "envelope",
    [
        fail(key=STRANGER),
        fail(about=provenance(cluster=OTHER_CLUSTER)),
        fail(observed=OBSERVED - timedelta(hours=1)),
    ],
    ids=["key that is not trusted", "another cluster", "older than the Pass"],
)
def test_a_fail_that_is_forged_foreign_or_older_keeps_the_pass(envelope: Any) -> None:
    assert standing(PASS, envelope)[:2] == (Verdict.PASS, "AttestationCounts")


@pytest.mark.parametrize("number", range(6))
def test_fail_of_the_same_second_as_a_pass_never_leaves_a_pass(number: int) -> None:
    """Whichever has the greater digest."""
    envelope = fail(observed=OBSERVED, now=OBSERVED + (5 + number) * MINUTE)
    for imported in (None, OBSERVED + 20 * MINUTE):
        assert standing(PASS, envelope, imported=imported)[0] in {Verdict.FAIL, Verdict.UNKNOWN}


def test_a_newer_pass_settles_a_fail_also_one_from_a_clock_that_is_ahead() -> None:
    ahead, later = fail(observed=NOW + timedelta(hours=5)), signed(KEY, a_report(observed=NOW - 5 * MINUTE))
    imports = {PASS.digest: EARLY, ahead.digest: NOW - 20 * MINUTE, later.digest: NOW - 4 * MINUTE}
    assert standing(PASS, ahead, imported=imports)[0] is Verdict.UNKNOWN
    assert standing(PASS, ahead, later, imported=imports)[0] is Verdict.PASS


def test_an_old_fail_that_is_brought_in_again_keeps_the_pass() -> None:
    old = fail(observed=OBSERVED - timedelta(hours=3))
    newest = Newest(PASS.digest, OBSERVED)
    expected = Expected(CLUSTER, CA, UID, "sealed", 86400, newest=newest)
    assert standing(PASS, old, expected=expected)[0] is Verdict.PASS


def test_an_exception_of_the_egress_audit_accepts_the_finding_of_a_newer_fail() -> None:
    accepted = {"check": "natgw-inventory", "resource": "*", "reason": "until it is moved", "owner": "network team"}
    exceptions = [{**accepted, "expires": "2027-01-01"}]
    assert standing(PASS, fail(about=provenance(uid=None)), exceptions=exceptions)[0] is Verdict.PASS


def test_a_refused_attestation_is_named_while_another_counts() -> None:
    message = standing(PASS, signed(KEY, a_report(observed=OBSERVED + MINUTE), about=provenance(uid=None)))[2]
    assert "refused: egress-" in message
    assert "ScopeIncomplete" in message


BEHIND = fail(observed=OBSERVED - timedelta(hours=3))
FOLLOWED = signed(KEY, previous=authenticate(BEHIND, trust(KEY)))


@pytest.mark.parametrize(
    ("passed", "imports", "verdict"),
    [
        (PASS, {PASS: EARLY, BEHIND: LATE}, Verdict.UNKNOWN),
        (PASS, {PASS: LATE, BEHIND: EARLY}, Verdict.PASS),
        (PASS, {PASS: EARLY, BEHIND: EARLY}, Verdict.PASS),
        (FOLLOWED, {FOLLOWED: EARLY, BEHIND: LATE}, Verdict.PASS),
    ],
    ids=["imported later", "imported earlier", "imported together", "the Pass follows it in its chain"],
)
def test_fail_of_a_clock_that_is_behind_is_as_new_as_its_first_import(
    passed: Any, imports: dict[Any, Any], verdict: Verdict
) -> None:
    """A jump box whose clock is three hours behind sees a path that was opened after the Pass of another one."""
    moments = {envelope.digest: moment for envelope, moment in imports.items()}
    newest = Newest(passed.digest, OBSERVED)
    for expected in (HERE, replace(HERE, newest=newest)):
        actual, reason, message = standing(passed, BEHIND, expected=expected, imported=moments)
        assert actual is verdict
        if verdict is Verdict.UNKNOWN:
            assert reason == "AttestationContradicted"
            assert f"first imported at {timestamp(LATE)}" in message


def test_fail_of_an_archive_that_is_imported_for_the_first_time_keeps_the_pass() -> None:
    """It was observed longer ago than any statement is valid: no clock that is in use is behind by a week."""
    week = timedelta(days=7)
    for late, verdict in ((timedelta(0), Verdict.UNKNOWN), (MINUTE, Verdict.PASS)):
        old = fail(observed=LATE - week - late)
        assert standing(PASS, old, imported={PASS.digest: EARLY, old.digest: LATE})[0] is verdict


def test_newer_pass_settles_a_fail_of_a_clock_that_is_behind() -> None:
    later = signed(KEY, a_report(observed=OBSERVED + 45 * MINUTE))
    imports = {PASS.digest: EARLY, BEHIND.digest: LATE, later.digest: LATE + 10 * MINUTE}
    assert standing(PASS, BEHIND, later, imported=imports)[0] is Verdict.PASS


AHEAD = signed(KEY, a_report(observed=OBSERVED + timedelta(hours=3)), now=OBSERVED + timedelta(hours=3))


def test_pass_of_a_clock_that_is_ahead_never_counts_also_when_its_time_has_come() -> None:
    """It would count for three hours longer than it may, and be newer than a Fail that came after it."""
    now, imported = OBSERVED + timedelta(hours=4), OBSERVED + 5 * MINUTE
    candidates = {"ahead": authenticate(AHEAD, trust(KEY))}
    choice = choose_among(candidates, HERE, now, {AHEAD.digest: imported})
    assert choice.accepted is None
    assert choice.refused["ahead"].refusal == "FromTheFuture"
    assert "audit again" in choice.refused["ahead"].message
    assert choose_among(candidates, HERE, now, {AHEAD.digest: OBSERVED + timedelta(hours=3)}).accepted is not None


def test_first_import_is_remembered_by_digest_when_the_object_is_created_again() -> None:
    """Flux deletes and creates what it applies; the name of an object is not signed."""
    statement = authenticate(PASS, trust(KEY))
    first = first_imports({"a": statement}, {"a": EARLY}, {}, CLUSTER)
    again = first_imports({"b": statement}, {"b": LATE}, first, CLUSTER)
    assert again == {PASS.digest: EARLY}
    assert first_imports({}, {}, again, CLUSTER) == again
    assert first_imports({"a": statement}, {"a": EARLY}, {}, OTHER_CLUSTER) == {}


def test_remembered_imports_are_bounded_and_keep_that_of_the_accepted_statement() -> None:
    imports = {f"sha256:{number:064}": OBSERVED + number * MINUTE for number in range(1000)}
    oldest = f"sha256:{0:064}"
    listed = status_imports(imports, oldest)
    assert len(listed) == MOST_IMPORTS
    assert {"digest": oldest, "at": timestamp(OBSERVED)} in listed
    assert f"sha256:{999:064}" in {entry["digest"] for entry in listed}
    assert read_imports({"imports": listed}).items() <= imports.items()
