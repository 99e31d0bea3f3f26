"""Manifests as somebody typed them: files, folders, standard input; YAML, JSON; one, several, or a List."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermetic.api.kubernetes_yaml import Document, NotReadable, Place, read_documents
from hermetic.cli.failures import Several
from hermetic.errors import HermeticError, InputError, ManifestInvalid, Unreachable

STANDARD_INPUT = "-"
LARGEST = 64 * 2**20
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that stands against what was typed.

    `field` and `value` are "" where the whole is at fault; `reason` is what the operator's status would say, "" where
    the API server would refuse already.
    """

    source: str
    message: str
    place: Place | None = None
    document: int = 0
    field: str = ""
    value: str = ""
    reason: str = ""
    fix: str = ""
    kind: type[HermeticError] = ManifestInvalid

    def as_error(self) -> HermeticError:
        """One line: where (as compilers say it, so that editors can jump there), field, value, what is accepted."""
        where = self.source if self.place is None else f"{self.source}:{self.place}"
        parts = (where, self.reason, self.field, self.value, self.message)
        return self.kind(": ".join(part for part in parts if part), fix=self.fix)


@dataclass(frozen=True, slots=True)
class Typed:
    """One object, and where it stands: `within` is its path in the document, "" or an item of a List."""

    source: str
    document: Document
    value: Any
    within: str = ""

    def where(self) -> str:
        """The place of the object."""
        place = self.document.place(self.within)
        return self.source if place is None else f"{self.source}:{place}"

    def finding(self, message: str, *, path: str = "", value: str = "", reason: str = "", fix: str = "") -> Finding:
        """Something that stands against this object, at the place of the field."""
        return Finding(
            self.source,
            message,
            self.document.place(_joined(self.within, path)),
            self.document.number,
            path,
            value,
            reason,
            fix,
        )


@dataclass(slots=True)
class Reading:
    """What could be read of which sources, and everything that stands against it."""

    sources: list[str] = field(default_factory=list)
    typed: list[Typed] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def in_reading_order(self) -> list[Finding]:
        """Every finding, by file as they were named, then from top to bottom."""
        rank = {source: number for number, source in enumerate(self.sources)}

        def order(finding: Finding) -> tuple[int, int, int]:
            place = finding.place or Place(0, 0)
            return (rank[finding.source], place.line, place.column)

        return sorted(self.findings, key=order)

    def raise_findings(self) -> None:
        """Raise all of them at once; nothing where there are none."""
        if self.findings:
            raise Several([finding.as_error() for finding in self.in_reading_order()])


def read_manifests(names: Sequence[str]) -> Reading:
    """Everything in these files and folders, and in '-'; a file that cannot be read does not hide the others."""
    reading = Reading()
    for source in dict.fromkeys(source for name in names for source in _sources(name)):
        shown = "standard input" if source == STANDARD_INPUT else source
        reading.sources.append(shown)
        text = _text(source, shown)
        if isinstance(text, Finding):
            reading.findings.append(text)
        else:
            _read_into(reading, shown, text)
    return reading


def _sources(name: str) -> list[str]:
    if name == STANDARD_INPUT or not Path(name).is_dir():
        return [name]
    return sorted(str(file) for file in Path(name).iterdir() if file.suffix in SUFFIXES and file.is_file()) or [name]


def _text(source: str, shown: str) -> str | Finding:
    try:
        content = _content(source)
    except IsADirectoryError:
        endings = ", ".join(sorted(SUFFIXES))
        return Finding(shown, f"holds no file that ends in {endings}", fix="name a file", kind=InputError)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return Finding(
            shown, str(getattr(error, "strerror", "") or error), fix="name a file that can be read", kind=Unreachable
        )
    if len(content) > LARGEST:
        return Finding(shown, f"is larger than {LARGEST // 2**20} MiB", fix="split it into several files")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = content.count(b"\n", 0, error.start) + 1, error.start - content.rfind(b"\n", 0, error.start)
        what = f"is not UTF-8: byte 0x{content[error.start]:02x}"
        return Finding(shown, what, Place(line, column), fix="save the file as UTF-8")


def _content(source: str) -> bytes:
    if source == STANDARD_INPUT:
        return sys.stdin.buffer.read(LARGEST + 1)
    with Path(source).open("rb") as file:
        return file.read(LARGEST + 1)


def _read_into(reading: Reading, source: str, text: str) -> None:
    before = len(reading.typed), len(reading.findings)
    try:
        for document in read_documents(text):
            for fault in document.faults:
                reading.findings.append(Finding(source, fault.message, fault.place, document.number))
            if not document.faults:
                reading.typed.extend(_objects(Typed(source, document, document.value)))
    except NotReadable as unreadable:
        fix = "correct the file there; nothing after it was looked at"
        reading.findings.append(Finding(source, f"is not YAML: {unreadable.message}", unreadable.place, fix=fix))
    if before == (len(reading.typed), len(reading.findings)):
        fix = "name a file that holds a ModelDeployment"
        reading.findings.append(Finding(source, "holds no manifest", fix=fix))


def _objects(typed: Typed) -> list[Typed]:
    """The object itself, or the items of a List, as `kubectl get -o yaml` prints several objects."""
    value = typed.value
    if not isinstance(value, dict) or value.get("kind") not in {"List", "ModelDeploymentList", "EgressAuditList"}:
        return [typed]
    items = value.get("items")
    if not isinstance(items, list):
        return [typed]  # of a kind that nobody knows then
    return [
        Typed(typed.source, typed.document, item, f"{typed.within}items[{place}]") for place, item in enumerate(items)
    ]


def _joined(within: str, path: str) -> str:
    return f"{within}.{path}" if within and path and not path.startswith("[") else within + path
