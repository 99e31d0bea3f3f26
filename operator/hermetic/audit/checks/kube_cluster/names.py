"""Where CoreDNS forwards names that it does not answer itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hermetic.api.field_managers import DATA
from hermetic.api.ip_ranges import is_azure_resolver, is_host_address, leads_outside
from hermetic.api.ip_ranges import is_inside as is_inside_address
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import COREDNS, COREDNS_CUSTOM, NODE_LOCAL_DNS
from hermetic.audit.estate.kubernetes.calls import IMPORTED, ConfigMap
from hermetic.audit.estate.kubernetes.corefile import (
    PLUGINS,
    Directive,
    Forwarder,
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
from hermetic.audit.evaluation.each_object import objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import POD, path_of
from hermetic.audit.policy.declarations import Policy
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
    for directive in directives(text):
        name = without_environment(directive.name)
        if name not in PLUGINS:
            if name.strip("{}() ") and not directive.block and _is_a_word(name):
                message = f"{key} has the directive {name}, which this release does not know"
                yield unknown(config_map.id, "PluginUnknown", message, config_map)
            continue
        for objection in _HANDLERS.get(name, _nothing)(directive, allowed):
            message = f"{key}: {objection.message}"
            if objection.is_open:
                paths = (path_of(POD, hops.dns("CoreDNS"), objection.message),)
                yield fails(
                    config_map.id, "LeadsOutside", message, config_map, paths=paths, severity=objection.severity
                )
            else:
                yield unknown(config_map.id, "PluginNotRead", message, config_map, severity=objection.severity)


def _is_a_word(name: str) -> bool:
    # A word that names a zone or a port is the key of a server block without directives.
    return re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None


def _nothing(_directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    yield from ()


def _sends(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    """dnstap and trace: queries are sent to an address."""
    for word in directive.arguments:
        if "://" not in word and ":" not in word and "." not in word:
            continue  # "full", or the type of a collector
        host = bare_host(word)
        if "{" in word or not host:
            yield _Objection(f"{directive.name} sends names to the value of an environment variable", is_open=False)
        elif not word.startswith(("/", "unix:")) and not is_inside(host):
            yield _Objection(f"{directive.name} sends names to {host}")


def _transfer(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for target in directive.values("to"):
        host = bare_host(target)
        if target == ANYBODY:
            yield _Objection("transfer gives the whole zone to every client that asks", severity=Severity.MEDIUM)
        elif is_inside_address(host):
            yield _Objection(f"transfer gives the whole zone to {host}", is_open=False, severity=Severity.MEDIUM)
        else:
            yield _Objection(f"transfer gives the whole zone to {host or target}")


def _secondary(directive: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    for arguments in directive.options("transfer"):
        for target in arguments[1:] if arguments[:1] == ["from"] else ():
            host = bare_host(target)
            if host in allowed:
                continue
            is_open = "{" not in target and not is_inside(host)
            yield _Objection(f"secondary fetches its zone from {host or target}", is_open=is_open)


def _endpoints(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    """etcd, nomad, kubernetes: the servers that the answers come from."""
    for option in ("endpoint", "address"):
        for target in directive.values(option):
            host = bare_host(target)
            if "{" in target or not host:
                yield _Objection(f"{directive.name} asks the value of an environment variable", is_open=False)
            elif is_outside(host):
                yield _Objection(f"{directive.name} asks {host}")


def _kubernetes(directive: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    """No name is sent to the server of a kubeconfig: like a file of hosts, it decides what is answered."""
    yield from _endpoints(directive, allowed)
    if any(True for _ in directive.options("kubeconfig")):
        message = "kubernetes takes its answers from the API server of a kubeconfig, which the audit does not read"
        yield _Objection(message, is_open=False, severity=Severity.MEDIUM)


def _tls(directive: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    """Certificates by ACME: of Let's Encrypt unless the block names another server (coredns.io/plugins/tls)."""
    if not any(True for _ in directive.options("acme")):
        return
    for server in directive.values("ca") or ("https://acme-v02.api.letsencrypt.org",):
        host = bare_host(server)
        if "{" in server or not host:
            yield _Objection("tls gets certificates from the value of an environment variable", is_open=False)
        elif not is_inside(host):
            yield _Objection(f"tls gets certificates from {host}")
    yield from _resolvers(directive, allowed)


def _resolvers(directive: Directive, allowed: frozenset[str]) -> Iterator[_Objection]:
    """forward and tls: the resolver of the names of their own servers."""
    for target in directive.values("resolver"):
        host = bare_host(target)
        if host not in allowed and not is_azure_resolver(host):
            is_open = bool(host) and not is_inside(host) and "{" not in target
            yield _Objection(f"{directive.name} resolves names of its servers at {host or target}", is_open=is_open)


