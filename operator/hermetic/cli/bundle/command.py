"""`hermetic bundle`: whether an air-gap bundle is what was built and signed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hermetic.cli.bundle.load import load_command
from hermetic.cli.bundle.trusted_keys import public_keys_option, read_bundle_keys
from hermetic.cli.bundle.verification import Bundle, verify
from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo_fitted, note, write_json
from hermetic.errors import BundleRefused

CHECK_SCHEMA = "hermetic.dev/bundle-check/v1"


@click.group(
    "bundle",
    epilog="Example: hermetic bundle verify hermetic-0.1.0.tar --public-key platform.pub\n\n"
    "Example: hermetic bundle load hermetic-0.1.0.tar --to contoso.azurecr.io --public-key platform.pub\n\n"
    "'hermetic bundle COMMAND --help' shows the options.",
)
@common_options(cluster=False)
@click.pass_context
def command(ctx: click.Context, output: str) -> None:
    """Verify an air-gap bundle offline, and load it into a registry; docs/bundle.md describes what it holds."""
    # the common options are accepted before and after the subcommand
    ctx.default_map = {name: {"output": output} for name in command.commands}


command.add_command(load_command)


@command.command("verify", short_help="Check the checksums, the image and the signature.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@public_keys_option
@common_options(cluster=False)
def verify_command(file: Path, public_keys: tuple[str, ...], output: str) -> None:
    """Check a bundle: every checksum, every digest of the image and, with --public-key, the signature.

    Nothing is unpacked. Ends with 1 and the name of what is wrong where it is not the bundle that was built.
    """
    trusted = read_bundle_keys(public_keys)
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
    if chart := bundle.description.chart:
        echo_fitted(f"chart: {chart}")
    if revision := bundle.description.revision:
        echo_fitted(f"revision: {revision} of {bundle.description.source}")
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
        "chart": bundle.description.chart if bundle is not None else "",
        "revision": bundle.description.revision if bundle is not None else "",
        "source": bundle.description.source if bundle is not None else "",
        "signed": bundle is not None and bundle.has_signature,
        "signedBy": key.keyid if key is not None else "",
    }
