"""The configuration of Envoy that a Gateway and its routes ask for, as resources of Envoy's v3 API in JSON.

What the Gateway API leaves to the implementation is Envoy's own default, which is the worst case for a stream: 15 s for
a request without `timeouts`, no retries, no health checks, connections to pods kept for an hour, and a tenth of the
requests lost while a tenth of the weight has no ready pod.

Sources: apis/v1/httproute_types.go of sigs.k8s.io/gateway-api v1.6.3 for precedence, matches, weights, filters and
status codes; https://www.envoyproxy.io/docs/envoy/v1.38.3/api-v3/api (config.route.v3, config.cluster.v3,
config.endpoint.v3, config.listener.v3) for the resources.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from testbed.gateway.attachment import Attachment, resolve
from testbed.gateway.listeners import ListenerState, covers, listener_states, specificity
from testbed.gateway.snapshot import Backend, Endpoint, Manifest, Snapshot, key_of, namespace_of

Resource = dict[str, Any]
TYPES = "type.googleapis.com/envoy"
HTTP_MANAGER = f"{TYPES}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = f"{TYPES}.extensions.filters.http.router.v3.Router"
TLS_CONTEXT = f"{TYPES}.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
STREAM_LOG = f"{TYPES}.extensions.access_loggers.stream.v3.StdoutAccessLog"
PRIVILEGED = 1024
ABSENT_CLUSTER = "absent"


@dataclass(frozen=True)
class Resources:
    """All that the data plane of one Gateway gets, by the names that Envoy asks for."""

    listeners: Mapping[str, Resource] = field(default_factory=dict)
    routes: Mapping[str, Resource] = field(default_factory=dict)
    clusters: Mapping[str, Resource] = field(default_factory=dict)
    endpoints: Mapping[str, Resource] = field(default_factory=dict)


def container_port(port: int) -> int:
    """The port that Envoy opens for a listener's: a process that is not root may open no privileged port."""
    return port if port >= PRIVILEGED else port + 10000


def resources(snapshot: Snapshot, gateway: Manifest, attached: list[Attachment], source: Resource) -> Resources:
    """Everything for one Gateway; `source` is the ConfigSource from which Envoy gets routes and endpoints."""
    ports: dict[int, list[ListenerState]] = {}
    for state in listener_states(snapshot, gateway):
        if state.is_served:
            ports.setdefault(state.listener["port"], []).append(state)
    backends = {backend.cluster: backend for backend in _backends(snapshot, attached)}
    return Resources(
        listeners={
            f"port-{port}": _listener(snapshot, namespace_of(gateway), port, of_port, source)
            for port, of_port in ports.items()
        },
        routes={
            f"port-{port}": {
                "name": f"port-{port}",
                "virtual_hosts": _virtual_hosts(snapshot, [state.listener for state in of_port], attached),
                "ignore_port_in_host_matching": True,
            }
            for port, of_port in ports.items()
        },
        clusters={name: _cluster(name, source) for name in backends},
        endpoints={name: _assignment(name, snapshot.endpoints(backend)) for name, backend in backends.items()},
    )


# ---------------------------------------------------------------- listeners


def _listener(snapshot: Snapshot, namespace: str, port: int, states: list[ListenerState], source: Resource) -> Resource:
    manager = {
        "@type": HTTP_MANAGER,
        "stat_prefix": f"port-{port}",
        "rds": {"route_config_name": f"port-{port}", "config_source": source},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}}],
        "use_remote_address": True,
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "UNESCAPE_AND_REDIRECT",
        "access_log": [_log_of_failures()],
    }
    chain: Resource = {"filters": [{"name": "http", "typed_config": manager}]}
    chains = [chain]
    if states[0].listener["protocol"] == "HTTPS":
        chains = [{**chain, **_tls(snapshot, namespace, state.listener)} for state in states]
    return {
        "name": f"port-{port}",
        "address": {"socket_address": {"address": "0.0.0.0", "port_value": container_port(port)}},
        "listener_filters": [_tls_inspector()] if chains != [chain] else [],
        "filter_chains": chains,
    }


def _log_of_failures() -> Resource:
    """A line for each answer of 500 and above: who lost a request is told by RESPONSE_FLAGS."""
    limit = {"default_value": 500, "runtime_key": "log_from_status"}
    text = "%START_TIME% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %REQ(:PATH)% %UPSTREAM_HOST%\n"
    return {
        "name": "failures",
        "filter": {"status_code_filter": {"comparison": {"op": "GE", "value": limit}}},
        "typed_config": {"@type": STREAM_LOG, "log_format": {"text_format_source": {"inline_string": text}}},
    }


