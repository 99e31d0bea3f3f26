"""What an audit of a plain cluster asks beyond what its verdicts rest on."""

from __future__ import annotations

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Problem, UnreadReason
from hermetic.audit.run import evaluate
from testbed.azure.baseline import sealed_estate
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited, policy_of
from tests.sampled_groups import LONG

TO_SPARE = 30
REFUSED = Answer(problem=Problem(UnreadReason.FORBIDDEN, "not to be read"))


@LONG
async def test_a_plain_audit_asks_little_beyond_what_its_verdicts_rest_on() -> None:
    """A question is decisive where some finding changes when it is refused; polls and the index are to spare."""
    with ArmStandIn(sealed_estate()) as arm:
        seen, requests = await audited(arm), len(arm.requests)
        policy = policy_of(arm.estate)
    verdicts = {(one.check, one.resource, one.verdict, one.reason) for one in seen.findings}
    decisive = []
    for question in seen.answers:
        without = Estate(seen.cluster, ("azure",), {**seen.answers, question: REFUSED})
        found = {(one.check, one.resource, one.verdict, one.reason) for one in evaluate(without, policy)}
        if found != verdicts:
            decisive.append(question)
    assert requests - len(decisive) <= TO_SPARE, f"{requests} requests, {len(decisive)} decisive questions"
