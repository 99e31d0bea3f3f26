"""bundle.json: what a bundle is, which commit it is built from, and by what.

::

    {"schema": "hermetic.dev/bundle/v1", "version": "0.1.0", "image": "hermetic@sha256:...",
     "chart": "charts/hermetic@sha256:...", "revision": COMMIT, "source": URL, "created": TIME OF THE COMMIT,
     "builder": {"python": "3.11.2", "zlib": "1.2.13"}, "locks": {"requirements.lock": SHA-256, ...}}

A bundle of an earlier build names schema, version and image alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hermetic.cli.bundle.layout import DESCRIPTION, SCHEMA
from hermetic.errors import BundleRefused

_REVISION = re.compile(r"(?:[0-9a-f]{40}(?:-dirty)?)?")
_NEEDED = frozenset({"schema", "version", "image"})


@dataclass(frozen=True, slots=True)
class Description:
    """The fields of bundle.json. `chart`: as Helm pushes it. `locks`: the SHA-256 of each file of locked packages."""

    version: str
    image: str
    chart: str = ""
    revision: str = ""
    source: str = ""
    created: str = ""
    builder: Mapping[str, str] = field(default_factory=dict)
    locks: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The object of the module's docstring."""
        return {"schema": SCHEMA, **asdict(self)}


_FIELDS = frozenset({"schema", *Description.__dataclass_fields__})
_TABLES = frozenset({"builder", "locks"})


def read_description(content: Mapping[str, Any]) -> Description:
    """The description in a JSON object. Raises BundleRefused for another schema and for fields that are not known."""
    if (schema := content.get("schema")) != SCHEMA:
        raise BundleRefused(f"{DESCRIPTION} has the schema {str(schema)[:80]!r}; this release reads {SCHEMA}")
    if missing := sorted(_NEEDED - content.keys()):
        raise BundleRefused(f"{DESCRIPTION} lacks '{missing[0]}'")
    if unknown := sorted(content.keys() - _FIELDS):
        raise BundleRefused(f"{DESCRIPTION} holds '{unknown[0][:64]}'; there are {', '.join(sorted(_FIELDS))}")
    for name, value in content.items():
        values = list(value.values()) if name in _TABLES and isinstance(value, dict) else [value]
        if not all(isinstance(text, str) for text in values) or (name in _TABLES) != isinstance(value, dict):
            raise BundleRefused(f"{DESCRIPTION}: '{name}' is not {'an object of texts' if name in _TABLES else 'text'}")
    description = Description(**{name: value for name, value in content.items() if name != "schema"})
    if not _REVISION.fullmatch(description.revision):
        raise BundleRefused(f"{DESCRIPTION}: revision {description.revision[:80]!r} is not a commit of 40 digits")
    return description
