"""DSSE: the envelope of a payload, and the bytes that are signed.

::

    {"payloadType": "application/vnd.in-toto+json", "payload": BASE64, "signatures": [{"keyid": ID, "sig": BASE64}]}

Exactly these fields and exactly one signature: anything else in the envelope would not be signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any

from hermetic.signing.canonical_json import canonical
from hermetic.signing.faults import EnvelopeFault, refused

PAYLOAD_TYPE = "application/vnd.in-toto+json"
LARGEST_PAYLOAD = 900_000
"""Characters of base64."""
LARGEST_FILE = 1_000_000
"""Bytes of a file or object that is parsed at all; etcd accepts little more."""

_LARGEST_SIGNATURE = 1024
_LARGEST_KEYID = 256


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload and its one signature, decoded. Nothing is verified yet."""

    payload: bytes
    keyid: str
    signature: bytes

    @property
    def digest(self) -> str:
        """The digest that identifies an attestation: "sha256:" and the SHA-256 of the payload."""
        return "sha256:" + hashlib.sha256(self.payload).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The object of the module's docstring."""
        return {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(self.payload).decode(),
            "signatures": [{"keyid": self.keyid, "sig": base64.b64encode(self.signature).decode()}],
        }

    def as_bytes(self) -> bytes:
        """The content of a file: canonical JSON on one line."""
        return canonical(self.as_json()) + b"\n"


def signed_bytes(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: type and payload with their lengths, no byte can shift between them."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope_from(value: Any) -> Envelope:
    """The envelope of a JSON object that was read strictly. Raises EnvelopeRefused."""
    fields = _object(value, "the envelope", ("payloadType", "payload", "signatures"))
    if fields["payloadType"] != PAYLOAD_TYPE:
        shown = str(fields["payloadType"])[:128]
        raise refused(EnvelopeFault.WRONG_PAYLOAD_TYPE, f"the payload is of type '{shown}', not '{PAYLOAD_TYPE}'")
    signature = _object(_only(fields["signatures"]), "the signature", ("keyid", "sig"))
    return Envelope(
        _decoded(fields["payload"], "the payload", LARGEST_PAYLOAD),
        _text(signature["keyid"], "keyid", _LARGEST_KEYID),
        _decoded(signature["sig"], "the signature", _LARGEST_SIGNATURE),
    )


def _object(value: Any, subject: str, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refused(EnvelopeFault.MALFORMED, f"{subject} is not an object with {', '.join(names)}")
    if unknown := sorted(value.keys() - set(names)):
        raise refused(EnvelopeFault.UNKNOWN_FIELD, f"{subject} holds '{unknown[0][:64]}'; there are {', '.join(names)}")
    if missing := [name for name in names if name not in value]:
        raise refused(EnvelopeFault.MALFORMED, f"{subject} lacks '{missing[0]}'")
    return value


def _only(signatures: Any) -> Any:
    if not isinstance(signatures, list):
        raise refused(EnvelopeFault.MALFORMED, "signatures is not a list")
    if len(signatures) != 1:
        raise refused(EnvelopeFault.SIGNATURE_COUNT, f"there are {len(signatures)} signatures, not one")
    return signatures[0]


def _text(value: Any, subject: str, largest: int) -> str:
    if not isinstance(value, str):
        raise refused(EnvelopeFault.MALFORMED, f"{subject} is not text")
    if len(value) > largest:
        raise refused(EnvelopeFault.OVERSIZED, f"{subject} has {len(value)} characters, and {largest} are the most")
    return value


def _decoded(value: Any, subject: str, largest: int) -> bytes:
    text = _text(value, subject, largest)
    if len(text) % 4 or not text:
        raise refused(EnvelopeFault.TRUNCATED, f"{subject} has {len(text)} characters of base64, which come in fours")
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:  # ValueError: a character that is not ASCII
        raise refused(EnvelopeFault.MALFORMED, f"{subject} is not standard base64: {error}") from None
    if base64.b64encode(decoded).decode() != text:
        raise refused(EnvelopeFault.NOT_CANONICAL, f"{subject} is base64 with bits set that mean nothing")
    return decoded
