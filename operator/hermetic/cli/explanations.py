"""The pages behind `hermetic explain` and docs/reasons.md: one for every name that Hermetic uses in its output.

Each is generated from the code (docstrings of the errors, texts of the reasons, data of the checks), so that the pages
cannot diverge from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hermetic.api.condition_updates import STATUS_REASONS
from hermetic.api.conditions import ConditionType
from hermetic.api.engine import RESERVED_FLAGS
from hermetic.api.reserved_flags import ENVIRONMENT, RESERVED_ENDINGS
from hermetic.api.weights_reasons import WeightsReason
from hermetic.audit.attestation.chain_findings import ChainFinding
from hermetic.audit.attestation.refusals import Refusal
from hermetic.cli.exit_codes import SeveralErrors, exit_code_of
from hermetic.errors import HermeticError, ManifestInvalid
from hermetic.signing.faults import EnvelopeFault


class Sort(StrEnum):
    """The subject of a page, as in its heading."""

    ERROR = "error"
    REASON = "reason"
    REFUSAL = "refusal of an attestation"
    CHAIN = "finding about a chain of attestations"
    WEIGHTS = "finding about weights"
    CONDITION = "condition"
    FLAG = "reserved flag"
    VARIABLE = "reserved variable"
    CHECK = "check"


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
    return _pages_at_hand() | {page.name: page for page in check_pages()}


def _pages_at_hand() -> dict[str, Page]:
    """All pages but those of the checks, which take half a second to load."""
    return {
        page.name: page
        for page in (
            *error_pages(),
            *reason_pages(),
            *refusal_pages(),
            *weights_pages(),
            *condition_pages(),
            *reserved_pages(),
        )
    }


def error_pages() -> Iterator[Page]:
    """The leaves of the error tree by code, and the kinds they fall back to."""
    for error in sorted(_tree(HermeticError), key=lambda error: error.code):
        meaning = inspect.cleandoc(error.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        more = {"Exit code": str(exit_code_of(error))}
        if error is ManifestInvalid:
            for engines, reserved in RESERVED_FLAGS.items():
                more[f"Reserved flags of {engines}"] = _listed(reserved.flags)
            more["Reserved variables"] = _listed(ENVIRONMENT)
            more |= {"Reserved endings of variables, in any case": ", ".join(RESERVED_ENDINGS)}
        yield Page(error.code, Sort.ERROR, meaning, error.remedy, more)


def reason_pages() -> Iterator[Page]:
    """Every reason of a condition or an event."""
    for reason in STATUS_REASONS:
        needed = "yes: nothing else helps" if reason.needs_human else "no: the operator tries again by itself"
        yield Page(reason.value, Sort.REASON, reason.meaning, reason.remedy, {"Needs a person": needed})


def refusal_pages() -> Iterator[Page]:
    """Every reason for which signed evidence does not count, and every finding about a chain of it."""
    for refusal in (*EnvelopeFault, *Refusal):
        yield Page(refusal.value, Sort.REFUSAL, refusal.meaning, refusal.remedy)
    for finding in ChainFinding:
        breaks = "yes" if finding.breaks else "no: only worth knowing"
        yield Page(finding.value, Sort.CHAIN, finding.meaning, finding.remedy, {"Breaks the chain": breaks})


def weights_pages() -> Iterator[Page]:
    """Every finding of `hermetic stage` and `hermetic verify`."""
    for reason in WeightsReason:
        verdict = "Unknown: nothing is decided about the weights" if reason.is_unknown else "Fail"
        yield Page(reason.value, Sort.WEIGHTS, reason.meaning, reason.remedy, {"Verdict": verdict})


def condition_pages() -> Iterator[Page]:
    """Every type of condition, and the meaning of its status True."""
    for condition in ConditionType:
        yield Page(condition.value, Sort.CONDITION, f"True means: {condition.meaning}")


def reserved_pages() -> Iterator[Page]:
    """Flags and variables that a spec may not pass to an engine."""
    for flag in {flag: None for reserved in RESERVED_FLAGS.values() for flag in reserved.flags}:
        yield Page(flag, Sort.FLAG, " ".join(_why_reserved(flag)))
    for reserved in RESERVED_FLAGS.values():
        for short, flag in reserved.short.items():
            yield Page(short, Sort.FLAG, f"May not stand in extraArgs: short for {flag}, {reserved.flags[flag]}.")
    for variable, why in ENVIRONMENT.items():
        yield Page(variable, Sort.VARIABLE, f"May not stand in extraEnv: {why}.")


def _why_reserved(flag: str) -> Iterator[str]:
    """One sentence for each reason, with its engines unless it is for all of them."""
    causes: dict[str, list[str]] = {}
    for engines, reserved in RESERVED_FLAGS.items():
        if flag in reserved.flags:
            causes.setdefault(reserved.flags[flag], []).append(engines)
    for cause, named in causes.items():
        of = "" if len(named) == len(RESERVED_FLAGS) else f" of {', '.join(named)}"
        yield f"May not stand in extraArgs{of}: {cause}."


def check_pages() -> Iterator[Page]:
    """Every check of the audit, in the order of the truth table. The title states what holds if it passes."""
    from hermetic.audit.checks.registry import CHECKS
    from hermetic.audit.remedies.steps import steps_of, text_of
    from hermetic.audit.report.sentences import controls_of

    for check in CHECKS:
        page = check.page
        more = {
            "Why": " ".join(page.why.split()),
            "Severity": page.severity.value,
            "Asked of": ", ".join(sorted(check.needs)),
            "Reads": "\n".join(page.reads),
            "Family": page.family,
            "Source": page.source,
        }
        if controls := controls_of(page):
            more["Evidence for"] = controls
        yield Page(page.id, Sort.CHECK, f"{page.title}.", text_of(steps_of(page.remedy)), more)


def page_of(name: str) -> Page | None:
    """The page of a name, not case-sensitive; a flag in every form that vLLM would understand."""
    pages_by_name = _pages_at_hand()
    if (page := _named(name, pages_by_name)) is not None:
        return page
    if name.startswith("-"):
        return pages_by_name.get(
            next((flag for reserved_flag in RESERVED_FLAGS.values() if (flag := reserved_flag.reached(name))), "")
        )
    return _named(name, {page.name: page for page in check_pages()})


def _named(name: str, pages_by_name: Mapping[str, Page]) -> Page | None:
    if name in pages_by_name:
        return pages_by_name[name]
    return {page_name.casefold(): page for page_name, page in pages_by_name.items()}.get(name.casefold())


def _tree(error: type[HermeticError]) -> Iterator[type[HermeticError]]:
    if error is SeveralErrors:
        return
    yield error
    for leaf in error.__subclasses__():
        yield from _tree(leaf)


def _listed(reserved: Mapping[str, str]) -> str:
    """One line for each reason, with all names that have it."""
    by_cause: dict[str, list[str]] = {}
    for name, cause in reserved.items():
        by_cause.setdefault(cause, []).append(name)
    return "\n".join(f"{', '.join(names)}: {cause}" for cause, names in by_cause.items())
