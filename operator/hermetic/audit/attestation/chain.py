"""Verifies a chain of attestations of one cluster: does each follow the one before, from the first on?

Each has a sequence number and the digest of the one before it, so removing, adding or changing one in between is
detected. Truncation at the end is detected only with the digest of the newest one: that is `head`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hermetic.api.times import timestamp
from hermetic.audit.attestation.chain_findings import ChainFinding
from hermetic.audit.attestation.verification import Attestation, authenticate, must_be_same_cluster
from hermetic.errors import AttestationRefused
from hermetic.signing.envelope import Envelope
from hermetic.signing.keys import TrustedKeys


@dataclass(frozen=True, slots=True)
class ChainIssue:
    """One finding: the name of the attestation that it is about, and the details."""

    finding: ChainFinding
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One authentic attestation, and the name of its file or object."""

    name: str
    attestation: Attestation


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The authentic attestations in order of sequence, and all issues, those that break the chain first."""

    links: tuple[ChainLink, ...]
    issues: tuple[ChainIssue, ...]

    @property
    def intact(self) -> bool:
        """Whether the chain is not empty and no issue breaks it."""
        return bool(self.links) and not any(issue.finding.breaks for issue in self.issues)

    @property
    def head(self) -> str | None:
        """Digest of the last one: store it elsewhere and pass it as `head` of the next verification."""
        return self.links[-1].attestation.digest if self.links else None


Given = tuple[str, Envelope | AttestationRefused]
"""A name, and its envelope or why there is none."""


def verify_chain(
    attestations: Iterable[Given], trusted: TrustedKeys, *, head: str | None = None, ordered: bool = True
) -> ChainReport:
    """Verify attestations against each other. Expiry is not checked: all but the newest have expired.

    With `ordered` they must be given in order; without, the order does not matter (files of a folder). `head` is the
    digest of the newest one, where known.
    """
    links: list[ChainLink] = []
    issues: list[ChainIssue] = []
    for name, envelope in attestations:
        try:
            links.append(ChainLink(name, authenticate(_read(envelope), trusted)))
        except AttestationRefused as refusal:
            issues.append(ChainIssue(ChainFinding.REFUSED, name, f"{refusal.refusal}: {refusal.message}"))
    if ordered:
        issues += _reordered(links)
    in_order = sorted(links, key=lambda link: (link.attestation.sequence, link.attestation.observed_at))
    issues += _duplicates(in_order)
    distinct = list({link.attestation.digest: link for link in in_order}.values())
    issues += _foreign(distinct)
    issues += _broken_links(distinct)
    issues += _private_since(distinct)
    issues += _head(distinct, head)
    issues += _notes(distinct)
    return ChainReport(tuple(distinct), tuple(sorted(issues, key=lambda issue: not issue.finding.breaks)))


def _read(envelope: Envelope | AttestationRefused) -> Envelope:
    if isinstance(envelope, AttestationRefused):
        raise envelope
    return envelope


def _reordered(links: Sequence[ChainLink]) -> Iterable[ChainIssue]:
    for before, after in pairwise(links):
        if after.attestation.sequence < before.attestation.sequence:
            message = f"number {after.attestation.sequence} comes after number {before.attestation.sequence}"
            yield ChainIssue(ChainFinding.REORDERED, after.name, message)


def _duplicates(links: Sequence[ChainLink]) -> Iterable[ChainIssue]:
    first: dict[str, str] = {}
    for link in links:
        digest = link.attestation.digest
        if digest in first:
            yield ChainIssue(ChainFinding.DUPLICATE, link.name, f"is the same as {first[digest]} ({digest})")
        first.setdefault(digest, link.name)


def _foreign(links: Sequence[ChainLink]) -> Iterable[ChainIssue]:
    for link in links[1:]:
        try:
            must_be_same_cluster(link.attestation.scope, links[0].attestation.scope)
        except AttestationRefused as refusal:
            yield ChainIssue(ChainFinding.FOREIGN, link.name, f"{refusal.message} ({links[0].name})")


def _broken_links(links: Sequence[ChainLink]) -> Iterable[ChainIssue]:
    if links and (first := links[0].attestation).sequence != 1:
        missing = f"numbers 1 to {first.sequence - 1} are" if first.sequence > 2 else "number 1 is"
        yield ChainIssue(ChainFinding.START_MISSING, links[0].name, f"{missing} missing: it follows {first.previous}")
    for before, after in pairwise(links):
        yield from _between(before, after)


def _between(chain_link: ChainLink, other: ChainLink) -> Iterable[ChainIssue]:
    before, after = chain_link.attestation, other.attestation
    if after.sequence == before.sequence:
        yield ChainIssue(ChainFinding.FORK, other.name, f"is number {after.sequence}, and so is {chain_link.name}")
    elif after.sequence > before.sequence + 1:
        first, last = before.sequence + 1, after.sequence - 1
        missing = f"number {first} is" if first == last else f"numbers {first} to {last} are"
        yield ChainIssue(ChainFinding.GAP, other.name, f"{missing} missing between {chain_link.name} and it")
    elif after.previous != before.digest:
        yield ChainIssue(
            ChainFinding.FORK, other.name, f"follows {after.previous}; {chain_link.name} is {before.digest}"
        )
    if after.observed_at <= before.observed_at:
        at, earlier = timestamp(after.observed_at), timestamp(before.observed_at)
        yield ChainIssue(
            ChainFinding.CLOCK_REGRESSION, other.name, f"observed at {at}; {chain_link.name} before it at {earlier}"
        )


def _private_since(links: Sequence[ChainLink]) -> Iterable[ChainIssue]:
    """A moment before its own audit needs an entry in the attestation before; only activityLog may be earlier."""
    for before, after in pairwise(links):
        if after.attestation.previous != before.attestation.digest:
            continue
        for private_subnet in after.attestation.read_report.private_subnets:
            earlier = before.attestation.read_report.private_since(private_subnet.subnet)
            if private_subnet.basis == "audit" and private_subnet.at >= after.attestation.observed_at:
                continue
            if earlier is None or (private_subnet.basis != "activityLog" and private_subnet.at < earlier.at):
                shown = f"private since {earlier.since}" if earlier is not None else "not named as private"
                message = (
                    f"{private_subnet.subnet} is private since {private_subnet.since} by '{private_subnet.basis}'; "
                    f"in {before.name} it is {shown}"
                )
                yield ChainIssue(ChainFinding.PRIVATE_SINCE_UNFOUNDED, after.name, message)


def _head(links: Sequence[ChainLink], head: str | None) -> Iterable[ChainIssue]:
    if head is None or (links and links[-1].attestation.digest == head):
        return
    last = links[-1] if links else None
    observed = f"the last one is {last.attestation.digest}" if last is not None else "the chain is empty"
    yield ChainIssue(
        ChainFinding.HEAD_MISSING, last.name if last is not None else "", f"{head} is the newest; {observed}"
    )


def _notes(links: Sequence[ChainLink]) -> Iterable[ChainIssue]:
    for earlier, other in pairwise(links):
        before, after = earlier.attestation, other.attestation
        if before.signed_by.keyid != after.signed_by.keyid:
            yield ChainIssue(
                ChainFinding.KEY_CHANGED, other.name, f"from '{before.signed_by.name}' to '{after.signed_by.name}'"
            )
        fingerprints = before.scope.api_server_ca_fingerprint, after.scope.api_server_ca_fingerprint
        if None not in fingerprints and fingerprints[0] != fingerprints[1]:
            yield ChainIssue(ChainFinding.CA_CHANGED, other.name, f"from {fingerprints[0]} to {fingerprints[1]}")
        if before.expires_at < after.observed_at:
            since, until = timestamp(before.expires_at), timestamp(after.observed_at)
            yield ChainIssue(ChainFinding.UNCOVERED, other.name, f"from {since} to {until}")
