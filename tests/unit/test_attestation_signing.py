"""What is signed, what is left out of it, what is never signed, and how it travels as an object."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from hermetic.api.egressaudit import EgressAttestation
from hermetic.api.kubernetes_yaml import dump
from hermetic.audit.attestation.cluster_identity import ca_fingerprint
from hermetic.audit.attestation.custom_resource import as_object, from_object, name_of
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.report_form import report_digest
from hermetic.audit.attestation.signing import COMPACT_ABOVE, LARGEST
from hermetic.audit.attestation.verification import Expected, Newest, authenticate, verify
from hermetic.audit.model.findings import Verdict
from hermetic.errors import AttestationRefused, ReportTooLarge, ReportUnusable
from hermetic.signing.envelope import LARGEST_PAYLOAD, Envelope, signed_bytes
from hermetic.signing.faults import EnvelopeFault
from tests.attestations import (
    CLUSTER,
    NOW,
    OBSERVED,
    OTHER_CLUSTER,
    SNAPSHOT,
    SUBNET,
    UID,
    a_finding,
    a_p256_key,
    a_report,
    an_ed25519_key,
    an_excepted_finding,
    choose,
    provenance,
    signed,
    trust,
)

KEY = an_ed25519_key()
TRUSTED = trust(KEY)
KUBECTL_ANNOTATIONS = 256 * 1024
ETCD_REQUEST = 1536 * 1024


def statement_of(envelope: Envelope) -> dict[str, Any]:
    statement: dict[str, Any] = json.loads(envelope.payload)
    return statement


def many(count: int, verdict: str = "Pass", check: str = "nic-public-ip") -> list[dict[str, Any]]:
    return [a_finding(verdict, check, resource=f"{SUBNET}/nic-{number}") for number in range(count)]


def test_a_statement_says_what_the_page_says() -> None:
    statement = statement_of(signed(KEY))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://hermetic.dev/attestation/egress-audit/v1"
    assert statement["subject"] == [{"name": CLUSTER, "digest": {"sha256": SNAPSHOT.removeprefix("sha256:")}}]
    predicate = statement["predicate"]
    assert (predicate["observedAt"], predicate["expiresAt"]) == ("2026-11-21T10:00:00Z", "2026-11-22T10:00:00Z")
    assert (predicate["sequence"], predicate["previous"]) == (1, None)
    assert predicate["report"] == a_report()
    assert predicate["omitted"] == {"Pass": {}, "NotApplicable": {}}


def test_the_signed_bytes_are_those_of_dsse() -> None:
    """Written out by hand once: type and payload, each after its length."""
    assert signed_bytes(b"hello") == b"DSSEv1 28 application/vnd.in-toto+json 5 hello"


@pytest.mark.parametrize("key", [KEY, a_p256_key()], ids=["Ed25519", "P-256"])
def test_the_same_report_gives_the_same_bytes(key) -> None:
    assert signed(key).as_bytes() == signed(key).as_bytes()


def test_signing_later_makes_nothing_younger() -> None:
    late = signed(KEY, now=OBSERVED + timedelta(hours=20))
    assert late == signed(KEY, now=OBSERVED + timedelta(minutes=3))


def test_fractions_of_the_start_are_cut_towards_the_past() -> None:
    report = a_report(startedAt="2026-11-21T11:00:00.999+01:00")
    assert authenticate(signed(KEY, report), TRUSTED).observed_at == OBSERVED


def test_each_follows_the_one_before() -> None:
    first = authenticate(signed(KEY), TRUSTED)
    next_report = a_report(observed=OBSERVED + timedelta(hours=1))
    second = authenticate(signed(KEY, next_report, previous=first), TRUSTED)
    assert (second.sequence, second.previous) == (2, first.digest)


def test_nothing_follows_one_of_another_cluster_or_an_earlier_life_of_this_one() -> None:
    first = authenticate(signed(KEY), TRUSTED)
    later = OBSERVED + timedelta(hours=1)
    with pytest.raises(AttestationRefused, match=r"aks-gpu, not .*aks-other"):
        signed(KEY, a_report(cluster=OTHER_CLUSTER, observed=later), about=provenance(OTHER_CLUSTER), previous=first)
    with pytest.raises(AttestationRefused, match="uid of kube-system"):
        signed(KEY, a_report(observed=later), about=provenance(uid=UID.replace("beef", "dead")), previous=first)
    renewed = provenance(ca="sha256:" + "cb" * 32)
    assert signed(KEY, a_report(observed=later), about=renewed, previous=first)
    unread = provenance(ca=None, uid=None)
    assert signed(KEY, a_report(observed=later), about=unread, previous=first)


def test_nothing_follows_what_was_observed_later() -> None:
    first = authenticate(signed(KEY), TRUSTED)
    for observed in (OBSERVED, OBSERVED - timedelta(seconds=1)):
        with pytest.raises(ReportUnusable, match="not after the previous attestation"):
            signed(KEY, a_report(a_finding(message="other"), observed=observed), previous=first)


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (a_report(schema="hermetic.dev/audit/v2"), "hermetic.dev/audit/v1"),
        (a_report(sources=["kube"]), "sources are kube"),
        (a_report(a_finding("Fail")), "its verdict is Pass, and its findings come to Fail"),
        (a_report(summary={"Pass": 1}), "there are 0 such findings"),
        (a_report(cluster=OTHER_CLUSTER), "name different clusters"),
        (a_report(seconds=1.5), "a float, 1.5"),
        (a_report(observed=NOW - timedelta(days=2)), "Expired"),
        (a_report(observed=NOW + timedelta(hours=1)), "FromTheFuture"),
        ({}, "not 'hermetic.dev/audit/v1'"),
    ],
)
def test_what_no_verifier_would_accept_is_not_signed(report: dict[str, Any], says: str) -> None:
    with pytest.raises(ReportUnusable) as caught:
        signed(KEY, report or {"x": 1})
    assert says in caught.value.message


def test_validity_is_bounded() -> None:
    week = signed(KEY, valid_for=timedelta(days=7))
    assert authenticate(week, TRUSTED).expires_at == OBSERVED + timedelta(days=7)
    for wrong in (timedelta(days=7, seconds=1), timedelta(0), timedelta(hours=-1)):
        with pytest.raises(ReportUnusable):
            signed(KEY, valid_for=wrong)


# Large reports


def a_large_report() -> dict[str, Any]:
    return a_report(*many(2000), *many(300, "NotApplicable", "natgw-zones"), *many(3, "Fail"), verdict="Fail")


def test_a_small_report_is_signed_whole_and_its_object_fits_into_an_annotation() -> None:
    report = a_report(*many(280))
    envelope = signed(KEY, report)
    assert COMPACT_ABOVE * 0.7 < len(envelope.payload) <= COMPACT_ABOVE
    assert len(json.dumps(as_object(envelope))) < KUBECTL_ANNOTATIONS
    assert statement_of(envelope)["predicate"]["report"] == report


def test_a_large_report_is_signed_without_what_is_fine_and_counts_it() -> None:
    report = a_large_report()
    envelope = signed(KEY, report)
    predicate = statement_of(envelope)["predicate"]
    assert predicate["omitted"] == {"Pass": {"nic-public-ip": 2000}, "NotApplicable": {"natgw-zones": 300}}
    assert predicate["report"]["findings"] == [
        finding for finding in report["findings"] if finding["verdict"] == "Fail"
    ]
    assert predicate["report"]["summary"] == report["summary"]
    assert predicate["reportDigest"] == report_digest(report)
    attestation = verify(envelope, TRUSTED, Expected(CLUSTER), NOW)
    assert attestation.verdict_on(NOW.date()) is Verdict.FAIL


def test_a_large_report_where_all_is_fine_still_passes() -> None:
    attestation = authenticate(signed(KEY, a_report(*many(2000))), TRUSTED)
    assert attestation.report["findings"] == []
    assert attestation.verdict_on(NOW.date()) is Verdict.PASS


@pytest.mark.parametrize("verdict", ["Fail", "Unknown"])
def test_what_is_not_fine_is_never_left_out_however_much_there_is(verdict: str) -> None:
    report = a_report(*many(1500, verdict), verdict=verdict)
    with pytest.raises(ReportTooLarge) as caught:
        signed(KEY, report)
    assert "1500 findings that are not Pass need " in caught.value.message
    assert str(LARGEST) in caught.value.message
    fitting = signed(KEY, a_report(*many(1000, verdict), *many(500), verdict=verdict))
    assert len(statement_of(fitting)["predicate"]["report"]["findings"]) == 1000
    assert len(fitting.as_json()["payload"]) <= LARGEST_PAYLOAD
    assert len(json.dumps(as_object(fitting))) < ETCD_REQUEST


# Exceptions end while an attestation still counts


@pytest.mark.parametrize("accepted", ["Fail", "Unknown"])
def test_an_exception_that_ended_since_the_audit_accepts_nothing(accepted: str) -> None:
    report = a_report(a_finding(), an_excepted_finding("2026-11-21", accepted))
    attestation = authenticate(signed(KEY, report), TRUSTED)
    assert attestation.verdict_on(dt.date(2026, 11, 21)) is Verdict.PASS
    assert attestation.verdict_on(dt.date(2026, 11, 22)) == accepted


# As an object


def test_the_object_is_one_that_the_api_takes_and_holds_the_same_envelope() -> None:
    envelope = signed(KEY)
    manifest = as_object(envelope)
    EgressAttestation.model_validate(manifest)
    assert from_object(manifest) == envelope
    assert from_object(yaml.safe_load(dump(manifest))) == envelope
    assert from_object(json.loads(json.dumps(manifest))) == envelope


def test_names_sort_by_time_and_tell_attestations_apart() -> None:
    hours = [signed(KEY, a_report(observed=OBSERVED + timedelta(hours=number))) for number in range(-20, 2)]
    names = [name_of(envelope) for envelope in hours]
    assert names == sorted(set(names))
    assert names[0] == f"egress-20261120t140000z-{hours[0].digest.removeprefix('sha256:')[:12]}"


def test_what_is_not_signed_is_not_read() -> None:
    """Name, labels and annotations belong to the account that applies it: kustomize may prefix a name."""
    manifest = as_object(signed(KEY))
    manifest["metadata"] = {"name": "prefix-x", "labels": {"verdict": "Pass"}, "annotations": {"a": "b"}, "uid": "u"}
    assert from_object(manifest) == signed(KEY)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"kind": "ConfigMap"}, EnvelopeFault.MALFORMED),
        ({"apiVersion": "hermetic.dev/v1"}, EnvelopeFault.MALFORMED),
        ({"spec": None}, EnvelopeFault.MALFORMED),
        ({"spec": {}}, EnvelopeFault.MALFORMED),
        ({"spec": {"envelope": None}}, EnvelopeFault.MALFORMED),
        ({"spec": {"envelope": signed(KEY).as_json(), "verdict": "Pass"}}, EnvelopeFault.UNKNOWN_FIELD),
    ],
)
def test_an_object_of_another_shape_is_refused(change: dict[str, Any], refusal: Refusal) -> None:
    with pytest.raises(AttestationRefused) as caught:
        from_object({**as_object(signed(KEY)), **change})
    assert caught.value.refusal == refusal


# The one that counts


def objects(*envelopes: Envelope) -> list[dict[str, Any]]:
    return [
        {**as_object(envelope), "metadata": {"name": f"e{position}"}} for position, envelope in enumerate(envelopes)
    ]


def test_the_newest_that_counts_is_chosen_whatever_its_verdict_and_the_order() -> None:
    old = signed(KEY)
    new = signed(KEY, a_report(a_finding("Fail"), observed=OBSERVED + timedelta(hours=1), verdict="Fail"))
    expired = signed(KEY, a_report(observed=NOW - timedelta(days=2)), now=NOW - timedelta(days=2))
    stranger = signed(an_ed25519_key(seed=5), a_report(observed=NOW - timedelta(minutes=1)))
    attestation_objects = objects(old, new, expired, stranger)
    for order in (attestation_objects, attestation_objects[::-1]):
        choice = choose(order, TRUSTED, Expected(CLUSTER), NOW)
        assert choice.accepted is not None
        assert (choice.accepted.digest, choice.name, choice.older) == (new.digest, "e1", ("e0",))
        assert choice.accepted.verdict_on(NOW.date()) is Verdict.FAIL
        assert {name: refusal.refusal for name, refusal in choice.refused.items()} == {
            "e2": "Expired",
            "e3": "UnknownKey",
        }


def test_nothing_that_counts_is_no_choice() -> None:
    choice = choose(objects(signed(KEY)), {}, Expected(CLUSTER), NOW)
    assert (choice.accepted, choice.name, choice.older) == (None, "", ())
    assert choice.refused["e0"].refusal == EnvelopeFault.UNKNOWN_KEY


def test_an_older_one_is_history_beside_the_accepted_one_and_a_replay_without_it() -> None:
    old, new = signed(KEY), signed(KEY, a_report(observed=OBSERVED + timedelta(hours=1)))
    accepted = authenticate(new, TRUSTED)
    expected = Expected(CLUSTER, newest=Newest(accepted.digest, accepted.observed_at))
    beside = choose(objects(old, new), TRUSTED, expected, NOW)
    assert (beside.name, beside.older, dict(beside.refused)) == ("e1", ("e0",), {})
    without = choose(objects(old), TRUSTED, expected, NOW)
    assert without.accepted is None
    assert without.refused["e0"].refusal == Refusal.REPLAYED


# What a cluster is known by


def a_ca(name: str) -> bytes:
    key = a_p256_key().key
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    dated = builder.serial_number(7).not_valid_before(OBSERVED).not_valid_after(OBSERVED + timedelta(days=9))
    return dated.sign(key, SHA256()).public_bytes(Encoding.PEM)


def test_the_ca_is_known_by_the_digest_of_its_der() -> None:
    certificate, other = a_ca("one"), a_ca("other")
    der = x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)
    assert ca_fingerprint(certificate) == "sha256:" + hashlib.sha256(der).hexdigest()
    assert ca_fingerprint(certificate + other) == ca_fingerprint(other + certificate) != ca_fingerprint(certificate)
    assert ca_fingerprint(certificate + certificate) == ca_fingerprint(certificate)
    with pytest.raises(ValueError, match="PEM"):
        ca_fingerprint(b"no certificate")
