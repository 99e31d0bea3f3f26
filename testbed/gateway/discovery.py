"""Serves Envoy its configuration: the REST-JSON form of Envoy's discovery protocol, which Envoy polls.

Make before break, as an aggregated stream orders it: a route is handed out only when Envoy has every cluster
that the route names and its endpoints, and a cluster is taken away only when no route that Envoy has names it.
Envoy says what it has by the version in its next request.

Source: https://www.envoyproxy.io/docs/envoy/v1.38.3/api-docs/xds_protocol ("REST-JSON polling subscriptions",
"Eventual consistency considerations").
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from testbed.gateway.translation import TYPES, Resource, Resources

CLUSTER_NAME = "discovery"
REFRESH_SECONDS = 1.0
"""Between two requests of Envoy for one kind of resource. A stream is faster: this is the worst case."""
TYPE_URLS = {
    "listeners": f"{TYPES}.config.listener.v3.Listener",
    "routes": f"{TYPES}.config.route.v3.RouteConfiguration",
    "clusters": f"{TYPES}.config.cluster.v3.Cluster",
    "endpoints": f"{TYPES}.config.endpoint.v3.ClusterLoadAssignment",
}


def config_source(refresh_seconds: float = REFRESH_SECONDS) -> Resource:
    """What tells Envoy to ask this server."""
    return {
        "resource_api_version": "V3",
        "api_config_source": {
            "api_type": "REST",
            "transport_api_version": "V3",
            "cluster_names": [CLUSTER_NAME],
            "refresh_delay": f"{refresh_seconds}s",
            "request_timeout": "5s",
        },
    }


def version_of(content: Mapping[str, Resource]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


class Delivery:
    """What one Envoy of one Gateway has, and what it gets next."""

    def __init__(self) -> None:
        self._target = Resources()
        self._endpoints: dict[str, Resource] = {}
        self._clusters: dict[str, Resource] = {}
        self._routes: dict[str, dict[str, Resource]] = defaultdict(dict)
        self._served_routes: dict[str, Resource] = {}
        self._accepted_clusters: frozenset[str] = frozenset()
        self._accepted_endpoints: set[str] = set()
        self._settled: set[tuple[str, ...]] = set()

    def publish(self, target: Resources) -> None:
        """What Envoy should have in the end."""
        if target != self._target:
            self._settled.clear()
        self._target = target
        # a cluster that routes in use still name stays, with its last endpoints
        self._clusters |= target.clusters
        self._endpoints |= target.endpoints

    def answer(self, kind: str, names: list[str], accepted: str) -> tuple[str, dict[str, Resource]] | None:
        """The version and the resources that a request gets; None where Envoy has this version already."""
        content = getattr(self, f"_{kind}_for")(names, accepted)
        version = version_of(content)
        if version == accepted and (kind != "routes" or all(self._target.routes.get(n) == content[n] for n in content)):
            self._settled.add((kind, *names))
        return None if version == accepted or (kind == "routes" and not content) else (version, content)

    @property
    def is_settled(self) -> bool:
        """Whether Envoy has said of all of its target that it has it."""
        routes = {("routes", name) for name in self._target.routes}
        endpoints = {("endpoints", name) for name in self._target.clusters}
        return {("listeners",), ("clusters",), *routes, *endpoints} <= self._settled

    def _listeners_for(self, _names: list[str], _accepted: str) -> dict[str, Resource]:
        return dict(self._target.listeners)

    def _clusters_for(self, _names: list[str], accepted: str) -> dict[str, Resource]:
        in_use = set(self._target.clusters) | self._named_by_routes()
        content = {name: cluster for name, cluster in self._clusters.items() if name in in_use}
        if version_of(content) == accepted:
            self._accepted_clusters = frozenset(content)
            self._accepted_endpoints &= in_use
        return content

    def _endpoints_for(self, names: list[str], accepted: str) -> dict[str, Resource]:
        if accepted:
            self._accepted_endpoints |= set(names)
        return {name: self._endpoints[name] for name in names if name in self._endpoints}

    def _routes_for(self, names: list[str], accepted: str) -> dict[str, Resource]:
        needed = set(self._target.clusters)
        for name in names:
            served = self._served_routes.get(name)
            if served is not None and version_of({name: served}) == accepted:
                self._routes[name] = {accepted: served}
            target = self._target.routes.get(name)
            if target is not None and needed <= self._accepted_clusters & self._accepted_endpoints:
                self._served_routes[name] = target
                self._routes[name][version_of({name: target})] = target
        return {name: self._served_routes[name] for name in names if name in self._served_routes}

    def _named_by_routes(self) -> set[str]:
        """The clusters of all routes that Envoy may still use."""
        return {
            cluster["name"]
            for versions in self._routes.values()
            for configuration in versions.values()
            for host in configuration["virtual_hosts"]
            for route in host["routes"]
            for cluster in route.get("route", {}).get("weighted_clusters", {}).get("clusters", [])
        }


class DiscoveryServer:
    """Answers every Envoy by the Gateway, `namespace/name`, that it names as its cluster."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self._lock = threading.Lock()
        self._target: dict[str, Resources] = {}
        self._deliveries: dict[tuple[str, str], Delivery] = {}
        self._server = _Server((address, port), _Request)
        self._server.discovery = self
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def publish(self, gateway: str, target: Resources) -> None:
        """Hand these resources to every Envoy of the Gateway, in an order in which no request is lost."""
        with self._lock:
            self._target[gateway] = target
            for (served, _), delivery in self._deliveries.items():
                if served == gateway:
                    delivery.publish(target)

    def is_settled(self, gateway: str) -> bool:
        """Whether there is an Envoy of this Gateway, and every one has all that was published."""
        with self._lock:
            deliveries = [delivery for (served, _), delivery in self._deliveries.items() if served == gateway]
            return bool(deliveries) and all(delivery.is_settled for delivery in deliveries)

    def answer(self, kind: str, request: Mapping[str, Any]) -> Resource | None:
        """The DiscoveryResponse to a DiscoveryRequest; None where nothing is new."""
        gateway, pod = request["node"]["cluster"], request["node"]["id"]
        with self._lock:
            delivery = self._deliveries.get((gateway, pod))
            if delivery is None:
                delivery = self._deliveries[gateway, pod] = Delivery()
                delivery.publish(self._target.get(gateway, Resources()))
            content = delivery.answer(kind, request.get("resource_names", []), request.get("version_info", ""))
        if content is None:
            return None
        version, resources = content
        kind_url = TYPE_URLS[kind]
        return {
            "version_info": version,
            "type_url": kind_url,
            "resources": [{"@type": kind_url, **resource} for resource in resources.values()],
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    discovery: DiscoveryServer


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
        """Envoy asks several times a second."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = self.path.rsplit(":", 1)[-1]
        answer = self.server.discovery.answer(kind, request) if kind in TYPE_URLS else None
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(304 if answer is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
