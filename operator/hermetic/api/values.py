"""The kinds of value that several fields share: each bounded, each refusing in words what it cannot accept."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from hermetic.api.rules import Rule

DIGEST = re.compile(r"@sha256:[a-f0-9]{64}$")
REFERENCE = r"^[a-z0-9]+([.-][a-z0-9]+)*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?@sha256:[a-f0-9]{64}$"
QUANTITY = r"^[0-9]+(\.[0-9]{1,3})?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"
PRIVATE_RANGES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def matches(pattern: str, message: str) -> Rule:
    """The whole string matches an RE2 pattern (also valid in Python)."""
    compiled = re.compile(pattern)
    return Rule(
        cel=f"self.matches({_raw(pattern)})",
        message=message,
        holds=lambda text: compiled.search(text) is not None,
        show='"\'" + self + "\'"',
    )


def _raw(pattern: str) -> str:
    return "r'" + pattern + "'"


def _is_relative_path(text: str) -> bool:
    parts = text.split("/")
    return text == text.strip() and not _CONTROL.search(text) and not {"", ".", ".."} & set(parts)


def _is_absolute_path(text: str) -> bool:
    return text.startswith("/") and _is_relative_path(text[1:])


def _is_private_address(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return isinstance(address, IPv4Address) and any(address in ip_network(net) for net in PRIVATE_RANGES)


def _is_narrow_range(text: str) -> bool:
    try:
        return ip_network(text).prefixlen > 0
    except ValueError:
        return False


_PATH_PARTS = "split('/').exists(part, part == '' || part == '.' || part == '..')"
_CLEAN = r"self.matches(r'^[^\x00-\x1f\x7f]*$') && self.trim() == self"

PinnedImage = Annotated[
    str,
    StringConstraints(min_length=1, max_length=512),
    matches(REFERENCE, "must be an image pinned by digest: registry/repository@sha256:<64 lower-case hex digits>"),
]
RelativePath = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1024),
    Rule(
        cel=f"{_CLEAN} && !self.{_PATH_PARTS}",
        message="must be a relative path without empty, '.' or '..' parts, control characters or outer spaces",
        holds=_is_relative_path,
    ),
]
AbsolutePath = Annotated[
    str,
    StringConstraints(min_length=2, max_length=1024),
    Rule(
        cel=f"{_CLEAN} && self.startsWith('/') && !self.substring(1).{_PATH_PARTS}",
        message="must be an absolute path without empty, '.' or '..' parts, control characters or outer spaces",
        holds=_is_absolute_path,
    ),
]
DnsLabel = Annotated[
    str,
    StringConstraints(min_length=1, max_length=63),
    matches(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit",
    ),
]
ObjectName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    matches(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "must be the name of an object in the same namespace: lower-case letters, digits, '-' and '.'",
    ),
]
HostName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    matches(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "must be a host name or an IPv4 address in lower case, without scheme or port",
    ),
]
PrivateAddress = Annotated[
    str,
    StringConstraints(min_length=7, max_length=15),
    Rule(
        cel="isIP(self) && ["
        + ", ".join(f"'{net}'" for net in PRIVATE_RANGES)
        + "].exists(net, cidr(net).containsIP(self))",
        message="must be a private IPv4 address (" + ", ".join(PRIVATE_RANGES) + ")",
        holds=_is_private_address,
    ),
]
SourceRange = Annotated[
    str,
    StringConstraints(min_length=1, max_length=43),
    Rule(
        cel="isCIDR(self) && cidr(self) == cidr(self).masked() && cidr(self).prefixLength() > 0",
        message="must be a CIDR without host bits, such as '10.0.0.0/8'; the whole internet ('/0') is not a source range",
        holds=_is_narrow_range,
    ),
]


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Quantity = Annotated[
    str,
    BeforeValidator(_as_text),
    StringConstraints(max_length=20, pattern=QUANTITY),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": 20, "pattern": QUANTITY}),
]
LabelKey = Annotated[str, StringConstraints(min_length=1, max_length=316)]
LabelValue = Annotated[str, StringConstraints(max_length=63, pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=16)]


def list_of(kind: str, *keys: str) -> dict[str, Any]:
    """How server-side apply merges a list: "atomic", "set", or "map" with its keys; for `json_schema_extra`."""
    extra: dict[str, Any] = {"x-kubernetes-list-type": kind}
    return {**extra, "x-kubernetes-list-map-keys": list(keys)} if keys else extra
