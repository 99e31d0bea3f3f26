"""`hermetic status` says of a deployment what holds, what blocks it and what mends it; it reads the cluster elsewhere.

tests/controlplane/test_cli_status.py asks a real API server.
"""

from __future__ import annotations

import io
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hermetic.api.engine import MEMBERS
from hermetic.api.reasons import Reason
from hermetic.api.times import spell_duration
from hermetic.cli.status import screen
from hermetic.cli.status.document import status_document
from hermetic.cli.status.isolation import as_json, open_findings, proof
from hermetic.cli.status.remedies import remedy_for
from hermetic.cli.status.report import BLOCKING_NEW_PODS, NOT_SEEN, DeploymentReport, report
from hermetic.cli.status.starting import last_line
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
    deployment_report = report(deployment, [], None)
    assert (deployment_report.ready.truth, deployment_report.ready.reason) == ("Unknown", NOT_SEEN)
    assert "the last change yet (generation 4; it saw 3)" in deployment_report.ready.message


@pytest.mark.parametrize("status", [{}, {"observedGeneration": -1}, None])
def test_a_deployment_without_a_status_asks_for_the_operator(status: Manifest | None) -> None:
    manifest = a_share_model()
    manifest["metadata"] |= {"namespace": "inference", "generation": 1}
    deployment_report = report({**manifest, "status": status}, [], None)
    assert "the operator has not observed it yet" in deployment_report.ready.message
    assert deployment_report.remedy is not None
    assert deployment_report.remedy.commands == ("kubectl get pods --namespace hermetic-system",)


def test_a_deployment_that_is_being_deleted_is_shown_as_such() -> None:
    deployment = seen(a_share_model())
    deployment["metadata"]["deletionTimestamp"] = "2026-11-20T11:00:00Z"
    assert "ready|NO|BeingDeleted: since 2026-11-20T11:00:00Z" in plain(report(deployment, [], None))


def test_reasons_of_a_later_release_are_shown_as_they_are() -> None:
    deployment_report = report(seen(a_share_model(), "False", "SomethingNew", "it is new"), [], None)
    assert "ready|NO|SomethingNew: it is new" in plain(deployment_report)
    assert deployment_report.remedy is None


def test_pods_of_an_autoscaled_model_are_counted_against_the_bounds() -> None:
    """The field `replicas` keeps its default until the autoscaler has written it."""
    bounds = {"minReplicas": 2, "maxReplicas": 4}
    assert report(seen(a_share_model(replicas=1, autoscaling=bounds)), (), None).desired == 2
    assert report(seen(a_share_model(replicas=3, autoscaling=bounds)), (), None).desired == 3


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
    reasons_asked = {reason for reason in Reason if f"Reason.{reason.name}" in source}
    assert reasons_asked
    assert reasons_asked <= BLOCKING_NEW_PODS


def test_what_blocks_many_is_told_once() -> None:
    deployments = [
        seen(a_share_model(f"llama-{number}"), "False", "IsolationEvidenceMissing", "no audit") for number in range(3)
    ]
    serving = seen(a_nim_model())
    shown = list(blocked([report(deployment, [], None) for deployment in (*deployments, serving)]))
    assert shown[1] == "IsolationEvidenceMissing: inference/llama-0 and 2 more"
    assert sum("fix:" in line for line in shown) == 1


def test_a_table_has_one_row_each() -> None:
    (row,) = table(
        [report(seen(a_nim_model(), endpoint={"url": "http://10.0.0.4:8000/v1"}), [a_pod("a", ready=True)], None)]
    )
    cells = ("inference", "nim", "NIM-2.1", "1", "1/1", "True", "Serving", "http://10.0.0.4:8000/v1")
    assert row == (*cells, "meta/llama-3.1-8b-instruct", "")


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


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(seconds=-5), ("0 s", "0 s")),
        (timedelta(0), ("0 s", "0 s")),
        (timedelta(seconds=59.9), ("59 s", "59 s")),
        (timedelta(minutes=1), ("1 min", "1 min")),
        (timedelta(seconds=130), ("2 min", "2 min 10 s")),
        (timedelta(minutes=65, seconds=30), ("1 h", "1 h 5 min")),
        (timedelta(hours=47, minutes=59, seconds=59), ("47 h", "47 h 59 min")),
        (timedelta(days=2), ("2 d", "2 d")),
        (timedelta(days=7, hours=23), ("7 d", "7 d 23 h")),
    ],
)
def test_duration_is_spelt_in_its_largest_units(duration: timedelta, expected: tuple[str, str]) -> None:
    assert (spell_duration(duration, units=1), spell_duration(duration)) == expected


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
    stale_report = stale([a_pod("a", ready=True), a_pod("b", waiting="[bold]CrashLoopBackOff")])
    screen.show_one(stale_report, NOW)
    screen.show_many([stale_report], NOW)
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


