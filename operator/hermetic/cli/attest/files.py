"""Attestations and keys as files: parsed strictly, written in the forms that kubectl and other DSSE tools read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hermetic.api.kubernetes_yaml import NotReadable, dump, read_documents
from hermetic.audit.attestation.custom_resource import as_object, from_object
from hermetic.audit.attestation.refusals import as_attestation, refused
from hermetic.audit.attestation.statement import moment
from hermetic.cli.options import signing_passphrase
from hermetic.errors import InputError, KeyUnusable, Unreachable
from hermetic.signing.canonical_json import read_json
from hermetic.signing.envelope import LARGEST_FILE, Envelope, envelope_from
from hermetic.signing.faults import EnvelopeFault
from hermetic.signing.keys import PublicKey, SigningKey, TrustedKeys, read_public_key, read_signing_key, trusted

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
STANDARD_INPUT = "-"
LARGEST_REPORT = 256 * 2**20

_UNTIL = re.compile(r"(?P<file>.+)@(?P<until>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)")


def read_attestation(file: str) -> Envelope:
    """The envelope in a file ('-' is standard input): DSSE JSON, or an EgressAttestation in YAML or JSON.

    Raises Unreachable where there is no file, and AttestationRefused for invalid content.
    """
    return attestation_in(_content(file))


def attestation_in(content: bytes) -> Envelope:
    """The envelope that the content of such a file holds. Raises AttestationRefused."""
    if len(content) > LARGEST_FILE:
        raise refused(EnvelopeFault.OVERSIZED, f"{LARGEST_FILE} bytes are the most")
    if not content.strip():
        raise refused(EnvelopeFault.TRUNCATED, "the file is empty")
    with as_attestation():
        value = read_json(content, "the file") if content.lstrip()[:1] == b"{" else _yaml(content)
        return from_object(value) if isinstance(value, dict) and "kind" in value else envelope_from(value)


def write_attestation(file: Path, envelope: Envelope) -> None:
    """Writes an EgressAttestation in YAML; the bare DSSE envelope for a name in .json. Raises Unreachable."""
    content = envelope.as_bytes() if file.suffix == ".json" else dump(as_object(envelope)).encode()
    try:
        file.write_bytes(content)
    except OSError as error:
        raise Unreachable(f"{file}: {error.strerror}", fix="name a file that can be written") from error


def read_report(file: str) -> Any:
    """The JSON of an audit, parsed as strictly as a payload. Raises Unreachable and AttestationRefused."""
    content = _content(file, LARGEST_REPORT)
    if len(content) > LARGEST_REPORT:
        raise refused(EnvelopeFault.OVERSIZED, f"{file}: {LARGEST_REPORT} bytes are the most")
    with as_attestation():
        return read_json(content, file)


def read_public_keys(named: Iterable[str]) -> TrustedKeys:
    """The keys of `--public-key FILE[@NOT_AFTER]`. Raises Unreachable and KeyUnusable."""
    return trusted(_public_key(key_option) for key_option in named)


def load_signing_key(file: Path) -> SigningKey:
    """The private key of `--sign FILE`; HERMETIC_SIGNING_PASSPHRASE holds the passphrase of an encrypted one."""
    return read_signing_key(str(file), _pem(str(file)), signing_passphrase())


def _public_key(named: str) -> PublicKey:
    dated = _UNTIL.fullmatch(named)
    file, _, end = named.rpartition("@")
    if dated is None and file and not Path(named).exists() and Path(file).is_file():
        explanation = f"'{end}' is not a moment in UTC"
        raise InputError(f"--public-key {named}: {explanation}", fix=f"--public-key {file}@2026-12-31T23:59:59Z")
    if dated is None or Path(named).exists():
        return read_public_key(named, _pem(named))
    try:
        until = moment(dated["until"])
    except ValueError as error:
        raise InputError(f"--public-key {named}: {error}", fix="--public-key FILE@2026-12-31T23:59:59Z") from None
    return read_public_key(dated["file"], _pem(dated["file"]), not_after=until)


def _pem(file: str) -> str:
    try:
        return _content(file).decode("ascii")
    except UnicodeDecodeError:
        raise KeyUnusable(f"{file}: is not PEM: its bytes are not text") from None


def _content(file: str, largest: int = LARGEST_FILE) -> bytes:
    """At most `largest` + 1 bytes of a file, so that the caller notices one that is too large."""
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read(largest + 1)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(largest + 1)
    except IsADirectoryError:
        raise InputError(f"{file}: is a folder", fix="name a file; 'hermetic attest chain' takes a folder") from None
    except FileNotFoundError:
        raise InputError(f"{file}: No such file or directory", fix="name a file that exists") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        problem = getattr(error, "strerror", "") or str(error)
        raise Unreachable(f"{file}: {problem}", fix="name a file that can be read") from None


def _yaml(content: bytes) -> Any:
    try:
        documents = list(read_documents(content.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise refused(EnvelopeFault.MALFORMED, f"the file is not UTF-8: {error}") from None
    except NotReadable as error:
        raise refused(EnvelopeFault.MALFORMED, f"the file is neither JSON nor YAML: {error.message}") from None
    if len(documents) != 1:
        raise refused(EnvelopeFault.MALFORMED, f"the file holds {len(documents)} documents, not one")
    for fault in documents[0].faults:
        twice = fault.message.startswith("duplicate key")
        raise refused(
            EnvelopeFault.DUPLICATE_KEYS if twice else EnvelopeFault.MALFORMED, f"{fault.place}: {fault.message}"
        )
    return documents[0].value
