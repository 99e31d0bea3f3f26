"""Why an attestation is not accepted: one word for programs, what it means, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from hermetic.errors import AttestationRefused

_AGAIN = "Audit again from the jump box and sign anew."
_WHOLE = "Fetch the file again from where it was signed; if it is the same there, audit again and sign anew."
_OURS = "Use an attestation that 'hermetic audit --sign' of this release wrote."


class Refusal(StrEnum):
    """The reason and its page. The order is that in which questions are asked: the first No is told."""

    meaning: str
    remedy: str

    def __new__(cls, value: str, meaning: str, remedy: str) -> Refusal:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.remedy = remedy
        return member

    # What stands on the wire
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
        "A key stands twice in one JSON or YAML object, so two readers could read two different things.",
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
    WRONG_PAYLOAD_TYPE = (
        "WrongPayloadType",
        "The envelope holds something else than an in-toto statement.",
        _OURS,
    )
    SIGNATURE_COUNT = (
        "SignatureCount",
        "There is not exactly one signature: one that nobody checks would be a place to write to.",
        "Use the envelope with the signature of one trusted key; a key is replaced by trusting two for a while.",
    )

    # Whose it is, and whether it is what was signed
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
    EDITED = (
        "Edited",
        "The signature does not match, and the payload contradicts itself: it was changed after it was signed.",
        _WHOLE,
    )
    BAD_SIGNATURE = (
        "BadSignature",
        "The signature is not one of this key over this payload: either was changed, or another key signed.",
        _WHOLE,
    )
    KEY_EXPIRED = (
        "KeyExpired",
        "It was observed after the day until which its key is trusted (notAfter).",
        "Sign with the key that replaced it.",
    )

    # What it says
    WRONG_PREDICATE = (
        "WrongPredicate",
        "It is a signed statement of another kind, or of a version that this release does not know.",
        "Verify with the release of Hermetic that signed it, or audit again with this one.",
    )
    AZURE_NOT_ASKED = (
        "AzureNotAsked",
        "The report did not look at Azure, and that is what evidence from outside is for.",
        "Audit with --azure CLUSTER_ARM_ID and sign that report.",
    )
    CONTRADICTORY = (
        "Contradictory",
        "It is signed, and says two things that cannot both be true, such as a verdict that its findings deny.",
        "Do not use it. Audit again; if it stays, report it: Hermetic does not write such reports.",
    )
    EXPIRY_TOO_FAR = (
        "ExpiryTooFar",
        "It wants to count for longer than seven days.",
        "Sign with a shorter time of validity.",
    )

    # Whether it counts here and now
    OTHER_CLUSTER = (
        "OtherCluster",
        "It is about another cluster: the ARM id, the API server's CA or the uid of kube-system differs.",
        "Audit this cluster. If it was rebuilt under the same name, audit it again.",
    )
    SCOPE_INCOMPLETE = (
        "ScopeIncomplete",
        "It does not name the API server's CA or the uid of kube-system, by which this cluster is known.",
        "Audit again with a kubeconfig of the cluster, so that both can be read.",
    )
    OTHER_PROFILE = (
        "OtherProfile",
        "It was judged by the profile 'filtered', and 'sealed' is asked for.",
        "Audit again with --profile sealed, or ask for Filtered in the EgressAudit.",
    )
    OTHER_REPORT = (
        "OtherReport",
        "The report that was given with it is not the one that was signed.",
        "Use the file that the same run of 'hermetic audit -o json --out FILE' wrote.",
    )
    FROM_THE_FUTURE = (
        "FromTheFuture",
        "It was observed later than it is now.",
        "Set the clock of the jump box, or of the machine that verifies; then audit again.",
    )
    EXPIRED = "Expired", "Its time is over, or it is older than evidence may be here.", _AGAIN
    REPLAYED = (
        "Replayed",
        "Newer evidence was accepted before: this is an old attestation, brought in again.",
        "Apply the newest attestation; if there is none, audit again and sign anew.",
    )


def refused(refusal: Refusal, message: str) -> AttestationRefused:
    """The error to raise: `message` says what was found and what would be accepted."""
    return AttestationRefused(message, refusal=refusal.value, fix=refusal.remedy)
