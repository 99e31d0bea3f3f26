"""Which listener of a Gateway a route of a namespace attaches to, and for which host name.

Source: kubernetes-sigs/gateway-api, apis/v1/gateway_types.go (Listener, AllowedRoutes) and apis/v1/httproute_types.go
(Hostnames).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.kinds import HTTP_ROUTE

Manifest = Mapping[str, Any]
DEFAULT_PORTS = {"HTTP": 80, "HTTPS": 443}
LONGEST_NAME = 253
_NAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A listener that takes a route; `hostname` is "" where it takes every name."""

    protocol: str
    port: int
    hostname: str

    def url(self, address: str, path: str) -> str:
        """The URL of the path at this listener, by its host name or else by an address of the Gateway."""
        host = self.hostname or (f"[{address}]" if ":" in address else address)
        port = "" if DEFAULT_PORTS[self.protocol] == self.port else f":{self.port}"
        return f"{self.protocol.lower()}://{host}{port}{path}"


def listeners_for(gateway: Manifest, namespace: str) -> tuple[Manifest, ...]:
    """The HTTP listeners that take routes of this namespace.

    Labels of namespaces are not read: a listener that selects by them counts, and the Gateway's controller decides.
    """
    listeners = (gateway.get("spec") or {}).get("listeners") or ()
    of = str(gateway["metadata"].get("namespace") or "")
    return tuple(listener for listener in listeners if _takes(listener, of, namespace))


def _takes(listener: Manifest, of: str, namespace: str) -> bool:
    allowed = listener.get("allowedRoutes") or {}
    kinds = [kind.get("kind") for kind in allowed.get("kinds") or ()]
    origin = (allowed.get("namespaces") or {}).get("from") or "Same"
    is_open = origin in ("All", "Selector") or (origin == "Same" and of == namespace)
    return _is_http(listener) and is_open and (not kinds or HTTP_ROUTE.kind in kinds)


def _is_http(listener: Manifest) -> bool:
    """Whether it is for HTTP at a port and a name that a URL may hold: a definition of others may allow any value."""
    name = str(listener.get("hostname") or "")
    has_name = not name or (len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None)
    return listener.get("protocol") in DEFAULT_PORTS and isinstance(listener.get("port"), int) and has_name


def attachment(listeners: Iterable[Manifest], hostname: str | None) -> Attachment | None:
    """The listener for a host name (None: any), one with TLS before others; None where no name can be given."""
    candidates = [
        Attachment(listener["protocol"], int(listener["port"]), name)
        for listener in listeners
        if (name := _common_name(str(listener.get("hostname") or ""), hostname)) is not None
    ]
    return min(candidates, key=lambda candidate: candidate.protocol != "HTTPS", default=None)


def _common_name(listened: str, hostname: str | None) -> str | None:
    """The name that both are for; "" for every name, None for no name or for names that only a pattern gives."""
    if hostname is None:
        return None if listened.startswith("*") else listened
    if listened.startswith("*."):
        return hostname if hostname.endswith(listened[1:]) else None
    return hostname if listened in ("", hostname) else None
