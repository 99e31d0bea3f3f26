"""`hermetic verify`: whether weights are those that were listed and signed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from hermetic.api.staged_folders import CACHES
from hermetic.cli.options import Amount, common_options
from hermetic.cli.terminal import echo_fitted, note, write_json
from hermetic.cli.weights.adapters import AdapterFolder, adapter_folders, joined, results_by_name
from hermetic.cli.weights.options import (
    allow_option,
    digest_option,
    folder_argument,
    pem_of,
    stall_option,
    threads_option,
)
from hermetic.cli.weights.progress import TransferProgress
from hermetic.errors import InputError, WeightsRefused, WeightsUnread
from hermetic.weights.adapter_configuration import RANKS

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from hermetic.weights.sealing import Trust
    from hermetic.weights.signatures import TrustedSigner
    from hermetic.weights.verification import Verified
    from hermetic.weights.workers import Progress

SCHEMA = "hermetic.dev/weights-verification/v1"
_MOST_LISTED = 20
_LEAST_SECONDS = 0.001
_KEY = re.compile(r"[0-9A-Za-z.+_-]{1,255}")


@click.command(
    "verify",
    epilog="Example: hermetic verify /mnt/models/llama-3-1-8b/fp8 --public-key platform.pub\n\n"
    "Example: hermetic verify ./phi-4 --digest sha256:9b2e...\n\n"
    "Example: hermetic verify /weights --public-key platform.pub --timeout 900 --termination-log "
    "/dev/termination-log\n\n"
    "Example: hermetic verify /weights --public-key platform.pub --adapter /adapters/sql=sha256:9b2e...",
)
@folder_argument
@click.option(
    "--public-key",
    "public_keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Key that must have signed, PEM. May be repeated: one of them.",
)
@click.option(
    "--certificate-root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Certificate that the signer's must lead to, PEM. May be repeated.",
)
@click.option(
    "--public-key-pem",
    "public_key_texts",
    multiple=True,
    metavar="PEM",
    help="A key as text, for the arguments of a container. May be repeated.",
)
@click.option(
    "--certificate-root-pem",
    "root_texts",
    multiple=True,
    metavar="PEM",
    help="Such a certificate as text. May be repeated.",
)
@digest_option("Root digest that the manifest must have (weights.integrity.digest).")
@click.option(
    "--adapter",
    "adapters",
    multiple=True,
    callback=adapter_folders,
    metavar="DIR[=DIGEST]",
    help="Folder of a LoRA adapter that is verified too, and the root digest of its manifest. May be repeated.",
)
@click.option(
    "--max-lora-rank",
    type=click.IntRange(1, RANKS[-1]),
    default=RANKS[-1],
    show_default=True,
    metavar="R",
    help="Largest rank that an adapter may have: the largest `rank` of `adapters`.",
)
@click.option(
    "--signature",
    default="",
    metavar="PATH",
    help="The bundle, as a path in DIR. Default: .hermetic/model.sig, then model.sig.",
)
@click.option(
    "--timeout", type=Amount(min=0), default=0.0, metavar="SECONDS", help="Most time for everything; 0: no limit."
)
@stall_option("Most time without an answer of the share; 0: no limit.", 120.0)
@click.option(
    "--termination-log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the result there, as JSON of at most 4096 bytes, for a kubelet.",
)
@click.option("--report-only", is_flag=True, help="End with 0 in spite of findings; they are printed all the same.")
@allow_option
@threads_option
@common_options(cluster=False)
def command(folder: Path, output: str, termination_log: Path | None, report_only: bool, **options: Any) -> int:
    """Compare a folder with its manifest, and the manifest with its signature and the pinned root digest.

    Every file is read. Ends with 1 where something is wrong, naming file, expected and found, and with 3 where not
    everything could be read. Nothing is written.
    """
    if os.getpid() == 1:
        # The first process of a container ignores SIGTERM otherwise, and a deleted pod waits for its grace period.
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    trust, adapters = _trust(options), options["adapters"]
    with TransferProgress("verified") as line:
        started = time.monotonic()
        model = _verified(folder, trust, options, 0.0, line)
        of_adapters = {
            adapter: _verified(
                adapter.folder,
                replace(trust, digest=adapter.digest),
                options,
                time.monotonic() - started,
                line,
                is_adapter=True,
            )
            for adapter in adapters
        }
    result = joined(model, of_adapters)
    if termination_log is not None:
        _leave(termination_log, result, of_adapters)
    _tell(folder, result, trust, output, of_adapters)
    if not report_only:
        _end(folder, result)
    return 0


def _verified(
    folder: Path,
    trust: Trust,
    options: dict[str, Any],
    elapsed: float,
    line: Callable[[Progress], None],
    *,
    is_adapter: bool = False,
) -> Verified:
    """The result of one folder; `elapsed`: seconds of the time limit that earlier folders took."""
    from hermetic.weights.content import Allowed, preflight
    from hermetic.weights.tree import WeightsStopped
    from hermetic.weights.verification import Verified, opened, verify
    from hermetic.weights.workers import Limits

    timeout = max(_LEAST_SECONDS, options["timeout"] - elapsed) if options["timeout"] else 0.0
    limits, allowed = Limits(timeout, options["stall"], options["threads"]), Allowed(frozenset(options["allow"]))
    names = bool(trust.digest) and not trust.wants_signature
    try:
        return verify(
            opened(folder, limits),
            trust,
            limits,
            line,
            options["signature"],
            lambda tree: preflight(
                tree, allowed, twins=False, names=names, is_adapter=is_adapter, largest_rank=options["max_lora_rank"]
            ),
        )
    except WeightsStopped as stopped:
        return Verified([stopped.finding])


def _trust(options: dict[str, Any]) -> Trust:
    """Loads what reads keys and certificates only where one is given: it is a third of the start."""
    from hermetic.weights.sealing import Trust

    keys = _keys(options) if options["public_keys"] or options["public_key_texts"] else ()
    roots = _roots(options) if options["roots"] or options["root_texts"] else ()
    if (keys or roots) and options["signature"].startswith("/"):
        raise InputError("--signature: is a path in DIR", fix="--signature model.sig")
    return Trust(keys, roots, options["digest"], datetime.now(UTC))


def _keys(options: dict[str, Any]) -> tuple[TrustedSigner, ...]:
    from hermetic.weights.signatures import public_key

    named = (public_key(str(file), pem_of(file)) for file in options["public_keys"])
    typed = (public_key(*key_file) for key_file in _texts(options, "public_key"))
    return (*named, *(replace(signer, name=f"key {signer.hint[:16]}") for signer in typed))


def _roots(options: dict[str, Any]) -> tuple[Certificate, ...]:
    from hermetic.weights.certificates import certificates

    files = ((str(file), pem_of(file)) for file in options["roots"])
    return tuple(root for root_file in (*files, *_texts(options, "root")) for root in certificates(*root_file))


def _texts(options: dict[str, Any], kind: Literal["public_key", "root"]) -> Iterator[tuple[str, bytes]]:
    """(name for errors, PEM) of the options whose value is the text."""
    option = {"public_key": "--public-key-pem", "root": "--certificate-root-pem"}[kind]
    yield from (
        (f"text {position} of {option}", text.encode()) for position, text in enumerate(options[f"{kind}_texts"], 1)
    )


def _tell(
    folder: Path, result: Verified, trust: Trust, output: str, adapters: Mapping[AdapterFolder, Verified]
) -> None:
    if output == "json":
        write_json(
            {
                **_summary(result, adapters),
                "folder": str(folder),
                "findings": [finding.as_json() for finding in result.findings],
                "omitted": result.omitted,
                "caches": _caches(folder) if result.is_right else [],
            }
        )
        return
    if result.is_right:
        for key in _caches(folder):
            note(f"compile caches for {key}")
        rate = result.bytes / 2**20 / result.seconds if result.seconds else 0
        echo_fitted(
            f"{folder}: {result.files} files, {result.bytes} bytes as listed; {result.seconds:.1f} s, {rate:.0f} MiB/s"
        )
        echo_fitted(f"digest: {result.root}")
        for adapter, verified in adapters.items():
            echo_fitted(f"adapter {adapter.name}: {verified.root}")
        if result.signer:
            echo_fitted(f"signed by {result.signer}")
        elif not trust.digest:
            note("neither key nor digest was given: this shows damage, and not who made the manifest")
    for finding in result.findings[:_MOST_LISTED]:
        echo_fitted(finding.message)
    if (more := len(result.findings) - _MOST_LISTED + result.omitted) > 0:
        echo_fitted(f"and {more} more")


def _caches(folder: Path) -> list[str]:
    """The keys of compile caches that a verified model holds, as names of their folders."""
    try:
        return sorted(path.name for path in (folder / CACHES).iterdir() if _KEY.fullmatch(path.name))
    except OSError:
        return []


def _summary(result: Verified, adapters: Mapping[AdapterFolder, Verified]) -> dict[str, Any]:
    is_unknown = bool(result.findings) and all(finding.reason.is_unknown for finding in result.findings)
    verdict = "Pass" if result.is_right else "Unknown" if is_unknown else "Fail"
    return {
        "schema": SCHEMA, "verdict": verdict, "digest": result.root, "signedBy": result.signer, "files": result.files,
        "bytes": result.bytes, "seconds": round(result.seconds, 3), **results_by_name(adapters),
    }  # fmt: skip


def _leave(file: Path, result: Verified, adapters: Mapping[AdapterFolder, Verified]) -> None:
    """Writes the termination message for the kubelet; a failed write must not hide the result."""
    from hermetic.weights.findings import termination_message

    try:
        file.write_bytes(termination_message(result.findings, _summary(result, adapters)))
    except OSError as error:
        note(f"--termination-log {file}: {error.strerror}")


def _end(folder: Path, result: Verified) -> None:
    """Raises the errors of the result."""
    if result.is_right:
        return
    kind = WeightsUnread if all(finding.reason.is_unknown for finding in result.findings) else WeightsRefused
    raise kind(result.findings, str(folder))
