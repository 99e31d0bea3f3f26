"""Which names and addresses are inside the cluster or its private networks. Anything unknown counts as outside."""

from __future__ import annotations

from functools import lru_cache

from hermetic.api import ip_ranges
from hermetic.audit.estate.kubernetes.private_zones import is_of_private_link

_INSIDE_THE_CLUSTER = (".svc", ".svc.cluster.local", ".cluster.local", ".pod.cluster.local")
# Names that no public resolver answers for: RFC 8375, 6762, 2606, 6761, and ICANN's reservation for private use.
_PRIVATE_ZONES = (".home.arpa", ".local", ".localhost", ".internal", ".test", ".invalid")


@lru_cache(maxsize=65536)
def is_public(text: str) -> bool:
    """Whether an address, or the text in its place, is not known to be private: a host name may have any address."""
    return ip_ranges.is_public(text) if ip_ranges.is_address(text) else bool(text)


def is_inside(host: str) -> bool:
    """Whether a host name or address can only be of the cluster, of a private zone, or of a private network."""
    name = host.strip().strip("[]").rstrip(".").lower()
    if ip_ranges.is_address(name):
        return not ip_ranges.is_public(name)
    if not name:
        return False
    # A single-label name is completed by the cluster's search list; the internet has no such names.
    if "." not in name:
        return True
    return name.endswith((*_INSIDE_THE_CLUSTER, *_PRIVATE_ZONES)) or is_of_private_link(name)
