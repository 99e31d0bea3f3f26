"""Flags and variables that a release of an engine dropped, and what to write in their place.

The names are in `dropped.toml` of the engine's folder, with the release and the source of each.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

from hermetic.api.engine import Member
from hermetic.api.reserved_flags import present_name

REMOVE = "leave it out: nothing took its place"
_PREFIX_SINCE = "0.5.3"
"""The first release of SGLang that rewrites the prefix of variables at its start (srt/environ.py)."""


@dataclass(frozen=True, slots=True)
class DroppedName:
    """A flag ('--task') or a variable ('VLLM_USE_V1') that releases from `since` ('0.13') on do not have.

    `successor`: the flag or variable that took its place, "" where there is none; `keeps_value`: the successor takes
    the same value. `instead`: one clause in the imperative that says what to write. `source`: where it is stated.
    """

    name: str
    since: str
    instead: str
    source: str
    successor: str = ""
    keeps_value: bool = False

    @property
    def kind(self) -> Literal["flag", "variable"]:
        """What the name is."""
        return "flag" if self.name.startswith("-") else "variable"

    def is_dropped_in(self, release: str) -> bool:
        """Whether a release ('0.33.0') is not older than the first one without the name."""
        return _numbers(release) >= _numbers(self.since)


def dropped_name(engine: Member, name: str) -> DroppedName | None:
    """The dropped flag or variable of this engine; None for any other name.

    `name` is a variable's name, or an argument with a flag: '--rope_scaling=X' is '--rope-scaling'. A NIM, which
    contains vLLM, has the names of vLLM.
    """
    option = name.partition("=")[0]
    if option.startswith("-"):
        option = option.partition(".")[0].replace("_", "-")
    names = dropped_names("vllm" if engine == "nim" else engine)
    if engine == "sglang" and present_name(option) != option:
        return _renamed(option, names)
    return names.get(option)


def _renamed(name: str, names: Mapping[str, DroppedName]) -> DroppedName:
    """The variable 'SGL_X', which SGLang reads as 'SGLANG_X': that name, or what took its place in turn."""
    renamed = present_name(name)
    if renamed in names:
        return replace(names[renamed], name=name)
    instead = f"write '{renamed}' with this value"
    return DroppedName(name, _PREFIX_SINCE, instead, "srt/environ.py of 0.5.3", successor=renamed, keeps_value=True)


@cache
def dropped_names(engine: Literal["vllm", "sglang"]) -> Mapping[str, DroppedName]:
    """Every dropped name of an engine by its name."""
    text = files(f"hermetic.engines.{engine}").joinpath("dropped.toml").read_text(encoding="utf-8")
    stated = tomllib.loads(text)
    names = {name: DroppedName(name, **fields) for name, fields in stated["names"].items()}
    for release, dropped in stated["without_successor"].items():
        source = f"distributions of {release} and of the release before it"
        names |= {name: DroppedName(name, release, REMOVE, source) for name in dropped}
    return MappingProxyType(names)


def _numbers(release: str) -> tuple[int, ...]:
    """Major, minor and patch, as far as the release states them; a suffix such as '.post1' does not count."""
    return tuple(int(part) for part in release.split(".")[:3] if part.isdecimal())
