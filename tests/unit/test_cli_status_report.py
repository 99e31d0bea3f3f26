"""`hermetic status` says of a deployment what holds, what blocks it and what mends it; it reads the cluster elsewhere.

tests/controlplane/test_cli_status.py asks a real API server.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermetic.api.condition_updates import STATUS_REASONS, StatusReason
from hermetic.api.engine import MEMBERS
from hermetic.api.pod_reasons import PodReason
from hermetic.api.reasons import Reason
from hermetic.cli.status.document import status_document
from hermetic.cli.status.remedies import remedy_for
from hermetic.cli.status.report import BLOCKING_NEW_PODS, NOT_SEEN, DeploymentReport, report
from hermetic.cli.status.starting import last_line
from hermetic.cli.status.text import blocked, headline, lines
from hermetic.engines.registry import ENGINES
from hermetic.plan.gates import GATES
from tests.renderings import RENDERINGS
from tests.scenarios import CLUSTER, Manifest, a_nim_model, a_share_model
from tests.status_reports import (
    NOW,
    a_pod,
    plain,
    proven,
    seen,
    starting_model,
)


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


@pytest.mark.parametrize("reason", STATUS_REASONS, ids=lambda reason: reason.value)
def test_every_reason_has_advice_and_commands_without_blanks(reason: StatusReason) -> None:
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
    remedy = remedy_for(PodReason.UNSCHEDULABLE, "inference", "llama", "", "")
    assert remedy is not None
    assert remedy.commands == ()


def test_every_gate_has_reasons_that_block_pods() -> None:
    source = "".join(__import__("inspect").getsource(gate) for gate in GATES)
    reasons_asked = {reason for reason in STATUS_REASONS if f"{type(reason).__name__}.{reason.name}" in source}
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


def test_an_endpoint_is_shown_once_a_pod_serves() -> None:
    url = {"url": "http://10.0.0.4:8000/v1"}
    assert "10.0.0.4" not in plain(starting_model(endpoint=url))
    assert "endpoint||http://10.0.0.4:8000/v1" in plain(proven())
