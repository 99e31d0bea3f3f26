"""Parses a Corefile for its forwarders and imports, with the rules of CoreDNS's lexer: words may be quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

_FORWARDERS = ("forward", "proxy", "grpc")
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


@dataclass(frozen=True, slots=True)
class Forwarder:
    """A destination of a forward line, without scheme and port; `host` is "" where it is not readable.

    `is_plain_dns`: queries go to port 53 by UDP or TCP, and by no other protocol.
    """

    host: str
    is_plain_dns: bool = False


def forwarders(text: str) -> Iterator[Forwarder]:
    """Every destination of every forward line; one without a host where a line has no readable one."""
    for directive in _FORWARDERS:
        for arguments in _arguments_of(text, frozenset({directive})):
            destinations = takewhile(lambda word: word not in {"{", "}"}, arguments[1:])
            yield from [_forwarder(word, directive) for word in destinations] or (Forwarder(""),)


def _forwarder(word: str, directive: str) -> Forwarder:
    """Sources: coredns.io/plugins/forward (`dns://` and port 53 are the default), coredns.io/plugins/grpc."""
    if "{" in word:
        return Forwarder("")
    host, bare = bare_host(word), word.removeprefix("dns://")
    is_plain = directive != "grpc" and bare in {host, f"{host}:53", f"[{host}]", f"[{host}]:53"}
    return Forwarder(host, is_plain)


def imports(text: str) -> Iterator[str]:
    """Every file, pattern or snippet that is imported; "" where it is not readable."""
    for arguments in _arguments_of(text, frozenset({"import"})):
        yield "" if not arguments or "{" in arguments[0] else arguments[0]


def snippets(text: str) -> frozenset[str]:
    """Names of the snippets defined in this text, for import."""
    return frozenset(
        tokens[0][1:-1] for tokens in lines(text) if tokens and tokens[0].startswith("(") and tokens[0].endswith(")")
    )


def _arguments_of(text: str, directives: frozenset[str]) -> Iterator[list[str]]:
    """The words after each of these directives on its line, at any position: a block may begin on the same line."""
    for tokens in lines(text):
        for at, word in enumerate(tokens):
            if without_environment(word).lstrip("{") in directives:
                yield tokens[at + 1 :]
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
    tokens: list[str] = []
    for match in _NEXT.finditer(text.removeprefix("\ufeff").replace("\r", "")):
        if match["end"]:
            yield tokens
            tokens = []
        elif match["quoted"] is not None:
            tokens.append(_ESCAPED.sub("", match["quoted"]))
        elif match["bare"]:
            tokens.append(match["bare"])
    yield tokens


def bare_host(word: str) -> str:
    """A destination without scheme, port and path; a file name keeps its path."""
    bare = _ANY_SCHEME.sub("", word)
    bare = bare if bare.startswith("/") else bare.partition("/")[0]
    with_port = _PORT.match(bare)
    return (with_port["host"] if with_port else bare).strip("[]")


@dataclass(slots=True)
class Directive:
    """One statement: its words, and the statements in its block."""

    tokens: list[str]
    block: list[Directive] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The first word."""
        return self.tokens[0]

    @property
    def arguments(self) -> list[str]:
        """The words after the first."""
        return self.tokens[1:]

    def options(self, name: str) -> Iterator[list[str]]:
        """The words after this name in its block, line by line."""
        yield from (directive.arguments for directive in self.block if directive.tokens and directive.name == name)

    def values(self, name: str) -> list[str]:
        """The words after this name in all lines of its block."""
        return [word for arguments in self.options(name) for word in arguments]


def directives(text: str) -> Iterator[Directive]:
    """Every directive. A block whose name is no plug-in is a server block or a snippet, and contains directives."""
    for directive in _parsed(text):
        if directive.name in PLUGINS or not directive.block:
            yield directive
        else:
            yield from directive.block


def _parsed(text: str) -> list[Directive]:
    root = Directive([])
    open_blocks, statement = [root], Directive([])
    for tokens in lines(text):
        for word in tokens:
            if word == "{" and statement.tokens:
                open_blocks[-1].block.append(statement)
                open_blocks.append(statement)
                statement = Directive([])
            elif word == "}":
                _close(open_blocks, statement)
                statement = Directive([])
            else:
                statement.tokens.append(word)
        if statement.tokens:
            open_blocks[-1].block.append(statement)
            statement = Directive([])
    return root.block


def _close(open_blocks: list[Directive], statement: Directive) -> None:
    if statement.tokens:
        open_blocks[-1].block.append(statement)
    if len(open_blocks) > 1:
        open_blocks.pop()
