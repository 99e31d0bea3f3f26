"""The outbound settings of Istio's mesh ConfigMap: istio.io/docs/reference/config/istio.mesh.v1alpha1.

Its key `mesh` is a MeshConfig as YAML, its key `meshNetworks` has the gateways of other networks. Kept are the mode
for unknown destinations, and every address that proxies or istiod are configured to call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from hermetic.api.kubernetes_yaml import LOADER
from hermetic.audit.estate.resource import Part

MESH, NETWORKS = "mesh", "meshNetworks"
SHARED = "istio-shared-configmap-"
"""Prefix (before the revision) of the user's ConfigMap in AKS; that of AKS is istio-REVISION."""
LONGEST = 262_144
MOST_PARTS = 20_000
MOST_ADDRESSES = 100
_ADDRESSES = frozenset({"address", "service", "host", "hostname", "url", "uri", "discoveryaddress", "jwksuri"})
# Providers without an address: they send to their vendor's service.
_SERVICES_OUTSIDE = {"stackdriver": "monitoring.googleapis.com"}


class MeshConfig(Part):
    """`mode` is "" where the ConfigMap does not set it; `unread` is why it could not be read."""

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
        addresses = [one for key, value in read.items() for one in _Walk(key).addresses(value)]
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


class _Walk:
    """Every address in a document. YAML aliases can make a small text unbounded, so the number of nodes is limited."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._parts = 0

    def addresses(self, value: Any, key: str = "") -> Iterator[str]:
        """Hosts, without a namespace before or a port after them."""
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise ValueError("too many parts")
        if isinstance(value, Mapping):
            for name, one in value.items():
                if str(name) in _SERVICES_OUTSIDE:
                    yield _SERVICES_OUTSIDE[str(name)]
                yield from self.addresses(one, str(name))
        elif isinstance(value, list):
            for one in value:
                yield from self.addresses(one, key)
        elif isinstance(value, str) and key.lower() in _ADDRESSES and value:
            yield _host(value)


def _host(value: str) -> str:
    bare = value.partition("://")[2] or value
    if "://" not in value and "/" in bare:  # "namespace/host", or an address with a path
        first, _, rest = bare.partition("/")
        bare = rest if "." not in first and ":" not in first else first
    bare = bare.partition("/")[0].rpartition("@")[2]
    if bare.startswith("["):
        return bare[1:].partition("]")[0]
    return bare.rpartition(":")[0] if bare.count(":") == 1 else bare
