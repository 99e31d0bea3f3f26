"""`--public-key` of the commands that verify a bundle."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hermetic.cli.attest.files import read_public_keys
from hermetic.errors import InputError
from hermetic.signing.keys import TrustedKeys

public_keys_option = click.option(
    "--public-key",
    "public_keys",
    multiple=True,
    metavar="KEY",
    help="PEM of a key that must have signed it. May be repeated: one of them. Default: no signature is asked for.",
)


def read_bundle_keys(public_keys: Sequence[str]) -> TrustedKeys:
    """The keys of the files. Raises InputError for a key that is trusted until a moment."""
    trusted = read_public_keys(public_keys)
    if dated := [key.name for key in trusted.values() if key.not_after is not None]:
        message = f"--public-key {dated[0]}: a bundle has no signed time, so a key cannot be trusted until a moment"
        raise InputError(message, fix=f"--public-key {dated[0]}")
    return trusted
