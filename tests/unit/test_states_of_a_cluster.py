"""States in which ARM shows a cluster and its resources: none of them changes what an audit finds.

learn.microsoft.com/azure/aks/start-stop-cluster (powerState), learn.microsoft.com/azure/azure-resource-manager/
management/async-operations (provisioningState: Succeeded, Failed, Canceled, and those while an operation runs).
"""

from __future__ import annotations

import pytest

from hermetic.audit.model.findings import Verdict
from testbed.azure.baseline import estate_of
from testbed.azure.estate import Estate
from testbed.azure.plants import PLANTS
from tests.stand_in_answers import judged


def in_state(estate: Estate, state: str) -> Estate:
    """The cluster stopped, or every resource in this state of its last operation."""
    if state == "Stopped":
        estate.properties(estate.cluster)["powerState"] = {"code": "Stopped"}
        return estate
    for body in estate.resources.values():
        body.get("properties", {})["provisioningState"] = state
    return estate


STATES = ["Stopped", "Failed", "Updating", "Canceled"]


@pytest.mark.parametrize("state", STATES)
def test_sealed_estate_is_clean_in_every_state(state: str) -> None:
    fine = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    findings = judged(in_state(estate_of("sealed"), state))
    assert [
        f"{finding.check}: {finding.message}"
        for finding in findings
        if finding.verdict not in fine and finding.severity.decides
    ] == []


@pytest.mark.parametrize("state", STATES)
def test_planted_path_is_found_in_every_state(state: str) -> None:
    estate = estate_of("sealed")
    (expected,) = PLANTS["nat_gateway_on_the_gpu_subnet"].into(estate)
    failing = {
        (finding.check, finding.resource.lower())
        for finding in judged(in_state(estate, state))
        if finding.verdict == "Fail"
    }
    assert (expected.check, expected.resource.lower()) in failing
