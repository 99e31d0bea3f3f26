"""Whatever is done to a signed attestation, nothing that is not what was signed is ever accepted.

`pytest tests/property/test_attestation_tampering.py --replay SEED` repeats what chance did; every test prints its seed.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from hermetic.audit.attestation.chain import verify_chain
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import Expected, verify
from hermetic.cli.attest.files import attestation_in
from hermetic.errors import AttestationRefused
from hermetic.signing.envelope import Envelope
from hermetic.signing.faults import EnvelopeFault
from hermetic.signing.keys import TrustedKeys
from testbed.console import say
from tests.attestations import (
    CA,
    CLUSTER,
    NOW,
    OBSERVED,
    UID,
    a_chain,
    a_finding,
    a_p256_key,
    a_report,
    an_ed25519_key,
    signed,
    trust,
)
from tests.sampled_groups import LONG
from tests.sampling import Sample
from tests.tampering import TAMPERERS, Target, written

TAMPERINGS = 100_000
PARTS = 4  # side by side in CI
SAMPLE, SAMPLE_IN_CI = 5_000, 25_000
EXPECTED = Expected(CLUSTER, CA, UID, "sealed", 86_400)


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> Random:
    seed = request.config.getoption("--replay") or secrets.token_hex(4)
    say(f"seed {seed} (repeat with --replay {seed})")
    return Random(f"{seed} {request.node.name}")


def outcome(content: bytes, trusted: TrustedKeys) -> tuple[Envelope | None, str]:
    """The envelope that was accepted, or None and why not."""
    try:
        envelope = attestation_in(content)
        verify(envelope, trusted, EXPECTED, NOW)
    except AttestationRefused as refusal:
        return None, refusal.refusal
    return envelope, "accepted"


def every_field(content: bytes) -> Any:
    """What a JSON file holds, with keys that stand twice, in no order."""
    return json.loads(content, object_pairs_hook=sorted)


@LONG
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_tampering_of_a_signed_attestation_is_refused(part: int, chance: Random, sample: Sample) -> None:
    """What still holds the same JSON (a space between two tokens of the envelope, say) is no tampering: not counted.

    CI tries a quarter, with a seed that each run draws anew; `make test-every-case` tries all.
    """
    ed25519, p256 = an_ed25519_key(), a_p256_key()
    trusted = trust(ed25519, p256)
    reports = [
        a_report(),
        a_report(observed=OBSERVED + timedelta(hours=1)),
        a_report(a_finding("Fail"), verdict="Fail"),
    ]
    envelopes = tuple(signed(key, report) for key in (ed25519, p256) for report in reports)
    assert [outcome(envelope.as_bytes(), trusted)[1] for envelope in envelopes] == ["accepted"] * len(envelopes)
    genuine = [every_field(envelope.as_bytes()) for envelope in envelopes]
    stranger = an_ed25519_key(seed=9)
    counts: Counter[str] = Counter()
    tampered = harmless = 0
    cases = range(part, TAMPERINGS, PARTS)
    count = len(sample.of("tamperings of an attestation", cases, SAMPLE // PARTS, in_ci=SAMPLE_IN_CI // PARTS))
    while tampered < count:
        tamperer = TAMPERERS[tampered % len(TAMPERERS)]
        content = tamperer(Target(chance.choice(envelopes), envelopes, stranger, chance))
        accepted, word = outcome(content, trusted)
        if accepted is not None and every_field(content) in genuine:
            harmless += 1
            continue
        assert accepted is None, f"{tamperer.__name__}: {content!r}"
        tampered += 1
        counts[word] += 1
    say(f"{tampered} tamperings refused, {harmless} edits that changed nothing: {dict(counts.most_common())}")
    assert counts.keys() <= {*EnvelopeFault, *Refusal}
    assert harmless < count // 10


def in_order(envelopes: list[Envelope]) -> list[tuple[str, Envelope]]:
    return [(f"{number}.json", envelope) for number, envelope in enumerate(envelopes)]


def test_every_change_within_a_chain_is_found(chance: Random) -> None:
    """One bit, a deletion, an insertion, an exchange, a truncation; of the end only with the known head."""
    key, stranger = an_ed25519_key(), an_ed25519_key(seed=2)
    trusted = trust(key)
    for length in (1, 2, 3, 5, 8):
        chain = a_chain(length, key)
        head = chain[-1].digest
        assert verify_chain(in_order(chain), trusted, head=head).intact
        foreign = [*a_chain(length, key, every=timedelta(hours=5)), *a_chain(length, stranger), *chain]
        for _ in range(60):
            changed = a_changed_chain(chain, foreign, chance)
            assert not verify_chain(in_order(changed), trusted, head=head).intact, [
                envelope.digest for envelope in changed
            ]


def a_changed_chain(chain: list[Envelope], foreign: list[Envelope], random: Random) -> list[Envelope]:
    changed = list(chain)
    position = random.randrange(len(chain))
    match random.randrange(5):
        case 0:
            changed[position] = a_turned_bit(chain[position], random)
        case 1:
            del changed[position]
        case 2:
            changed.insert(position, random.choice(foreign))
        case 3 if len(chain) > 1:
            other = random.choice([index for index in range(len(chain)) if index != position])
            changed[position], changed[other] = changed[other], changed[position]
        case _:
            changed = changed[:position]
    return changed


def a_turned_bit(envelope: Envelope, random: Random) -> Envelope:
    parts = [bytearray(envelope.payload), bytearray(envelope.signature)]
    part = random.choice(parts)
    part[random.randrange(len(part))] ^= 1 << random.randrange(8)
    return Envelope(bytes(parts[0]), envelope.keyid, bytes(parts[1]))


@LONG
def test_every_single_bit_of_payload_and_signature_counts() -> None:
    for key in (an_ed25519_key(), a_p256_key()):
        envelope = signed(key)
        for part in ("payload", "signature"):
            content = getattr(envelope, part)
            step = 1 if part == "signature" else 7
            for bit in range(0, len(content) * 8, step):
                turned = bytearray(content)
                turned[bit // 8] ^= 1 << bit % 8
                parts = {"payload": envelope.payload, "signature": envelope.signature, part: bytes(turned)}
                changed = Envelope(keyid=envelope.keyid, **parts)
                with pytest.raises(AttestationRefused):
                    verify(changed, trust(key), EXPECTED, NOW)


def test_a_deleted_end_is_found_only_by_who_knows_the_head() -> None:
    key = an_ed25519_key()
    chain = a_chain(4, key)
    shorter = in_order(chain[:-1])
    assert verify_chain(shorter, trust(key)).intact
    assert not verify_chain(shorter, trust(key), head=chain[-1].digest).intact


def test_base64_has_one_form() -> None:
    """Bits that a decoder drops, missing padding and the other alphabet would give one payload many spellings."""
    key = an_ed25519_key()
    envelope = signed(key).as_json()
    sig = envelope["signatures"][0]["sig"]
    assert sig.endswith("==")
    same = [letter for letter in map(chr, range(33, 127)) if is_same(sig[:-3] + letter + "==", sig)]
    assert len(same) > 1
    for letter in same:
        envelope["signatures"][0]["sig"] = sig[:-3] + letter + "=="
        assert (outcome(written(envelope), trust(key))[1] == "accepted") == (envelope["signatures"][0]["sig"] == sig)


def is_same(text: str, as_that: str) -> bool:
    try:
        return base64.b64decode(text, validate=True) == base64.b64decode(as_that)
    except ValueError:
        return False
