"""Objects that tell an operator what to call, and the addresses outside that their fields name.

Kept are addresses alone, for a value may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.names import addresses_of_variables, host_outside, outside
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed

UNRESOLVED = "$()"
"""In the place of an address that is made of variables."""
OF_AN_ADDRESS = re.compile(r"(addr|address|broker|host|server|endpoint|site|proxy|ur[il])(e?s)?$", re.IGNORECASE)
_FROM_A_VARIABLE = re.compile(
    r"(addr|address|broker|connection|host|server|endpoint|site|proxy|ur[il])(e?s)?fromenv$", re.IGNORECASE
)
# Text for a server, which calls nothing of what stands in it.
_OF_A_QUERY = re.compile(r"quer(y|ies)$", re.IGNORECASE)
_HOST_WITH_PORT = re.compile(r"[^\s/]+:\d+(/\S*)?")
_VARIABLE = re.compile(r"\$\(|\$\{|\{\{|^\$\w|%[({]")
# Of a connection string: "Server=tcp:db.example.com,1433;Database=jobs", "host=db.example.com dbname=jobs".
_SERVER = re.compile(
    r"\b(?:server|host|data source|address|addr|endpoint)\s*=\s*(?:[a-z]+:(?!//))?([^;,\s]+)", re.IGNORECASE
)
_BETWEEN = re.compile(r"[\s,;=]+")
_ADDRESSES = "addresses"


def addresses_kept(values: Mapping[Any, Any]) -> dict[str, str]:
    """Of each value the addresses outside, separated by blanks; values without any are left out."""
    addresses_by_key = {str(key): " ".join(dict.fromkeys(_addresses(str(key), value))) for key, value in values.items()}
    return {key: addresses for key, addresses in addresses_by_key.items() if addresses}


def names_an_address(field: str) -> bool:
    """Whether a field is one of an address by its name."""
    return OF_AN_ADDRESS.search(field) is not None


def _addresses(key: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or not value.strip() or _OF_A_QUERY.search(key):
        return
    is_called = names_an_address(key)
    if _FROM_A_VARIABLE.search(key) or (is_called and _VARIABLE.search(value)) or any(addresses_of_variables(value)):
        yield UNRESOLVED
    yield from outside(value)
    for word in _BETWEEN.split(value):
        if "://" not in word and (is_called or _HOST_WITH_PORT.fullmatch(word)) and host_outside(word):
            yield word.partition("/")[0]
    yield from filter(host_outside, _SERVER.findall(value))


class Caller(KubernetesObject):
    """An object for which an operator calls what it names.

    `CALLED_BY` names the operator in messages and `HOP` in paths. `OPERATED_BY` are the controllers that may run it.
    """

    CALLED_BY: ClassVar[str]
    HOP: ClassVar[str]
    OPERATED_BY: ClassVar[frozenset[str]]

    @property
    def calls(self) -> Iterator[str]:
        """Addresses outside, and UNRESOLVED."""
        raise NotImplementedError


class CallerByFields(Caller, Trimmed):
    """A caller of which the addresses alone are kept."""

    spec: FreeMap[list[str]] = {}

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """Addresses outside and UNRESOLVED, for everything that the operator calls."""
        raise NotImplementedError

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Reduce the spec to `addresses`; a spec that has nothing else was reduced before."""
        spec = fields.get("spec")
        if not isinstance(spec, Mapping) or (spec and spec.keys() <= {_ADDRESSES}):
            return fields
        return {**fields, "spec": {_ADDRESSES: list(dict.fromkeys(cls.named_addresses(spec)))}}

    @property
    def calls(self) -> Iterator[str]:
        """The addresses of all fields."""
        yield from self.spec.get(_ADDRESSES, ())


def addresses_in(values: Any, *fields: str) -> Iterator[str]:
    """The addresses that these fields of an object name, all of its fields where none is given."""
    if isinstance(values, Mapping):
        chosen = {field: values[field] for field in fields if field in values} if fields else values
        for addresses in addresses_kept(chosen).values():
            yield from addresses.split()
    elif values is not None:
        yield UNRESOLVED


def list_of(value: Any) -> list[Any]:
    """The items of a list; none for null, and a value of another type as the only item."""
    return value if isinstance(value, list) else [] if value is None else [value]
