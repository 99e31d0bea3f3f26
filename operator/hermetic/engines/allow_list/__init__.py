"""Reviewed lists of the flags and variables that a spec may give to each engine; all others are refused.

Every flag and variable of every table of `vllm_tables` is allowed here, or refused here with its reason, or reserved in
`api/reserved_flags.py`; a test fails on a name in none of them, so that a new release allows nothing unreviewed.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

ListName = Literal["vllm", "common", "nim", "sglang"]
# Which files a value may name: none, files of the image, those and the weights ("data"), a folder of theirs that
# holds a model ("model"), what the pod may write ("scratch"), routes of the server ("url"), or a prefix of all of
# them ("prefix").
Paths = Literal["none", "image", "data", "model", "scratch", "url", "prefix"]

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
    `keys` the only keys of a flag whose value is an object; a flag in neither takes any value.
    """

    allowed: frozenset[str]
    refused: Mapping[str, str]
    paths: Mapping[str, Paths]
    values: Mapping[str, tuple[str, ...]]
    keys: Mapping[str, frozenset[str]]

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
        )

    def with_names(self, names: frozenset[str]) -> AllowedNames:
        """A copy that also allows names of the operator's configuration, whose values may name files of the image."""
        more: dict[str, Paths] = dict.fromkeys(names - self.allowed, "image")
        return AllowedNames(self.allowed | names, self.refused, {**more, **self.paths}, self.values, self.keys)


def flags_of(listed: ListName) -> AllowedNames:
    """The flags of a list."""
    return names_in(__name__, f"{listed}.toml", "flags")


def variables_of(listed: ListName) -> AllowedNames:
    """The variables of a list."""
    return names_in(__name__, f"{listed}.toml", "variables")


@functools.cache
def names_in(package: str, file: str, kind: Literal["flags", "variables"]) -> AllowedNames:
    """The names of one kind in a file of a package."""
    said: Mapping[str, Any] = _read(package, file).get(kind, {})
    return AllowedNames(
        allowed=frozenset(said.get("allowed", ())),
        refused=MappingProxyType({name: why for why, names in said.get("refused", {}).items() for name in names}),
        paths=MappingProxyType(dict(said.get("paths", {}))),
        values=MappingProxyType({name: tuple(values) for name, values in said.get("values", {}).items()}),
        keys=MappingProxyType({name: frozenset(keys) for name, keys in said.get("keys", {}).items()}),
    )


@functools.cache
def _read(package: str, file: str) -> Mapping[str, Any]:
    return tomllib.loads(files(package).joinpath(file).read_text(encoding="utf-8"))
