"""`hermetic manifest`: lists a folder of weights, file by file."""

from __future__ import annotations

from pathlib import Path

import click

from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo, note, write_json
from hermetic.cli.weights.left_out import as_json as left_out_as_json
from hermetic.cli.weights.left_out import notes_on_selection
from hermetic.cli.weights.options import folder_argument, method_options, serialization_of, threads_option
from hermetic.cli.weights.progress import TransferProgress
from hermetic.weights.workers import Limits

SCHEMA = "hermetic.dev/weights-manifest/v1"
REMOVE_LEFT_OUT = (
    "remove what was left out from the folder before pods read it, or copy the model with 'hermetic stage': "
    "'hermetic verify' refuses files that the manifest does not list (FileNotListed)"
)


@click.command(
    "manifest",
    epilog="Example: hermetic manifest /mnt/models/llama-3-1-8b/fp8\n\n"
    "Example: hermetic manifest ./phi-4 --method files\n\n"
    "'hermetic stage' copies and writes the manifest in one pass.",
)
@folder_argument
@method_options
@click.option("--links", is_flag=True, help="List symbolic links to files in the folder, as a NIM cache has them.")
@threads_option
@common_options(cluster=False)
def command(folder: Path, method: str, shard_size: int, links: bool, threads: int, output: str) -> None:
    """Write the manifest of a folder of weights: DIR/.hermetic/manifest.json, and print its root digest.

    The format is that of OpenSSF Model Signing v1.0. A signature that is there is removed: it was of an older manifest.
    What 'hermetic stage' would leave out is not listed.
    """
    from hermetic.weights.manifests import write_manifest
    from hermetic.weights.selection import Selection
    from hermetic.weights.tree import Tree

    serialization, selection = serialization_of(method, shard_size, links=links), Selection()
    with Tree(folder, selection) as tree, TransferProgress("hashed") as line:
        written = write_manifest(tree, serialization, Limits(threads=threads), line)
    if written.without_facts:
        note(f"no facts for sizing: {written.without_facts}")
    for text in notes_on_selection(selection):
        note(text)
    if selection.left_out:
        note(REMOVE_LEFT_OUT)
    if output == "json":
        names = written.names
        facts = {
            "schema": SCHEMA,
            "folder": str(folder),
            "digest": written.root,
            "files": names.files,
            "bytes": names.size,
            "leftOut": left_out_as_json(selection),
        }
        write_json(facts)
    else:
        echo(f"{folder}: {written.names.files} files, {written.names.size} bytes")
        echo(f"digest: {written.root}")
