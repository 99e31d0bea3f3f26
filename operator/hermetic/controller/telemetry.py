"""Metrics and logs: bounded labels, one log line per reconcile."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from structlog.typing import Processor

from hermetic import __version__
from hermetic.api.log_settings import LogSettings
from hermetic.api.text import one_line, printable
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.controller.model_info import ModelInfo

if TYPE_CHECKING:
    from hermetic.audit.verdict.inputs import Age

# Number of ModelDeployments by (condition, status).
ConditionCounts = Callable[[], Mapping[tuple[str, str], int]]

# Every ModelDeployment.
ModelInfos = Callable[[], Iterable[ModelInfo]]


class _Conditions(Collector):
    """The gauge of conditions, counted at each scrape, so that pairs which no object has any more disappear."""

    def __init__(self, counts: ConditionCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Collector protocol of prometheus_client."""
        gauge = GaugeMetricFamily(
            "hermetic_model_condition", "ModelDeployments by condition and status", labels=["condition", "status"]
        )
        for pair, count in self._counts().items():
            gauge.add_metric(pair, count)
        yield gauge


class _Models(Collector):
    """One series for each ModelDeployment, listed at each scrape, so that a deleted model has no series any more."""

    def __init__(self, models: ModelInfos) -> None:
        self._models = models

    def collect(self) -> Iterator[Metric]:
        """Collector protocol of prometheus_client."""
        gauge = GaugeMetricFamily(
            "hermetic_model_info", "1 for each ModelDeployment, with what it serves", labels=ModelInfo._fields
        )
        for model in self._models():
            gauge.add_metric(model, 1)
        yield gauge


class Telemetry:
    """Every metric that the operator exposes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconciles = Counter("hermetic_reconcile", "Reconciles by result", ["result"], registry=self.registry)
        self.duration = Histogram(
            "hermetic_reconcile_duration_seconds", "Seconds per reconcile", registry=self.registry
        )
        self.requests = Counter(
            "hermetic_api_requests",
            "Requests to the API server by verb, resource and HTTP status",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self.leader = Gauge("hermetic_leader", "1 while this process may write", registry=self.registry)
        self.last_relist = Gauge(
            "hermetic_last_relist_timestamp_seconds", "When everything was last listed", registry=self.registry
        )
        self.isolation = Gauge(
            "hermetic_isolation_verdict",
            "1 for the verdict of the EgressAudit, 0 for the others",
            ["verdict"],
            registry=self.registry,
        )
        self.findings = Gauge(
            "hermetic_audit_findings",
            "Findings of the newest audit by severity and verdict",
            ["severity", "verdict"],
            registry=self.registry,
        )
        self.audit_faults = Counter(
            "hermetic_audit_faults",
            "Parts of the operator's own audit that failed with an unexpected error",
            ["part"],
            registry=self.registry,
        )
        self.lost_events = Counter(
            "hermetic_events_lost",
            "Kubernetes Events that were not posted, by the code of the error or why they were dropped",
            ["reason"],
            registry=self.registry,
        )
        self.evidence_ends = Gauge(
            "hermetic_isolation_evidence_expiry_timestamp_seconds",
            "When the attestation stops counting; 0 while none counts",
            registry=self.registry,
        )
        self.evidence_observed = Gauge(
            "hermetic_isolation_evidence_observed_timestamp_seconds",
            "When the audit of the attestation started; 0 while none counts",
            registry=self.registry,
        )
        build = Gauge("hermetic_build_info", "Version of the operator", ["version"], registry=self.registry)
        build.labels(version=__version__).set(1)

    def watch_queue(self, depth: Callable[[], float], age: Callable[[], float]) -> None:
        """Report the queue's depth and the age of its oldest key at every scrape."""
        Gauge("hermetic_workqueue_depth", "Keys that wait", registry=self.registry).set_function(depth)
        Gauge(
            "hermetic_workqueue_oldest_age_seconds",
            "Age of the oldest key in the queue or in work",
            registry=self.registry,
        ).set_function(age)

    def watch_events(self, unposted: Callable[[], float]) -> None:
        """Report how many Kubernetes Events are still to be posted at every scrape."""
        Gauge("hermetic_events_unposted", "Events that wait or are on their way", registry=self.registry).set_function(
            unposted
        )

    def watch_conditions(self, counts: ConditionCounts) -> None:
        """Report the number of ModelDeployments by condition and status at every scrape."""
        self.registry.register(_Conditions(counts))

    def watch_models(self, models: ModelInfos) -> None:
        """Report one series for each ModelDeployment at every scrape."""
        self.registry.register(_Models(models))

    def count_audit_fault(self, part: str) -> None:
        """Count a failure of a part of the operator's own audit."""
        self.audit_faults.labels(part=part).inc()

    def count_lost_event(self, reason: str) -> None:
        """Count a Kubernetes Event that was not posted."""
        self.lost_events.labels(reason=reason).inc()

    def count_request(self, verb: str, resource: str, status: int) -> None:
        """Count one request to the API server, with its HTTP status or 0 when no answer came."""
        self.requests.labels(verb=verb, resource=resource, code=str(status)).inc()

    def record_isolation(self, verdict: Verdict | None, findings: Iterable[Finding], age: Age | None) -> None:
        """Set the verdict, its findings and the age of its evidence; verdict None where there is no EgressAudit."""
        for each in (Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN):
            self.isolation.labels(verdict=each.value).set(each is verdict)
        self.evidence_observed.set(age.observed_at.timestamp() if age is not None else 0)
        self.evidence_ends.set(age.ends_at.timestamp() if age is not None else 0)
        counted = Counted((one.severity, one.verdict) for one in findings)
        for severity in Severity:
            for kind in Verdict:
                self.findings.labels(severity=severity.value, verdict=kind.value).set(counted[severity, kind])

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)


_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
_FIRST = ("ts", "level", "event")
_WORD = re.compile(r"[\w./:@+-]+", re.ASCII)


def configure_logging(settings: LogSettings) -> None:
    """Log lines to standard output, each with time, level and event first; of libraries only warnings and errors."""
    renderer: Processor = structlog.processors.JSONRenderer() if settings.format == "json" else text_line
    stamped: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
    ]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *stamped,
            structlog.processors.format_exc_info,
            first_keys_first,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
    )
    handler = logging.StreamHandler(sys.stdout)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*stamped, structlog.processors.format_exc_info],
            processors=[remove_meta, first_keys_first, renderer],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def first_keys_first(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor of structlog: time, level and event are what a reader looks for, so they begin the line."""
    return {**{key: event[key] for key in _FIRST if key in event}, **event}


def text_line(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    """Renderer of structlog: `TIME LEVEL EVENT key=value ...`, one line; a traceback follows on lines of its own."""
    trace = event.get("exception", "")
    fields = (f"{key}={_spell(value)}" for key, value in event.items() if key not in {*_FIRST, "exception"})
    head = f"{event.get('ts', '')} {str(event.get('level', '')).upper():<7} {one_line(str(event.get('event', '')))}"
    return " ".join((head, *fields)) + (f"\n{printable(trace)}" if trace else "")


def _spell(value: object) -> str:
    """The value without quotes where it is one word of plain characters, else as JSON."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else json.dumps(value, default=str)
