"""Reviewed lists of the flags and variables that a spec may give to an engine; all others are refused.

Each engine has its own in `allow_list.toml` of its folder. Every flag and variable of its tables is allowed there, or
refused there with its reason, or reserved in `api/`; a test fails on a name in none of them, so that a new release
allows nothing unreviewed.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from hermetic.engines.flag_tables import FlagTable

# Which files a value may name: none, files of the image, those and the weights ("data"), a folder of theirs that
# holds a model ("model") or adapters ("adapter", by modality in JSON), what the pod may write ("scratch"), routes
# of the server ("url"), or a prefix of all of them ("prefix"). "overrides" are values of a model's configuration, which
# name no file and no repository.
Paths = Literal["none", "image", "data", "model", "adapter", "scratch", "url", "prefix", "overrides"]

WHY: Mapping[str, str] = MappingProxyType(
    {
        "listens": "it would open a second way into the pod, or let it speak to other pods",
        "calls": "it would let the pod fetch from elsewhere",
        "requests": "it would let a request bring templates, tensors or state that should come with the model only",
        "code": "it names code, a library or another variable, and code comes in the image only",
        "files": "it would write files outside the folders that the pod may write",
        "secret": "it holds a secret, and everybody who may read the object can read it",
        "build": "it is for building and testing vLLM, and does nothing for a server",
        "ours": "Hermetic or the engine sets it",
        "nothing": "it ends the engine at once",
        "unread": "what it reads or starts was not reviewed",
    }
)
NOT_LISTED = "it is not on the reviewed list for this engine"


@dataclass(frozen=True)
class AllowedNames:
    """Names of one kind (flags or variables): what is allowed, and which values.

    `refused` gives the reason for a name that was reviewed and refused. `values` are the only ones that a flag takes,
    `keys` the only keys of a flag whose value is an object; a flag in neither takes any value. `keywords` are values of
    flags with the paths "model" that name no folder.
    """

    allowed: frozenset[str]
    refused: Mapping[str, str]
    paths: Mapping[str, Paths]
    values: Mapping[str, tuple[str, ...]]
    keys: Mapping[str, frozenset[str]]
    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def why_not(self, name: str) -> str:
        """One clause for a name that is not allowed."""
        return WHY[self.refused[name]] if name in self.refused else NOT_LISTED

    def joined(self, other: AllowedNames) -> AllowedNames:
        """The names that either of the two allows; for a name in both, this one's values count."""
        return AllowedNames(
            allowed=self.allowed | other.allowed,
            refused={name: why for name, why in {**other.refused, **self.refused}.items() if name not in other.allowed},
            paths={**other.paths, **self.paths},
            values={**other.values, **self.values},
            keys={**other.keys, **self.keys},
            keywords={**other.keywords, **self.keywords},
        )

    def read_by(self, table: FlagTable) -> AllowedNames:
        """The variables that this release reads: any other has no effect, and is refused as a mistake."""
        return AllowedNames(self.allowed & table.environment, self.refused, self.paths, {}, {})

    def with_names(self, names: frozenset[str]) -> AllowedNames:
        """A copy that also allows names of the operator's configuration, whose values may name files of the image."""
        more: dict[str, Paths] = dict.fromkeys(names - self.allowed, "image")
        return replace(self, allowed=self.allowed | names, paths={**more, **self.paths})


class AllowList:
    """The names in one file of a package, read when they are first asked for."""

    def __init__(self, package: str, file: str = "allow_list.toml") -> None:
        self._package, self._file = package, file

    @functools.cached_property
    def flags(self) -> AllowedNames:
        return _names(self._content.get("flags", {}))

    @functools.cached_property
    def variables(self) -> AllowedNames:
        return _names(self._content.get("variables", {}))

    @functools.cached_property
    def _content(self) -> Mapping[str, Any]:
        return tomllib.loads(files(self._package).joinpath(self._file).read_text(encoding="utf-8"))


def _names(stated: Mapping[str, Any]) -> AllowedNames:
    return AllowedNames(
        allowed=frozenset(stated.get("allowed", ())),
        refused=MappingProxyType({name: why for why, names in stated.get("refused", {}).items() for name in names}),
        paths=MappingProxyType(dict(stated.get("paths", {}))),
        values=MappingProxyType({name: tuple(values) for name, values in stated.get("values", {}).items()}),
        keys=MappingProxyType({name: frozenset(keys) for name, keys in stated.get("keys", {}).items()}),
        keywords=MappingProxyType({name: tuple(keywords) for name, keywords in stated.get("keywords", {}).items()}),
    )


COMMON = AllowList("hermetic.engines", "common_variables.toml")
"""Variables of the libraries that every engine brings along."""
