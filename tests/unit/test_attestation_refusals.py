"""Every reason for which an attestation is refused: shown by one that has exactly that fault."""

from __future__ import annotations

import base64
import json
import re
import string
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import Expected, verify
from hermetic.cli.attest.files import attestation_in
from hermetic.signing.envelope import LARGEST_FILE, Envelope, signed_bytes
from hermetic.signing.faults import EnvelopeFault
from hermetic.signing.keys import read_public_key, trusted
from hermetic.signing.signatures import P256_ORDER, sign
from tests.attestations import (
    CLUSTER,
    NOW,
    OBSERVED,
    OTHER_CLUSTER,
    a_finding,
    a_report,
    an_ed25519_key,
    provenance,
    public_pem_of,
    signed,
    signed_as_it_stands,
    trust,
)
from tests.refusals import HERE, KEY, P256, TRUSTED, file_with, refusal_of, statement_with, with_signature, word

BASE64_ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


@pytest.mark.parametrize("key", [KEY, P256], ids=["Ed25519", "P-256"])
def test_what_a_trusted_key_signed_about_this_cluster_counts(key) -> None:
    attestation = verify(signed(key), TRUSTED, HERE, NOW)
    assert (attestation.scope.cluster_arm_id, attestation.observed_at) == (CLUSTER, OBSERVED)
    assert attestation.expires_at == OBSERVED + timedelta(days=1)
    assert attestation.signed_by.name == key.public.name
    assert attestation.verdict_on(NOW.date()) == "Pass"
    assert dict(attestation.report) == a_report()


def test_arm_ids_differ_in_case_and_mean_the_same() -> None:
    assert verify(signed(KEY), TRUSTED, Expected(CLUSTER.upper().replace("/SUBSCRIPTIONS", "/subscriptions")), NOW)


# What is on the wire


def test_oversized() -> None:
    assert word(b" " * (LARGEST_FILE + 1)) == EnvelopeFault.OVERSIZED
    assert word(file_with(lambda document: document.update(payload="A" * 900_004))) == EnvelopeFault.OVERSIZED
    assert word(file_with(lambda it: it["signatures"][0].update(sig="A" * 1028))) == EnvelopeFault.OVERSIZED
    assert word(file_with(lambda it: it["signatures"][0].update(keyid="a" * 257))) == EnvelopeFault.OVERSIZED


def test_truncated_wherever_the_file_ends() -> None:
    envelope_bytes = signed(KEY).as_bytes().rstrip()
    assert {word(envelope_bytes[:end]) for end in range(len(envelope_bytes))} == {EnvelopeFault.TRUNCATED}


def test_truncated_payload_and_signature() -> None:
    envelope = signed(KEY)
    ends = range(1, len(envelope.payload), 13)
    cut = [Envelope(envelope.payload[:end], envelope.keyid, envelope.signature) for end in ends]
    assert {word(cut_bytes) for cut_bytes in cut} == {EnvelopeFault.TRUNCATED}
    assert word(with_signature(envelope, envelope.signature[:40])) == EnvelopeFault.TRUNCATED
    assert word(with_signature(signed(P256), signed(P256).signature[:-1])) == EnvelopeFault.TRUNCATED
    assert word(file_with(lambda it: it.update(payload=it["payload"][:-1]))) == EnvelopeFault.TRUNCATED


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"{}",
        b'"text"',
        b"not json",
        b"\xff\xfe{}",
        b'{"payloadType": NaN}',
        b'{"payloadType": -Infinity}',
        b'{"payloadType": 1.5}',
        b'{"payloadType": 1e3}',
        b'{"payloadType": 9007199254740993}',
        b'{"payloadType": ' + b"9" * 5000 + b"}",
        signed(KEY).as_bytes() + b"{}",
        signed(KEY).as_bytes() + b"\0",
        file_with(lambda document: document.update(signatures={})),
        file_with(lambda document: document.update(payload=7)),
        file_with(lambda document: document.update(payload="....")),
        file_with(lambda document: document.update(payload="ééé=")),
        file_with(lambda document: document["signatures"][0].pop("sig")),
        file_with(lambda document: document["signatures"][0].update(keyid=None)),
    ],
)
def test_malformed(content: bytes) -> None:
    assert word(content) == EnvelopeFault.MALFORMED


