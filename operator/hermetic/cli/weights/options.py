"""Options that several commands about weights share, and their conversion."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermetic.cli.options import Amount, signing_passphrase
from hermetic.errors import InputError, Unreachable
from hermetic.weights.entries import FILES, LARGEST_SHARD, SHARD_SIZE, SHARDS, SMALLEST_SHARD, Serialization

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from hermetic.weights.signing import Signer

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
    return click.option(
        "--threads",
        type=click.IntRange(0, 256),
        default=0,
        metavar="N",
        help="Threads that read and hash. Default: twice the cores, 8 to 32.",
    )(function)


def stall_option(meaning: str, default: float) -> Callable[[Function], Function]:
    return click.option(
        "--stall", type=Amount(min=0), default=default, show_default=True, metavar="SECONDS", help=meaning
    )


def allow_option(function: Function) -> Function:
    return click.option(
        "--allow",
        multiple=True,
        metavar="NAME",
        help="A file that may hold code (pickle, Python, an archive), by path or name. May be repeated.",
    )(function)


def exclude_option(function: Function) -> Function:
    return click.option(
        "--exclude",
        "excludes",
        multiple=True,
        metavar="PATTERN",
        callback=_patterns,
        help="Leave out files and folders whose path or name matches, as '*.bin' or 'original/*'. May be repeated.",
    )(function)


def folder_argument(function: Function) -> Function:
    """DIR: the folder of weights."""
    # Whether it may be read, and answers at all, is a result of verification: click.Path would ask before its limits.
    return click.argument("folder", metavar="DIR", type=Path)(function)


def digest_option(meaning: str) -> Callable[[Function], Function]:
    """--digest, checked for its form."""
    return click.option("--digest", metavar="DIGEST", callback=_root_digest, help=meaning)


def signer_options(*, required: bool) -> Callable[[Function], Function]:
    """--key and --certificate: who signs; `signer_of` reads them."""
    key = click.option(
        "--key",
        required=required,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Private key{'' if required else ' to sign with'}: P-256, P-384 or P-521, PEM.",
    )
    certificate = click.option(
        "--certificate",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Certificate of the key, and the chain below the root, PEM.",
    )

    def both(function: Function) -> Function:
        return key(certificate(function))

    return both


def signer_of(key: Path | None, certificate: Path | None) -> Signer | None:
    """The private key and its certificates; None without a key. Raises InputError, Unreachable, SigningKeyUnusable."""
    if key is None:
        if certificate is not None:
            raise InputError(f"--certificate {certificate}: needs a key", fix="--key FILE --certificate FILE")
        return None
    from hermetic.weights.signatures import private_key

    return private_key(str(key), pem_of(key), signing_passphrase()), _chain(certificate)


def _chain(certificate: Path | None) -> list[Certificate]:
    if certificate is None:
        return []
    from hermetic.weights.certificates import certificates

    return certificates(str(certificate), pem_of(certificate))


def serialization_of(method: str, shard_size: int, *, links: bool) -> Serialization:
    """The manifest's own description of how it was made."""
    from hermetic.weights.entries import MANIFEST, SIGNATURE

    size = shard_size if method == SHARDS else 0
    return Serialization(method, size, links, (MANIFEST, SIGNATURE))


def _root_digest(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """An empty value is refused: of a variable that is not set, it would mean any digest."""
    if value is not None and not DIGEST.fullmatch(value):
        raise InputError(
            f"--digest {value}: is not a root digest",
            fix="--digest sha256: and 64 digits, as 'hermetic manifest' prints it",
        )
    return value or ""


def _patterns(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Relative patterns. A folder may be written with a "/" at its end."""
    patterns = tuple(value.removeprefix("./").rstrip("/") for value in values)
    for value, pattern in zip(values, patterns, strict=True):
        if not pattern or pattern.startswith("/") or not pattern.isprintable():
            raise InputError(
                f"--exclude {value[:200]!a}: must be a pattern of paths in SRC",
                fix="--exclude '*.bin', or 'original/*'",
            )
    return patterns


def pem_of(file: Path) -> bytes:
    """The content of a small file. Raises InputError for a missing file, Unreachable."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST_KEY)
    except FileNotFoundError:
        raise InputError(f"{file}: No such file or directory", fix="name a file that exists") from None
    except OSError as error:
        raise Unreachable(f"{file}: {error.strerror}", fix="name a file that can be read") from None
