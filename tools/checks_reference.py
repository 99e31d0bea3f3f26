"""docs/checks.md: every check of the audit, from the pages that `hermetic explain` shows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.evaluation.check_findings import Check
from hermetic.audit.model.findings import CheckPage
from hermetic.audit.remedies.steps import WARNING, steps_of
from hermetic.audit.report.sentences import controls_of

_INTRODUCTION = """\
# Checks

Everything that `hermetic audit` evaluates, {count} checks in the order of their tables. `hermetic explain CHECK`
shows the same offline. [audit.md](audit.md) is about how to run the audit and read its report.

Each title states what must be true for the check to pass. The severity applies to a Fail or an Unknown unless the
finding says otherwise: critical and high decide the verdict, medium and low are warnings, info is inventory. A derived
finding (`derivedFrom`) has the severity of the worst finding that decides it. Each check needs one or more sources
(`azure`, `kube`, `probe`). If a source was not used, the check has no finding, and the report lists it under
`notAsked`. Words in capitals in a remedy are placeholders: a finding fills those that its own facts show. A page also
states who can cause a finding: which policies of manifests/tenants refuse it to tenants with the ClusterRole `edit`,
and which cases need more rights.
"""


def checks_markdown() -> str:
    """The page, a chapter for each family."""
    return "\n".join((_INTRODUCTION.format(count=len(CHECKS)), *_chapters()))


def _chapters() -> Iterator[str]:
    for title, checks in groupby(CHECKS, key=lambda check: check.page.family):
        yield f"## {title}\n"
        for check in checks:
            yield from _chapter(check)


def _chapter(check: Check) -> Iterator[str]:
    page = check.page
    sources = ", ".join(f"`{source}`" for source in sorted(check.needs))
    yield f"### {page.id}\n"
    yield f"{page.title}. **{page.severity.value}**, asks {sources}\n"
    yield f"{' '.join(page.why.split())}\n"
    yield f"Reads: {'; '.join(page.reads)}.\n"
    yield from _remedy(page.remedy)
    if page.tenant_policies or page.administrator:
        yield f"{_causes(page)}\n"
    yield f"Source: {page.source}.\n"
    if controls := controls_of(page):
        yield f"Evidence for: {controls}.\n"


def _causes(page: CheckPage) -> str:
    """Who can cause a finding, where the policies for tenants are installed."""
    policies = ", ".join(f"`{name}`" for name in page.tenant_policies)
    refused = f"The API server refuses what a tenant could cause, by {policies}." if policies else ""
    return " ".join(f"{refused} {page.administrator}".split())


def _remedy(text: str) -> Iterator[str]:
    for step in steps_of(text):
        if step.explanation:
            yield f"{step.explanation}\n"
        if step.warning:
            yield f"**{WARNING}** {step.warning}\n"
        if step.commands:
            commands = "\n".join(step.commands)
            yield f"```\n{commands}\n```\n"
