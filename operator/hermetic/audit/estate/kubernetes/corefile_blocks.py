"""Parses a Corefile into directives with their blocks: in a server block, in a snippet, or top-level in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hermetic.audit.estate.kubernetes.corefile import lines

# Every plug-in of CoreDNS's standard build (plugin.cfg), and the directives of its server blocks.
_PLUGINS = """
acl any auto autopath azure bind bufsize cache cancel chaos clouddns debug dns64 dnssec dnstap doh3 erratic errors
etcd file forward geoip grpc grpc_server header health hosts https https3 import k8s_external kubernetes loadbalance
local log loop metadata minimal multisocket nomad nsid on pprof prometheus proxy proxyproto quic ready reload rewrite
root route53 secondary sign template timeouts tls trace transfer tsig view whoami
"""
PLUGINS = frozenset(_PLUGINS.split())


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
