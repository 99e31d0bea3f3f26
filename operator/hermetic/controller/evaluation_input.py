"""The input of one evaluation of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Source
from hermetic.audit.findings import Finding
from hermetic.audit.policy import Policy
from hermetic.audit.run import evaluate
from hermetic.collect.kube.cache import CacheSnapshot
from hermetic.collect.probe.readings import question as probe_question


@dataclass(frozen=True, slots=True)
class Case:
    """`cluster` is the ARM id, `probe` the answer of the newest round (None before the first)."""

    cluster: str
    policy: Policy
    observed: CacheSnapshot
    probe: Answer | None

    def findings(self) -> tuple[Finding, ...]:
        """Run the checks. Takes seconds for ten thousand pods."""
        answers, sources = dict(self.observed.answers()), set[Source]({"kube"})
        if self.probe is not None:
            answers[probe_question(self.cluster)] = self.probe
            sources.add("probe")
        return evaluate(Estate(self.cluster, sources, answers), self.policy)
