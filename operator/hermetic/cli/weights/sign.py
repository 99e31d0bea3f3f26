"""`hermetic sign`: sign the manifest of a folder of weights."""

from __future__ import annotations

from pathlib import Path

import click

from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo, write_json
from hermetic.cli.weights.options import digest_option, folder_argument, signer_of, signer_options, threads_option
from hermetic.cli.weights.progress import TransferProgress
from hermetic.weights.workers import Limits

SCHEMA = "hermetic.dev/weights-signature/v1"


@click.command(
    "sign",
    epilog="Example: hermetic sign /mnt/models/llama-3-1-8b/fp8 --key platform.pem\n\n"
    "Example: hermetic sign ./phi-4 --key platform.pem --digest sha256:9b2e...\n\n"
    "The passphrase of an encrypted key is read from HERMETIC_SIGNING_PASSPHRASE.",
)
@folder_argument
@signer_options(required=True)
@digest_option("Root digest that 'hermetic stage' or 'manifest' printed: the files are not read again.")
@threads_option
@common_options(cluster=False)
def command(folder: Path, key: Path, certificate: Path | None, digest: str, threads: int, output: str) -> None:
    """Sign the manifest of a folder: DIR/.hermetic/model.sig, a Sigstore bundle of OpenSSF Model Signing v1.0.

    The files are compared with the manifest first, unless --digest says which manifest it must be.
    """
    from hermetic.weights.signing import sign_folder
    from hermetic.weights.tree import Tree

    signer = signer_of(key, certificate)
    assert signer is not None  # noqa: S101 - the key is required
    with Tree(folder) as tree, TransferProgress("verified") as line:
        root = sign_folder(tree, signer, digest, Limits(threads=threads), line)
    if output == "json":
        write_json({"schema": SCHEMA, "folder": str(folder), "digest": root, "signature": ".hermetic/model.sig"})
    else:
        echo(f"{folder}/.hermetic/model.sig: signed")
        echo(f"digest: {root}")
