"""The probe as a source of an audit: one round, started by the first question."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from hermetic.audit.estate.questions import Answer, Question
from hermetic.collect.probe.job import probed_nodes
from hermetic.collect.probe.running import Probing
from hermetic.ports import Clock


class ProbeAnswerer:
    """Runs one round from every pool and subnet at the first question; its result answers every question."""

    def __init__(self, probing: Probing, clock: Clock) -> None:
        self._probing = probing
        self._clock = clock
        self._answer: Answer | None = None

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        """The runs, and a problem when a pod did not answer. Raises the errors of the API server for a list."""
        if self._answer is None:
            chosen = probed_nodes(await self._probing.nodes())
            self._answer = await self._probing.whole_round(secrets.token_hex(4), chosen, self._clock)
        return dict.fromkeys(questions, self._answer)
