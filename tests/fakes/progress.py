"""The progress of an audit: recorded, or dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


class NoProgress:
    """Drops everything."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@dataclass
class Progress:
    """Every call, by its kind."""

    rounds: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    resources: int = 0
    waited: list[tuple[str, float]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    def asks(self, questions: int) -> None:
        self.rounds.append(questions)

    def answered(self, request: str, seconds: float) -> None:  # noqa: ARG002 - the port has it
        self.requests.append(request)

    def saw(self, resources: int) -> None:
        self.resources += resources

    def waits(self, why: str, seconds: float) -> None:
        self.waited.append((why, seconds))

    def note(self, sentence: str) -> None:
        self.sentences.append(sentence)
