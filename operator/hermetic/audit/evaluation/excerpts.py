"""Excerpts of evidence: the fields of an answer that a check declares under `reads`, as short text.

Only answers of Azure Resource Manager, and of those only the fields under `reads`. The models have no keys and no
connection strings; a text field whose name suggests a secret is left out nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from hermetic.api.text import cut, one_line
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.estate.resource import Part, Resource
from hermetic.audit.model.findings import Evidence

LONGEST = 160
LONGEST_VALUE = 80
_MOST_ITEMS = 3
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SECRET = re.compile(r"key|secret|token|password|credential|signature|connectionstring", re.IGNORECASE)


def evidence_of(observations: Iterable[Observation], reads: Iterable[str]) -> tuple[Evidence, ...]:
    """The evidence of the observations, each exchange once, with the values of the fields in `reads`."""
    fields = tuple(reads)
    by_exchange: dict[Evidence, Evidence] = {}
    for observation in observations:
        value = excerpt(observation, fields)
        for exchange in observation.evidence:
            if exchange not in by_exchange or (value and not by_exchange[exchange].value):
                by_exchange[exchange] = exchange if value in {"", exchange.value} else replace(exchange, value=value)
    return tuple(by_exchange.values())


@cache
def _words(reads: tuple[str, ...]) -> Mapping[str, str]:
    return {word.lower(): word for text in reads for word in _WORD.findall(text)}


@cache
def _named(kind: type[Part], reads: tuple[str, ...]) -> tuple[tuple[str, str, bool], ...]:
    """Of the fields of a model that `reads` names: name, spelling, and whether the name suggests a secret."""
    words_by_spelling = _words(reads)
    spelt = (
        (name, words_by_spelling.get(name.replace("_", ""))) for name in kind.model_fields if name not in {"id", "name"}
    )
    return tuple((name, word, bool(_SECRET.search(name))) for name, word in spelt if word is not None)


def merged(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Each exchange once, the one with a value preferred."""
    by_exchange: dict[Evidence, Evidence] = {}
    for exchange in evidence:
        if exchange not in by_exchange or (exchange.value and not by_exchange[exchange].value):
            by_exchange[exchange] = exchange
    return tuple(by_exchange.values())


def excerpt(observation: Observation, reads: tuple[str, ...]) -> str:
    """ "defaultOutboundAccess: true" of a subnet; "" where no field of one resource is named, or it was not read."""
    resource: Any = observation.value if isinstance(observation, Lookup) else observation
    if not isinstance(resource, Resource) or resource.SOURCE != "azure" or observation.problem is not None:
        return ""
    return cut("; ".join(_fields(resource, reads)), LONGEST)


def _fields(resource: Part, reads: tuple[str, ...]) -> Iterator[str]:
    """Each field in `reads`; of an object, those of its fields that are in `reads` too, where it has any."""
    for name, spelt, may_be_secret in _named(type(resource), reads):
        if name not in resource.__dict__:
            continue
        value = resource.__dict__[name]
        if may_be_secret and not isinstance(value, bool | None):
            continue
        inner = list(_fields(value, reads)) if isinstance(value, Part) else []
        yield from inner or [f"{spelt}: {_shown(value)}"]


def _shown(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return cut(one_line(str(value)), LONGEST_VALUE)
    if isinstance(value, Part):
        named = value.__dict__.get("id")
        return cut(one_line(named), LONGEST_VALUE) if isinstance(named, str) and named else "present"
    if isinstance(value, list | tuple):
        return _items(list(value))
    return "present"


def _items(items: list[Any]) -> str:
    plain = [item for item in items if isinstance(item, int | float | str)]
    if plain and len(plain) == len(items) <= _MOST_ITEMS:
        return cut(", ".join(one_line(str(item)) for item in plain), LONGEST_VALUE)
    return f"{len(items)} {'entry' if len(items) == 1 else 'entries'}" if items else "none"
