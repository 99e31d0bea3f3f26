"""The closed table of requests that may be sent: GET, and the POST actions that only read."""

from __future__ import annotations

from urllib.parse import unquote

from hermetic.audit.estate.arm_ids import type_of
from hermetic.errors import WriteAttempted

RESOURCE_GRAPH = "/providers/Microsoft.ResourceGraph/resources"

_NIC, _NETWORK = "Microsoft.Network/networkInterfaces", "Microsoft.Network/virtualNetworks"

READING_ACTIONS: frozenset[tuple[str, str]] = frozenset(
    {
        (_NIC, "effectiveRouteTable"),
        (_NIC, "effectiveNetworkSecurityGroups"),
        ("Microsoft.Network/networkWatchers", "nextHop"),
        (_NETWORK, "listNetworkManagerEffectiveConnectivityConfigurations"),
        (_NETWORK, "listNetworkManagerEffectiveSecurityAdminRules"),
        (_NETWORK, "listDnsResolverPolicies"),
        (_NETWORK, "listDnsForwardingRulesets"),
        ("Microsoft.Network/virtualHubs", "effectiveRoutes"),
        ("Microsoft.Network/virtualNetworkGateways", "getLearnedRoutes"),
    }
)
"""(resource type, action). None of them changes anything; most compute what Azure would do with a packet."""

_FOLDED = frozenset((kind.lower(), action.lower()) for kind, action in READING_ACTIONS)


def must_read(method: str, target: str) -> None:
    """Raises WriteAttempted unless this request only reads. `target` is path and query, without a host."""
    path = target.partition("?")[0]
    if path.startswith("/") and (method == "GET" or (method == "POST" and _only_reads(path))):
        return
    raise WriteAttempted(f"{method} {path} is not one of the requests that only read")


def _only_reads(path: str) -> bool:
    if not _is_plain(path):
        return False
    resource, _, action = path.rpartition("/")
    return path.lower() == RESOURCE_GRAPH.lower() or (type_of(resource).lower(), action.lower()) in _FOLDED


def _is_plain(path: str) -> bool:
    """Whether it has no dot segments, no doubled or encoded slashes: a proxy might resolve them to another action."""
    segments = unquote(path).split("/")[1:]
    return len(segments) == path.count("/") and not {"", ".", ".."} & set(segments) and "\\" not in unquote(path)
