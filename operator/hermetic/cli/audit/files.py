"""The input files of `hermetic audit`: policy and exceptions. Errors name the file and field; nothing is ignored."""

from __future__ import annotations

import difflib
import getpass
import hashlib
import operator
import os
import socket
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hermetic.api.kubernetes_yaml import Document, NotReadable, read_documents
from hermetic.api.times import timestamp
from hermetic.api.validation_errors import NO_SUCH_FIELD, FieldError, child_path, problems_of
from hermetic.audit.policy.declarations import Policy, Profile, never_met
from hermetic.audit.policy.exceptions import Exceptions
from hermetic.audit.result.comparison import Baseline, NotABaseline, read_baseline, same_cluster
from hermetic.audit.result.report import Run
from hermetic.controller.clock import SystemClock
from hermetic.errors import InputError, Unreachable

M = TypeVar("M", bound=BaseModel)


def read_policy(file: Path | None, profile: Profile) -> Policy:
    """The policy file with the profile of the command line; all defaults without a file. Raises InputError."""
    document = _document(file) if file is not None else Document(1, {})
    settings: dict[str, Any] = document.value
    if "profile" in settings:
        raise InputError(f"{file}: a policy file has no key `profile`", fix="use --profile sealed or filtered")
    if "attestedPrivate" in settings:
        raise InputError(f"{file}: `attestedPrivate` is not a key that is known here", fix="use --previous FILE")
    if "auditedAt" in settings:
        raise InputError(f"{file}: `auditedAt` is not a key that is known here", fix="leave it out")
    policy = _read(Policy, replace(document, value={**settings, "profile": profile}), file)
    if problem := next(never_met(policy), ""):
        raise InputError(f"{file}: {problem}", fix="docs/audit.md shows what each key takes")
    _must_be_past(policy, file, SystemClock().now())
    return policy


def _must_be_past(policy: Policy, file: Path | None, now: datetime) -> None:
    """Refuses a time in the future since which a subnet is declared private. Raises InputError."""
    for position, declaration in enumerate(policy.subnets_private_since):
        for key, moment in (("since", declaration.since), ("through", declaration.through)):
            if moment is not None and moment > now:
                raise InputError(
                    f"{file}: `subnetsPrivateSince.{position}.{key}`: {timestamp(moment)} lies in the future "
                    f"(it is {timestamp(now)} here)",
                    fix="state a moment that has passed; if it has, set the clock of this machine right",
                )


def read_exceptions(file: Path | None, checks: Collection[str]) -> Exceptions:
    """The exceptions file; none without a file. `checks` are the ids that an exception may name.

    Raises InputError.
    """
    if file is None:
        return Exceptions()
    exceptions = _read(Exceptions, _document(file), file)
    for position, exception in enumerate(exceptions.exceptions):
        if exception.check not in checks:
            near = difflib.get_close_matches(exception.check, checks, n=1)
            offer = f"; did you mean {near[0]}?" if near else ""
            raise InputError(
                f"{file}: `exceptions.{position}.check`: no check is called {exception.check!r}{offer}",
                fix="'hermetic explain' lists every check",
            )
    return exceptions


def read_earlier(file: Path, cluster: str | None) -> Baseline:
    """The earlier report of --baseline, about this cluster if that is known already. Raises InputError."""
    try:
        baseline = read_baseline(content_of(file))
    except NotABaseline as error:
        fix = "name a report that 'hermetic audit -o json' wrote"
        raise InputError(f"--baseline {file}: {error}", fix=fix) from error
    if cluster is not None:
        must_be_earlier(file, baseline, cluster)
    return baseline


def replaced_reports(files: Iterable[Path]) -> list[Baseline]:
    """The JSON reports that stand where this audit writes its own; a file that is no report is none of them."""
    reports = []
    for file in files:
        try:
            if file.is_file():  # a pipe would be waited for, and its reader waits for the report
                reports.append(read_baseline(file.read_bytes()))
        except (OSError, NotABaseline):
            continue
    return reports


def must_be_earlier(file: Path, baseline: Baseline, cluster: str) -> None:
    """Raises InputError for a report about another cluster."""
    if not same_cluster(baseline, cluster):
        raise InputError(
            f"--baseline {file}: it is about {baseline.cluster}, not {cluster}",
            fix="name an earlier report of the same cluster",
        )


def run_of(policy: Path | None, exceptions: Path | None) -> Run:
    """The operating system's name for the user of this audit, and the digests of the files that were named."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        user = f"uid {os.getuid()}"
    return Run(f"{user} on {socket.gethostname()}", digest_of(policy), digest_of(exceptions))


def digest_of(file: Path | None) -> str | None:
    """'sha256:' and the digest of a file; None without a file."""
    return None if file is None else f"sha256:{hashlib.sha256(content_of(file)).hexdigest()}"


def content_of(file: Path) -> bytes:
    """The bytes of a file given by name. Raises Unreachable, and InputError for a folder or a missing file."""
    try:
        return file.read_bytes()
    except IsADirectoryError:
        raise InputError(f"{file}: is a folder", fix="name a file") from None
    except FileNotFoundError:
        raise InputError(f"{file}: No such file or directory", fix="name a file that exists") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        problem = getattr(error, "strerror", "") or str(error)
        raise Unreachable(f"{file}: {problem}", fix="name a file that can be read") from error


def must_be_writable(files: Iterable[Path]) -> None:
    """Checks that files can be written before minutes of auditing. Raises InputError, Unreachable."""
    named_paths: set[Path] = set()
    for file in files:
        if file.name in {"", "-"} or file.is_dir():
            raise InputError(f"'{file}' is not a file", fix="-o is the format of standard output, --out names a file")
        if not file.parent.is_dir():
            raise Unreachable(f"{file}: the folder {file.parent} does not exist", fix="name a file that can be written")
        if file.absolute() in named_paths:
            raise InputError(f"{file} is named twice", fix="give each output a file of its own")
        named_paths.add(file.absolute())


def make_folder(folder: Path) -> None:
    """Make the folder where it is not there; its parent must be. Raises Unreachable."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Unreachable(f"{folder}: {error.strerror}", fix="name a folder that can be written") from error


def write_file(file: Path, text: str) -> None:
    """Writes the whole file. Raises Unreachable."""
    try:
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise Unreachable(f"{file}: {error.strerror}", fix="name a file that can be written") from error


def _document(file: Path) -> Document:
    """The only document of a file; its value is an object."""
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
    if not isinstance(documents[0].value, dict):
        raise InputError(f"{file}: holds no keys", fix="docs/audit.md shows one of each")
    return documents[0]


def _read(model: type[M], document: Document, file: Path | None) -> M:
    try:
        return model.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        problems = [
            _in_words(details, problem)
            for details, problem in zip(error.errors(), problems_of(error, model), strict=True)
        ]
        positions = [document.place(reduce(child_path, error["loc"], "")) for error in error.errors()]
        where = [
            f"{file}{'' if position is None else f':{position}'}: " if file is not None else ""
            for position in positions
        ]
        fix = "docs/audit.md shows what each key takes"
        raise InputError("; ".join(map(operator.add, where, problems)), fix=fix) from error


def _in_words(error: Any, problem: FieldError) -> str:
    field = ".".join(str(part) for part in error["loc"])
    message = problem.message.removeprefix("Value error, ").replace(NO_SUCH_FIELD, "is not a key that is known here")
    return f"`{field}`: {message}" if field else message
