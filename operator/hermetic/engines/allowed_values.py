"""Rules for values of variables and arguments: no address to call, and no file outside the allowed folders.

Everything here is linear in the length of the text.
"""

from __future__ import annotations

import itertools
import json
import posixpath
import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

from hermetic.engines.allow_list import Paths
from hermetic.engines.argument_values import shown
from hermetic.engines.launch import TLS

# Folders that the pod may write to, for any engine.
SCRATCH = ("/tmp", "/dev/shm", "/home/hermetic", "/opt/nim/.cache")  # noqa: S108 - emptyDirs of the pod's own
# Never allowed in settings: credentials, the kernel, devices.
NEVER = (TLS, "/proc", "/sys", "/dev", "/run", "/var/run")
# The path prefixes for which vLLM requires its API key (entrypoints/serve/middleware/authenticate.py of 0.32.0).
GUARDED = ("/v1", "/v2", "/inference", "/cohere")
# Operators of a chat template that is written out in the argument.
_OPERATORS = ("/", "//", "~")
# No separator of a path or an address, and at most two dots, so no IPv4 address.
_HARMLESS = re.compile(r"[^/:~.]*(?:\.[^/:~.]*){0,2}")
MOST_SUSPECTS = 64
_PATH = re.compile(r"/|~[^/]*/")
_BETWEEN = re.compile(r"[\s,;|\"'=\[\]{}()]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_OTHER_SCHEMES = ("az:", "file:", "ftp:", "gs:", "hf:", "http:", "https:", "ngc:", "s3:")
# No underscore: 'max_split_size_mb:128' and 'mlx5_0:1' are settings. One digit is no port: 'cuda:1' is a device.
_NUMBERS = re.compile(r"[0-9A-Fa-f.:]+")
# A name on the Hugging Face Hub: owner and repository.
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")
_TAKEN_FOR_A_MODEL = (
    "'{}', which the engine takes for a model to fetch or a class to import: stage that model in a folder below this "
    "one, or in the image, and give its absolute path, for example '/weights/draft'"
)
_HOST_AND_PORT = re.compile(r"(?=[0-9.-]*[A-Za-z.])[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{2,5}(?:/.*)?")


def objection(
    value: str, paths: Paths, weights: tuple[str, ...], *, quoted: bool = True, keywords: tuple[str, ...] = ()
) -> str:
    """What is wrong with the value, as a clause; "" when nothing is. `weights` are the folders of the model.

    `keywords` are values that a message offers beside a folder. Unless `quoted`, the clause contains nothing of the
    value.
    """
    if "://" in value:
        return "holds a URL, and nothing may be fetched in a sealed cluster: stage the file and give its path"
    suspects = list(itertools.islice(_suspects(value), MOST_SUSPECTS + 1))
    if len(suspects) > MOST_SUSPECTS:
        return (
            f"has more than {MOST_SUSPECTS} parts that could be paths or addresses: nothing that it is for needs them"
        )
    for word in suspects:
        if problem := _address(word) or _misplaced(word, paths, weights):
            part = f"'{shown(word)}'" if quoted else "a part"
            return f"holds {part}, {problem}"
    return _wrong_name(value, paths, suspects, keywords)


def _wrong_name(value: str, paths: Paths, suspects: list[str], keywords: tuple[str, ...]) -> str:
    """What is wrong with a model, an adapter or a prefix that the value names; "" for other kinds of values."""
    match paths:
        case "model":
            return _no_model_folder(value, keywords)
        case "overrides":
            repositories = (word for word in suspects if _REPOSITORY.fullmatch(word))
            return next((f"holds {_TAKEN_FOR_A_MODEL.format(shown(word))}" for word in repositories), "")
        case "adapter":
            return next((wrong for folder in _adapter_folders(value) if (wrong := _no_adapter_folder(folder))), "")
        case "prefix":
            return _no_prefix(value)
    return ""


def object_of(value: str) -> dict[str, Any] | None:
    """The JSON object that the value is, or None."""
    parsed = _parsed(value)
    return parsed if isinstance(parsed, dict) else None


def keys_in(value: str) -> Iterator[str]:
    """Every key of the objects in a JSON value, at any depth; none of a value that is no JSON."""
    pending = [_parsed(value)]
    while pending:
        value_part = pending.pop()
        if isinstance(value_part, dict):
            yield from value_part
            pending += value_part.values()
        elif isinstance(value_part, list):
            pending += value_part


def _no_model_folder(value: str, keywords: tuple[str, ...]) -> str:
    if value.startswith("/"):
        return ""
    alternatives = f", or give {' or '.join(keywords)}" if keywords else ""
    return f"has the value {_TAKEN_FOR_A_MODEL.format(shown(value))}{alternatives}"


def _adapter_folders(value: str) -> Iterator[str]:
    """The folders of adapters in '{MODALITY: FOLDER}', or the folder of one modality."""
    folders = object_of(value)
    yield from (value,) if folders is None else map(str, folders.values())


def _no_adapter_folder(folder: str) -> str:
    if folder.startswith("/"):
        return ""
    return (
        f"names '{shown(folder)}', which the engine takes for an adapter to fetch: stage the adapter in a folder below "
        "the model, and give its absolute path, for example '/weights/adapters/audio'"
    )


def _no_prefix(value: str) -> str:
    if not value or not any(guarded.startswith(value) or value.startswith(guarded) for guarded in GUARDED):
        return ""
    return (
        f"has the value '{shown(value)}', with which vLLM would serve its paths without asking for the key: give "
        f"a path that neither begins with {', '.join(GUARDED)} nor is the beginning of one of them"
    )


def _suspects(value: str) -> Iterator[str]:
    """The parts of a value that could be an address or a path, those inside JSON and its escapes as well."""
    parsed = _parsed(value)
    for text in (value,) if parsed is None else _texts(parsed):
        if not _HARMLESS.fullmatch(text):
            yield from (word for word in _BETWEEN.split(text) if not _HARMLESS.fullmatch(word))


def _parsed(value: str) -> Any:
    if not value.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _texts(parsed: Any) -> Iterator[str]:
    pending = [parsed]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            pending += part
        elif isinstance(part, str):
            yield part


def _address(word: str) -> str:
    if _SCHEME.match(word) or word.lower().startswith(_OTHER_SCHEMES) or (word.startswith("//") and word != "//"):
        return "which is a URL, and nothing may be fetched in a sealed cluster"
    if _HOST_AND_PORT.fullmatch(word) or _is_address(word):
        return "which is an address, and the engine calls nothing"
    return ""


def _is_address(word: str) -> bool:
    if len(word) > 64 or not _NUMBERS.fullmatch(word):
        return False
    try:
        ip_address(word)
    except ValueError:
        return False
    return "." in word or ":" in word


def _misplaced(word: str, paths: Paths, weights: tuple[str, ...]) -> str:
    if paths in ("url", "prefix"):
        return ""
    if ".." in word.split("/"):
        return "and a path here must not contain '..': give the path without it"
    if paths == "data" and word in _OPERATORS:
        return ""
    # Where an image starts its engine in '/', 'weights/x' is '/weights/x'.
    is_relative = paths == "image" and "/" in word and not _PATH.match(word)
    if is_relative and not _allowed_path(posixpath.normpath(f"/{word}"), paths, weights):
        return f"which is a path: {_PLACES[paths]}"
    for path in word.split(":") if _PATH.match(word) else ():
        if not _allowed_path(posixpath.normpath(path or "."), paths, weights):
            return f"which is a path: {_PLACES[paths]}"
    return ""


_PLACES: dict[Paths, str] = {
    "none": "no file is read by this name; remove the path",
    "overrides": "only a folder of the model or of the serving image may be named here",
    "image": "only files of the serving image may be named here, because code comes in the image only",
    "data": "only files of the model or of the serving image may be named here",
    "model": "only a folder of the model or of the serving image may be named here",
    "adapter": "only a folder of the model or of the serving image may be named here",
    "scratch": f"only a folder below {', '.join(SCRATCH)} may be named here",
}


def _allowed_path(path: str, paths: Paths, weights: tuple[str, ...]) -> bool:
    if not path.startswith("/") or path == "/" or (_below(path, NEVER) and not _below(path, SCRATCH)):
        return False
    if paths == "image":
        return not _below(path, weights) and not _below(path, SCRATCH)
    if paths == "scratch":
        return _below(path, SCRATCH)
    return paths in ("data", "model", "adapter", "overrides")


def _below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)
