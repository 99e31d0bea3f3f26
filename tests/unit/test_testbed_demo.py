"""What the demo prints while it waits."""

from __future__ import annotations

import pytest

from testbed.demo.narration import watch_phases
from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED


def deployment(name: str, reason: str, message: str) -> dict[str, object]:
    ready = {"type": "Ready", "status": "False", "reason": reason, "message": message}
    return {"metadata": {"name": name}, "status": {"conditions": [ready]}}


def test_a_message_that_several_deployments_share_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    message = "no EgressAttestation is there"
    deployments = [
        deployment("llama", "Missing", message),
        deployment("phi", "Missing", message),
        deployment("x", "No", "y"),
    ]

    assert watch_phases(lambda: deployments, lambda reasons: len(reasons) == 3, 5)

    first, second, third = capsys.readouterr().out.splitlines()
    assert first.endswith(message)
    assert second.split()[:3] == ["phi", "False", "Missing"]
    assert second.endswith("the same")
    assert third.endswith("y")
