"""Parses a Corefile for its forwarders and imports, with the rules of CoreDNS's lexer: words may be quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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
# Every plug-in of CoreDNS's standard build (plugin.cfg), and the directives of its server blocks.
_PLUGINS = """
acl any auto autopath azure bind bufsize cache cancel chaos clouddns debug dns64 dnssec dnstap doh3 erratic errors
etcd file forward geoip grpc grpc_server header health hosts https https3 import k8s_external kubernetes loadbalance
local log loop metadata minimal multisocket nomad nsid on pprof prometheus proxy proxyproto quic ready reload rewrite
root route53 secondary shed sign template timeouts tls trace transfer tsig view whoami
"""
PLUGINS = frozenset(_PLUGINS.split())


def forwarders(text: str) -> Iterator[str]:
    """Every destination of every forward line, without scheme and port; "" where a line has no readable one."""
    for words in _arguments_of(text, _FORWARDERS):
        yield from _destinations(words[1:]) or ("",)


def imports(text: str) -> Iterator[str]:
    """Every file, pattern or snippet that is imported; "" where it is not readable."""
    for words in _arguments_of(text, frozenset({"import"})):
        yield "" if not words or "{" in words[0] else words[0]


def snippets(text: str) -> frozenset[str]:
    """Names of the snippets defined in this text, for import."""
    return frozenset(
        words[0][1:-1] for words in lines(text) if words and words[0].startswith("(") and words[0].endswith(")")
    )


def _arguments_of(text: str, directives: frozenset[str]) -> Iterator[list[str]]:
    """The words after each of these directives on its line, at any position: a block may begin on the same line."""
    for words in lines(text):
        for at, word in enumerate(words):
            if without_environment(word).lstrip("{") in directives:
                yield words[at + 1 :]
                break


def without_environment(word: str) -> str:
    """The word as CoreDNS reads it where its environment variables are not set."""
    return replace_braced(_ENVIRONMENT, "", word)


def replace_braced(pattern: re.Pattern[str], by: str, word: str) -> str:
    """`pattern.sub` for a pattern whose matches end with a brace, linear: no search goes past the last brace."""
    head, brace, tail = word.rpartition("}")
    return pattern.sub(by, head + brace) + tail


def lines(text: str) -> Iterator[list[str]]:
    """The words of each line, as CoreDNS parses them: without a byte order mark at the start."""
    words: list[str] = []
    for found in _NEXT.finditer(text.removeprefix("\ufeff").replace("\r", "")):
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


@dataclass(slots=True)
class Directive:
    """One statement: its words, and the statements in its block."""

    words: list[str]
    block: list[Directive] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The first word."""
        return self.words[0]

    @property
    def arguments(self) -> list[str]:
        """The words after the first."""
        return self.words[1:]

    def options(self, name: str) -> Iterator[list[str]]:
        """The words after this name in its block, line by line."""
        yield from (one.arguments for one in self.block if one.words and one.name == name)

    def values(self, name: str) -> list[str]:
        """The words after this name in all lines of its block."""
        return [word for words in self.options(name) for word in words]


def directives(text: str) -> Iterator[Directive]:
    """Every directive. A block whose name is no plug-in is a server block or a snippet, and contains directives."""
    for one in _parsed(text):
        if one.name in PLUGINS or not one.block:
            yield one
        else:
            yield from one.block


def _parsed(text: str) -> list[Directive]:
    root = Directive([])
    open_blocks, statement = [root], Directive([])
    for words in lines(text):
        for word in words:
            if word == "{" and statement.words:
                open_blocks[-1].block.append(statement)
                open_blocks.append(statement)
                statement = Directive([])
            elif word == "}":
                _close(open_blocks, statement)
                statement = Directive([])
            else:
                statement.words.append(word)
        if statement.words:
            open_blocks[-1].block.append(statement)
            statement = Directive([])
    return root.block


def _close(open_blocks: list[Directive], statement: Directive) -> None:
    if statement.words:
        open_blocks[-1].block.append(statement)
    if len(open_blocks) > 1:
        open_blocks.pop()
