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
        "An attestation is not authentic; the message begins with the reason.",
        "'hermetic explain REASON' shows what to do; 'hermetic attest verify FILE' verifies that file alone.",
    )
    DUPLICATE = "Duplicate", "The same attestation is there twice.", "Remove one of the two files."
    START_MISSING = (
        "StartMissing",
        "The first attestation of the chain is not there.",
        "Bring the earlier attestations, from number 1 on.",
    )
    GAP = (
        "Gap",
        "Attestations are missing between two that are there.",
        "Bring the attestations with the numbers that the message names.",
    )
    FORK = (
        "Fork",
        "Two attestations claim the same place, or one follows another than the one before it.",
        "Find out who signed the second one. Both are signed by trusted keys, so a key or a jump box is used twice.",
    )
    FOREIGN = (
        "Foreign",
        "An attestation is about another cluster than the first one.",
        "Keep a folder for each cluster; a cluster that was rebuilt under its old name begins a chain of its own.",
    )
    REORDERED = (
        "Reordered",
        "An attestation comes before one that it follows.",
        "Bring them in the order in which they were signed.",
    )
    CLOCK_REGRESSION = (
        "ClockRegression",
        "An attestation was observed no later than the one it follows.",
        "Look at the clock of the jump box; the times of this chain cannot be relied on.",
    )
    PRIVATE_SINCE_UNFOUNDED = (
        "PrivateSinceUnfounded",
        "An attestation states since when a subnet is private, and the one before it does not confirm that.",
        "Audit again without --previous, and find out who signed it: a moment was handed on that was never shown.",
    )
    HEAD_MISSING = (
        "HeadMissing",
        "The attestation that is known to be the newest is not the last one.",
        "Bring the attestations after the last one: the end of the chain was cut off, or another one was put there.",
    )
    KEY_CHANGED = "KeyChanged", "Another trusted key signs from here on.", "Nothing, if keys were changed then.", False
    CA_CHANGED = (
        "CaChanged",
        "The API server has another CA from here on; the cluster is the same.",
        "Nothing, if certificates were rotated then.",
        False,
    )
    UNCOVERED = (
        "Uncovered",
        "Between two attestations none counted: the earlier one had expired.",
        "Audit more often, or sign for longer.",
        False,
    )