def test_malformed_payload_although_signed() -> None:
    for payload in (b"[]", b"7", b"\xff", b'{"a":1.5}', b'{"a":NaN}', b'{"a":"\\ud800"}'):
        assert word(signed_as_it_stands(KEY, payload)) == EnvelopeFault.MALFORMED
    for change in (
        lambda document: document["predicate"].pop("scope"),
        lambda document: document["predicate"].update(sequence=0),
        lambda document: document["predicate"].update(sequence=True),
        lambda document: document["predicate"].update(observedAt="2026-11-21 10:00:00"),
        lambda document: document["predicate"].update(observedAt="2026-02-30T10:00:00Z"),
        lambda document: document["predicate"]["inputs"].update(snapshot="sha256:short"),
        lambda document: document.update(subject=document["subject"] * 2),
        lambda document: document["predicate"]["report"].pop("summary"),
        lambda document: document["predicate"]["report"].update(verdict="Perhaps"),
        lambda document: document["predicate"]["report"].update(startedAt="yesterday"),
        lambda document: document["predicate"]["report"].update(startedAt="2026-11-21T10:00:00"),
        lambda document: document["predicate"]["report"]["findings"][0].update(verdict="Passed"),
        lambda document: document["predicate"]["report"]["findings"][0].update(severity="none"),
    ):
        assert word(statement_with(change)) == EnvelopeFault.MALFORMED


def test_a_byte_order_mark_is_no_part_of_what_was_signed() -> None:
    assert attestation_in(b"\xef\xbb\xbf" + signed(KEY).as_bytes()) == signed(KEY)


def test_nested_too_deeply() -> None:
    assert word(b'{"payload":' * 30) == EnvelopeFault.NESTED_TOO_DEEPLY
    assert word(b'{"payload":' + b"[" * 900_000) == EnvelopeFault.NESTED_TOO_DEEPLY
    assert word(b"[" * 900_000) == EnvelopeFault.MALFORMED  # not JSON of an object: read as YAML, which gives up
    assert word(signed_as_it_stands(KEY, b"[" * 30 + b"]" * 30)) == EnvelopeFault.NESTED_TOO_DEEPLY
    assert word(b'{"payload": "' + b"[" * 30) == EnvelopeFault.TRUNCATED  # brackets within text nest nothing


def test_duplicate_keys() -> None:
    twice = signed(KEY).as_bytes().rstrip()[:-1] + b',"payload":"AAAA"}'
    assert word(twice) == EnvelopeFault.DUPLICATE_KEYS
    payload = signed(KEY).payload
    assert word(signed_as_it_stands(KEY, payload[:-1] + b',"_type":"x"}')) == EnvelopeFault.DUPLICATE_KEYS


@pytest.mark.parametrize(
    "content",
    [
        file_with(lambda document: document.update(alg="none")),
        file_with(lambda document: document["signatures"][0].update(cert="x")),
        statement_with(lambda document: document.update(note="x")),
        statement_with(lambda document: document["predicate"].update(note="x")),
        statement_with(lambda document: document["predicate"]["scope"].update(note="x")),
        statement_with(lambda document: document["subject"][0].update(annotations={})),
        statement_with(lambda document: document["predicate"]["omitted"].update(Fail={"a": 1})),
    ],
)
def test_unknown_field(content: bytes | Envelope) -> None:
    assert word(content) == EnvelopeFault.UNKNOWN_FIELD


def test_not_canonical() -> None:
    statement = json.loads(signed(KEY).payload)
    for payload in (json.dumps(statement).encode(), signed(KEY).payload + b" ", signed(KEY).payload + b"\n"):
        assert word(signed_as_it_stands(KEY, payload)) == EnvelopeFault.NOT_CANONICAL
    sig = signed(KEY).as_json()["signatures"][0]["sig"]
    other = next(
        text for end in BASE64_ALPHABET if (text := sig[:-3] + end + "==") != sig and decoded(text) == decoded(sig)
    )
    assert word(file_with(lambda document: document["signatures"][0].update(sig=other))) == EnvelopeFault.NOT_CANONICAL


def decoded(text: str) -> bytes:
    return base64.b64decode(text)


@pytest.mark.parametrize("kind", ["application/json", "", None, 7, "APPLICATION/VND.IN-TOTO+JSON"])
def test_wrong_payload_type(kind: Any) -> None:
    assert word(file_with(lambda document: document.update(payloadType=kind))) == EnvelopeFault.WRONG_PAYLOAD_TYPE


@pytest.mark.parametrize("number", [0, 2, 100])
def test_signature_count(number: int) -> None:
    content = file_with(lambda document: document.update(signatures=document["signatures"] * number))
    assert word(content) == EnvelopeFault.SIGNATURE_COUNT


# Whose it is, and whether it is what was signed


def test_unknown_key() -> None:
    stranger = an_ed25519_key(seed=7, name="stranger")
    refusal = refusal_of(signed(stranger))
    assert refusal.refusal == EnvelopeFault.UNKNOWN_KEY
    assert stranger.public.keyid in refusal.message
    assert KEY.public.keyid in refusal.message
    assert word(signed(KEY), trusted={}) == EnvelopeFault.UNKNOWN_KEY
    assert word(Envelope(signed(KEY).payload, "", signed(KEY).signature)) == EnvelopeFault.UNKNOWN_KEY


