"""Where CoreDNS forwards names that it does not answer itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hermetic.api.field_managers import DATA
from hermetic.api.ip_ranges import is_address, is_public
from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import COREDNS, COREDNS_CUSTOM, NODE_LOCAL_DNS
from hermetic.audit.estate.kubernetes.calls import IMPORTED, ConfigMap
from hermetic.audit.estate.kubernetes.corefile import (
    PLUGINS,
    Directive,
    bare_host,
    directives,
    forwarders,
    imports,
    replace_braced,
    snippets,
    without_environment,
)
from hermetic.audit.estate.kubernetes.names import is_inside, is_outside
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation import CheckResult, fails, unknown
from hermetic.audit.findings import Severity
from hermetic.audit.hops import POD, path_of
from hermetic.audit.kube_findings import everywhere, objections, settled
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged

_CLOUDS = {"route53": "Amazon Route 53", "clouddns": "Google Cloud DNS", "azure": "Azure DNS"}
_MATCHERS = frozenset({"exact", "prefix", "suffix", "substring", "regex"})
_GROUP = re.compile(r"\{\d+\}|\{[.A-Za-z][^}]*\}")
_WORD = re.compile(r"[0-9A-Fa-f:.]+")
ANYBODY = "*"


@dataclass(frozen=True, slots=True)
class _Objection:
    """A problem of one directive; `is_open` where it is certain (Fail), else Unknown."""

    message: str
    is_open: bool = True
    severity: Severity | None = None


def evaluate_plugins(config_map: ConfigMap, key: str, text: str, allowed: frozenset[str]) -> Iterator[CheckResult]:
    """All directives except forwarders and imports."""
    for one in directives(text):
        name = without_environment(one.name)
        if name not in PLUGINS:
            if name.strip("{}() ") and not one.block and _is_a_word(name):
                message = f"{key} has the directive {name}, which this release does not know"
                yield unknown(config_map.id, "PluginUnknown", message, config_map)
            continue
        for found in _HANDLERS.get(name, _nothing)(one, allowed):
            message = f"{key}: {found.message}"
            if found.is_open:
                paths = (path_of(POD, hops.dns("CoreDNS"), found.message),)
                yield fails(config_map.id, "LeadsOutside", message, config_map, paths=paths, severity=found.severity)
            else:
                yield unknown(config_map.id, "PluginNotRead", message, config_map, severity=found.severity)


def _is_a_word(name: str) -> bool:
    # A word that names a zone or a port is the key of a server block without directives.
    return re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None


def _nothing(_one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    yield from ()


def _sends(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    """dnstap and trace: queries are sent to an address."""
    for word in one.arguments:
        if "://" not in word and ":" not in word and "." not in word:
            continue  # "full", or the type of a collector
        host = bare_host(word)
        if "{" in word or not host:
            yield _Objection(f"{one.name} sends names to the value of an environment variable", is_open=False)
        elif not word.startswith(("/", "unix:")) and not is_inside(host):
            yield _Objection(f"{one.name} sends names to {host}")


def _transfer(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for target in one.values("to"):
        host = bare_host(target)
        if target == ANYBODY:
            yield _Objection("transfer gives the whole zone to every client that asks", severity=Severity.MEDIUM)
        elif is_address(host) and not is_public(host):
            yield _Objection(f"transfer gives the whole zone to {host}", is_open=False, severity=Severity.MEDIUM)
        else:
            yield _Objection(f"transfer gives the whole zone to {host or target}")


def _secondary(one: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    for words in one.options("transfer"):
        for target in words[1:] if words[:1] == ["from"] else ():
            host = bare_host(target)
            if host in allowed:
                continue
            is_open = "{" not in target and not is_inside(host)
            yield _Objection(f"secondary fetches its zone from {host or target}", is_open=is_open)


def _endpoints(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    """etcd, nomad, kubernetes: the servers that the answers come from."""
    for option in ("endpoint", "address"):
        for target in one.values(option):
            host = bare_host(target)
            if "{" in target or not host:
                yield _Objection(f"{one.name} asks the value of an environment variable", is_open=False)
            elif is_outside(host):
                yield _Objection(f"{one.name} asks {host}")


def _kubernetes(one: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    """No name is sent to the server of a kubeconfig: like a file of hosts, it decides what is answered."""
    yield from _endpoints(one, allowed)
    if any(True for _ in one.options("kubeconfig")):
        words = "kubernetes takes its answers from the API server of a kubeconfig, which the audit does not read"
        yield _Objection(words, is_open=False, severity=Severity.MEDIUM)


def _tls(one: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    """Certificates by ACME: of Let's Encrypt unless the block names another server (coredns.io/plugins/tls)."""
    if not any(True for _ in one.options("acme")):
        return
    for server in one.values("ca") or ("https://acme-v02.api.letsencrypt.org",):
        host = bare_host(server)
        if "{" in server or not host:
            yield _Objection("tls gets certificates from the value of an environment variable", is_open=False)
        elif not is_inside(host):
            yield _Objection(f"tls gets certificates from {host}")
    yield from _resolvers(one, allowed)


