"""A family of checks: its pages from data, its judges from code; the two are matched when the family is loaded."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from hermetic.audit.controls import read_controls
from hermetic.audit.evaluation import Check, Judge
from hermetic.audit.findings import CheckPage, Severity


def family(package: str, judges: Mapping[str, Judge]) -> tuple[Check, ...]:
    """The checks of a package, in the order of its checks.toml.

    Raises ValueError when a page has no judge or a judge no page: that is a defect of this release.
    """
    text = resources.files(package).joinpath("checks.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    pages = {entry["id"]: entry for entry in data["check"]}
    if odd := pages.keys() ^ judges.keys():
        raise ValueError(f"{package}: page or judge is missing for {', '.join(sorted(odd))}")
    return tuple(_check(data["family"], entry, judges[name]) for name, entry in pages.items())


def _check(title: str, entry: Mapping[str, Any], judge: Judge) -> Check:
    page = CheckPage(
        id=entry["id"],
        title=entry["title"],
        severity=Severity(entry["severity"]),
        why=entry["why"].strip(),
        reads=tuple(entry["reads"]),
        remedy=entry["remedy"].strip(),
        source=entry["source"],
        family=title,
        controls=read_controls(entry.get("controls", {})),
        remedy_in_node_group=entry.get("remedy_in_node_group", "").strip(),
    )
    return Check(page, frozenset(entry.get("needs", ["azure"])), judge)
