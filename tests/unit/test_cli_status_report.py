"""`hermetic status` says of a deployment what holds, what blocks it and what mends it; it reads the cluster elsewhere.

tests/controlplane/test_cli_status.py asks a real API server.
"""

from __future__ import annotations

import io
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hermetic.api.engine import MEMBERS
from hermetic.api.reasons import Reason
from hermetic.cli import screen
from hermetic.cli.status.isolation import as_json, proof
from hermetic.cli.status.remedies import remedy_for
from hermetic.cli.status.report import BLOCKING_NEW_PODS, NOT_SEEN, DeploymentReport, report
from hermetic.cli.status.text import ago, blocked, cluster_lines, headline, lines, table
from hermetic.engines.registry import ENGINES
from hermetic.plan.gates import GATES
from tests.renderings import RENDERINGS
from tests.scenarios import CLUSTER, Manifest, a_nim_model, a_share_model, a_verdict, an_egress_audit

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def seen(
    manifest: Manifest, ready: str = "True", reason: str = "Serving", message: str = "", **status: Any
) -> Manifest:
    """The deployment after the operator has reconciled it; `conditions` are further ones."""
    conditions = [condition("Ready", ready, reason, message), *status.pop("conditions", ())]
    metadata = {**manifest["metadata"], "namespace": "inference", "uid": "u", "generation": 3}
    return {
        **manifest,
        "metadata": metadata,
        "status": {"observedGeneration": 3, "conditions": conditions, **status},
    }


def condition(kind: str, truth: str, reason: str, message: str = "") -> Manifest:
    return {"type": kind, "status": truth, "reason": reason, "message": message, "observedGeneration": 3}


def a_pod(name: str, *, ready: bool = False, waiting: str = "", **metadata: Any) -> Manifest:
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    return {
        "metadata": {"name": name, "namespace": "inference", **metadata},
        "spec": {"nodeName": "aks-gpu-1"},
        "status": {
            "phase": "Running" if ready else "Pending",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "engine", "restartCount": 3, "state": state}],
        },
    }


def plain(one: DeploymentReport) -> str:
    return "\n".join([headline(one), *(f"{line.label}|{line.word}|{line.text}" for line in lines(one, NOW))])


def stale(pods: list[Manifest]) -> DeploymentReport:
    message = "the evidence was observed at 2026-11-19T10:00:00Z, and 24 h is the oldest allowed"
    conditions = [
        condition("ImagesPinned", "True", "PinnedByDigest", "every image is named by digest and allowed here"),
        condition("IsolationVerified", "Unknown", "IsolationEvidenceStale", message),
        condition("Available", "True", "Serving", "2 of 2 replicas serve"),
    ]
    deployment = seen(a_share_model(replicas=2), "False", "IsolationEvidenceStale", message, conditions=conditions)
    audit = {**an_egress_audit(), "status": a_verdict("Pass")}
    azure = {"observedAt": "2026-11-19T10:00:00Z", "expiresAt": "2026-11-21T10:00:00Z"}
    audit["status"]["evidence"] |= {"azure": azure, "probe": {"observedAt": "2026-11-20T11:30:00Z", "nodes": 2}}
    return report(deployment, pods, audit)


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


def an_audit(reason: str, message: str, *others: Manifest, verdict: str = "Unknown") -> Manifest:
    audit = {**an_egress_audit(), "status": a_verdict(verdict, message=message)}
    truth = "True" if verdict == "Pass" else "False"
    audit["status"]["conditions"] = [condition("Ready", truth, reason, message), *others]
    return audit


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
    held = seen(a_share_model(), "False", "IsolationEvidenceMissing", message)
    one = report(held, [], audit)
    assert one.remedy is not None
    assert any(each.startswith(command) for each in one.remedy.commands), one.remedy
    assert f"{reason}: {message}" in "\n".join(cluster_lines(proof(audit), NOW))
    printed = as_json(proof(audit))
    assert (printed["reason"], printed["commands"]) == (reason, list(one.remedy.commands))


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


def test_evidence_that_still_counts_and_will_not_for_long_is_told_with_what_renews_it() -> None:
    soon = condition("EvidenceFresh", "True", "EvidenceExpiring", "it counts until noon")
    audit = an_audit("IsolationProven", "no egress path was found", soon, verdict="Pass")
    found = proof(audit)
    assert found.remedy is not None
    assert found.remedy.commands[0].startswith("hermetic audit --azure")
    assert "evidence age: EvidenceExpiring: it counts until noon" in list(cluster_lines(found, NOW))