def _resolvers(one: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    """forward and tls: the resolver of the names of their own servers."""
    for target in one.values("resolver"):
        host = bare_host(target)
        if host not in allowed and host != HOST_RESOLVER:
            is_open = bool(host) and not is_inside(host) and "{" not in target
            yield _Objection(f"{one.name} resolves names of its servers at {host or target}", is_open=is_open)


def _program(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    """Source: coredns.io/explugins/on: a command is executed at an event of the server."""
    event = next(iter(one.arguments), "some event")
    yield _Objection(f"on {event} runs a program in CoreDNS's container, which the audit does not read", is_open=False)


def _cloud(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    yield _Objection(f"{one.name} asks {_CLOUDS[one.name]}")


def _hosts(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for line in one.block:
        if is_public(line.name):
            names = ", ".join(line.arguments[:3])
            yield _Objection(f"hosts gives {line.name} for {names}", severity=Severity.MEDIUM)
    if one.arguments and one.arguments[0] != "/etc/hosts" and "/" in one.arguments[0]:
        yield _Objection(f"hosts reads {one.arguments[0]}", is_open=False, severity=Severity.MEDIUM)


def _rewrite(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for words in (one.arguments, *(line.words for line in one.block)):
        rest = [word for word in words if word not in {"continue", "stop"}]
        if not rest or rest[0] not in {"name", "cname"}:
            continue
        rest = rest[2:] if len(rest) > 1 and rest[1] in _MATCHERS else rest[1:]
        if len(rest) < 2:
            continue
        target = replace_braced(_GROUP, "x", rest[1]).strip(".")
        if "." in target and is_outside(target):
            yield _Objection(f"rewrite turns {rest[0]} into {rest[1]}", severity=Severity.MEDIUM)


def _template(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for words in one.options("answer"):
        public = [word for text in words for word in _WORD.findall(text) if is_public(word)]
        if public:
            yield _Objection(f"template answers {public[0]}", severity=Severity.MEDIUM)


def _file(one: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    yield _Objection(f"{one.name} answers from files that the audit does not read", False, Severity.MEDIUM)


_HANDLERS: Mapping[str, Callable[[Directive, frozenset[str]], Iterator[_Objection]]] = {
    "auto": _file,
    "azure": _cloud,
    "clouddns": _cloud,
    "dnstap": _sends,
    "etcd": _endpoints,
    "file": _file,
    "forward": _resolvers,
    "hosts": _hosts,
    "kubernetes": _kubernetes,
    "nomad": _endpoints,
    "on": _program,
    "rewrite": _rewrite,
    "route53": _cloud,
    "secondary": _secondary,
    "template": _template,
    "tls": _tls,
    "trace": _sends,
    "transfer": _transfer,
}


NODE_RESOLVERS = "/etc/resolv.conf"
HOST_RESOLVER = "168.63.129.16"
# Placeholders that NodeLocal DNSCache replaces at start: the cluster's resolver, and those of its node.
OF_NODE_LOCAL_DNS = ("__PILLAR__CLUSTER__DNS__", "__PILLAR__UPSTREAM__SERVERS__")
CLUSTER_DNS = (("kube-system", "kube-dns"), ("kube-system", "kube-dns-upstream"), ("kube-system", "coredns"))
# The folder where AKS mounts kube-system/coredns-custom, as the Corefile and its own files spell it.
_CUSTOM = frozenset({"", "custom", "/etc/coredns/custom"})


@check("coredns-custom")
def coredns_custom(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Forwarders are the node's own resolvers, which `vnet-dns-servers` evaluates, or servers that are allowed."""
    main, custom = estate.every(ConfigMap, COREDNS), estate.every(ConfigMap, COREDNS_CUSTOM)
    node_local = estate.every(ConfigMap, NODE_LOCAL_DNS)
    allowed = frozenset(policy.allowed_dns_servers) | _of_coredns_itself(estate)

    def evaluate(config_map: ConfigMap) -> Iterator[CheckResult]:
        texts = config_map.data or {}
        known = frozenset[str]().union(*map(snippets, texts.values()))
        for key, text in sorted(texts.items()):
            for target in forwarders(text):
                yield from _evaluate_target(config_map, key, target, allowed)
            for target in imports(text):
                yield from _evaluate_import(config_map, key, target, known)
            yield from evaluate_plugins(config_map, key, text, allowed)
        for key in sorted(config_map.binary_data or {}):
            message = f"{key} is kept as binary data, which CoreDNS imports and the audit does not read"
            yield unknown(config_map.id, "BinaryNotSeen", message, config_map, remedy="Write it under `data`.")

    results = (*objections(main, evaluate), *objections(custom, evaluate), *objections(node_local, evaluate))
    fine = "CoreDNS asks only the node's own resolvers and servers that the policy allows"
    yield from settled(estate, results, "NoForeignForwarder", fine, _has_a_corefile(main), custom, node_local)


def _of_coredns_itself(estate: Estate) -> frozenset[str]:
    """Addresses of the cluster's own resolver, which a cache on each node forwards to."""
    found = set()
    for service in everywhere(estate, Service):
        try:
            if (service.namespace, service.metadata.name) in CLUSTER_DNS and service.spec.selector:
                found.add(service.spec.cluster_ip or "")
        except FactDamaged:
            continue
    return frozenset(found - {""})


def _evaluate_target(config_map: ConfigMap, key: str, target: str, allowed: frozenset[str]) -> Iterator[CheckResult]:
    if target in {NODE_RESOLVERS, HOST_RESOLVER, *OF_NODE_LOCAL_DNS} or target in allowed:
        return
    outside = is_public(target) if is_address(target) else not is_inside(target)
    if not target or target.startswith("/"):
        message = f"{key} forwards to {target or 'the value of an environment variable'}, which the audit does not read"
        yield unknown(config_map.id, "ForwarderNotSeen", message, config_map)
    elif outside:
        yield fails(
            config_map.id,
            "ForwardsOutside",
            f"{key} forwards to {target}",
            config_map,
            paths=(path_of(POD, hops.dns("CoreDNS"), target),),
            blames=(DATA,),
        )
    else:
        yield unknown(
            config_map.id,
            "ForwarderNotDeclared",
            f"{key} forwards to {target}, which the policy does not list: it may ask the internet in turn",
            config_map,
            remedy=(
                "Find out whom it asks, and list it under `allowedDnsServers`, in the file given to --policy and in "
                "the operator's configuration."
            ),
        )


def _evaluate_import(config_map: ConfigMap, key: str, target: str, known: frozenset[str]) -> Iterator[CheckResult]:
    folder, _, name = target.rpartition("/")
    if target not in known and not (folder in _CUSTOM and name.endswith(IMPORTED)):
        yield unknown(
            config_map.id,
            "ImportNotSeen",
            f"{key} imports {target or 'the value of an environment variable'}, which the audit does not read",
            config_map,
            remedy="Import nothing but the keys of kube-system/coredns-custom that end in .server or .override.",
        )


def _has_a_corefile(main: Listing[ConfigMap]) -> Listing[ConfigMap]:
    """The list; incomplete without a Corefile: CoreDNS does not start without one, so it is configured elsewhere."""
    if main.problem is not None or any((one.data or {}).get("Corefile") for one in main):
        return main
    problem = Problem(
        UnreadReason.UNREADABLE, f"no Corefile in ConfigMap {main.target}: where CoreDNS forwards to is unknown"
    )
    return Listing(main.target, main.items, main.evidence, problem)