def test_algorithm_confusion() -> None:
    ed25519, p256 = signed(KEY), signed(P256)
    assert word(Envelope(ed25519.payload, P256.public.keyid, ed25519.signature)) == EnvelopeFault.ALGORITHM_CONFUSION
    assert word(Envelope(p256.payload, KEY.public.keyid, p256.signature)) == EnvelopeFault.ALGORITHM_CONFUSION
    assert word(with_signature(ed25519, bytes(32))) == EnvelopeFault.ALGORITHM_CONFUSION
    assert word(with_signature(p256, bytes(32))) == EnvelopeFault.ALGORITHM_CONFUSION
    r, s = decode_dss_signature(p256.signature)
    raw = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    assert word(with_signature(p256, raw)) == EnvelopeFault.ALGORITHM_CONFUSION


def test_edited() -> None:
    envelope = signed(KEY, a_report(a_finding("Fail"), verdict="Fail"))
    for old, new in ((b'"Fail"', b'"Pass"'), (b'"sequence":1', b'"sequence":2'), (b":", b": ")):
        edited = Envelope(envelope.payload.replace(old, new), envelope.keyid, envelope.signature)
        refusal = refusal_of(edited)
        assert refusal.refusal == Refusal.EDITED
        assert "the signature of 'platform-2026' does not match" in refusal.message


def test_bad_signature() -> None:
    envelope, other = signed(KEY), signed(KEY, a_report(observed=OBSERVED + timedelta(minutes=1)))
    assert word(with_signature(envelope, other.signature)) == EnvelopeFault.BAD_SIGNATURE
    assert word(with_signature(envelope, bytes(64))) == EnvelopeFault.BAD_SIGNATURE
    assert word(with_signature(envelope, envelope.signature + b"\0")) == EnvelopeFault.BAD_SIGNATURE
    forger = an_ed25519_key(seed=7)
    assert word(with_signature(envelope, sign(forger, signed_bytes(envelope.payload)))) == EnvelopeFault.BAD_SIGNATURE


def test_the_second_form_of_a_p256_signature_is_refused() -> None:
    envelope = signed(P256)
    r, s = decode_dss_signature(envelope.signature)
    assert s <= P256_ORDER // 2
    high = with_signature(envelope, encode_dss_signature(r, P256_ORDER - s))
    P256.public.key.verify(high.signature, signed_bytes(high.payload), *ecdsa())  # mathematics would take it
    assert refusal_of(high).refusal == EnvelopeFault.BAD_SIGNATURE
    assert "low s" in refusal_of(high).message


def ecdsa() -> tuple[Any, ...]:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256

    return (ECDSA(SHA256()),)


@pytest.mark.parametrize("r", [0, 1, P256_ORDER, 2**256 - 1])
@pytest.mark.parametrize("s", [0, P256_ORDER, 2**256 - 1])
def test_numbers_out_of_range_are_no_signature(r: int, s: int) -> None:
    assert word(with_signature(signed(P256), encode_dss_signature(r, s))) == EnvelopeFault.BAD_SIGNATURE


def test_der_in_a_longer_form_or_of_negative_numbers_is_no_signature() -> None:
    envelope = signed(P256)
    body = envelope.signature[2:]
    longer = b"\x30\x81" + bytes([len(body)]) + body
    padded = b"\x30" + bytes([len(body) + 2]) + body + b"\x05\x00"
    zero_in_front = bytes.fromhex("300702020001020101")
    negative = bytes.fromhex("3006020180020101")
    for signature in (longer, padded, envelope.signature + b"\0", zero_in_front, negative):
        assert word(with_signature(envelope, signature)) in {EnvelopeFault.BAD_SIGNATURE, EnvelopeFault.TRUNCATED}


def test_key_expired() -> None:
    retired = trusted([read_public_key("old", public_pem_of(KEY.key), not_after=OBSERVED - timedelta(seconds=1))])
    assert word(signed(KEY), trusted=retired) == Refusal.KEY_EXPIRED
    until_then = trusted([read_public_key("old", public_pem_of(KEY.key), not_after=OBSERVED)])
    assert verify(signed(KEY), until_then, HERE, NOW).signed_by.name == "old"


# All of them


@pytest.mark.parametrize("refusal", [*EnvelopeFault, *Refusal], ids=lambda refusal: refusal.value)
def test_every_reason_is_one_word_with_meaning_and_remedy_and_a_test(refusal: Refusal) -> None:
    assert refusal.value.isalpha()
    assert refusal.meaning.endswith(".")
    assert refusal.remedy.endswith(".")
    written = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*attest*.py"))
    assert re.search(rf"def test_\w*{refusal.name.lower()}", written)


def test_the_first_no_is_told() -> None:
    """About another cluster, expired and from an unknown key: the key comes first, for nothing else is believed."""
    stranger = an_ed25519_key(seed=7)
    envelope = signed(stranger, a_report(cluster=OTHER_CLUSTER), about=provenance(OTHER_CLUSTER))
    assert word(envelope, at=timedelta(days=9)) == EnvelopeFault.UNKNOWN_KEY
    assert word(envelope, trusted=trust(stranger), at=timedelta(days=9)) == Refusal.OTHER_CLUSTER
