"""Options that several commands about weights share, and their conversion."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hermetic.errors import InputError, Unreachable
from hermetic.weights.entries import FILES, LARGEST_SHARD, SHARD_SIZE, SHARDS, SMALLEST_SHARD, Serialization
from hermetic.weights.workers import Limits

Function = TypeVar("Function", bound=Callable[..., Any])

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LARGEST_KEY = 2**20


def method_options(function: Function) -> Function:
    """--method and --shard-size: how files become entries of a manifest."""
    size = click.option(
        "--shard-size",
        type=click.IntRange(SMALLEST_SHARD, LARGEST_SHARD),
        default=SHARD_SIZE,
        show_default=True,
        metavar="BYTES",
        help="Bytes of a range, with --method shards.",
    )
    method = click.option(
        "--method",
        type=click.Choice([SHARDS, FILES]),
        default=SHARDS,
        show_default=True,
        help="shards: an entry for each range of a file, hashed side by side. files: one for each file, which the "
        "command line of model-signing 1.1 reads too.",
    )
    return method(size(function))


def threads_option(function: Function) -> Function:
    """--threads."""
    return click.option(
        "--threads",
        type=click.IntRange(0, 256),
        default=0,
        metavar="N",
        help="Threads that read and hash. Default: twice the cores, 8 to 32.",
    )(function)


def allow_option(function: Function) -> Function:
    """--allow."""
    return click.option(
        "--allow",
        multiple=True,
        metavar="NAME",
        help="A file that may hold code (pickle, Python, an archive), by path or name. May be repeated.",
    )(function)


def serialization_of(method: str, shard_size: int, *, links: bool) -> Serialization:
    """The manifest's own description of how it was made."""
    from hermetic.weights.entries import MANIFEST, SIGNATURE

    size = shard_size if method == SHARDS else 0
    return Serialization(method, size, links, (MANIFEST, SIGNATURE))


def limits_of(threads: int) -> Limits:
    """Limits with this number of threads and no time limits."""
    return Limits(threads=threads)


def digest_option(value: str) -> str:
    """A root digest from the command line. Raises InputError."""
    if value and not DIGEST.fullmatch(value):
        raise InputError(
            f"--digest {value}: is no root digest",
            fix="--digest sha256: and 64 digits, as 'hermetic manifest' prints it",
        )
    return value


def pem_of(file: Path) -> bytes:
    """The content of a small file. Raises Unreachable."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST_KEY)
    except OSError as error:
        raise Unreachable(f"{file}: {error.strerror}", fix="name a file that can be read") from None


def passphrase() -> bytes | None:
    """Passphrase of an encrypted key, from the environment."""
    from hermetic.cli.attest.files import PASSPHRASE_VARIABLE  # a third of a second to import, for signing

    value = os.environ.get(PASSPHRASE_VARIABLE)
    return None if value is None else value.encode()
