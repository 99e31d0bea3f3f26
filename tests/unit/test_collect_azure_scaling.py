"""While a scale set scales, lists of what its instances have are not found: asked once more, and never Pass."""

from __future__ import annotations

from hermetic.audit.model.findings import Verdict
from testbed.azure.baseline import sealed_estate
from testbed.azure.faults import Fault, Status
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import CollectedAudit, audited
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

SITE = sealed_estate().site
INTERFACES = f"{SITE.gpu_scale_set.rpartition('/')[2]}/networkInterfaces\\?"
NOT_FOUND = Status(404, code="NotFound")


async def _audited(times: int | None) -> tuple[CollectedAudit, Fault]:
    fault = Fault(NOT_FOUND, INTERFACES, times=times)
    with ArmStandIn(sealed_estate(), faults=[fault]) as arm:
        return await audited(arm), fault


async def test_a_list_that_comes_at_the_second_time_is_whole() -> None:
    report, fault = await _audited(1)
    assert fault.hits == 1
    assert {finding.verdict for finding in report.findings} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}


async def test_a_list_that_does_not_is_unknown_and_says_why() -> None:
    report, fault = await _audited(None)
    assert fault.hits == 2
    (finding,) = (
        candidate
        for candidate in report.findings
        if candidate.check == "nic-default-outbound" and candidate.verdict is Verdict.UNKNOWN
    )
    assert "its instances may be changing" in finding.message
