"""Why an envelope, its JSON or its signature is refused: one word for programs, its meaning, and what to do."""

from __future__ import annotations

from hermetic.errors import EnvelopeRefused
from hermetic.signing.explained import ExplainedWord

_WHOLE = "Fetch the file again from where it was signed; if it is the same there, audit again and sign anew."
_OURS = "Use an attestation that 'hermetic audit --sign' of this release wrote."


class EnvelopeFault(ExplainedWord):
    """The reason and its page, in the order in which they are checked: the first that applies is reported."""

    # Form of the input
    OVERSIZED = "Oversized", "The file or its payload is larger than an attestation may be; it was not read.", _OURS
    TRUNCATED = "Truncated", "The end is missing: of the file, of the payload, or of the signature.", _WHOLE
    MALFORMED = "Malformed", "It does not have the form of an attestation.", _OURS
    NESTED_TOO_DEEPLY = (
        "NestedTooDeeply",
        "Brackets are nested deeper than an attestation needs; it was not read further.",
        _OURS,
    )
    DUPLICATE_KEYS = (
        "DuplicateKeys",
        "A key occurs twice in one JSON or YAML object, so two readers could read two different things.",
        _WHOLE,
    )
    UNKNOWN_FIELD = (
        "UnknownField",
        "There is a field that this release does not know. Nothing is ignored in evidence.",
        "Remove what was added by hand, or verify with the release of Hermetic that signed it.",
    )
    NOT_CANONICAL = (
        "NotCanonical",
        "The same content is written in another way than the one way there is (RFC 8785, padded standard base64).",
        _WHOLE,
    )
    WRONG_PAYLOAD_TYPE = ("WrongPayloadType", "The envelope holds something else than an in-toto statement.", _OURS)
    SIGNATURE_COUNT = (
        "SignatureCount",
        "There is not exactly one signature: one that is not checked could hold anything.",
        "Use the envelope with the signature of one trusted key; a key is replaced by trusting two for a while.",
    )

    # Key and signature
    UNKNOWN_KEY = (
        "UnknownKey",
        "No trusted key has the id that the envelope names.",
        "Sign with a trusted key, or add the public key: --public-key here, spec.trustedKeys of the EgressAudit.",
    )
    ALGORITHM_CONFUSION = (
        "AlgorithmConfusion",
        "The signature is one of another algorithm than the key's; the key alone decides the algorithm.",
        "Sign again with the key that the envelope names.",
    )
    BAD_SIGNATURE = (
        "BadSignature",
        "The signature is not one of this key over this payload: either was changed, or another key signed.",
        _WHOLE,
    )


def refused(fault: EnvelopeFault, message: str) -> EnvelopeRefused:
    """The error to raise: `message` gives what was found and what would be accepted."""
    return EnvelopeRefused(message, refusal=fault.value, fix=fault.remedy)