@pytest.mark.parametrize(("truth", "reason"), [("True", "ExceptionExpiring"), ("False", "ExceptionExpired")])
def test_an_exception_that_ends_is_told_with_what_renews_it(truth: str, reason: str) -> None:
    ended = condition("ExceptionsCurrent", truth, reason, "the exception of platform for peering-any ended")
    found = proof(an_audit("IsolationProven", "no egress path was found", ended, verdict="Pass"))
    assert found.remedy is not None
    assert found.remedy.commands == ("kubectl edit egressaudits.hermetic.dev cluster",)
    lines = list(cluster_lines(found, NOW))
    assert f"exceptions: {reason}: the exception of platform for peering-any ended" in lines


def test_a_verdict_about_an_earlier_spec_of_the_audit_is_none() -> None:
    audit = an_audit("IsolationProven", "no egress path was found", verdict="Pass")
    audit["metadata"] = {"name": "cluster", "generation": 2}
    assert (proof(audit).verdict, proof(audit).reason) == ("", "NotJudged")


def test_nothing_is_kept_serving_where_nothing_runs() -> None:
    assert "<- blocks new pods\n" in plain(stale([]))


def test_a_deployment_that_serves_has_no_remedy() -> None:
    deployment = seen(a_share_model(), message="1 of 1 replicas serve", endpoint={"url": "http://10.0.0.4:8000/v1"})
    shown = plain(report(deployment, [a_pod("a", ready=True)], None))
    assert "ready|yes|Serving: 1 of 1 replicas serve" in shown
    assert "http://10.0.0.4:8000/v1" in shown
    assert "fix:" not in shown


def test_trouble_of_a_pod_names_the_pod_and_the_command_that_shows_it() -> None:
    deployment = seen(a_share_model(), "False", "ImagePullFailed", "image 'x' cannot be pulled")
    shown = plain(report(deployment, [a_pod("llama-1", waiting="ImagePullBackOff")], None))
    assert "ready|NO|ImagePullFailed: image 'x' cannot be pulled" in shown
    assert "kubectl describe pod llama-1 --namespace inference" in shown
    assert "pod llama-1: ImagePullBackOff, 3 restarts, on aks-gpu-1" in shown


def test_a_status_about_an_earlier_spec_proves_nothing() -> None:
    deployment = seen(a_share_model())
    deployment["metadata"]["generation"] = 4
    one = report(deployment, [], None)
    assert (one.ready.truth, one.ready.reason) == ("Unknown", NOT_SEEN)
    assert "the last change yet (generation 4; it saw 3)" in one.ready.message


@pytest.mark.parametrize("status", [{}, {"observedGeneration": -1}, None])
def test_a_deployment_without_a_status_asks_for_the_operator(status: Manifest | None) -> None:
    manifest = a_share_model()
    manifest["metadata"] |= {"namespace": "inference", "generation": 1}
    one = report({**manifest, "status": status}, [], None)
    assert "the operator has not observed it yet" in one.ready.message
    assert one.remedy is not None
    assert one.remedy.commands == ("kubectl get pods --namespace hermetic-system",)


def test_a_deployment_that_is_being_deleted_is_shown_as_such() -> None:
    deployment = seen(a_share_model())
    deployment["metadata"]["deletionTimestamp"] = "2026-11-20T11:00:00Z"
    assert "ready|NO|BeingDeleted: since 2026-11-20T11:00:00Z" in plain(report(deployment, [], None))


def test_reasons_of_a_later_release_are_shown_as_they_are() -> None:
    one = report(seen(a_share_model(), "False", "SomethingNew", "it is new"), [], None)
    assert "ready|NO|SomethingNew: it is new" in plain(one)
    assert one.remedy is None


def test_pods_that_end_are_not_counted_as_serving() -> None:
    pods = [a_pod("a", ready=True), a_pod("b", ready=True, deletionTimestamp="2026-11-20T11:00:00Z")]
    assert report(seen(a_share_model()), pods, None).serving == 1


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=RENDERINGS.keys())
def test_every_shape_has_a_headline_of_engine_gpus_and_weights(manifest: Manifest) -> None:
    headlines = headline(report(seen(manifest), [], None))
    (engine,) = (ENGINES[member] for member in MEMBERS if member in manifest["spec"]["engine"])
    release = manifest["spec"]["engine"][engine.member][engine.release_field]
    assert f"{engine.name} {release}" in headlines
    assert " x " in headlines
    assert "weights from " in headlines
    assert "None" not in headlines


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.value)
def test_every_reason_has_advice_and_commands_without_blanks(reason: Reason) -> None:
    remedy = remedy_for(reason.value, "inference", "llama", "llama-1", CLUSTER)
    assert remedy is not None
    assert remedy.advice
    for command in remedy.commands:
        assert command.split()[0] in {"kubectl", "hermetic"}
        assert "{" not in command


