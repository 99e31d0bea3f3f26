"""A folder of a GitOps repository: which files may contain Hermetic's manifests, and which are something else.

Links to folders are listed and skipped: nothing outside the folder is read, and no loop is possible.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hermetic.api.kubernetes_yaml import LOADER
from hermetic.errors import InputError
from hermetic.kinds import EGRESS_ATTESTATION, EGRESS_AUDIT, GROUP, MODEL_DEPLOYMENT

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
KINDS = (MODEL_DEPLOYMENT.kind, EGRESS_AUDIT.kind, EGRESS_ATTESTATION.kind)
LARGEST_IN_A_FOLDER = 4 * 2**20
"""Bytes: an EgressAttestation is the largest manifest, and is smaller than two MiB."""
MOST_FILES = 50_000
_KUSTOMIZATIONS = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
_NAMED = re.compile(rf"{re.escape(GROUP)}/|\bkind\W+({'|'.join(KINDS)})\b")
_BETWEEN_DOCUMENTS = re.compile(r"^---", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{-?\s*(\.|if|range|with|include|template|toYaml|define|end|\$|/\*)")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was skipped, and why."""

    source: str
    why: str


@dataclass(slots=True)
class FolderContents:
    """Contents of a folder: texts that may be Hermetic's manifests, skipped files, number of other documents."""

    ours: dict[Path, str] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    foreign: int = 0
    """Documents in files that name none of Hermetic's kinds."""


def walked(folder: Path) -> FolderContents:
    """Every file below the folder with an ending of manifests. Raises InputError where there are too many."""
    walk, partial = FolderContents(), dict[Path, Path]()
    for number, file in enumerate(_files(folder, walk.skipped)):
        if number == MOST_FILES:
            explanation = f"{folder}: holds more than {MOST_FILES} files that may be manifests"
            raise InputError(explanation, fix="name a folder below it")
        text = _text(file)
        if isinstance(text, Skipped):
            walk.skipped.append(text)
            continue
        if file.name in _KUSTOMIZATIONS:
            partial |= {Path(os.path.normpath(file.parent / name)): file for name in _patch_files(text)}
        if _is_foreign(text):
            walk.foreign += sum(1 for part in _BETWEEN_DOCUMENTS.split(text) if part.strip())
        elif _TEMPLATE.search(text) is not None:
            walk.skipped.append(Skipped(str(file), "is a template; validate what 'helm template' prints of it"))
        else:
            walk.ours[file] = text
    for file in partial.keys() & walk.ours.keys():
        del walk.ours[file]
        why = f"is a patch of {partial[file]}; validate what 'kubectl kustomize' prints"
        walk.skipped.append(Skipped(str(file), why))
    walk.skipped.sort(key=lambda file: file.source)
    return walk


def _files(folder: Path, skipped: list[Skipped]) -> Iterator[Path]:
    """In the order of their paths; hidden folders (.git, .github) contain no manifests that are applied."""
    for parent, folders, names in os.walk(folder):
        here = Path(parent)
        links = [here / name for name in folders if (here / name).is_symlink()]
        skipped += [Skipped(str(link), "is a link to a folder, which is not followed") for link in links]
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if (Path(name).suffix in SUFFIXES or name in _KUSTOMIZATIONS) and (here / name).is_file():
                yield here / name


def _text(file: Path) -> str | Skipped:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_IN_A_FOLDER + 1)
    except OSError as error:
        return Skipped(str(file), f"cannot be read: {error.strerror}")
    if len(content) > LARGEST_IN_A_FOLDER:
        return Skipped(str(file), f"is larger than {LARGEST_IN_A_FOLDER // 2**20} MiB; name it by itself if it counts")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(str(file), "is not UTF-8")


def _is_foreign(text: str) -> bool:
    """Whether the text contains neither Hermetic's API group nor one of its kinds."""
    return _NAMED.search(text) is None


def is_ours(value: Any) -> bool:
    """Whether an object is of one of Hermetic's kinds, or of its API group."""
    if not isinstance(value, Mapping):
        return False
    return value.get("kind") in KINDS or str(value.get("apiVersion", "")).startswith(f"{GROUP}/")


def _patch_files(text: str) -> Iterator[str]:
    """The files that a kustomization uses as patches: they are parts of manifests."""
    try:
        value = yaml.load(text, Loader=LOADER)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return
    if not isinstance(value, dict):
        return
    for key in ("patches", "patchesJson6902", "patchesStrategicMerge"):
        for patch in value.get(key) or ():
            name = patch.get("path") if isinstance(patch, dict) else patch
            if isinstance(name, str) and "\n" not in name:
                yield name