def _tls_inspector() -> Resource:
    kind = f"{TYPES}.extensions.filters.listener.tls_inspector.v3.TlsInspector"
    return {"name": "tls", "typed_config": {"@type": kind}}


def _tls(snapshot: Snapshot, namespace: str, listener: Manifest) -> Resource:
    certificates = []
    for reference in listener["tls"]["certificateRefs"]:
        secret = snapshot.secrets[f"{reference.get('namespace', namespace)}/{reference['name']}"]["data"]
        certificate, key = (base64.b64decode(secret[name]).decode() for name in ("tls.crt", "tls.key"))
        certificates.append(
            {"certificate_chain": {"inline_string": certificate}, "private_key": {"inline_string": key}}
        )
    common = {"tls_certificates": certificates, "alpn_protocols": ["h2", "http/1.1"]}
    context = {"@type": TLS_CONTEXT, "common_tls_context": common}
    match = {"filter_chain_match": {"server_names": [listener["hostname"]]}} if listener.get("hostname") else {}
    return {"transport_socket": {"name": "tls", "typed_config": context}, **match}


# ---------------------------------------------------------------- routes


@dataclass(frozen=True)
class Candidate:
    """A match of a rule for a virtual host; the order of candidates is that of the Gateway API."""

    attachment: Attachment
    hostname: str
    rule: Manifest
    match: Manifest
    position: tuple[int, int]

    @property
    def precedence(self) -> tuple[Any, ...]:
        route, path = self.attachment.route, self.match.get("path", {})
        wildcards, characters = specificity(self.hostname)
        return (
            -wildcards,
            -characters,
            path.get("type") != "Exact",
            -len(path.get("value", "/")),
            "method" not in self.match,
            -len(self.match.get("headers") or []),
            -len(self.match.get("queryParams") or []),
            route["metadata"]["creationTimestamp"],
            key_of(route),
            self.position,
        )


def _virtual_hosts(snapshot: Snapshot, listeners: list[Manifest], attached: list[Attachment]) -> list[Resource]:
    """A virtual host for each hostname. Its requests belong to the listener whose hostname is the most specific."""
    served = [
        (listener, attachment, hostname)
        for listener in listeners
        for attachment in attached
        for hostname in attachment.hostnames.get(listener["name"], ())
    ]
    domains = sorted({hostname for _, _, hostname in served})
    return [
        {
            "name": domain or "all",
            "domains": [domain or "*"],
            "routes": [
                _route(snapshot, candidate)
                for candidate in sorted(_candidates(served, listeners, domain), key=attrgetter("precedence"))
            ],
        }
        for domain in domains
    ]


def _candidates(
    served: list[tuple[Manifest, Attachment, str]], listeners: list[Manifest], domain: str
) -> Iterator[Candidate]:
    owner = max(
        (listener for listener in listeners if covers(listener.get("hostname", ""), domain)),
        key=lambda listener: specificity(listener.get("hostname", "")),
    )
    for listener, attachment, hostname in served:
        if listener is owner and covers(hostname, domain):
            for number, rule in enumerate(attachment.route["spec"].get("rules") or []):
                for position, match in enumerate(rule.get("matches") or [{}]):
                    yield Candidate(attachment, hostname, rule, match, (number, position))


def _route(snapshot: Snapshot, candidate: Candidate) -> Resource:
    headers = [_matched(header) for header in candidate.match.get("headers") or []]
    if method := candidate.match.get("method"):
        headers.append({"name": ":method", "string_match": {"exact": method}})
    query = [_matched(parameter) for parameter in candidate.match.get("queryParams") or []]
    path = _path_match(candidate.match.get("path", {}))
    return {"match": {**path, "headers": headers, "query_parameters": query}, **_action(snapshot, candidate)}


def _matched(entry: Manifest) -> Resource:
    exact = entry.get("type", "Exact") == "Exact"
    value = {"exact": entry["value"]} if exact else {"safe_regex": {"regex": entry["value"]}}
    return {"name": entry["name"], "string_match": value}