def test_without_an_audit_the_advice_is_to_make_one_first() -> None:
    remedy = remedy_for(Reason.ISOLATION_EVIDENCE_MISSING, "inference", "llama", "", "")
    assert remedy is not None
    assert remedy.advice.startswith("apply an EgressAudit named 'cluster'")
    assert "CLUSTER_ARM_ID" in remedy.commands[0]


def test_without_a_pod_no_command_asks_for_one() -> None:
    remedy = remedy_for(Reason.UNSCHEDULABLE, "inference", "llama", "", "")
    assert remedy is not None
    assert remedy.commands == ()


def test_every_gate_has_reasons_that_block_pods() -> None:
    source = "".join(__import__("inspect").getsource(gate) for gate in GATES)
    asked = {reason for reason in Reason if f"Reason.{reason.name}" in source}
    assert asked
    assert asked <= BLOCKING_NEW_PODS


def test_what_blocks_many_is_told_once() -> None:
    held = [
        seen(a_share_model(f"llama-{number}"), "False", "IsolationEvidenceMissing", "no audit") for number in range(3)
    ]
    serving = seen(a_nim_model())
    shown = list(blocked([report(each, [], None) for each in (*held, serving)]))
    assert shown[1] == "IsolationEvidenceMissing: inference/llama-0 and 2 more"
    assert sum("fix:" in line for line in shown) == 1


def test_a_table_has_one_row_each() -> None:
    (row,) = table(
        [report(seen(a_nim_model(), endpoint={"url": "http://10.0.0.4:8000/v1"}), [a_pod("a", ready=True)], None)]
    )
    assert row == ("inference", "nim", "NIM-2.1", "1", "1/1", "True", "Serving", "http://10.0.0.4:8000/v1")


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (timedelta(seconds=-5), "0 s ago"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=2), "2 min ago"),
        (timedelta(hours=26), "26 h ago"),
        (timedelta(days=3), "3 d ago"),
    ],
)
def test_ages_are_told_in_one_unit(age: timedelta, expected: str) -> None:
    assert ago(NOW - age, NOW) == expected


class Terminal(io.StringIO):
    """A screen of a given width."""

    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, **environ: str) -> str:
    """Everything that status can show, on a screen of this width."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": str(columns), **environ}.items():
        monkeypatch.setenv(name, value)
    one = stale([a_pod("a", ready=True), a_pod("b", waiting="[bold]CrashLoopBackOff")])
    screen.show_one(one, NOW)
    screen.show_many([one], NOW)
    return terminal.getvalue()


def test_a_terminal_shows_colours_and_wraps_below_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(monkeypatch, 100)
    assert "\x1b[" in shown
    detail = on_a_terminal(monkeypatch, 100, NO_COLOR="1").split("NAMESPACE")[0]
    prose = [line for line in detail.splitlines() if not line.startswith(screen.COMMAND_INDENT + "hermetic audit")]
    assert max(map(len, prose)) <= 100


def test_commands_stay_in_one_piece_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"hermetic audit --azure {CLUSTER} --sign KEY --attestation attestation.yaml"
    assert on_a_terminal(monkeypatch, 80, NO_COLOR="1").count(f"\n{screen.COMMAND_INDENT}{command}\n") == 2


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in on_a_terminal(monkeypatch, 100, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(monkeypatch, 100, TERM="dumb")


def test_words_of_the_cluster_are_never_taken_for_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "[bold]CrashLoopBackOff" in on_a_terminal(monkeypatch, 120)


@pytest.mark.parametrize("columns", [20, 120])
def test_last_words_of_an_engine_cannot_drive_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    deployment = seen(a_share_model(), "False", "CrashLoop", "ended: \x1b]0;owned\x07\x9b31m\r")
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    screen.show_one(report(deployment, [], None), NOW)
    assert isinstance(sys.stdout, Terminal)
    assert not {"\x1b", "\x07", "\x9b", "\r"} & set(sys.stdout.getvalue())


def test_a_terminal_that_lacks_letters_gets_them_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    screen_of_old = io.TextIOWrapper(written, encoding="ascii", write_through=True)
    monkeypatch.setattr(screen_of_old, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", screen_of_old)
    screen.show_one(report(seen(a_share_model(), message="modèles 🦙"), [], None), NOW)
    assert b"mod\\xe8les \\U0001f999" in written.getvalue()


def test_a_terminal_of_twenty_columns_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(monkeypatch, 20)
    assert "\x1b[" not in shown
    assert f"hermetic audit --azure {CLUSTER} --sign KEY" in shown
    assert os.environ["COLUMNS"] == "20"
