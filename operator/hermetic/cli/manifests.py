"""Manifests as given: files, folders, standard input; YAML, JSON; one, several, or a List."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hermetic.api.kubernetes_yaml import Document, NotReadable, YamlPosition, read_documents
from hermetic.cli.exit_codes import SeveralErrors
from hermetic.cli.repository import SUFFIXES, Skipped, is_ours, walked
from hermetic.cli.terminal import note
from hermetic.errors import HermeticError, InputError, ManifestInvalid, ManifestUnreadable, Unreachable

STANDARD_INPUT = "-"
LARGEST = 64 * 2**20
LISTS = frozenset({"List", "ModelDeploymentList", "EgressAuditList"})


@dataclass(frozen=True, slots=True)
class ManifestFinding:
    """One problem of the input.

    `field` and `value` are "" where the whole is at fault; `reason` is the one that the operator's status would
    have, "" where the API server would refuse already.
    """

    source: str
    message: str
    position: YamlPosition | None = None
    document: int = 0
    field: str = ""
    value: str = ""
    reason: str = ""
    fix: str = ""
    kind: type[HermeticError] = ManifestInvalid

    def as_error(self) -> HermeticError:
        """One line: place (in the form of compilers, for editors), field, value, what is accepted."""
        where = self.source if self.position is None else f"{self.source}:{self.position}"
        field = "" if self.reason else self.field  # messages of gates name it
        parts = (where, self.reason, field, self.value, self.message)
        return self.kind(": ".join(part for part in parts if part), fix=self.fix)


@dataclass(frozen=True, slots=True)
class TypedManifest:
    """One object and its place: `within` is its path in the document, "" or an item of a List.

    `folder` is the named folder that contains its file, "" where the file itself was named.
    """

    source: str
    document: Document
    value: Any
    within: str = ""
    folder: str = ""

    def where(self) -> str:
        """The place of the object."""
        position = self.document.place(self.within)
        return self.source if position is None else f"{self.source}:{position}"

    def finding(
        self, message: str, *, path: str = "", value: str = "", reason: str = "", fix: str = ""
    ) -> ManifestFinding:
        """A finding about this object, at the place of the field."""
        return ManifestFinding(
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
class ManifestsRead:
    """The manifests that could be read, and every finding."""

    sources: list[str] = field(default_factory=list)
    typed: list[TypedManifest] = field(default_factory=list)
    findings: list[ManifestFinding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    foreign: int = 0
    """Documents of other kinds in folders."""

    def in_reading_order(self) -> list[ManifestFinding]:
        """Every finding, by file in the given order, then from top to bottom."""
        rank = {source: number for number, source in enumerate(self.sources)}

        def order(finding: ManifestFinding) -> tuple[int, int, int]:
            position = finding.position or YamlPosition(0, 0)
            return (rank[finding.source], position.line, position.column)

        return sorted(self.findings, key=order)

    def raise_findings(self) -> None:
        """Raises all findings at once; does nothing without findings."""
        if self.findings:
            raise SeveralErrors([finding.as_error() for finding in self.in_reading_order()])


def note_skipped(reading: ManifestsRead) -> None:
    """Prints to standard error: skipped files of folders with the reason, and how many documents are of other kinds."""
    for file in reading.skipped:
        note(f"{file.source}: skipped: {file.why}")
    if reading.foreign:
        note(f"{reading.foreign} document{'' if reading.foreign == 1 else 's'} of other kinds skipped")


def read_manifests(names: Sequence[str]) -> ManifestsRead:
    """Everything in these files and folders, and in '-'; an unreadable file does not hide the others.

    In a folder and in standard input, documents of other kinds are skipped; in a file that was named, every document
    must be of Hermetic's kinds.
    """
    reading = ManifestsRead()
    for name in dict.fromkeys(names):
        if name != STANDARD_INPUT and Path(name).is_dir():
            _read_folder(reading, name)
        elif name not in reading.sources:
            _read_file(reading, name)
    return reading


def _read_file(reading: ManifestsRead, name: str) -> None:
    shown = "standard input" if name == STANDARD_INPUT else name
    reading.sources.append(shown)
    text = _text(name, shown)
    if isinstance(text, ManifestFinding):
        reading.findings.append(text)
        return
    before = len(reading.typed), len(reading.findings)
    _read_into(reading, shown, text, "")
    if name == STANDARD_INPUT:
        _leave_out_foreign(reading, before[0])
    if before == (len(reading.typed), len(reading.findings)):
        fix = "name a file that holds a ModelDeployment"
        reading.findings.append(ManifestFinding(shown, "holds no manifest", fix=fix, kind=ManifestUnreadable))


def _leave_out_foreign(reading: ManifestsRead, before: int) -> None:
    """Skips other kinds, which `helm template` and `kubectl kustomize` print too. With none of ours, all are errors."""
    read = reading.typed[before:]
    ours = [manifest for manifest in read if is_ours(manifest.value)]
    if ours:
        reading.typed[before:] = ours
        reading.foreign += len(read) - len(ours)


def _read_folder(reading: ManifestsRead, name: str) -> None:
    """Hermetic's manifests in a repository; others are counted, possible ones listed with a reason."""
    before = len(reading.typed), len(reading.findings)
    walk = walked(Path(name))
    reading.skipped += walk.skipped
    reading.foreign += walk.foreign
    for file, text in walk.ours.items():
        source = str(file)
        if source not in reading.sources:
            reading.sources.append(source)
            _read_into(reading, source, text, str(file.parent))
    if before == (len(reading.typed), len(reading.findings)):
        reading.sources.append(name)
        endings = ", ".join(sorted(SUFFIXES))
        explanation = f"holds no manifest of Hermetic's in files that end in {endings}"
        reading.findings.append(
            ManifestFinding(name, explanation, fix="name a folder or a file with one", kind=InputError)
        )


