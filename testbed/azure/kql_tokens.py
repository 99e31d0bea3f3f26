"""Words of a Resource Graph query: strings, numbers, names, operators. What is none of these is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass


class KqlError(ValueError):
    """The query is outside of what the stand-in understands, or no query at all."""


@dataclass(frozen=True)
class Token:
    """kind: string, number, name, operator or end. text: unquoted for strings, as written otherwise."""

    kind: str
    text: str


_WORD = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|@'[^']*'|@"[^"]*")
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<operator>!in~|!in\b|in~|=~|!~|==|!=|<=|>=|!contains\b|!startswith\b|!endswith\b|!has\b|[|,()\[\].=<>{}:])
  | (?P<name>project-away|project-keep|project-rename|mv-expand|[A-Za-z_$][A-Za-z0-9_]*)
    """,
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t"}


def tokens_of(query: str) -> list[Token]:
    tokens, at = [], 0
    while at < len(query):
        match = _WORD.match(query, at)
        if match is None:
            raise KqlError(f"unexpected {query[at : at + 12]!r}")
        kind, at = match.lastgroup or "", match.end()
        if kind != "space":
            tokens.append(Token(kind, _unquoted(match.group()) if kind == "string" else match.group()))
    return [*tokens, Token("end", "")]


def _unquoted(text: str) -> str:
    if text.startswith("@"):
        return text[2:-1]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(1)), text[1:-1])


class Reader:
    """Tokens, read from the front."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def now(self) -> Token:
        return self._tokens[self._at]

    def next(self) -> Token:
        token = self.now
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def take(self, *texts: str) -> str | None:
        """The word when it is one of these, letter case apart; strings are never words."""
        if self.now.kind in {"name", "operator"} and self.now.text.lower() in texts:
            return self.next().text.lower()
        return None

    def expect(self, text: str) -> None:
        if self.take(text) is None:
            raise KqlError(f"expected {text!r}, found {self.now.text!r}")

    def name(self) -> str:
        if self.now.kind != "name":
            raise KqlError(f"expected a name, found {self.now.text!r}")
        return self.next().text

    def number(self) -> int:
        if self.now.kind != "number":
            raise KqlError(f"expected a number, found {self.now.text!r}")
        return int(float(self.next().text))

    @property
    def is_at_end(self) -> bool:
        return self.now.kind == "end"
