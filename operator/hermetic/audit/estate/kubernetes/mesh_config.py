"""What is kept of the settings of Istio's proxies: of the mesh in its ConfigMaps, of one pod in its annotation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from hermetic.api.kubernetes_yaml import LOADER
from hermetic.audit.estate.kubernetes.names import host_outside, is_inside, outside
from hermetic.audit.estate.resource import Part

MESH, NETWORKS = "mesh", "meshNetworks"
SHARED = "istio-shared-configmap-"
"""Prefix (before the revision) of the user's ConfigMap in AKS; that of AKS is istio-REVISION."""
OF_A_POD = "proxy.istio.io/config"
"""The annotation of a pod with a ProxyConfig as YAML that comes before that of the mesh.

Source: istio.io/docs/reference/config/annotations.
"""
OF_THE_NODE = "$(HOST_IP)"
"""In the place of a host: the pod's own node."""
NOT_READ = "$"
"""In the place of hosts that are not known."""
LONGEST = 262_144
MOST_PARTS = 20_000
MOST_ADDRESSES = 100
# The last word of every key of a MeshConfig or ProxyConfig with a destination: address, statsdUdpAddress,
# spiffeBundleUrl, service of an extension provider. Keys may be written in snake case too.
_OF_AN_ADDRESS = ("address", "service", "host", "hostname", "url", "uri")
_VARIABLES = "proxymetadata"
# Of the variables that an agent has (istio.io/latest/docs/reference/commands/pilot-agent), names that are not called.
_NAMES = ("TRUST_DOMAIN", "_DOMAIN", "MESH_ID", "CLUSTER_ID", "NO_PROXY")
_OF_A_VARIABLE = re.compile(r"(ADDR|ADDRESS|HOST|SERVER|SERVICE|UR[IL]|ENDPOINT|PROXY)$")
_NAME_OR_ADDRESS = re.compile(r"[^/]*\.[A-Za-z][A-Za-z0-9-]*\.?(:\d+)?|\d+(\.\d+){3}(:\d+)?|\[.*\](:\d+)?")
# Providers without an address: they send to their vendor's service.
_SERVICES_OUTSIDE = {"stackdriver": "monitoring.googleapis.com"}


class MeshConfig(Part):
    """`mode` is "" where the ConfigMap does not set it; `unread` is why it could not be read.

    Source: istio.io/docs/reference/config/istio.mesh.v1alpha1. The ConfigMap's key `mesh` is a MeshConfig as YAML, its
    key `meshNetworks` has the gateways of other networks. Kept are the mode for unknown destinations, and every address
    that proxies or istiod are configured to call.
    """

    mode: str = ""
    addresses: list[str] = []
    unread: str = ""


def mesh_summary(name: str, data: Mapping[Any, Any]) -> dict[str, Any]:
    """What is kept of a mesh ConfigMap; empty for any other."""
    if name != "istio" and not name.startswith("istio-"):
        return {}
    texts = {key: data[key] for key in (MESH, NETWORKS) if key in data}
    if not texts:
        return {}
    try:
        read = {key: _read(text) for key, text in texts.items()}
        addresses = [address for value in read.values() for address in _Walk().addresses(value)]
    except (ValueError, TypeError, RecursionError, yaml.YAMLError):
        return {"mode": "", "addresses": [], "unread": f"its {' and '.join(texts)} cannot be read as YAML"}
    mesh = read.get(MESH) or {}
    outbound = mesh.get("outboundTrafficPolicy")
    mode = str(outbound.get("mode") or "") if isinstance(outbound, Mapping) else ""
    more = "it names more addresses than are kept" if len(set(addresses)) > MOST_ADDRESSES else ""
    return {"mode": mode, "addresses": list(dict.fromkeys(addresses))[:MOST_ADDRESSES], "unread": more}


def _read(text: Any) -> Mapping[str, Any]:
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError("not a text, or too long")
    value = yaml.load(text, Loader=LOADER)  # noqa: S506 - a SafeLoader
    if not isinstance(value, Mapping | None):
        raise TypeError("not a mapping")
    return value or {}


def addresses_of_a_proxy(text: Any) -> str:
    """The hosts that a ProxyConfig names and that are not known to be inside; NOT_READ where it cannot be read."""
    try:
        hosts = dict.fromkeys(host for host in _Walk().addresses(_read(text)) if not is_inside(host))
    except (ValueError, TypeError, RecursionError, yaml.YAMLError):
        return NOT_READ
    return " ".join(hosts) if len(hosts) <= MOST_ADDRESSES else NOT_READ


class _Walk:
    """Every address in a document. YAML aliases can make a small text unbounded, so the number of nodes is limited."""

    def __init__(self) -> None:
        self._parts = 0

    def addresses(self, value: Any, key: str = "") -> Iterator[str]:
        """Hosts, without a namespace before or a port after them."""
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise ValueError("too many parts")
        if isinstance(value, Mapping):
            for name, item in value.items():
                if str(name) in _SERVICES_OUTSIDE:
                    yield _SERVICES_OUTSIDE[str(name)]
                if _plain(str(name)) == _VARIABLES and isinstance(item, Mapping):
                    yield from hosts_outside_of(item)
                yield from self.addresses(item, str(name))
        elif isinstance(value, list):
            for item in value:
                yield from self.addresses(item, key)
        elif isinstance(value, str) and value and _plain(key).endswith(_OF_AN_ADDRESS) and OF_THE_NODE not in value:
            yield _host(value)


def _plain(key: str) -> str:
    return key.replace("_", "").lower()


def hosts_outside_of(variables: Mapping[Any, Any]) -> Iterator[str]:
    """Hosts outside among the values of a proxy's environment variables."""
    for name, value in variables.items():
        key = str(name).upper()
        if not isinstance(value, str) or key.endswith(_NAMES):
            continue
        yield from (url.partition("://")[2] for url in outside(value))
        for word in value.replace(",", " ").split():
            is_called = _OF_A_VARIABLE.search(key) or _NAME_OR_ADDRESS.fullmatch(word)
            if "://" not in word and is_called and (host := host_outside(word)):
                yield host


def _host(value: str) -> str:
    bare = value.partition("://")[2] or value
    if "://" not in value and "/" in bare:  # "namespace/host", or an address with a path
        first, _, remainder = bare.partition("/")
        bare = remainder if "." not in first and ":" not in first else first
    bare = bare.partition("/")[0].rpartition("@")[2]
    if bare.startswith("["):
        return bare[1:].partition("]")[0]
    return bare.rpartition(":")[0] if bare.count(":") == 1 else bare