# ---------------------------------------------------------------------- a start


def starting_model(*, seconds: int = 130, load: int | None = 44, **status: Any) -> DeploymentReport:
    """A model whose engine has been loading for so many seconds."""
    pod = a_pod("llama-1", creationTimestamp="2026-11-20T11:50:00Z")
    began = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    pod["status"]["containerStatuses"][0] |= {"restartCount": 0, "state": {"running": {"startedAt": began}}}
    plan = {"load": {"leastSeconds": load}} if load is not None else {}
    message = "0 of 1 replicas serve; pods are starting"
    deployment = seen(a_share_model(), "False", "Starting", message, plan=plan, **status)
    return report(deployment, [pod], None)


def test_a_start_has_phase_time_budget_and_prediction_in_one_line() -> None:
    assert (
        "starting||pod llama-1: the engine loads the model, for 2 min 10 s of 20 min (17 min 50 s left); "
        "the plan predicts at least 44 s for the weights"
    ) in plain(starting_model())


def test_a_start_without_facts_says_nothing_of_a_prediction() -> None:
    assert "predicts" not in plain(starting_model(load=None))


def test_a_start_over_its_budget_has_nothing_left() -> None:
    assert "for 20 min 5 s of 20 min (0 s left)" in plain(starting_model(seconds=1205))


def test_the_last_line_of_the_log_ends_the_line_of_a_start() -> None:
    starting = starting_model()
    assert starting.start is not None
    assert starting.start.container == "engine"
    shown = plain(replace(starting, start=replace(starting.start, log="Loading shards: 3/8")))
    assert "for the weights; log: Loading shards: 3/8\n" in shown


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("\n \n", ""),
        ("INFO one\nINFO two\n\n", "INFO two"),
        ("Loading: 0% | 0/2\rLoading: 50% | 1/2\r", "Loading: 50% | 1/2"),
        ("# verifying [####....] 12.0 of 60.0 GiB, 3 files, 512 MiB/s, 1:36 left\n",
         "verifying [####....] 12.0 of 60.0 GiB, 3 files, 512 MiB/s, 1:36 left"),
        ("\x1b[32mINFO\x1b[0m ready\x07", "INFO ready\ufffd"),
        ("x" * 500, "x" * 159 + "…"),
    ],
    ids=["empty", "blank", "lines", "progress bar", "verifier", "escapes", "long"],
)  # fmt: skip
def test_the_last_line_of_a_log_is_printable_and_short(log: str, line: str) -> None:
    assert last_line(log) == line


# ---------------------------------------------------------------------- adapters

ADAPTER_DIGEST = f"sha256:{'a1' * 32}"


def adapted(*adapters: Manifest, ready: str = "True", reason: str = "Serving") -> DeploymentReport:
    return report(seen(a_share_model(), ready, reason, "m", adapters=list(adapters)), [], None)


@pytest.mark.parametrize(
    ("adapter", "ready", "reason", "line"),
    [
        ({"state": "Serving", "verification": ADAPTER_DIGEST}, "True", "Serving",
         f"adapters|yes|sql: Serving, {ADAPTER_DIGEST}"),
        ({"state": "Serving"}, "True", "Serving", "adapters|yes|sql: Serving"),
        ({"state": "Serving"}, "False", "IsolationEvidenceStale", "adapters|yes|sql: Serving"),
        ({"state": "Pending", "verification": "DigestMismatch"}, "False", "WeightsRefused",
         "adapters|NO|sql: Pending, DigestMismatch"),
        ({"state": "Pending", "verification": ADAPTER_DIGEST}, "False", "AdapterMissing",
         "adapters|NO|sql: Pending, AdapterMissing"),
        ({"state": "Pending"}, "True", "Serving", "adapters|NO|sql: Pending"),
        ({"state": "RollingOut"}, "True", "Serving", "adapters|partly|sql: RollingOut"),
        ({"state": "RollingOut"}, "False", "Starting", "adapters|partly|sql: RollingOut, Starting"),
        ({"state": "Quiescing"}, "True", "Serving", "adapters|unknown|sql: Quiescing"),
    ],
    ids=["verified", "of an image", "old pods serve", "another content", "not loaded", "gate closed", "rolling out",
         "rolling out slowly", "of a later release"],
)  # fmt: skip
def test_adapter_is_told_with_its_state_and_why_it_is_not_served(
    adapter: Manifest, ready: str, reason: str, line: str
) -> None:
    assert line in plain(adapted({"name": "sql", **adapter}, ready=ready, reason=reason)).splitlines()


