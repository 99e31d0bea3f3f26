"""What is shipped for metrics and logs names only what the operator really exposes and writes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from hermetic.controller.model_info import ModelInfo
from hermetic.controller.telemetry import Telemetry
from shipping.revision import HOME
from shipping.values import RUNBOOKS
from testbed.azure.kql import parse
from testbed.installation import REPOSITORY
from testbed.prometheus import prometheus_programs
from tests.log_calls import log_calls
from tests.observability import ALERTS, DASHBOARD, RULES, SHIPPED, expressions
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

PAGE = (REPOSITORY / "docs" / "observability.md").read_text()
QUERIES = sorted((SHIPPED / "queries").glob("*.kql"))
HOUR = 3600


WATCHED = {
    "watch_queue": (lambda: 0, lambda: 0),
    "watch_events": (lambda: 0,),
    "watch_conditions": (lambda: {("Ready", "True"): 1},),
    "watch_models": (lambda: [ModelInfo("inference", "llama", "meta/llama", "vllm", "0.32.0", "1")],),
}


def exposed() -> dict[str, set[str]]:
    """Labels by series name, of everything that the operator can expose."""
    telemetry = Telemetry()
    assert {name for name in dir(telemetry) if name.startswith("watch_")} == WATCHED.keys()
    for name, arguments in WATCHED.items():
        getattr(telemetry, name)(*arguments)
    for metric in vars(telemetry).values():
        if isinstance(metric, MetricWrapperBase) and metric._labelnames:
            metric.labels(*metric._labelnames)  # a metric has no series before its first value
    labels_of: dict[str, set[str]] = {}
    for family in telemetry.registry.collect():
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                labels_of.setdefault(sample.name, set()).update(sample.labels)
    return labels_of


def rows(section: str, *, cells: int) -> list[list[str]]:
    """The rows of the table below a heading of the page, without its head."""
    table = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    table_rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(row) == cells for row in table_rows), table_rows
    return [row for row in table_rows[1:] if set(row[0]) != {"-"}]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(RULES))
    return file


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(
        [prometheus_programs().promtool, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("expression", list(expressions()))
def test_every_expression_names_series_and_labels_that_exist(expression: str) -> None:
    metrics = exposed()
    for name, selector in re.findall(r"\b(hermetic_\w+)(\{[^}]*\})?", expression):
        assert name in metrics, expression
        labels = set(re.findall(r"(\w+)\s*(?:=|!=|=~|!~)", selector))
        assert labels <= metrics[name], expression
    for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
        assert {label.strip() for label in grouped.split(",")} <= set().union(*metrics.values()), expression


def test_promtool_takes_the_rules(rules: Path) -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", rules)


SERIES: dict[str, tuple[str, str, str]] = {
    # alert -> series, its values that fire, its values that do not
    "HermeticNotRunning": ("hermetic_leader", "0x60", "1x60"),
    "HermeticIsolationFailed": ('hermetic_isolation_verdict{verdict="Fail"}', "1x60", "0x60"),
    "HermeticIsolationUnknown": ('hermetic_isolation_verdict{verdict="Unknown"}', "1x60", "0x60"),
    "HermeticEvidenceExpires": (
        "hermetic_isolation_evidence_expiry_timestamp_seconds",
        f"{0.93 * HOUR:.0f}x60",
        f"{24 * HOUR}x60",
    ),
    "HermeticAuditBroken": ('hermetic_audit_faults_total{part="check"}', "0+1x60", "5x60"),
    "HermeticModelsNotReady": (
        'hermetic_model_condition{condition="Ready",status="Unknown"}',
        "2x60",
        "0x60",
    ),
    "HermeticWeightsDiffer": (
        'hermetic_model_condition{condition="WeightsVerified",status="False"}',
        "1x60",
        "0x60",
    ),
    "HermeticReconcilesRetried": ('hermetic_reconcile_total{result="retried"}', "0+10x60", "0+1x60"),
    "HermeticQueueStuck": ("hermetic_workqueue_oldest_age_seconds", "0+60x60", "2x60"),
}
ALWAYS = [
    {"series": 'hermetic_reconcile_total{result="unchanged"}', "values": "0+20x60"},
    {"series": "hermetic_isolation_evidence_observed_timestamp_seconds", "values": "0x60"},
]


def test_every_alert_has_a_series_that_fires_it() -> None:
    assert SERIES.keys() == {alert["alert"] for alert in ALERTS}


@pytest.mark.parametrize("name", SERIES)
def test_an_alert_fires_when_it_should_and_not_otherwise(rules: Path, tmp_path: Path, name: str) -> None:
    series, firing, quiet = SERIES[name]
    (alert,) = (rule for rule in ALERTS if rule["alert"] == name)

    def case(values: str, *, fires: bool) -> dict[str, Any]:
        query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
        return {
            "interval": "1m",
            "input_series": [*ALWAYS, {"series": series, "values": values}],
            "promql_expr_test": [
                {"expr": query, "eval_time": "50m", "exp_samples": [{"labels": "{}", "value": int(fires)}]}
            ],
        }

    test = {"rule_files": [str(rules)], "evaluation_interval": "1m"}
    test["tests"] = [case(firing, fires=True), case(quiet, fires=False)]  # type: ignore[assignment]
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(test))

    promtool("test", "rules", file)
    assert f"docs/observability.md, {name}" in alert["annotations"]["runbook"]


def test_the_page_lists_every_metric_with_its_labels() -> None:
    documented_labels = {
        name.strip("`"): set(re.findall(r"`(\w+)`", labels)) for name, labels, _ in rows("Metrics", cells=3)
    }
    exposed_labels = {
        re.sub(r"_(bucket|count|sum)$", "", name): labels - {"le"}
        for name, labels in exposed().items()
        if not name.endswith(("_count", "_sum"))
    }

    assert documented_labels == exposed_labels


def test_the_page_lists_every_alert() -> None:
    alerts = PAGE.partition("\n## Alerts\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^### (\w+)$", alerts, re.MULTILINE)) == SERIES.keys()


def test_the_runbook_of_every_alert_is_its_heading_on_the_page_of_the_documentation_site() -> None:
    # The anchors of the site are headings in small letters (Python-Markdown, extension toc).
    assert f"{HOME}/observability.html" == RUNBOOKS
    assert {alert["alert"]: alert["annotations"]["runbook_url"] for alert in ALERTS} == {
        name: f"{RUNBOOKS}#{name.lower()}" for name in SERIES
    }


def test_the_page_lists_every_log_line_with_its_level_and_keys() -> None:
    recorded = {
        (event.strip("`"), level): frozenset(re.findall(r"`(\w+)`", keys))
        for event, level, keys, _ in rows("Log lines", cells=4)
    }
    documented_labels: dict[tuple[str, str], set[str]] = {}
    for call in log_calls():
        keys = {"wrote", "reason", "because", "code", "again_in"} if call.open else set()
        documented_labels.setdefault((call.event, call.level), set()).update(call.keys | keys)

    assert recorded == documented_labels


def test_the_page_lists_every_query() -> None:
    assert {row[0].strip("`") for row in rows("Queries", cells=2)} == {file.name for file in QUERIES}


LINES: list[dict[str, Any]] = [
    {"event": "reconcile", "level": "info", "ns": "a", "name": "phi", "result": "refused", "reason": "QuotaExceeded"},
    {"event": "reconcile", "level": "info", "ns": "a", "name": "phi", "result": "retried", "code": "HRM-KUB-409"},
    {
        "event": "reconcile",
        "level": "info",
        "ns": "a",
        "name": "phi",
        "result": "written",
        "wrote": ["Service/phi (absent)", "status"],
    },
    {"event": "lease lost", "level": "error", "identity": "x"},
    {"event": "ready", "level": "info", "deployments": 3},
]
ENGINE_LINES = ["socket.gaierror: [Errno -2] Name or service not known", "INFO: Application startup complete."]


@pytest.mark.parametrize(
    ("query", "rows_found"),
    [
        ("refused-writes", [{"ns": "a", "name": "phi", "reason": "QuotaExceeded", "refusals": 1}]),
        ("retried-reconciles", [{"ns": "a", "name": "phi", "code": "HRM-KUB-409", "retries": 1}]),
        ("written-objects", [{"TimeGenerated": "t2", "ns": "a", "name": "phi", "wrote": "Service/phi (absent)"}]),
        ("operator-errors", [{"event": "lease lost", "errors": 1}]),
        ("leaving-attempts", [{"PodNamespace": "a", "PodName": "phi-1", "lines": 1}]),
    ],
)
def test_a_query_finds_its_lines(query: str, rows_found: list[dict[str, Any]]) -> None:
    """Read by the KQL of the stand-in for Azure; columns as Azure Monitor documents those of ContainerLogV2."""
    ours = [
        {"TimeGenerated": f"t{n}", "PodNamespace": "hermetic-system", "PodName": "o", "ContainerName": "operator"}
        | {"LogMessage": line}
        for n, line in enumerate(LINES)
    ]
    engines = [
        {"TimeGenerated": "t9", "PodNamespace": "a", "PodName": "phi-1", "ContainerName": "engine", "LogMessage": line}
        for line in ENGINE_LINES
    ]

    assert parse((SHIPPED / "queries" / f"{query}.kql").read_text()).run([*ours, *engines]) == rows_found


def test_the_dashboard_has_its_own_place_and_no_foreign_plugin() -> None:
    assert DASHBOARD["uid"] == "hermetic"
    assert {panel["type"] for panel in DASHBOARD["panels"]} <= {"stat", "timeseries"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert "http" not in json.dumps(DASHBOARD).replace("${datasource}", "")
