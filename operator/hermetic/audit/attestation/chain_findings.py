"""The issues of a chain of attestations: a code for each, what it means, and what to do.

`hermetic explain` prints them without what verifies a chain.
"""

from __future__ import annotations

from hermetic.signing.explained import ExplainedWord


class ChainFinding(ExplainedWord):
    """The code of an issue, and whether it breaks the chain or is informational (`breaks`)."""

    breaks: bool

    def __init__(self, value: str, meaning: str, remedy: str, breaks: bool = True) -> None:
        super().__init__(value, meaning, remedy)
        self.breaks = breaks

    REFUSED = (
        "Refused",
        "An attestation is not authentic. The message begins with the reason.",
        "'hermetic explain REASON' shows what to do. 'hermetic attest verify FILE' verifies one file.",
    )
    DUPLICATE = "Duplicate", "The folder has the same attestation twice.", "Remove one of the two files."
    START_MISSING = (
        "StartMissing",
        "The first attestation of the chain is missing.",
        "Add the earlier attestations, from number 1 on.",
    )
    GAP = (
        "Gap",
        "Attestations are missing between two others.",
        "Add the attestations with the numbers that the message names.",
    )
    FORK = (
        "Fork",
        "Two attestations have the same number, or an attestation does not follow the one before it.",
        "Find out who signed the second one. Trusted keys signed both, so a key or a jump box is in use twice.",
    )
    FOREIGN = (
        "Foreign",
        "An attestation is about another cluster than the first one.",
        "Use a separate folder for each cluster. A cluster that was rebuilt under its old name begins a new chain.",
    )
    REORDERED = (
        "Reordered",
        "An attestation comes before one that it follows.",
        "Arrange the attestations in the order in which they were signed.",
    )
    CLOCK_REGRESSION = (
        "ClockRegression",
        "An attestation was observed no later than the one it follows.",
        "Check the clock of the jump box. The times of this chain are not reliable.",
    )
    PRIVATE_SINCE_UNFOUNDED = (
        "PrivateSinceUnfounded",
        "An attestation states a time from which a subnet is private, and the one before it does not confirm that "
        "time.",
        "Audit again without --previous, and find out who signed it. It carries a time that no audit has shown.",
    )
    HEAD_MISSING = (
        "HeadMissing",
        "The last attestation is not the one that is known to be the newest.",
        "Add the attestations after the last one. The end of the chain was removed or replaced.",
    )
    KEY_CHANGED = (
        "KeyChanged",
        "Another trusted key signs from this attestation on.",
        "Nothing to do if keys were changed then.",
        False,
    )
    CA_CHANGED = (
        "CaChanged",
        "The API server has another CA from this attestation on. The cluster is the same.",
        "Nothing to do if certificates were rotated then.",
        False,
    )
    UNCOVERED = (
        "Uncovered",
        "The earlier attestation expired before the next one, so no attestation was valid between them.",
        "Audit more often, or sign for longer.",
        False,
    )
