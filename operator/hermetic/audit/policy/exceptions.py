"""Accepted risks with an expiry date: `hermetic audit --exceptions`, and the list of an EgressAudit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from hermetic.audit.model.findings import AcceptedException, Finding, Verdict

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # date.fromisoformat also accepts 2026-W53-4
Stated = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

ANNOUNCED = timedelta(days=14)
"""How long before its last day a notice says that an exception ends soon."""


@dataclass(frozen=True, slots=True)
class Term:
    """The period of an exception from any source: `expiry` is the last day, YYYY-MM-DD."""

    check: str
    resource: str
    owner: str
    expiry: str

    def has_ended(self, today: date) -> bool:
        """Whether its last day has passed."""
        return date.fromisoformat(self.expiry) < today

    def ends_soon(self, today: date) -> bool:
        """Whether it still counts and its last day is near."""
        return not self.has_ended(today) and date.fromisoformat(self.expiry) - today <= ANNOUNCED

    def describe(self, today: date) -> str:
        """A sentence for an exception that has ended or ends soon."""
        named = f"the exception of {self.owner} for {self.check} on {self.resource}"
        if self.has_ended(today):
            return f"{named} expired on {self.expiry} and is ignored"
        return f"{named} ends on {self.expiry}: fix the finding or renew the exception before that"


def expiry_notes(terms: Iterable[Term], today: date) -> tuple[str, ...]:
    """A sentence for each that has ended or ends soon; without duplicates, by expiry."""
    ordered_terms = sorted(set(terms), key=lambda term: (term.expiry, term.check, term.resource, term.owner))
    return tuple(term.describe(today) for term in ordered_terms if term.has_ended(today) or term.ends_soon(today))


class AcceptedRisk(BaseModel):
    """One exception. All five are required; `resource` is an ARM id or a glob of one, not case-sensitive.

    The last day is `expiry` in a file and `expires` in an EgressAudit; both are read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: Stated
    resource: Stated
    reason: Stated
    owner: Stated
    expiry: Annotated[str, Field(validation_alias=AliasChoices("expiry", "expires"))]
    """Last day (UTC) on which it counts, YYYY-MM-DD."""

    @field_validator("expiry", mode="before")
    @classmethod
    def _a_day(cls, value: object) -> str:
        # YAML reads an unquoted 2026-12-31 as a date.
        text = value.isoformat() if isinstance(value, date) else str(value)
        if _DAY.fullmatch(text) is None:
            raise ValueError(f"{text!r} is not a day YYYY-MM-DD")
        return date.fromisoformat(text).isoformat()

    def accepts(self, finding: Finding) -> bool:
        """Whether it applies to this finding: same check and resource, and the verdict is Fail or Unknown."""
        return finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN} and self.is_about(finding)

    def is_about(self, finding: Finding) -> bool:
        """Whether it names the check and the resource of a finding, regardless of the verdict."""
        resource = finding.resource.lower().rstrip("/")
        return self.check == finding.check and fnmatchcase(resource, self.resource.lower().rstrip("/"))

    @property
    def term(self) -> Term:
        """Until when it counts."""
        return Term(self.check, self.resource, self.owner, self.expiry)


class Exceptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    exceptions: tuple[AcceptedRisk, ...] = Field(default=())

    def applied(self, findings: Iterable[Finding], today: date) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """Accepted findings become Excepted. Also returns a sentence for each exception that has ended or ends soon."""
        valid = [exception for exception in self.exceptions if not exception.term.has_ended(today)]
        settled = tuple(self._settled(finding, valid) for finding in findings)
        return settled, expiry_notes(self.terms, today)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Until when each counts."""
        return tuple(exception.term for exception in self.exceptions)

    @staticmethod
    def _settled(finding: Finding, valid: list[AcceptedRisk]) -> Finding:
        by = next((exception for exception in valid if exception.accepts(finding)), None)
        if by is None:
            return finding
        return replace(
            finding,
            verdict=Verdict.EXCEPTED,
            exception=AcceptedException(by.reason, by.owner, by.expiry, accepted=finding.verdict),
        )
