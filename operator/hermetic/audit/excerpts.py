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
from hermetic.audit.estate.observation import Observation, Seen
from hermetic.audit.estate.resource import Part, Resource
from hermetic.audit.findings import Evidence

LONGEST = 160
LONGEST_VALUE = 80
_MOST_ITEMS = 3
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SECRET = re.compile(r"key|secret|token|password|credential|signature|connectionstring", re.IGNORECASE)


def evidence_of(observations: Iterable[Observation], reads: Iterable[str]) -> tuple[Evidence, ...]:
    """The evidence of the observations, each exchange once, with the values of the fields in `reads`."""
    words = _words(tuple(reads))
    found: dict[Evidence, Evidence] = {}
    for observation in observations:
        value = excerpt(observation, words)
        for one in observation.evidence:
            if one not in found or (value and not found[one].value):
                found[one] = one if value in {"", one.value} else replace(one, value=value)
    return tuple(found.values())


@cache
def _words(reads: tuple[str, ...]) -> Mapping[str, str]:
    return {word.lower(): word for text in reads for word in _WORD.findall(text)}


def merged(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Each exchange once, the one with a value preferred."""
    found: dict[Evidence, Evidence] = {}
    for one in evidence:
        if one not in found or (one.value and not found[one].value):
            found[one] = one
    return tuple(found.values())


def excerpt(observation: Observation, words: Mapping[str, str]) -> str:
    """ "defaultOutboundAccess: true" of a subnet; "" where no field of one resource is named, or it was not read."""
    resource: Any = observation.value if isinstance(observation, Seen) else observation
    if not isinstance(resource, Resource) or resource.SOURCE != "azure" or observation.problem is not None:
        return ""
    return cut("; ".join(_fields(resource, words)), LONGEST)


def _fields(resource: Part, words: Mapping[str, str]) -> Iterator[str]:
    """Each field in `words`; of an object, those of its fields that are in `words` too, where it has any."""
    for name in type(resource).model_fields:
        spelt = words.get(name.replace("_", ""))
        if spelt is None or name in {"id", "name"} or name not in resource.__dict__:
            continue
        value = resource.__dict__[name]
        if _SECRET.search(name) and not isinstance(value, bool | None):
            continue
        inner = list(_fields(value, words)) if isinstance(value, Part) else []
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
