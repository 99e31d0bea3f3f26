"""What is kept of a ConfigMap for variables that pods take from it: addresses, switches, and names that checks read.

Of a value that is an address the scheme and the host are kept, of a switch such as "true" the value, and of all others
at most that they are set. A ConfigMap can have a megabyte: the amount kept of one is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from hermetic.audit.estate.kubernetes.environment import ENDPOINTS, HUB_KEYS, NOT_KEPT, PROXIES, VALUES_READ, addresses
from hermetic.audit.estate.kubernetes.names import host_outside

ADDRESS_NOT_KEPT = f"{NOT_KEPT}://"
"""Stands for an address inside the cluster or its private networks."""
HOST_NOT_KEPT = "not-kept.example"
"""Stands for a value that may be an external host name or a token (RFC 2606)."""
MORE = ""
"""The key that marks that not all keys were kept; no key of a ConfigMap is empty."""
MOST_VARIABLES = 200
MOST_HOSTS = 8
# Linux starts no program with a longer variable (MAX_ARG_STRLEN).
LONGEST = 131_072
NIM = "NIM_"
"""The prefix of NVIDIA NIM's variables: one of them identifies a NIM."""
_SWITCHES = frozenset({"0", "1", "ON", "OFF", "YES", "NO", "TRUE", "FALSE"})
_ADDRESS = re.compile(r"://|^[^\s:]+:\d+/?$")
# A host name: labels, the last one of letters only, which excludes most tokens.
_HOST_AND_PORT = re.compile(
    r"([A-Za-z0-9_-]{1,40}\.){1,8}[A-Za-z]{2,18}\.?(:\d{1,5})?(/\S{0,256})?|(?=\d+\.)[0-9.]{7,15}(:\d{1,5})?"
)
# An address as numbers, see `parse_numbers`. Most numbers are none, so these count under a name of an address only.
_NUMBERS = re.compile(r"[0-9a-fA-FxX.]{1,48}(:\d{1,5})?(/\S{0,256})?")
_NAMES = PROXIES | HUB_KEYS | ENDPOINTS | VALUES_READ


def kept_variables(data: Mapping[Any, Any]) -> dict[str, str]:
    """The keys whose value could matter as a variable, and what is kept of each value."""
    pairs = ((str(key), _kept(str(key), value)) for key, value in data.items())
    some = dict(islice(((key, value) for key, value in pairs if value), MOST_VARIABLES + 1))
    if len(some) <= MOST_VARIABLES:
        return some
    return {**dict(islice(some.items(), MOST_VARIABLES)), MORE: NOT_KEPT}


def _kept(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST:
        return ""
    if hosts := list(dict.fromkeys(islice(addresses(value), MOST_HOSTS))):
        return " ".join(hosts)
    if value.upper() in _SWITCHES:
        return value
    bare = value.strip()
    form = _NUMBERS if any(name.endswith(key.upper()) for name in ENDPOINTS) else _HOST_AND_PORT
    if len(bare) < 512 and (form.fullmatch(bare) or _HOST_AND_PORT.fullmatch(bare)) and (host := host_outside(bare)):
        # A token in three parts has the form of a name, but in mixed case.
        return host if host in {host.lower(), host.upper()} else HOST_NOT_KEPT
    if _ADDRESS.search(value):
        return ADDRESS_NOT_KEPT
    # With a prefix in `envFrom`, the end of a name is enough: `prefix: HF_` and the key TOKEN.
    is_named = any(name.endswith(key.upper()) for name in _NAMES) or key.startswith(NIM)
    return NOT_KEPT if is_named else ""
