"""The files of `hermetic audit`: policy and exceptions. A bad one is named with its field; nothing is ignored."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hermetic.api.kubernetes_yaml import NotReadable, read_documents
from hermetic.audit.exceptions import Exceptions
from hermetic.audit.policy import Policy, Profile, never_met
from hermetic.errors import InputError, Unreachable

M = TypeVar("M", bound=BaseModel)


def read_policy(file: Path | None, profile: Profile) -> Policy:
    """The policy file with the profile of the command line; every default without a file. Raises InputError."""
    told = _mapping(file) if file is not None else {}
    if "profile" in told:
        raise InputError(f"{file}: `profile` is no key of a policy file", fix="say --profile sealed or filtered")
    policy = _read(Policy, {**told, "profile": profile}, file)
    if problem := next(never_met(policy), ""):
        raise InputError(f"{file}: {problem}", fix="docs/audit.md shows what each key takes")
    return policy


def read_exceptions(file: Path | None, checks: Collection[str]) -> Exceptions:
    """The exceptions file; none without a file. `checks` are the ids that an exception can be about.

    Raises InputError.
    """
    if file is None:
        return Exceptions()
    found = _read(Exceptions, _mapping(file), file)
    for place, one in enumerate(found.exceptions):
        if one.check not in checks:
            near = difflib.get_close_matches(one.check, checks, n=1)
            offer = f"; did you mean {near[0]}?" if near else ""
            raise InputError(
                f"{file}: `exceptions.{place}.check`: no check is called {one.check!r}{offer}",
                fix="'hermetic explain' lists every check",
            )
    return found


def digest_of(file: Path | None) -> str | None:
    """'sha256:' and the digest of a file; None where there is none."""
    return None if file is None else f"sha256:{hashlib.sha256(content_of(file)).hexdigest()}"


def content_of(file: Path) -> bytes:
    """What stands in it. A file that was named and cannot be read is wrong input."""
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        what = getattr(error, "strerror", "") or str(error)
        raise InputError(f"{file}: {what}", fix="name a file that can be read") from error


def must_be_writable(files: Iterable[Path]) -> None:
    """What could not be written after minutes of auditing is told before. Raises InputError, Unreachable."""
    seen: set[Path] = set()
    for file in files:
        if file.name in {"", "-"} or file.is_dir():
            raise InputError(f"'{file}' is no file", fix="-o says what goes to standard output, --out names a file")
        if not file.parent.is_dir():
            raise Unreachable(f"{file}: there is no folder {file.parent}", fix="name a file that can be written")
        if file.absolute() in seen:
            raise InputError(f"{file} is named twice", fix="give each output a file of its own")
        seen.add(file.absolute())


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
        return model.model_validate(told, by_alias=True, by_name=False)
    except ValidationError as error:
        where = f"{file}: " if file is not None else ""
        fix = "docs/audit.md shows what each key takes"
        raise InputError(where + "; ".join(_in_words(one) for one in error.errors()), fix=fix) from error


def _in_words(problem: Any) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    said = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        said = "is not a key that is known here"
    return f"`{field}`: {said}" if field else said