def _program(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    """Source: coredns.io/explugins/on: a command is executed at an event of the server."""
    event = next(iter(directive.arguments), "some event")
    yield _Objection(f"on {event} runs a program in CoreDNS's container, which the audit does not read", is_open=False)


def _cloud(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    yield _Objection(f"{directive.name} asks {_CLOUDS[directive.name]}")


def _hosts(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for line in directive.block:
        if leads_outside(line.name):
            names = ", ".join(line.arguments[:3])
            yield _Objection(f"hosts gives {line.name} for {names}", severity=Severity.MEDIUM)
    if directive.arguments and directive.arguments[0] != "/etc/hosts" and "/" in directive.arguments[0]:
        yield _Objection(f"hosts reads {directive.arguments[0]}", is_open=False, severity=Severity.MEDIUM)


def _rewrite(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for arguments in (directive.arguments, *(line.tokens for line in directive.block)):
        operands = [word for word in arguments if word not in {"continue", "stop"}]
        if not operands or operands[0] not in {"name", "cname"}:
            continue
        operands = operands[2:] if len(operands) > 1 and operands[1] in _MATCHERS else operands[1:]
        if len(operands) < 2:
            continue
        target = replace_braced(_GROUP, "x", operands[1]).strip(".")
        if "." in target and is_outside(target):
            yield _Objection(f"rewrite turns {operands[0]} into {operands[1]}", severity=Severity.MEDIUM)


def _template(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    for arguments in directive.options("answer"):
        outside = [word for text in arguments for word in _WORD.findall(text) if leads_outside(word)]
        if outside:
            yield _Objection(f"template answers {outside[0]}", severity=Severity.MEDIUM)


def _file(directive: Directive, _allowed: frozenset[str]) -> Iterator[_Objection]:
    yield _Objection(f"{directive.name} answers from files that the audit does not read", False, Severity.MEDIUM)


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
        snippet_names = frozenset[str]().union(*map(snippets, texts.values()))
        for key, text in sorted(texts.items()):
            for forwarder in forwarders(text):
                yield from _evaluate_forwarder(config_map, key, forwarder, allowed)
            for target in imports(text):
                yield from _evaluate_import(config_map, key, target, snippet_names)
            yield from evaluate_plugins(config_map, key, text, allowed)
        for key in sorted(config_map.binary_data or {}):
            message = f"{key} is kept as binary data, which CoreDNS imports and the audit does not read"
            yield unknown(config_map.id, "BinaryNotSeen", message, config_map, remedy="Write it under `data`.")

    results = (*objections(main, evaluate), *objections(custom, evaluate), *objections(node_local, evaluate))
    fine = "CoreDNS asks only the node's own resolvers and servers that the policy allows"
    yield from settled(estate, results, "NoForeignForwarder", fine, _has_a_corefile(main), custom, node_local)


def _of_coredns_itself(estate: Estate) -> frozenset[str]:
    """Addresses of the cluster's own resolver, which a cache on each node forwards to."""
    addresses = set()
    for service in everywhere(estate, Service):
        try:
            if (service.namespace, service.metadata.name) in CLUSTER_DNS and service.spec.selector:
                addresses.add(service.spec.cluster_ip or "")
        except FactDamaged:
            continue
    return frozenset(addresses - {""})


def _evaluate_forwarder(
    config_map: ConfigMap, key: str, forwarder: Forwarder, allowed: frozenset[str]
) -> Iterator[CheckResult]:
    target = forwarder.host
    if target in {NODE_RESOLVERS, *OF_NODE_LOCAL_DNS} or (target in allowed and not is_host_address(target)):
        return
    if is_azure_resolver(target) and forwarder.is_plain_dns:
        return
    outside = not is_inside(target)
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


def _evaluate_import(
    config_map: ConfigMap, key: str, target: str, snippet_names: frozenset[str]
) -> Iterator[CheckResult]:
    folder, _, name = target.rpartition("/")
    if target not in snippet_names and not (folder in _CUSTOM and name.endswith(IMPORTED)):
        yield unknown(
            config_map.id,
            "ImportNotSeen",
            f"{key} imports {target or 'the value of an environment variable'}, which the audit does not read",
            config_map,
            remedy="Import only the keys of kube-system/coredns-custom that end in .server or .override.\n"
            "kubectl --namespace NAMESPACE edit configmap NAME",
        )


def _has_a_corefile(main: Listing[ConfigMap]) -> Listing[ConfigMap]:
    """The list; incomplete without a Corefile: CoreDNS does not start without one, so it is configured elsewhere."""
    if main.problem is not None or any((config_map.data or {}).get("Corefile") for config_map in main):
        return main
    problem = Problem(
        UnreadReason.UNREADABLE, f"no Corefile in ConfigMap {main.target}: where CoreDNS forwards to is unknown"
    )
    return Listing(main.target, main.items, main.evidence, problem)
