"""`hermetic bundle`: whether an air-gap bundle is what was built and signed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hermetic.cli.attest.files import read_public_keys
from hermetic.cli.bundle.verification import Bundle, verify
from hermetic.cli.options import common_options
from hermetic.cli.output import echo_fitted, note, write_json
from hermetic.errors import BundleRefused, InputError

CHECK_SCHEMA = "hermetic.dev/bundle-check/v1"


@click.group(
    "bundle",
    epilog="Example: hermetic bundle verify hermetic-0.1.0.tar --public-key platform.pub\n\n"
    "'hermetic bundle COMMAND --help' shows the options.",
)
@common_options(cluster=False)
@click.pass_context
def command(ctx: click.Context, output: str) -> None:
    """Verify an air-gap bundle. Works offline; docs/bundle.md describes what it holds and how it is loaded."""
    # the common options are accepted before and after the subcommand
    ctx.default_map = {name: {"output": output} for name in command.commands}


@command.command("verify", short_help="Check the checksums, the image and the signature.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--public-key",
    "public_keys",
    multiple=True,
    metavar="KEY",
    help="PEM of a key that must have signed it. May be repeated: one of them. Default: no signature is asked for.",
)
@common_options(cluster=False)
def verify_command(file: Path, public_keys: tuple[str, ...], output: str) -> None:
    """Check a bundle: every checksum, every digest of the image and, with --public-key, the signature.

    Nothing is unpacked. Ends with 1 and the name of what is wrong where it is not the bundle that was built.
    """
    trusted = read_public_keys(public_keys)
    if dated := [key.name for key in trusted.values() if key.not_after is not None]:
        what = f"--public-key {dated[0]}: a bundle has no signed time, so a key cannot be trusted until a moment"
        raise InputError(what, fix=f"--public-key {dated[0]}")
    try:
        bundle = verify(file, trusted)
    except BundleRefused as refusal:
        if output == "json":
            write_json(_report(file, None, refusal.message))
        raise BundleRefused(f"{file}: {refusal.message}") from refusal
    if output == "json":
        write_json(_report(file, bundle, ""))
    else:
        _print(file, bundle)


def _print(file: Path, bundle: Bundle) -> None:
    size = f"{bundle.size / 1e6:.0f} MB"
    echo_fitted(f"{file}: Hermetic {bundle.version}, {bundle.files} files, {size}: every checksum and digest matches")
    echo_fitted(f"image: {bundle.image}")
    if bundle.signed_by is not None:
        echo_fitted(f"signed by {bundle.signed_by.name} ({bundle.signed_by.keyid})")
    elif bundle.has_signature:
        note("it is signed, and no key was given to check the signature with: --public-key KEY")
    else:
        note("it is not signed: checksums show damage, and not who built it")


def _report(file: Path, bundle: Bundle | None, message: str) -> dict[str, Any]:
    key = bundle.signed_by if bundle is not None else None
    return {
        "schema": CHECK_SCHEMA,
        "file": str(file),
        "valid": bundle is not None,
        "message": message,
        "version": bundle.version if bundle is not None else "",
        "image": bundle.image if bundle is not None else "",
        "signed": bundle is not None and bundle.has_signature,
        "signedBy": key.keyid if key is not None else "",
    }
