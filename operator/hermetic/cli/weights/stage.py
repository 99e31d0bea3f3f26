"""`hermetic stage`: copy a model to where it is served, with its manifest, in one pass."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermetic.api.staged_folders import CACHES
from hermetic.api.text import one_line
from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo, note, write
from hermetic.cli.weights.block import block_as_text, is_on_known_share, weights_block, wrong_with_block
from hermetic.cli.weights.caches import caches_of_source, caches_options, keys_of, source_with_caches
from hermetic.cli.weights.left_out import as_json as left_out_as_json
from hermetic.cli.weights.left_out import notes_on_selection
from hermetic.cli.weights.options import (
    Function,
    allow_option,
    exclude_option,
    method_options,
    serialization_of,
    signer_of,
    signer_options,
    stall_option,
    threads_option,
)
from hermetic.cli.weights.progress import ProgressEvents, TransferProgress
from hermetic.cli.weights.refusals import with_fix
from hermetic.errors import InputError, StagingUnconfirmed, WeightsRefused
from hermetic.weights.workers import Limits, Progress

if TYPE_CHECKING:
    from hermetic.weights.copying import Staged
    from hermetic.weights.images import ImageOptions
    from hermetic.weights.staging import Options
    from hermetic.weights.tree import Tree

_FOLDER, _OCI, _OCI_ARCHIVE = "folder", "oci", "oci-archive"
_FORMATS = (_FOLDER, _OCI, _OCI_ARCHIVE)
"""Destinations; the two of images are named as skopeo names them."""
_ARCHITECTURES = ("amd64", "arm64")

SCHEMA = "hermetic.dev/weights-staging/v1"
DEFAULT_STALL = 600.0
"""Seconds: every thread may be synchronising 256 MiB to a slow share."""
FILE_CAP = 300
"""MiB/s that Azure Files delivers of one file to one client, at most: scalability targets of premium file shares."""


def _image_options(function: Function) -> Function:
    """--format, --path-in-image, --base and --architecture."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(_FORMATS),
        default=_FOLDER,
        show_default=True,
        help="folder: the files. oci, oci-archive: an image of them, as a layout in a folder or in one tar, for an "
        "image volume or a serving image that carries its weights.",
    )
    path = click.option(
        "--path-in-image",
        default="",
        metavar="PATH",
        help="Folder of the image that holds the model (imageVolume.path, bakedImage.path). Default: its root.",
    )
    base = click.option(
        "--base",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="OCI layout of a serving image that gets the weights on top.",
    )
    architecture = click.option(
        "--architecture",
        type=click.Choice(_ARCHITECTURES),
        default=_ARCHITECTURES[0],
        show_default=True,
        help="Of the nodes, for an image without --base.",
    )
    return form(path(base(architecture(function))))


