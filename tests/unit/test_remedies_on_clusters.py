"""Remedies of the cluster's checks are carried out on planted clusters, and audited again.

The finding must be gone, and no other may appear. A remedy that leaves an edit to a person is counted with its reason.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.remedies.steps import steps_of
from hermetic.audit.result.run import evaluate
from testbed.kubernetes_plants import PLANTS
from testbed.kubernetes_remedies import NotCarriedOut, carry_out, is_read
from tests.kubernetes_estates import POLICY, Manifest, estate, sealed_cluster
from tests.remedy_commands import KNOWN, placeholders_in

Record = Callable[[str, object], None]
Key = tuple[str, str]
PROSE = "prose only"
# (check, plant) -> why a finding is still there after the commands of its remedy
STAYS: dict[Key, str] = {
    ("k8s-policy-engine-live", "cilium_that_enforces_nothing"): "the first step, the setting, is by hand",
    ("k8s-policy-engine-live", "cilium_that_only_reports_on_some_nodes"): "the first step, the setting, is by hand",
}


def audited(manifests: list[Manifest]) -> dict[Key, Finding]:
    """Findings that are Fail or Unknown."""
    findings = evaluate(estate(manifests), POLICY)
    return {
        (finding.check, finding.resource): finding
        for finding in findings
        if finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN}
    }


def commands_of(finding: Finding) -> list[str]:
    """The commands of the remedy, without those of a step that is another way to the same end."""
    steps = [step for step in steps_of(finding.remedy) if not step.explanation.startswith(("Or ", "Or, "))]
    return [command for step in steps for command in step.commands]


def reason_not_applied(commands: list[str]) -> str:
    """Why the remedy is left to a person; "" where every command is whole."""
    if not commands:
        return PROSE
    if any(not command.startswith("kubectl ") for command in commands):
        return "a program other than kubectl"
    if any(name in KNOWN for command in commands for name in placeholders_in(command)):
        return "a placeholder that the user chooses"
    return "the commands only read" if all(map(is_read, commands)) else ""


def carried_out(manifests: list[Manifest], commands: Iterable[str]) -> str:
    """Carries the commands out; a text where one of them is not in the table."""
    try:
        for command in commands:
            carry_out(manifests, command)
    except NotCarriedOut as error:
        if str(error).startswith("not found"):  # the remedy names an object that is not there
            raise
        return str(error)
    return ""


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_a_remedy_ends_its_finding_and_causes_no_other(name: str, record_property: Record) -> None:
    planted = copy.deepcopy(sealed_cluster())
    expected = PLANTS[name].into(planted)
    before = audited(planted)
    finding = before[(expected.check, expected.resource)]
    commands, remedied = commands_of(finding), copy.deepcopy(planted)
    if reason := reason_not_applied(commands) or carried_out(remedied, commands):
        record_property("remedies of clusters not applied", 1)
        record_property(f"remedies of clusters not applied: {reason}", 1)
        assert reason != PROSE or "No command" in finding.remedy, finding.remedy
        return
    after = audited(remedied)
    worse = [other for key, other in after.items() if is_worse(other, before.get(key))]
    is_gone = (finding.check, finding.resource) not in after
    record_property("remedies of clusters applied", 1)
    record_property("findings of clusters gone after their remedy", int(is_gone))
    record_property("new findings of clusters after a remedy", len(worse))
    assert [f"{other.verdict} {other.check} {other.resource}: {other.message}" for other in worse] == [], finding.remedy
    assert is_gone or (finding.check, name) in STAYS, (finding.remedy, after[(finding.check, finding.resource)].message)


def is_worse(after: Finding, before: Finding | None) -> bool:
    return before is None or (after.verdict is Verdict.FAIL and before.verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("kubectl --namespace team delete service a", {}),
        ("kubectl delete service a", None),
        ("kubectl --namespace team annotate service a --overwrite b=2 c-", {"annotations": {"b": "2"}}),
        ("kubectl --namespace team get service a --output yaml", {"annotations": {"b": "1", "c": "3"}}),
    ],
)
def test_a_command_changes_what_kubectl_documents(command: str, left: Any) -> None:
    metadata = {"name": "a", "namespace": "team", "annotations": {"b": "1", "c": "3"}}
    manifests: list[Manifest] = [{"apiVersion": "v1", "kind": "Service", "metadata": metadata}]
    if left is None and command.startswith("kubectl delete"):
        with pytest.raises(NotCarriedOut, match="not found"):
            carry_out(manifests, command)
        return
    carry_out(manifests, command)
    if left:
        assert manifests[0]["metadata"]["annotations"] == left["annotations"]
    else:
        assert manifests == []
