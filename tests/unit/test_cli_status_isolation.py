"""Isolation in `hermetic status`: evidence that is missing or ends, findings and refusals, in one line or in full."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermetic.cli.status.isolation import as_json, open_findings, proof
from hermetic.cli.status.report import report
from hermetic.cli.status.text import cluster_lines, lines
from tests.scenarios import CLUSTER, a_share_model
from tests.status_reports import (
    NOW,
    a_pod,
    an_audit,
    condition,
    plain,
    proven,
    seen,
    stale,
)


def test_stale_evidence_is_told_as_the_design_shows_it() -> None:
    shown = plain(stale([a_pod("a", ready=True), a_pod("b", ready=True)]))
    assert shown.splitlines() == [
        "llama  vLLM 0.32.0  1 x nvidia.com/gpu  weights from contosomodels/models/llama-3-1-8b/fp8",
        "ready|NO|IsolationEvidenceStale",
        "images pinned|yes|every image is named by digest and allowed here",
        "isolation verified|STALE|the evidence was observed at 2026-11-19T10:00:00Z, and 24 h is the oldest allowed "
        "(evidence observed 26 h ago)  <- blocks new pods; the 2 that run keep serving",
        "||fix: on the jump box audit again, then apply the attestation",
        f"||hermetic audit --azure {CLUSTER} --sign KEY --attestation attestation.yaml",
        "||kubectl apply --server-side --filename attestation.yaml",
        "||verdict on the cluster: Pass, attested 26 h ago, expires in 22 h, probed 30 min ago",
        "serving|yes|2 of 2 replicas serve",
    ]


@pytest.mark.parametrize(
    ("kind", "reason", "message", "command"),
    [
        ("AttestationAccepted", "AttestationMissing", "none is there", f"hermetic audit --azure {CLUSTER} --sign KEY"),
        ("AttestationAccepted", "AttestationRefused", "e is refused: Replayed: old", "hermetic explain Replayed"),
        ("EvidenceFresh", "IsolationEvidenceStale", "it expired", f"hermetic audit --azure {CLUSTER} --sign KEY"),
        ("ProbeCurrent", "ProbeNotConfigured", "no probe", "kubectl edit egressaudits.hermetic.dev cluster"),
        ("ProbeCurrent", "ProbePending", "no round yet", "kubectl get jobs,pods --all-namespaces --selector"),
        ("ProbeCurrent", "ProbeIncomplete", "nothing from gpu", "kubectl describe pods --all-namespaces --selector"),
        ("ClusterChecked", "ClusterNotSeen", "not listed", "kubectl logs --namespace hermetic-system"),
    ],
)
def test_the_look_that_is_missing_is_named_with_the_command_that_brings_it(
    kind: str, reason: str, message: str, command: str
) -> None:
    audit = an_audit(reason, message, condition(kind, "False", reason, message))
    if reason == "AttestationRefused":
        audit["status"]["refused"] = {"name": "e", "reason": "Replayed"}
    deployment = seen(a_share_model(), "False", "IsolationEvidenceMissing", message)
    deployment_report = report(deployment, [], audit)
    assert deployment_report.remedy is not None
    assert any(text.startswith(command) for text in deployment_report.remedy.commands), deployment_report.remedy
    assert f"{reason}: {message}" in "\n".join(cluster_lines(proof(audit), NOW))
    printed = as_json(proof(audit))
    assert (printed["reason"], printed["commands"]) == (reason, list(deployment_report.remedy.commands))


def test_findings_of_the_audit_are_told_with_their_remedies_and_the_rest_is_counted() -> None:
    finding = {
        "check": "k8s-public-lb",
        "severity": "critical",
        "verdict": "Fail",
        "reason": "PublicService",
        "resource": "v1/Service inference/llama",
        "message": "it has a public address",
        "remedy": "Run `kubectl delete service llama`.",
    }
    audit = an_audit("IsolationBroken", "an egress path", verdict="Fail")
    audit["status"] |= {"findings": [finding] * 7, "moreFindings": 3}
    shown = list(cluster_lines(proof(audit), NOW))
    assert shown.count("critical Fail: k8s-public-lb, v1/Service inference/llama: it has a public address") == 5
    assert shown.count("fix: Run `kubectl delete service llama`.") == 5
    assert "and 5 more: kubectl describe egressaudits.hermetic.dev cluster" in shown
    printed = as_json(proof(audit))
    assert (printed["findings"][0], printed["moreFindings"]) == (finding, 3)


REFUSALS = [{"name": f"egress-{number}", "reason": "Replayed"} for number in range(5)]


@pytest.mark.parametrize(
    ("refusals", "more", "line"),
    [
        (REFUSALS[:1], 0, "refused attestations: egress-0 (Replayed)"),
        (REFUSALS[:3], 0, "refused attestations: egress-0 (Replayed), egress-1 (Replayed), egress-2 (Replayed)"),
        (
            REFUSALS,
            7,
            "refused attestations: egress-0 (Replayed), egress-1 (Replayed), egress-2 (Replayed) and 9 more: "
            "kubectl describe egressaudits.hermetic.dev cluster",
        ),
        ([], 0, ""),
    ],
)
@pytest.mark.parametrize("verdict", ["Pass", "Unknown", "Fail"])
def test_refused_attestations_are_named_in_one_line_and_the_rest_is_counted(
    refusals: list[dict[str, str]], more: int, line: str, verdict: str
) -> None:
    audit = an_audit("IsolationProven" if verdict == "Pass" else "IsolationBroken", "a message", verdict=verdict)
    audit["status"] |= {"refusals": refusals, "moreRefusals": more}
    lines = [line for line in cluster_lines(proof(audit), NOW) if "refused attestations" in line]
    assert lines == ([line] if line else [])
    printed = as_json(proof(audit))
    assert (printed["refusals"], printed["moreRefusals"]) == (refusals, more)


def test_evidence_that_still_counts_and_will_not_for_long_is_told_with_what_renews_it() -> None:
    soon = condition("EvidenceFresh", "True", "EvidenceExpiring", "it counts until noon")
    audit = an_audit("IsolationProven", "no egress path was found", soon, verdict="Pass")
    proof_row = proof(audit)
    assert proof_row.remedy is not None
    assert proof_row.remedy.commands[0].startswith("hermetic audit --azure")
    assert "evidence age: EvidenceExpiring: it counts until noon" in list(cluster_lines(proof_row, NOW))


@pytest.mark.parametrize(("truth", "reason"), [("True", "ExceptionExpiring"), ("False", "ExceptionExpired")])
def test_an_exception_that_ends_is_told_with_what_renews_it(truth: str, reason: str) -> None:
    ended = condition("ExceptionsCurrent", truth, reason, "the exception of platform for peering-any ended")
    proof_row = proof(an_audit("IsolationProven", "no egress path was found", ended, verdict="Pass"))
    assert proof_row.remedy is not None
    assert proof_row.remedy.commands == ("kubectl edit egressaudits.hermetic.dev cluster",)
    lines = list(cluster_lines(proof_row, NOW))
    assert f"exceptions: {reason}: the exception of platform for peering-any ended" in lines


def test_a_verdict_about_an_earlier_spec_of_the_audit_is_none() -> None:
    audit = an_audit("IsolationProven", "no egress path was found", verdict="Pass")
    audit["metadata"] = {"name": "cluster", "generation": 2}
    assert (proof(audit).verdict, proof(audit).reason) == ("", "NotJudged")


def test_nothing_is_kept_serving_where_nothing_runs() -> None:
    assert "<- blocks new pods\n" in plain(stale([]))


def test_a_model_that_serves_has_isolation_in_one_line() -> None:
    shown = plain(proven()).splitlines()
    (line,) = [line for line in shown if "isolation" in line]
    assert line.startswith("isolation verified|yes|verdict on the cluster: Pass, attested ")
    assert line.endswith("2 warnings; 'hermetic status --isolation' lists the findings")
    assert not [line for line in shown if "node-resolv" in line]


def test_the_findings_are_listed_in_full_where_they_are_asked_for() -> None:
    shown = [line.text for line in lines(proven(), NOW, everything=True)]
    assert sum("node-resolv" in text for text in shown) == 2


def test_below_a_table_a_verdict_that_holds_is_one_line_and_another_is_told_in_full() -> None:
    audit_proof = proven().proof
    assert audit_proof is not None
    assert len(list(cluster_lines(audit_proof, NOW, everything=False))) == 2
    broken = replace(audit_proof, verdict="Fail")
    assert len(list(cluster_lines(broken, NOW, everything=False))) == 4


@pytest.mark.parametrize(
    ("blocking", "warnings", "text"),
    [(0, 0, ""), (1, 0, "1 blocking finding"), (2, 1, "2 blocking findings, 1 warning"), (0, 3, "3 warnings")],
)
def test_open_findings_are_counted_in_words(blocking: int, warnings: int, text: str) -> None:
    audit_proof = proven().proof
    assert audit_proof is not None
    assert open_findings(replace(audit_proof, blocking=blocking, warnings=warnings)) == text