def test_adapters_are_in_the_document_in_their_order_and_a_model_without_them_has_an_empty_list() -> None:
    rows = adapted(
        {"name": "sql", "state": "Serving", "verification": ADAPTER_DIGEST}, {"name": "de", "state": "Pending"}
    )
    document = status_document([rows, report(seen(a_share_model()), [], None)], NOW)
    assert [deployment["adapters"] for deployment in document["deployments"]] == [
        [
            {"name": "sql", "state": "Serving", "digest": ADAPTER_DIGEST, "reason": ""},
            {"name": "de", "state": "Pending", "digest": "", "reason": ""},
        ],
        [],
    ]
    labels = [line.label for line in lines(rows, NOW) if line.text.startswith(("sql:", "de:"))]
    assert labels == ["adapters", ""]
    assert "adapters" not in plain(report(seen(a_share_model()), [], None))


# ---------------------------------------------------------------------- isolation in one line


def proven(**status: Any) -> DeploymentReport:
    """A model that serves, on a cluster whose verdict is Pass with findings."""
    audit = an_audit("IsolationProven", "no egress path was found", verdict="Pass")
    warning = {"check": "node-resolv", "severity": "low", "verdict": "Fail", "resource": "node/a", "message": "m"}
    audit["status"] |= {"findings": [warning] * 2, "counts": {"fail": 2, "warnings": 2}}
    azure = {"observedAt": "2026-11-20T11:00:00Z", "expiresAt": "2026-11-21T11:00:00Z"}
    audit["status"]["evidence"] = {"azure": azure, "probe": {"observedAt": "2026-11-20T11:30:00Z", "nodes": 1}}
    conditions = [condition("IsolationVerified", "True", "IsolationProven", "fresh evidence shows it")]
    url = {"url": "http://10.0.0.4:8000/v1"}
    deployment = seen(a_share_model(), "True", "Serving", "1 of 1 serve", conditions=conditions, endpoint=url, **status)
    return report(deployment, [a_pod("a", ready=True)], audit)


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


def test_an_endpoint_is_shown_once_a_pod_serves() -> None:
    url = {"url": "http://10.0.0.4:8000/v1"}
    assert "10.0.0.4" not in plain(starting_model(endpoint=url))
    assert "endpoint||http://10.0.0.4:8000/v1" in plain(proven())


# ---------------------------------------------------------------------- widths


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (140, "NAMESPACE  NAME   ENGINE       GPUS  SERVING  READY  REASON    ENDPOINT"),
        (100, "NAMESPACE  NAME   ENGINE       GPUS  SERVING  READY  REASON"),
        (80, "NAMESPACE  NAME   ENGINE       GPUS  SERVING  READY  REASON"),
        (60, "NAMESPACE  NAME   ENGINE       SERVING  READY  REASON"),
    ],
)
def test_a_narrow_terminal_loses_columns_and_keeps_the_table(
    monkeypatch: pytest.MonkeyPatch, columns: int, head: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    long = replace(proven(), endpoint="http://llama-3-1-8b-instruct.inference.svc.cluster.local:8000/v1")
    screen.show_many([long, starting_model()], NOW)
    shown = terminal.getvalue().splitlines()
    assert shown[0] == head
    assert shown[1].startswith("inference  llama")
    assert max(map(len, shown[:3])) <= columns


def test_wide_shows_every_column_on_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setenv("NO_COLOR", "1")
    screen.show_many([starting_model()], NOW, wide=True)
    head, row = terminal.getvalue().splitlines()[:2]
    assert head.split()[-2:] == ["MODEL", "PHASE"]
    assert row.split()[-2:] == ["meta/llama-3.1-8b-instruct", "LoadingModel"]
