"""The files of `hermetic audit`: policy and exceptions. A bad one is named with its field; nothing is ignored."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hermetic.api.kubernetes_yaml import NotReadable, read_documents
from hermetic.audit.exceptions import Exceptions
from hermetic.audit.policy import Policy, Profile
from hermetic.errors import InputError, Unreachable

M = TypeVar("M", bound=BaseModel)


def read_policy(file: Path | None, profile: Profile) -> Policy:
    """The policy file with the profile of the command line; every default without a file. Raises InputError."""
    told = _mapping(file) if file is not None else {}
    if "profile" in told:
        raise InputError(f"{file}: `profile` is no key of a policy file", fix="say --profile sealed or filtered")
    return _read(Policy, {**told, "profile": profile}, file)


def read_exceptions(file: Path | None) -> Exceptions:
    """The exceptions file; none without a file. Raises InputError."""
    return _read(Exceptions, _mapping(file), file) if file is not None else Exceptions()


def digest_of(file: Path | None) -> str | None:
    """'sha256:' and the digest of a file; None where there is none."""
    return None if file is None else f"sha256:{hashlib.sha256(content_of(file)).hexdigest()}"


def content_of(file: Path) -> bytes:
    """What stands in it. A file that was named and cannot be read is wrong input."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}", fix="name a file that can be read") from error


def write_file(file: Path, text: str) -> None:
    """Write it whole. Raises Unreachable."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unreachable(f"{file}: {error.strerror}", fix="name a file that can be written") from error


def _mapping(file: Path) -> dict[str, Any]:
    try:
        documents = list(read_documents(content_of(file).decode("utf-8")))
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8: {error}") from error
    except NotReadable as error:
        raise InputError(f"{file}: is neither YAML nor JSON: {error.message}") from error
    if len(documents) != 1:
        raise InputError(f"{file}: holds {len(documents)} documents, one is wanted")
    for fault in documents[0].faults:
        raise InputError(f"{file}: {fault.place}: {fault.message}")
    value = documents[0].value
    if not isinstance(value, dict):
        raise InputError(f"{file}: holds no keys", fix="docs/audit.md shows one of each")
    return value


def _read(model: type[M], told: dict[str, Any], file: Path | None) -> M:
    try:
        return model.model_validate(told)
    except ValidationError as error:
        where = f"{file}: " if file is not None else ""
        raise InputError(where + "; ".join(_in_words(one) for one in error.errors()), fix="docs/audit.md") from error


def _in_words(problem: Any) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    said = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        said = "is not a key that is known here"
    return f"`{field}`: {said}" if field else said