def _text(source: str, shown: str) -> str | ManifestFinding:
    try:
        content = _content(source)
    except FileNotFoundError:
        return ManifestFinding(shown, "No such file or directory", fix="name a file that exists", kind=InputError)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return ManifestFinding(
            shown, str(getattr(error, "strerror", "") or error), fix="name a file that can be read", kind=Unreachable
        )
    if len(content) > LARGEST:
        problem, fix = f"is larger than {LARGEST // 2**20} MiB", "split it into several files"
        return ManifestFinding(shown, problem, fix=fix, kind=ManifestUnreadable)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = content.count(b"\n", 0, error.start) + 1, error.start - content.rfind(b"\n", 0, error.start)
        problem = f"is not UTF-8: byte 0x{content[error.start]:02x}"
        return ManifestFinding(
            shown, problem, YamlPosition(line, column), fix="save the file as UTF-8", kind=ManifestUnreadable
        )


def _content(source: str) -> bytes:
    if source == STANDARD_INPUT:
        return sys.stdin.buffer.read(LARGEST + 1)
    with Path(source).open("rb") as file:
        return file.read(LARGEST + 1)


def _read_into(reading: ManifestsRead, source: str, text: str, folder: str) -> None:
    """The objects of a text; for a file of a folder (`folder` not ""), only those of Hermetic's kinds."""
    try:
        for document in read_documents(text):
            objects = list(_objects(TypedManifest(source, document, document.value, folder=folder)))
            ours = [manifest for manifest in objects if not folder or is_ours(manifest.value)]
            reading.foreign += len(objects) - len(ours)
            if not ours:
                continue
            for fault in document.faults:
                finding = ManifestFinding(source, fault.message, fault.place, document.number, kind=ManifestUnreadable)
                reading.findings.append(finding)
            if not document.faults:
                reading.typed.extend(ours)
    except NotReadable as unreadable:
        fix = "correct the file there; nothing after it was read"
        explanation = f"is not YAML: {unreadable.message}"
        reading.findings.append(
            ManifestFinding(source, explanation, unreadable.place, fix=fix, kind=ManifestUnreadable)
        )


def _objects(typed: TypedManifest) -> Iterator[TypedManifest]:
    """The object itself, or the items of a List, as `kubectl get -o yaml` prints several objects."""
    value = typed.value
    items = value.get("items") if isinstance(value, dict) and value.get("kind") in LISTS else None
    if not isinstance(items, list):
        yield typed  # a List without items counts as an unknown kind
        return
    for position, item in enumerate(items):
        yield replace(typed, value=item, within=f"{typed.within}items[{position}]")


def _joined(within: str, path: str) -> str:
    return f"{within}.{path}" if within and path and not path.startswith("[") else within + path
