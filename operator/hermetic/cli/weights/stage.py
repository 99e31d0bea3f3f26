"""`hermetic stage`: copy a model to where it is served, with its manifest, in one pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermetic.api.staged_folders import CACHES
from hermetic.api.text import one_line
from hermetic.cli.options import common_options
from hermetic.cli.output import echo, note, write
from hermetic.cli.weights.caches import caches_of_source, caches_options, keys_of, source_with_caches
from hermetic.cli.weights.image import image_of, image_options
from hermetic.cli.weights.options import (
    allow_option,
    method_options,
    serialization_of,
    signer_of,
    signer_options,
    stall_option,
    threads_option,
)
from hermetic.cli.weights.progress import ProgressEvents, TransferProgress
from hermetic.errors import StagingUnconfirmed
from hermetic.weights.workers import Limits, Progress

if TYPE_CHECKING:
    from hermetic.weights.copying import Staged

SCHEMA = "hermetic.dev/weights-staging/v1"
DEFAULT_STALL = 600.0
"""Seconds: every thread may be synchronising 256 MiB to a slow share."""
FILE_CAP = 300
"""MiB/s that Azure Files delivers of one file to one client, at most: scalability targets of premium file shares."""


@click.command(
    "stage",
    epilog="Example: hermetic stage ./Llama-3.1-8B-Instruct /mnt/models/llama-3-1-8b\n\n"
    "Example: hermetic stage ./phi-4 /mnt/models/phi-4 --read-back\n\n"
    "Example: hermetic stage ./phi-4 phi-4.oci --format oci --key platform.pem\n\n"
    "Example: hermetic stage ./phi-4 ./warm --caches ./cache --caches-for phi-4.yaml\n\n"
    "The same command goes on where a run was ended.",
)
# no click.Path: it would ask the file system before the limit of --stall
@click.argument("source", metavar="SRC", type=Path)
@click.argument("destination", metavar="DEST", type=Path)
@image_options
@signer_options(required=False)
@allow_option
@click.option("--read-back", is_flag=True, help="Hash again what was written, read from the destination.")
@click.option(
    "--share-throughput",
    type=click.IntRange(1),
    metavar="MIBPS",
    help="What the share delivers, in MiB/s: says whether the model has enough files for it.",
)
@stall_option("Most time without an answer of source or destination; 0: no limit.", DEFAULT_STALL)
@caches_options
@method_options
@threads_option
@common_options(cluster=False)
def command(source: Path, destination: Path, output: str, **options: Any) -> None:
    """Copy a model from a folder, a Hugging Face snapshot, or a NIM cache or model store, into a folder of a share.

    Content that must not be served is refused before anything is copied. Files are copied side by side, hashed on
    the way, and readable by all; the model appears at DEST when all of it is there, with .hermetic/manifest.json,
    and with --key .hermetic/model.sig.
    """
    from hermetic.weights.staging import Options, in_time, stage

    serialization = serialization_of(options["method"], options["shard_size"], links=True)
    signer = signer_of(options["key"], options["certificate"])
    how = Options(serialization, frozenset(options["allow"]), options["read_back"], signer, image_of(options))
    progress = Progress()
    with TransferProgress("staged") as line:
        on_progress = ProgressEvents() if output == "json" else line

        def run() -> tuple[Staged, dict[str, Any], list[str]]:
            with progress.asking(str(source)):
                opened = source_with_caches(source, options["caches"], options["caches_for"])
            with opened as tree:
                with progress.asking(CACHES):
                    brought = caches_of_source(tree)
                staged = stage(tree, destination, how, (progress, Limits(threads=options["threads"]), on_progress))
                return staged, keys_of(tree) if options["caches"] is not None else {}, brought

        staged, keys, brought = in_time(run, progress, options["stall"], destination)
    _tell(destination, staged, keys, _advice(staged, options["share_throughput"], brought), output)
    if staged.unconfirmed:
        raise StagingUnconfirmed(
            f"{destination}: is published and complete, but that its name is on the disk is not confirmed: "
            f"{staged.unconfirmed}"
        )


def _tell(destination: Path, staged: Staged, keys: dict[str, Any], advice: list[str], output: str) -> None:
    if output == "json":
        event = {"event": "staged", "schema": SCHEMA, **_facts(destination, staged), **keys, "advice": advice}
        write(json.dumps(event) + "\n")
        return
    echo(f"{destination}: {staged.names.files} files, {staged.names.size} bytes; {staged.kept} were there already")
    echo(f"digest: {staged.root}")
    if staged.image:
        echo(f"image: {staged.image}")
    for name, wanted in keys.items():
        echo(f"weights.{name}: {json.dumps(wanted)}")
    for each in advice:
        note(each)


def _facts(destination: Path, staged: Staged) -> dict[str, Any]:
    names = staged.names
    return {
        "destination": str(destination), "digest": staged.root, "files": names.files, "bytes": names.size,
        "bytesKept": staged.kept, "durable": not staged.unconfirmed,
        **({"image": staged.image} if staged.image else {}),
    }  # fmt: skip


def _advice(staged: Staged, throughput: int | None, brought: list[str]) -> list[str]:
    """What to know of the model that was staged. `brought`: compile caches that were in the source."""
    caches = [f"the source has compile caches, which engines execute: {one_line(key)}" for key in brought]
    facts = [f"no facts for sizing: {staged.without_facts}"] if staged.without_facts else []
    return [*_advice_on_files(staged, throughput), *caches, *facts]


def _advice_on_files(staged: Staged, throughput: int | None) -> list[str]:
    """How many files of weights the share needs, so that the cap per file does not limit loading."""
    if throughput is None or staged.weight_files == 0:
        return []
    wanted = -(-throughput // FILE_CAP)
    even = staged.largest * wanted <= 2 * staged.names.size
    if staged.weight_files >= wanted and even:
        return []
    what = f"{staged.weight_files} safetensors files, the largest of {staged.largest} bytes"
    return [
        f"a share of {throughput} MiB/s delivers {FILE_CAP} MiB/s of one file: it needs {wanted} or more files of "
        f"similar size, and there are {what}; save the model in smaller shards (save_pretrained, max_shard_size)"
    ]
