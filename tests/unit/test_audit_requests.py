"""What an audit of a plain cluster asks beyond what its verdicts rest on."""

from __future__ import annotations

from collections.abc import Iterable

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Problem, Question, UnreadReason
from hermetic.audit.evaluation.check_findings import Check, findings_of
from hermetic.audit.model.findings import Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import evaluate
from testbed.azure.baseline import sealed_estate
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited, policy_of
from tests.sampled_groups import LONG

TO_SPARE = 30
REFUSED = Answer(problem=Problem(UnreadReason.FORBIDDEN, "not to be read"))

Claims = set[tuple[str, str, str, str]]


@LONG
async def test_a_plain_audit_asks_little_beyond_what_its_verdicts_rest_on() -> None:
    """A question is decisive where some finding changes when it is refused; polls and the index are to spare."""
    with ArmStandIn(sealed_estate()) as arm:
        report, requests = await audited(arm), len(arm.requests)
        policy = policy_of(arm.estate)
    audit = CompleteAudit(Estate(report.cluster, ("azure",), report.answers), policy)
    decisive = [question for question in report.answers if audit.changes_without(question)]
    assert requests - len(decisive) <= TO_SPARE, f"{requests} requests, {len(decisive)} decisive questions"


class CompleteAudit:
    """The findings about an estate of which every question is answered, to compare with those of less."""

    def __init__(self, estate: Estate, policy: Policy) -> None:
        self._estate, self._policy = estate, policy
        self._claims = claims_of(evaluate(estate, policy))
        self._last_decided: list[Check] = []

    def changes_without(self, question: Question) -> bool:
        """Whether some finding changes when this question is refused.

        Most questions show it in a few checks, often in those that showed it for the question before: these are
        evaluated first, and the rest only where they do not differ.
        """
        estate = self._estate.with_answers({question: REFUSED})
        for check in dict.fromkeys((*self._last_decided, *CHECKS)):
            if check.needs <= estate.sources and self._differs(findings_of(check, estate, self._policy)):
                self._last_decided = [check, *(other for other in self._last_decided if other is not check)]
                return True
        return claims_of(evaluate(estate, self._policy)) != self._claims

    def _differs(self, findings: Iterable[Finding]) -> bool:
        """Whether one of a check's findings is new. Derived findings are settled from those of all checks."""
        return not claims_of(finding for finding in findings if finding.derived_from is None) <= self._claims


def claims_of(findings: Iterable[Finding]) -> Claims:
    return {(finding.check, finding.resource, finding.verdict, finding.reason) for finding in findings}
