"""How far a model has come that starts: phase, time spent, budget left, the prediction, the container's last line.

The phase is computed from the pods as they are now, so it is newer than `status.start`, and needs no operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.modeldeployment_status import StartPhase
from hermetic.api.text import cut, printable
from hermetic.api.times import spell_duration
from hermetic.objects.accelerator_checks import CHECKER
from hermetic.objects.pod import ENGINE
from hermetic.objects.weights_verifier import VERIFIER
from hermetic.plan.pod_start import DESCRIPTIONS, slowest_start

Manifest = Mapping[str, Any]
LONGEST_LOG_LINE = 160
_CONTAINER: Mapping[StartPhase, str] = {
    "CheckingAccelerators": CHECKER,
    "VerifyingWeights": VERIFIER,
    "LoadingModel": ENGINE,
}
_LINE_ENDS = re.compile(r"[\r\n]+")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class StartReport:
    """The slowest start. `predicted_seconds`: the least time that the weights need to load, None where it is not known.

    `container`: whose log says more, "" in a phase without one. `log`: its last line, "" where it was not read.
    """

    pod: str
    phase: StartPhase
    since: datetime
    deadline: datetime | None
    predicted_seconds: int | None
    container: str = ""
    log: str = ""

    def elapsed(self, now: datetime) -> timedelta:
        """How long the phase has lasted."""
        return max(timedelta(), now - self.since)


def start_report(spec: Manifest, status: Manifest, pods: Sequence[Manifest]) -> StartReport | None:
    """Of the pods that do not serve, the one that is least far; None where every pod serves or ends."""
    budget = timedelta(seconds=int(spec.get("startupBudgetSeconds") or 1200))
    start = slowest_start(pods, budget)
    if start is None:
        return None
    predicted = ((status.get("plan") or {}).get("load") or {}).get("leastSeconds")
    container = _CONTAINER.get(start.phase, "")
    return StartReport(start.pod, start.phase, start.since, start.deadline, predicted, container)


def start_text(start: StartReport, now: datetime) -> str:
    """The start in one line: what happens, for how long, what is left, what was predicted, what the log says."""
    spent = spell_duration(start.elapsed(now))
    text = f"pod {start.pod}: {DESCRIPTIONS[start.phase]}, for {spent}"
    if start.deadline is not None:
        budget, left = start.deadline - start.since, max(timedelta(), start.deadline - now)
        text += f" of {spell_duration(budget)} ({spell_duration(left)} left)"
    if start.predicted_seconds is not None and start.phase == "LoadingModel":
        predicted = spell_duration(timedelta(seconds=start.predicted_seconds))
        text += f"; the plan predicts at least {predicted} for the weights"
    return f"{text}; log: {start.log}" if start.log else text


def last_line(log: str) -> str:
    """The last line of a log that says something, printable and cut. A progress bar ends its lines with returns."""
    lines = [line.strip().removeprefix("# ") for line in _LINE_ENDS.split(_ANSI.sub("", log))]
    return cut(printable(next((line for line in reversed(lines) if line), "")), LONGEST_LOG_LINE)
