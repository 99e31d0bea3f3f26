"""Where CoreDNS sends what it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import COREDNS, COREDNS_CUSTOM
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.look import Listing
from hermetic.audit.estate.probe.addresses import is_address, is_public
from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.judging import Judgement, cannot_say, fails
from hermetic.audit.looking_at_objects import objections, settled
from hermetic.audit.policy import Policy

_FORWARD = re.compile(r"(?:^|[\s{])(?:forward|proxy|grpc)\s+\S+(?P<to>.*)")
_SCHEME = re.compile(r"^(?:dns|tls|https|grpc|quic)://", re.IGNORECASE)
_PORT = re.compile(r"^(?P<host>\[[^\]]+\]|[^:]+):\d+$")
NODE_RESOLVERS = "/etc/resolv.conf"
HOST_RESOLVER = "168.63.129.16"


def coredns(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Forwarders are the node's own resolvers, which `vnet-dns-servers` judges, or servers that the policy allows."""
    main, custom = estate.every(ConfigMap, COREDNS), estate.every(ConfigMap, COREDNS_CUSTOM)
    allowed = frozenset(policy.allowed_dns_servers)

    def judge(config_map: ConfigMap) -> Iterator[Judgement]:
        for key, text in sorted((config_map.data or {}).items()):
            for target in _forwarders(text):
                yield from _judge_target(config_map, key, target, allowed)

    said = (*objections(main, judge), *objections(custom, judge))
    fine = "CoreDNS asks nobody but the node's own resolvers and servers that the policy allows"
    yield from settled(estate, said, "NoForeignForwarder", fine, _has_a_corefile(main), custom)


def _judge_target(config_map: ConfigMap, key: str, target: str, allowed: frozenset[str]) -> Iterator[Judgement]:
    if target in {NODE_RESOLVERS, HOST_RESOLVER} or target in allowed:
        return
    outside = is_public(target) if is_address(target) else not is_inside(target)
    if not target or target.startswith("/"):
        message = f"{key} forwards to {target or 'what its environment says'}, which the audit does not read"
        yield cannot_say(config_map.id, "ForwarderNotSeen", message, config_map)
    elif outside:
        yield fails(
            config_map.id,
            "ForwardsOutside",
            f"{key} forwards to {target}",
            config_map,
            paths=(f"pod -> CoreDNS -> {target}",),
        )
    else:
        yield cannot_say(
            config_map.id,
            "ForwarderNotDeclared",
            f"{key} forwards to {target}, of which the policy says nothing: it may ask the internet in turn",
            config_map,
            remedy="Find out whom it asks, and list it under `allowedDnsServers` in the file given to --policy.",
        )


def _forwarders(corefile: str) -> Iterator[str]:
    """Every destination of every forward line, without scheme and port; "" where a line names none that can be read."""
    for line in corefile.splitlines():
        if found := _FORWARD.search(line.partition("#")[0]):
            yield from _destinations(found["to"].split()) or ("",)


def _destinations(words: list[str]) -> list[str]:
    words = words[: words.index("{")] if "{" in words else words
    found = []
    for word in words:
        bare = _SCHEME.sub("", word)
        with_port = _PORT.match(bare)
        # {$NAME} stands for whatever the environment of CoreDNS says.
        found.append("" if "{" in word else (with_port["host"] if with_port else bare).strip("[]"))
    return found


def _has_a_corefile(main: Listing[ConfigMap]) -> Listing[ConfigMap]:
    """Without a Corefile CoreDNS does not start: its absence means that it stands elsewhere."""
    if main.problem is not None or any((one.data or {}).get("Corefile") for one in main):
        return main
    problem = Problem(
        Trouble.UNREADABLE, f"no Corefile in ConfigMap {main.target}: where CoreDNS forwards to is unknown"
    )
    return Listing(main.target, main.items, main.evidence, problem)
