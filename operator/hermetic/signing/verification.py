"""Which trusted key signed an envelope."""

from __future__ import annotations

from hermetic.signing.envelope import Envelope, signed_bytes
from hermetic.signing.faults import EnvelopeFault, refused
from hermetic.signing.keys import PublicKey, TrustedKeys
from hermetic.signing.signatures import matches, must_be_well_formed


def key_named_by(envelope: Envelope, trusted: TrustedKeys) -> PublicKey:
    """The trusted key that the envelope names. The signature is not verified yet. Raises EnvelopeRefused."""
    key = trusted.get(envelope.keyid)
    if key is None:
        known = ", ".join(f"{each.name} ({each.keyid})" for each in trusted.values()) or "none"
        raise refused(
            EnvelopeFault.UNKNOWN_KEY, f"signed by the key {envelope.keyid[:80] or 'without id'}; trusted: {known}"
        )
    return key


def is_signed_by(key: PublicKey, envelope: Envelope) -> bool:
    """Whether the signature matches. Raises EnvelopeRefused for bytes that are no signature of the key's algorithm."""
    must_be_well_formed(key.algorithm, envelope.signature)
    return matches(key, signed_bytes(envelope.payload), envelope.signature)
