"""Which listeners of a Gateway a route of a namespace attaches to, for which host name, and what is wrong with them.

Source: kubernetes-sigs/gateway-api, apis/v1/gateway_types.go (Listener, AllowedRoutes, ListenerStatus) and
apis/v1/httproute_types.go (Hostnames).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.condition_updates import condition_of
from hermetic.kinds import HTTP_ROUTE

Manifest = Mapping[str, Any]
DEFAULT_PORTS = {"HTTP": 80, "HTTPS": 443}
LONGEST_NAME = 253
_NAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
WITH_TLS = "HTTPS"
_WRONG = {"Conflicted": "True", "Accepted": "False", "ResolvedRefs": "False", "Programmed": "False"}
"""By type, the status of a condition of a listener that speaks against it."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A listener that takes a route; `hostname` is "" where it takes every name.

    `problem`: the condition by which the Gateway's controller says that the listener is not in effect.
    """

    name: str
    protocol: str
    port: int
    hostname: str
    problem: Manifest | None = None

    def url(self, address: str, path: str) -> str:
        """The URL of the path at this listener, by its host name or else by an address of the Gateway."""
        host = self.hostname or (f"[{address}]" if ":" in address else address)
        port = "" if DEFAULT_PORTS[self.protocol] == self.port else f":{self.port}"
        return f"{self.protocol.lower()}://{host}{port}{path}"


def listeners_for(gateway: Manifest, namespace: str) -> tuple[Manifest, ...]:
    """The HTTP listeners that take routes of this namespace.

    Labels of namespaces are not read: a listener that selects by them counts, and the Gateway's controller decides.
    """
    of = _namespace_of(gateway)
    return tuple(listener for listener in _listeners(gateway) if not _refusal(listener, of, namespace))


def refusals(gateway: Manifest, namespace: str) -> Iterator[str]:
    """Why each listener of the Gateway takes no HTTP route of this namespace."""
    for listener in _listeners(gateway):
        if refusal := _refusal(listener, _namespace_of(gateway), namespace):
            yield f"listener '{listener.get('name')}' {refusal}"


def _refusal(listener: Manifest, of: str, namespace: str) -> str:
    """Why a listener takes no HTTP route of the namespace; "" where it takes them."""
    allowed, protocol = listener.get("allowedRoutes") or {}, str(listener.get("protocol"))
    kinds = [str(kind.get("kind")) for kind in allowed.get("kinds") or ()]
    origin = (allowed.get("namespaces") or {}).get("from") or "Same"
    if protocol == "TLS":
        return "has the protocol TLS and takes no HTTPRoute; TLS must end at a listener of the protocol HTTPS"
    if protocol not in DEFAULT_PORTS:
        return f"has the protocol {protocol} and takes no HTTPRoute"
    if not _has_address(listener):
        return "has no port, or a host name that no URL can have"
    if kinds and HTTP_ROUTE.kind not in kinds:
        return f"takes {', '.join(kinds)} only"
    if origin == "Same" and of != namespace:
        return f"takes routes of namespace '{of}' only"
    return "" if origin in ("All", "Selector", "Same") else "takes routes of no namespace"


def _has_address(listener: Manifest) -> bool:
    """Whether it has a port and a name that a URL may hold: a definition of others may allow any value."""
    name = str(listener.get("hostname") or "")
    has_name = not name or (len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None)
    return isinstance(listener.get("port"), int) and has_name


def _with_tls(listeners: tuple[Manifest, ...], hostname: str | None) -> tuple[Manifest, ...]:
    """Those with TLS that are for a host name (None: any)."""
    return tuple(
        listener
        for listener in listeners
        if listener["protocol"] == WITH_TLS
        and (hostname is None or _common_name(str(listener.get("hostname") or ""), hostname) is not None)
    )


def preferred_listeners(listeners: tuple[Manifest, ...], hostname: str | None) -> tuple[Manifest, ...]:
    """Those with TLS for a host name (None: any), or all where there are none with TLS for it."""
    return _with_tls(listeners, hostname) or listeners


def sections(listeners: tuple[Manifest, ...], hostname: str | None) -> tuple[str, ...]:
    """The names of the listeners that a route for a host name (None: any) names; empty: it attaches to all.

    With TLS at one listener, no request goes in the clear at another.
    """
    return tuple(str(listener["name"]) for listener in _with_tls(listeners, hostname))


def attachment(gateway: Manifest, listeners: tuple[Manifest, ...], hostname: str | None) -> Attachment | None:
    """The listener for a host name (None: any); None where no name can be given.

    A listener with TLS is the one also where it is not in effect: clients that read the URL never fall back from https
    to http. Of equal ones, a listener that is in effect comes first.
    """
    candidates = [
        Attachment(str(listener.get("name")), listener["protocol"], int(listener["port"]), name, problem)
        for listener in preferred_listeners(listeners, hostname)
        if (name := _common_name(str(listener.get("hostname") or ""), hostname)) is not None
        for problem in [_problem(gateway, listener)]
    ]
    return min(candidates, key=lambda candidate: candidate.problem is not None, default=None)


def _common_name(listened: str, hostname: str | None) -> str | None:
    """The name that both are for; "" for every name, None for no name or for names that only a pattern gives."""
    if hostname is None:
        return None if listened.startswith("*") else listened
    if listened.startswith("*."):
        return hostname if hostname.endswith(listened[1:]) else None
    return hostname if listened in ("", hostname) else None


def _problem(gateway: Manifest, listener: Manifest) -> Manifest | None:
    """What the Gateway's controller reports against a listener, the cause before the consequence.

    Unresolved references alone are no problem: a listener may have a second certificate, or a kind of routes that its
    controller does not know.
    """
    reported = (gateway.get("status") or {}).get("listeners") or ()
    status: Manifest = next((entry for entry in reported if entry.get("name") == listener.get("name")), {})
    conditions = {name: condition_of(status, name) or {} for name in _WRONG}
    if conditions["Programmed"].get("status") == "True":
        return None
    against = (condition for name, condition in conditions.items() if condition.get("status") == _WRONG[name])
    return next((condition for condition in against if condition.get("reason") != "InvalidRouteKinds"), None)


def _listeners(gateway: Manifest) -> Iterable[Manifest]:
    return (gateway.get("spec") or {}).get("listeners") or ()


def _namespace_of(gateway: Manifest) -> str:
    return str(gateway["metadata"].get("namespace") or "")
