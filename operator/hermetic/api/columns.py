"""What `kubectl get` prints of each kind; columns of priority 1 appear with `-o wide`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIDE = 1


@dataclass(frozen=True)
class Column:
    """One printer column. `path` is a JSONPath below the object, `kind` string, integer, boolean or date."""

    name: str
    path: str
    description: str
    kind: str = "string"
    priority: int = 0

    def as_printer_column(self) -> dict[str, Any]:
        column: dict[str, Any] = {
            "name": self.name,
            "type": self.kind,
            "description": self.description,
            "jsonPath": self.path,
        }
        return {**column, "priority": self.priority} if self.priority else column


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


_READY = Column("Ready", _condition("Ready", "status"), "Whether everything holds: True, False or Unknown.")
_REASON = Column("Reason", _condition("Ready", "reason"), "Why, in one word; `hermetic explain REASON` says more.")
_MESSAGE = Column("Message", _condition("Ready", "message"), "Why, in one sentence.", priority=WIDE)
_AGE = Column("Age", ".metadata.creationTimestamp", "Time since the object was created.", kind="date")

DEPLOYMENT_COLUMNS = (
    Column("Engine", ".status.plan.engine", "Inference engine: vLLM, NIM or SGLang."),
    _READY,
    Column("Serving", ".status.serving.pods", "Pods that serve, of those asked for."),
    _REASON,
    Column("Endpoint", ".status.serving.url", "Private base URL for OpenAI clients, once a pod serves."),
    Column("GPUs", ".spec.accelerator.count", "GPUs of each pod.", kind="integer"),
    _AGE,
    Column("Model", ".spec.model.name", "Name that clients send in requests.", priority=WIDE),
    Column("Phase", ".status.start.phase", "How far the slowest pod has come that starts.", priority=WIDE),
    Column("Replicas", ".status.replicas", "Pods, each with so many GPUs.", kind="integer", priority=WIDE),
    Column("Isolation", _condition("IsolationVerified", "status"), "Whether isolation is proven.", priority=WIDE),
    Column("Weights", _condition("WeightsVerified", "status"), "Whether the weights are verified.", priority=WIDE),
    Column("Image", ".spec.engine.*.image", "Serving image by digest.", priority=WIDE),
    _MESSAGE,
)

AUDIT_COLUMNS = (
    Column("Verdict", ".status.verdict", "Pass, Fail or Unknown."),
    Column(
        "Blocking",
        ".status.counts.blocking",
        "Critical and high findings that fail or are unknown: 0 for the verdict Pass.",
        kind="integer",
    ),
    Column(
        "Warnings",
        ".status.counts.warnings",
        "Findings that fail or are unknown and are neither critical nor high: they do not decide the verdict.",
        kind="integer",
    ),
    Column("Evidence", ".status.evidence.azure.observedAt", "Age of the evidence from outside.", kind="date"),
    _READY,
    _REASON,
    _AGE,
    Column("Pass", ".status.counts.pass", "Findings that pass.", "integer", WIDE),
    Column("Fail", ".status.counts.fail", "Findings that fail.", "integer", WIDE),
    Column("Unknown", ".status.counts.unknown", "Findings that could not be seen well enough.", "integer", WIDE),
    Column("Excepted", ".status.counts.excepted", "Findings that an exception accepts.", "integer", WIDE),
    Column("Worst", ".status.findings[0].check", "Check of the worst finding that fails or is unknown.", priority=WIDE),
    Column("Kubernetes", ".status.evidence.kubernetes.observedAt", "Age of the cluster's evidence.", "date", WIDE),
    Column("Probe", ".status.evidence.probe.observedAt", "Age of the newest active probe.", "date", WIDE),
    Column("Signed-By", ".status.evidence.azure.signedBy", "Trusted key that signed the evidence.", priority=WIDE),
    _MESSAGE,
)

ATTESTATION_COLUMNS = (
    Column("Key-Hint", ".spec.envelope.signatures[*].keyid", "Key that the envelope names; a hint, never trusted."),
    _AGE,
)
