"""Parses a Corefile for its forwarders and imports, with the rules of CoreDNS's lexer: words may be quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

_FORWARDERS = frozenset({"forward", "proxy", "grpc"})
# One word, bare or quoted, a comment, or the end of a line. A quoted word may contain anything, line ends too; a
# comment directly after a word ends with that word.
_NEXT = re.compile(r'(?P<end>\n)|#[^\n]*|"(?P<quoted>(?:\\.|[^"\\])*)"?|(?P<bare>[^\s#]+)(?:#\S*)?', re.DOTALL)
_ESCAPED = re.compile(r'\\(?=")')
# {$NAME} or {%NAME%}: replaced by an environment variable of CoreDNS, possibly empty.
_ENVIRONMENT = re.compile(r"\{\$[^}]*\}|\{%[^%]*%\}")
_ANY_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PORT = re.compile(r"^(?P<host>\[[^\]]+\]|[^:]+):\d+$")


def forwarders(text: str) -> Iterator[str]:
    """Every destination of every forward line, without scheme and port; "" where a line has no readable one."""
    for words in _told(text, _FORWARDERS):
        yield from _destinations(words[1:]) or ("",)


def imports(text: str) -> Iterator[str]:
    """Every file, pattern or snippet that is imported; "" where it is not readable."""
    for words in _told(text, frozenset({"import"})):
        yield "" if not words or "{" in words[0] else words[0]


def snippets(text: str) -> frozenset[str]:
    """Names of the snippets defined in this text, for import."""
    return frozenset(
        words[0][1:-1] for words in lines(text) if words and words[0].startswith("(") and words[0].endswith(")")
    )


def _told(text: str, directives: frozenset[str]) -> Iterator[list[str]]:
    """The words after each of these directives on its line, at any position: a block may begin on the same line."""
    for words in lines(text):
        for at, word in enumerate(words):
            if _ENVIRONMENT.sub("", word).lstrip("{") in directives:
                yield words[at + 1 :]
                break


def lines(text: str) -> Iterator[list[str]]:
    """The words of each line, as CoreDNS parses them."""
    words: list[str] = []
    for found in _NEXT.finditer(text.replace("\r", "")):
        if found["end"]:
            yield words
            words = []
        elif found["quoted"] is not None:
            words.append(_ESCAPED.sub("", found["quoted"]))
        elif found["bare"]:
            words.append(found["bare"])
    yield words


def _destinations(words: list[str]) -> list[str]:
    named = takewhile(lambda word: word not in {"{", "}"}, words)
    return ["" if "{" in word else bare_host(word) for word in named]


def bare_host(word: str) -> str:
    """A destination without scheme, port and path; a file name keeps its path."""
    bare = _ANY_SCHEME.sub("", word)
    bare = bare if bare.startswith("/") else bare.partition("/")[0]
    with_port = _PORT.match(bare)
    return (with_port["host"] if with_port else bare).strip("[]")