def _path_match(path: Manifest) -> Resource:
    value = path.get("value", "/")
    match path.get("type", "PathPrefix"):
        case "Exact":
            return {"path": value}
        case "RegularExpression":
            return {"safe_regex": {"regex": value}}
        case _:
            # a prefix of whole elements: /a matches /a and /a/b, and not /ab
            return {"path_separated_prefix": value.rstrip("/")} if value.rstrip("/") else {"prefix": "/"}


def _action(snapshot: Snapshot, candidate: Candidate) -> Resource:
    route, rule = candidate.attachment.route, candidate.rule
    weights: dict[str, int] = {}
    for reference in rule.get("backendRefs") or []:
        backend = resolve(snapshot, route, reference)
        name = backend.cluster if isinstance(backend, Backend) else ABSENT_CLUSTER
        weights[name] = weights.get(name, 0) + reference.get("weight", 1)
    if not sum(weights.values()):
        # no backend, or none with a weight: a gateway that hands this on to Envoy has its whole configuration refused
        return {"direct_response": {"status": 500}}
    action: Resource = {
        "weighted_clusters": {
            "clusters": [{"name": name, "weight": weight} for name, weight in weights.items() if weight]
        },
        "cluster_not_found_response_code": "INTERNAL_SERVER_ERROR",
    }
    timeouts = rule.get("timeouts", {})
    if "request" in timeouts:
        action["timeout"] = f"{_seconds(timeouts['request'])}s"
    changed: Resource = {}
    for entry in rule.get("filters") or []:
        if entry["type"] == "URLRewrite":
            action |= _rewrite(entry["urlRewrite"], candidate.match.get("path", {}).get("value", "/"))
        else:
            changed |= _header_changes(entry["requestHeaderModifier"])
    return {"route": action, **changed}


def _rewrite(rewrite: Manifest, prefix: str) -> Resource:
    """As the table at `HTTPPathModifier.ReplacePrefixMatch` has it: the slash between the parts is there once."""
    action: Resource = {"host_rewrite_literal": rewrite["hostname"]} if "hostname" in rewrite else {}
    path = rewrite.get("path", {})
    match path.get("type"):
        case "ReplaceFullPath":
            action["regex_rewrite"] = {"pattern": {"regex": "^/[^?]*"}, "substitution": path["replaceFullPath"]}
        case "ReplacePrefixMatch":
            replacement = path["replacePrefixMatch"].rstrip("/")
            quoted = re.escape(prefix.rstrip("/"))
            # the rest begins with a slash or is empty, and a path is never empty
            pattern, substitution = (f"^{quoted}", replacement) if replacement else (f"^{quoted}/*", "/")
            action["regex_rewrite"] = {"pattern": {"regex": pattern}, "substitution": substitution}
    return action


def _header_changes(modifier: Manifest) -> Resource:
    def added(field_name: str, action: str) -> list[Resource]:
        return [
            {"header": {"key": entry["name"], "value": entry["value"]}, "append_action": action}
            for entry in modifier.get(field_name) or []
        ]

    return {
        "request_headers_to_add": [
            *added("set", "OVERWRITE_IF_EXISTS_OR_ADD"),
            *added("add", "APPEND_IF_EXISTS_OR_ADD"),
        ],
        "request_headers_to_remove": modifier.get("remove") or [],
    }


def _seconds(duration: str) -> float:
    """A Gateway API duration (GEP-2257): `1h30m10s500ms`."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|h|m|s)", duration))


# ---------------------------------------------------------------- clusters


def _backends(snapshot: Snapshot, attached: list[Attachment]) -> Iterator[Backend]:
    for attachment in attached:
        for rule in attachment.route["spec"].get("rules") or [] if attachment.hostnames else []:
            for reference in rule.get("backendRefs") or []:
                backend = resolve(snapshot, attachment.route, reference)
                if isinstance(backend, Backend):
                    yield backend


def _cluster(name: str, source: Resource) -> Resource:
    return {
        "name": name,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": source},
        "connect_timeout": "5s",
        "lb_policy": "LEAST_REQUEST",
    }


def _assignment(name: str, endpoints: list[Endpoint]) -> Resource:
    members = [
        {
            "endpoint": {"address": {"socket_address": {"address": endpoint.address, "port_value": endpoint.port}}},
            "health_status": "DRAINING" if endpoint.is_draining else "HEALTHY",
        }
        for endpoint in endpoints
    ]
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": members}] if members else []}
