"""Why an envelope, its JSON or its signature is refused: one word for programs, its meaning, and what to do."""

from __future__ import annotations

from hermetic.errors import EnvelopeRefused
from hermetic.signing.explained import ExplainedWord

_WHOLE = "Fetch the file again from its source. If the source has the same content, audit again and sign anew."
_OURS = "Use an attestation that 'hermetic audit --sign' of this release wrote."


class EnvelopeFault(ExplainedWord):
    """The reason and its page, in the order in which they are checked: the first that applies is reported."""

    # Form of the input
    OVERSIZED = (
        "Oversized",
        "The file or its payload exceeds the size limit of an attestation, so it was not read.",
        _OURS,
    )
    TRUNCATED = "Truncated", "The file, the payload or the signature is truncated.", _WHOLE
    MALFORMED = "Malformed", "It does not have the form of an attestation.", _OURS
    NESTED_TOO_DEEPLY = (
        "NestedTooDeeply",
        "Brackets are nested deeper than in any attestation, so the rest was not read.",
        _OURS,
    )
    DUPLICATE_KEYS = (
        "DuplicateKeys",
        "A key occurs twice in one JSON or YAML object, so two readers could read two different things.",
        _WHOLE,
    )
    UNKNOWN_FIELD = (
        "UnknownField",
        "A field is unknown to this release. Hermetic does not ignore unknown fields in evidence.",
        "Remove manual additions, or verify with the release of Hermetic that signed it.",
    )
    NOT_CANONICAL = (
        "NotCanonical",
        "The content is not in the canonical form (RFC 8785, padded standard base64).",
        _WHOLE,
    )
    WRONG_PAYLOAD_TYPE = ("WrongPayloadType", "The payload of the envelope is not an in-toto statement.", _OURS)
    SIGNATURE_COUNT = (
        "SignatureCount",
        "The envelope does not have exactly one signature. An unchecked signature could contain anything.",
        "Use the envelope with the signature of one trusted key. To replace a key, trust both keys for a time.",
    )

    # Key and signature
    UNKNOWN_KEY = (
        "UnknownKey",
        "No trusted key has the id that the envelope names.",
        "Sign with a trusted key, or add the public key: --public-key here, spec.trustedKeys of the EgressAudit.",
    )
    ALGORITHM_CONFUSION = (
        "AlgorithmConfusion",
        "The algorithm of the signature differs from that of the key. Only the key decides the algorithm.",
        "Sign again with the key that the envelope names.",
    )
    BAD_SIGNATURE = (
        "BadSignature",
        "The signature does not match this key and this payload. One of them was changed, or another key signed.",
        _WHOLE,
    )


def refused(fault: EnvelopeFault, message: str) -> EnvelopeRefused:
    """The error to raise: `message` gives what was found and what would be accepted."""
    return EnvelopeRefused(message, refusal=fault.value, fix=fault.remedy)
