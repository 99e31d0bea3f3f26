"""Why an attestation is refused: a code for programs, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hermetic.errors import AttestationRefused, EnvelopeRefused
from hermetic.signing.explained import ExplainedWord
from hermetic.signing.faults import EnvelopeFault

_AGAIN = "Audit again from the jump box and sign anew."
_WHOLE = "Fetch the file again from its source. If the source has the same content, audit again and sign anew."


class Refusal(ExplainedWord):
    """The code and its page, in the order of the checks, after those of `EnvelopeFault`."""

    # Authenticity
    EDITED = (
        "Edited",
        "The signature does not match, and the payload contradicts itself: it was changed after it was signed.",
        _WHOLE,
    )
    KEY_EXPIRED = (
        "KeyExpired",
        "It was observed after the day until which its key is trusted (notAfter).",
        "Sign with the key that replaced it.",
    )

    # Content
    WRONG_PREDICATE = (
        "WrongPredicate",
        "It is a signed statement of another kind, or of a version that this release does not know.",
        "Verify with the release of Hermetic that signed it, or audit again with this one.",
    )
    AZURE_NOT_ASKED = (
        "AzureNotAsked",
        "The report does not cover Azure. Evidence from outside must cover it.",
        "Audit with --azure CLUSTER_ARM_ID and sign that report.",
    )
    CONTRADICTORY = (
        "Contradictory",
        "It is signed, and contradicts itself, for example by a verdict that does not follow from its findings.",
        "Do not use it. Audit again. If the contradiction stays, report it: Hermetic does not write such reports.",
    )
    EXPIRY_TOO_FAR = (
        "ExpiryTooFar",
        "It would be valid for longer than seven days.",
        "Sign with a shorter time of validity.",
    )

    # Validity for this cluster, now
    OTHER_CLUSTER = (
        "OtherCluster",
        "It is about another cluster: the ARM id, the API server's CA or the uid of kube-system differs.",
        "Audit this cluster. If it was rebuilt under the same name, audit it again.",
    )
    SCOPE_INCOMPLETE = (
        "ScopeIncomplete",
        "It does not name the API server's CA or the uid of kube-system, which identify this cluster.",
        "Audit again with a kubeconfig of the cluster, so that both can be read.",
    )
    OTHER_PROFILE = (
        "OtherProfile",
        "It was evaluated with the profile 'filtered', and 'sealed' is required.",
        "Audit again with --profile sealed, or ask for Filtered in the EgressAudit.",
    )
    OTHER_POLICY = (
        "OtherPolicy",
        "It was evaluated with a policy file that `spec.policyDigests` of the EgressAudit does not list.",
        "Audit again with --policy FILE of a listed digest ('sha256sum FILE' shows it), or add the digest to "
        "`spec.policyDigests`.",
    )
    OTHER_REPORT = (
        "OtherReport",
        "The given report is not the signed report.",
        "Use the file that the same run of 'hermetic audit -o json --out FILE' wrote.",
    )
    FROM_THE_FUTURE = (
        "FromTheFuture",
        "Its time of observation is in the future.",
        "Correct the clock of the jump box, or of the machine that verifies. Then audit again.",
    )
    EXPIRED = "Expired", "It has expired, or it is older than the maximum age of evidence here.", _AGAIN
    REPLAYED = (
        "Replayed",
        "Newer evidence was accepted before. This is an older attestation that was applied again.",
        "Apply the newest attestation. If you have no newer one, audit again and sign anew.",
    )


def refused(refusal: Refusal | EnvelopeFault, message: str) -> AttestationRefused:
    """The error to raise: `message` states what was found and what would be accepted."""
    return AttestationRefused(message, refusal=refusal.value, fix=refusal.remedy)


@contextmanager
def as_attestation() -> Iterator[None]:
    """Raise an error of signing/ from this block as AttestationRefused with the same code."""
    try:
        yield
    except EnvelopeRefused as error:
        raise AttestationRefused(error.message, refusal=error.refusal, fix=error.fix) from error