@click.command(
    "stage",
    epilog="Example: hermetic stage ./Llama-3.1-8B-Instruct /mnt/models/llama-3-1-8b\n\n"
    "Example: hermetic stage ./phi-4 /mnt/models/phi-4 --read-back\n\n"
    "Example: hermetic stage ./DeepSeek-V3 /mnt/models/deepseek-v3 --exclude '*.py'\n\n"
    "Example: hermetic stage ./phi-4 phi-4.oci --format oci --key platform.pem\n\n"
    "Example: hermetic stage ./phi-4 ./warm --caches ./cache --caches-for phi-4.yaml\n\n"
    "The same command goes on where a run was ended.",
)
# no click.Path: it would ask the file system before the limit of --stall
@click.argument("source", metavar="SRC", type=Path)
@click.argument("destination", metavar="DEST", type=Path)
@_image_options
@signer_options(required=False)
@allow_option
@exclude_option
@click.option("--read-back", is_flag=True, help="Hash again what was written, read from the destination.")
@click.option(
    "--share-throughput",
    type=click.IntRange(1),
    metavar="MIBPS",
    help="Rate of the share, in MiB/s: the output says whether the model has enough files for it.",
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
    from hermetic.weights.content import Allowed
    from hermetic.weights.staging import Options

    serialization = serialization_of(options["method"], options["shard_size"], links=True)
    signer = signer_of(options["key"], options["certificate"])
    allowed = Allowed(frozenset(options["allow"]))
    how = Options(serialization, allowed, options["read_back"], signer, _image_of(options))
    with TransferProgress("staged") as line:
        try:
            ran = _run(source, destination, how, options, ProgressEvents() if output == "json" else line)
        except WeightsRefused as refused:
            raise with_fix(refused, source, destination, options["excludes"]) from None
    staged = ran.staged
    block = weights_block(staged, source, destination, how, ran.keys)
    wrong = wrong_with_block(block)
    unnamed = [f"no weights block: {wrong}"] if wrong else []
    advice = [*_advice(staged, options["share_throughput"]), *ran.notes, *unnamed]
    if output == "json":
        event = {"event": "staged", "schema": SCHEMA, **_facts(destination, ran), **ran.keys, "advice": advice}
        write(json.dumps({**event, "weights": None if wrong else block}) + "\n")
    else:
        _tell(destination, staged, advice)
        if not wrong:
            is_example = not is_on_known_share(destination, staged)
            echo(block_as_text(block, options["excludes"], is_example=is_example))
    if staged.unconfirmed:
        raise StagingUnconfirmed(
            f"{destination}: is published and complete, but that its name is on the disk is not confirmed: "
            f"{staged.unconfirmed}"
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """A finished staging. `keys`: of the caches that it staged; `left_out`: as in JSON output."""

    staged: Staged
    keys: dict[str, Any]
    notes: list[str]
    left_out: list[dict[str, str]]


def _run(
    source: Path, destination: Path, how: Options, options: dict[str, Any], on_progress: Callable[[Progress], None]
) -> _Run:
    from hermetic.weights.fetched_at_start import notes_on_start
    from hermetic.weights.selection import Selection
    from hermetic.weights.staging import in_time, stage
    from hermetic.weights.tree import WeightsStopped

    progress = Progress()
    watched = progress, Limits(threads=options["threads"]), on_progress

    def run() -> _Run:
        with progress.asking(str(source)):
            opened = source_with_caches(source, options["caches"], options["caches_for"], options["excludes"])
        with opened as tree:
            with progress.asking(CACHES):
                notes = [*_notes_on_caches(tree)]
            # What cannot be read here is refused below.
            with progress.asking("config.json"), contextlib.suppress(WeightsStopped):
                notes += notes_on_start(tree)
            staged = stage(tree, destination, how, watched)
            selection = tree.selection or Selection()
            keys = keys_of(tree) if options["caches"] is not None else {}
            return _Run(staged, keys, [*notes_on_selection(selection), *notes], left_out_as_json(selection))

    return in_time(run, progress, options["stall"], destination)


def _tell(destination: Path, staged: Staged, advice: list[str]) -> None:
    echo(
        f"{destination}: {staged.names.files} files, {staged.names.size} bytes; {staged.bytes_kept} were there already"
    )
    echo(f"digest: {staged.root}")
    if staged.image:
        echo(f"image: {staged.image}")
    for line in advice:
        note(line)


def _facts(destination: Path, ran: _Run) -> dict[str, Any]:
    staged, names = ran.staged, ran.staged.names
    return {
        "destination": str(destination), "digest": staged.root, "files": names.files, "bytes": names.size,
        "bytesKept": staged.bytes_kept, "durable": not staged.unconfirmed,
        "leftOut": ran.left_out,
        **({"image": staged.image} if staged.image else {}),
    }  # fmt: skip


def _advice(staged: Staged, throughput: int | None) -> list[str]:
    """What to know of the model that was staged."""
    facts = [f"no facts for sizing: {staged.without_facts}"] if staged.without_facts else []
    return [*_advice_on_files(staged, throughput), *facts]


def _notes_on_caches(tree: Tree) -> Iterator[str]:
    """Compile caches that were in the source."""
    for key in caches_of_source(tree):
        yield f"the source has compile caches, which engines execute: {one_line(key)}"


def _advice_on_files(staged: Staged, throughput: int | None) -> list[str]:
    """How many files of weights the share needs, so that the cap per file does not limit loading."""
    if throughput is None or staged.weight_files == 0:
        return []
    needed_files = -(-throughput // FILE_CAP)
    even = staged.largest * needed_files <= 2 * staged.names.size
    if staged.weight_files >= needed_files and even:
        return []
    explanation = f"{staged.weight_files} safetensors files, the largest of {staged.largest} bytes"
    return [
        f"a share of {throughput} MiB/s delivers {FILE_CAP} MiB/s of one file: it needs {needed_files} or "
        "more files of "
        f"similar size, and there are {explanation}; save the model in smaller shards (save_pretrained, max_shard_size)"
    ]


def _image_of(options: dict[str, Any]) -> ImageOptions | None:
    """The image that the options ask for; None for a folder. Raises InputError."""
    path = options["path_in_image"].strip("/")
    if options["form"] == _FOLDER:
        if path or options["base"] is not None:
            raise InputError("--path-in-image and --base are of images", fix="add --format oci")
        return None
    from hermetic.weights.entries import wrong_with_path
    from hermetic.weights.images import ImageOptions

    if path and (wrong := wrong_with_path(path)) is not None:
        raise InputError(f"--path-in-image {path[:200]}: {wrong}", fix="--path-in-image models/phi-4")
    return ImageOptions(options["form"] == _OCI_ARCHIVE, path, options["base"], options["architecture"])
