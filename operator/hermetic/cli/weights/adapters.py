"""Adapters that `hermetic verify` reads after the model: folders of their own, each with its manifest."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermetic.cli.weights.options import DIGEST
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.weights.verification import Verified


@dataclass(frozen=True, slots=True)
class AdapterFolder:
    """A folder to verify. `digest`: the root digest that its manifest must have, or ""."""

    folder: Path
    digest: str

    @property
    def name(self) -> str:
        """The last part of the folder, by which results name the adapter."""
        return posixpath.basename(str(self.folder))


def adapter_folders(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[AdapterFolder, ...]:
    """The values of --adapter: each DIR or DIR=DIGEST."""
    return tuple(_adapter_folder(value) for value in values)


def _adapter_folder(value: str) -> AdapterFolder:
    """An empty digest is refused: of a variable that is not set, it would mean any digest."""
    folder, separator, digest = value.partition("=")
    if not folder.strip("/") or (separator and not DIGEST.fullmatch(digest)):
        raise InputError(
            f"--adapter {value}: is neither a folder nor a folder with a root digest",
            fix="--adapter /adapters/NAME=sha256: and 64 digits, as 'hermetic manifest' prints it",
        )
    return AdapterFolder(Path(folder), digest)


def joined(model: Verified, adapters: Mapping[AdapterFolder, Verified]) -> Verified:
    """One result of all folders: findings of an adapter name its folder. Root digest and signer are the model's."""
    findings = list(model.findings)
    for adapter, verified in adapters.items():
        folder = str(adapter.folder)
        findings += (
            replace(finding, file=posixpath.join(folder, finding.file) if finding.file else folder)
            for finding in verified.findings
        )
    results = (model, *adapters.values())
    return replace(
        model,
        findings=sorted(findings, key=lambda finding: finding.reason.is_unknown),
        omitted=sum(verified.omitted for verified in results),
        files=sum(verified.files for verified in results),
        bytes=sum(verified.bytes for verified in results),
        seconds=sum(verified.seconds for verified in results),
    )


def results_by_name(adapters: Mapping[AdapterFolder, Verified]) -> dict[str, Any]:
    """{"adapters": {name: root digest, or the reason why it is not right}}; {} without adapters."""
    results = {
        adapter.name: verified.root if verified.is_right else verified.findings[0].reason.value
        for adapter, verified in adapters.items()
    }
    return {"adapters": results} if results else {}
