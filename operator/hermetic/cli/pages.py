"""The pages behind `hermetic explain` and docs/reasons.md: one for everything that Hermetic calls by a name.

Each is made of what the code itself says (docstrings of the errors, texts of the reasons), so that neither can drift.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.api.reserved import ENVIRONMENT, SHORT_FLAGS, VLLM_FLAGS, reserved_flag
from hermetic.audit.attestation.chain_findings import ChainFinding
from hermetic.audit.attestation.refusals import Refusal
from hermetic.cli.failures import Several, exit_code_of
from hermetic.errors import HermeticError, ManifestInvalid


class Sort(StrEnum):
    """What a page is about, as its heading says it."""

    ERROR = "error"
    REASON = "reason"
    REFUSAL = "refusal of an attestation"
    CHAIN = "finding about a chain of attestations"
    CONDITION = "condition"
    FLAG = "reserved flag"
    VARIABLE = "reserved variable"


@dataclass(frozen=True, slots=True)
class Page:
    """One explanation: `more` holds further paragraphs by their titles."""

    name: str
    sort: Sort
    meaning: str
    remedy: str = ""
    more: Mapping[str, str] | None = None


def pages() -> dict[str, Page]:
    """Every page by its name, in the order in which they are listed."""
    return {
        page.name: page
        for page in (*error_pages(), *reason_pages(), *refusal_pages(), *condition_pages(), *reserved_pages())
    }


def error_pages() -> Iterator[Page]:
    """The leaves of the error tree by code, and the kinds they fall back to."""
    for error in sorted(_tree(HermeticError), key=lambda error: error.code):
        meaning = inspect.cleandoc(error.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        more = {"Exit code": str(exit_code_of(error))}
        if error is ManifestInvalid:
            more |= {"Reserved flags": _listed(VLLM_FLAGS), "Reserved variables": _listed(ENVIRONMENT)}
        yield Page(error.code, Sort.ERROR, meaning, error.remedy, more)


def reason_pages() -> Iterator[Page]:
    """Every reason of a condition or an event."""
    for reason in Reason:
        needed = "yes: nothing else helps" if reason.needs_human else "no: what can pass by itself is tried again"
        yield Page(reason.value, Sort.REASON, reason.meaning, reason.remedy, {"Needs a person": needed})


def refusal_pages() -> Iterator[Page]:
    """Every reason for which signed evidence does not count, and what can be found about a chain of it."""
    for refusal in Refusal:
        yield Page(refusal.value, Sort.REFUSAL, refusal.meaning, refusal.remedy)
    for finding in ChainFinding:
        breaks = "yes" if finding.breaks else "no: only worth knowing"
        yield Page(finding.value, Sort.CHAIN, finding.meaning, finding.remedy, {"Breaks the chain": breaks})


def condition_pages() -> Iterator[Page]:
    """Every type of condition, and what it means that it is True."""
    for condition in ConditionType:
        yield Page(condition.value, Sort.CONDITION, f"True means: {condition.meaning}")


def reserved_pages() -> Iterator[Page]:
    """Flags and variables that a spec may not pass to an engine."""
    for flag, why in VLLM_FLAGS.items():
        yield Page(flag, Sort.FLAG, f"May not stand in extraArgs: {why}.")
    for short, flag in SHORT_FLAGS.items():
        yield Page(short, Sort.FLAG, f"May not stand in extraArgs: short for {flag}, {VLLM_FLAGS[flag]}.")
    for variable, why in ENVIRONMENT.items():
        yield Page(variable, Sort.VARIABLE, f"May not stand in extraEnv: {why}.")


def page_of(name: str) -> Page | None:
    """The page of a name: in whatever case it was typed, and a flag in whatever way vLLM would understand it."""
    known = pages()
    if name in known:
        return known[name]
    by_case = {each.casefold(): page for each, page in known.items()}
    if (found := by_case.get(name.casefold())) is not None:
        return found
    return known.get(reserved_flag(name)) if name.startswith("-") else None


def _tree(error: type[HermeticError]) -> Iterator[type[HermeticError]]:
    if error is Several:
        return
    yield error
    for leaf in error.__subclasses__():
        yield from _tree(leaf)


def _listed(reserved: Mapping[str, str]) -> str:
    """One line for each cause, with everything that it is the cause for."""
    by_cause: dict[str, list[str]] = {}
    for name, cause in reserved.items():
        by_cause.setdefault(cause, []).append(name)
    return "\n".join(f"{', '.join(names)}: {cause}" for cause, names in by_cause.items())
