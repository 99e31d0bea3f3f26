"""External addresses in a text: the scheme and host of each URL.

A variable or an argument may contain a credential, in the URL itself too: only the scheme and the host are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermetic.api.ip_ranges import is_address
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.private_zones import is_of_azure

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*$")
_REST = re.compile(r"[^\s'\"<>,;]+")
_MARK = "://"
# Longer than any scheme, and than any host with credentials before it. A text may be one word of a megabyte.
_BEFORE, _AFTER = 64, 2048
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?)(:\d+)?(?=[/?#]|$)")
# Schemes of internet services whose name is not a host: a bucket, a repository of a model hub.
_SERVICES = frozenset({"s3", "s3a", "gs", "hf", "r2", "oss", "cos", "modelscope", "ngc", "wandb", "kaggle"})
# Schemes without another machine.
_LOCAL = frozenset({"file", "unix", "unixgram", "tokenizer", "inproc", "ipc", "jdbc", "data", "urn"})


def outside(text: str) -> Iterator[str]:
    """ "https://api.example.com" for every external URL in a text."""
    for scheme, rest in _urls(text):
        found = _HOST.match(rest.rpartition("@")[2] if "@" in rest.split("/")[0] else rest)
        if scheme in _LOCAL or found is None:
            continue
        if scheme in _SERVICES or is_outside(found["host"]):
            yield f"{scheme}://{found['host']}"


def _urls(text: str) -> Iterator[tuple[str, str]]:
    """(Scheme, text after the two slashes) of every URL, in linear time."""
    at = text.find(_MARK)
    while at >= 0:
        after = at + len(_MARK)
        scheme, rest = _SCHEME.search(text[max(0, at - _BEFORE) : at]), _REST.match(text[after : after + _AFTER])
        if scheme is not None and rest is not None:
            yield scheme[0].lower().rpartition("+")[2], rest[0]
        at = text.find(_MARK, after)


def host_outside(text: str) -> str:
    """The host of "host", "host:port" or "host/path" without a scheme, where it is external; else ""."""
    found = _HOST.match(text.strip())
    if found is None or ("." not in found["host"] and ":" not in found["host"]):
        return ""
    return found["host"] if is_outside(found["host"]) else ""


def is_outside(host: str) -> bool:
    """Whether a host is external. Names of Azure's services are not: they may resolve to a private endpoint."""
    bare = host.strip("[]").rstrip(".").lower()
    if is_inside(bare):
        return False
    return is_address(bare) or not is_of_azure(bare)
