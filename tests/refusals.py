"""What refuses an attestation, asked for in one word; and attestations with one fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hermetic.audit.attestation.verification import Expected, verify
from hermetic.cli.attest.files import attestation_in
from hermetic.errors import AttestationRefused
from hermetic.signing.envelope import Envelope
from hermetic.signing.keys import TrustedKeys
from tests.attestations import CA, CLUSTER, NOW, UID, a_p256_key, an_ed25519_key, resigned, signed, trust

KEY, P256 = an_ed25519_key(), a_p256_key()
TRUSTED = trust(KEY, P256)
HERE = Expected(CLUSTER, CA, UID, "sealed", 86_400)


def refusal_of(
    envelope: Envelope | bytes, expected: Expected = HERE, trusted: TrustedKeys = TRUSTED, at: timedelta = timedelta(0)
) -> AttestationRefused:
    with pytest.raises(AttestationRefused) as caught:
        verify(attestation_in(envelope) if isinstance(envelope, bytes) else envelope, trusted, expected, NOW + at)
    return caught.value


def word(*arguments: Any, **options: Any) -> str:
    return refusal_of(*arguments, **options).refusal


def file_with(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The JSON file of a genuine envelope, changed in place."""
    document = signed(KEY).as_json()
    change(document)
    return json.dumps(document).encode()


def statement_with(change: Callable[[dict[str, Any]], Any]) -> Envelope:
    """A statement that was changed before a trusted key signed it."""
    return resigned(KEY, signed(KEY), change)


def with_signature(envelope: Envelope, signature: bytes) -> Envelope:
    return Envelope(envelope.payload, envelope.keyid, signature)
