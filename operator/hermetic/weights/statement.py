"""The in-toto statement of Model Signing v1.0, written and read as a stream of entries."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hermetic.weights.entries import (
    FILES,
    LARGEST_SHARD,
    MAY_BE_IGNORED,
    NAMES,
    SHARDS,
    Entry,
    Key,
    Serialization,
    entry,
    key_of,
    position_of,
)
from hermetic.weights.streamed_json import JsonStream, NotJsonError

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://model_signing/signature/v1.0"
MOST_ENTRIES = 8_000_000
_NAMES_PLACE = key_of(NAMES), 0
_ALGORITHM = re.compile(r"sha256(?:-sharded-[0-9]{1,15})?")


@dataclass(slots=True)
class Header:
    """The content of a statement except its entries. `root` is computed from them."""

    name: str = ""
    root: str = ""
    serialization: Serialization = field(default_factory=Serialization)
    entries: int = 0
    is_ordered: bool = True
    names_entry: Entry | None = None


class StatementWriter:
    """Writes a statement in pieces. Entries must come in order; the root digest is known after the last one."""

    def __init__(self, name: str, serialization: Serialization) -> None:
        self._name = name
        self._serialization = serialization
        self._root = hashlib.sha256()
        self._entries = 0
        # the Model Signing library names the SHA-256 of a range by the size of the ranges
        sharded = serialization.method == SHARDS
        self._algorithm = f"sha256-sharded-{serialization.shard_size}" if sharded else "sha256"

    @property
    def root(self) -> str:
        """The root digest of the entries so far."""
        return f"sha256:{self._root.hexdigest()}"

    def begin(self) -> bytes:
        """The bytes before the entries."""
        parameters = json.dumps(_parameters(self._serialization))
        text = f'{{"_type":"{STATEMENT_TYPE}","predicateType":"{PREDICATE_TYPE}",'
        return f'{text}"predicate":{{"serialization":{parameters},"resources":['.encode()

    def add(self, entries: Iterable[Entry]) -> bytes:
        """The bytes of the next entries."""
        lines = []
        for listed in entries:
            self._root.update(listed.digest)
            lines.append(_resource(listed, self._algorithm))
        text = ",".join(lines)
        if lines and self._entries:
            text = f",{text}"
        self._entries += len(lines)
        return text.encode()

    def end(self) -> bytes:
        """The bytes after the entries."""
        subject = json.dumps([{"name": self._name, "digest": {"sha256": self._root.hexdigest()}}])
        return f']}},"subject":{subject}}}\n'.encode()


def _resource(listed: Entry, algorithm: str) -> str:
    return f'\n{{"name":{json.dumps(listed.name)},"algorithm":"{algorithm}","digest":"{listed.digest.hex()}"}}'


def _parameters(serialization: Serialization) -> dict[str, Any]:
    parameters: dict[str, Any] = {"method": serialization.method, "hash_type": "sha256"}
    if serialization.method == SHARDS:
        parameters["shard_size"] = serialization.shard_size
    parameters["allow_symlinks"] = serialization.allow_symlinks
    if serialization.ignore_paths:
        parameters["ignore_paths"] = list(serialization.ignore_paths)
    return parameters


def read_header(chunks: Iterable[bytes]) -> Header:
    """Reads a whole statement; of the entries only count, order, root digest and that of NAMES are kept.

    Raises NotJsonError where it is no statement of this kind, or its root digest is not that of its entries.
    """
    header = Header()
    root = hashlib.sha256()
    orders = {method: _Order(method) for method in (FILES, SHARDS)}  # which one counts may come last
    stated_root = ""
    for kind, value in _walked(chunks):
        if kind == "subject":
            header.name, stated_root = _subject(value)
        elif kind == "serialization":
            header.serialization = _serialization(value)
        else:
            digest = _digest(value)
            root.update(digest)
            header.entries += 1
            for order in orders.values():
                order.add(value["name"], digest)
    order = orders[header.serialization.method]
    header.is_ordered, header.names_entry = order.is_ordered, order.names_entry
    header.root = f"sha256:{root.hexdigest()}"
    if header.entries == 0:
        raise NotJsonError("it lists no file")
    if stated_root != header.root:
        raise NotJsonError(f"its root digest is {stated_root}, and its entries come to {header.root}")
    return header


class _Order:
    """Whether the entries of a statement are in order if it is one by this method, and its first entry of NAMES."""

    def __init__(self, method: str) -> None:
        self.is_ordered = True
        self.names_entry: Entry | None = None
        self._method = method
        self._previous: tuple[Key, int] = ((), -1)

    def add(self, name: str, digest: bytes) -> None:
        """The next entry."""
        position = position_of(name, self._method)
        self.is_ordered = self.is_ordered and position > self._previous
        self._previous = position
        if position == _NAMES_PLACE:
            self.names_entry = Entry(NAMES, 0, -1, digest)


def read_entries(chunks: Iterable[bytes], method: str) -> Iterator[Entry]:
    """The entries of a statement whose header was read. Raises NotJsonError."""
    for kind, value in _walked(chunks):
        if kind == "resource":
            try:
                yield entry(value["name"], _digest(value), method)
            except ValueError as error:
                raise NotJsonError(str(error)) from None


def _walked(chunks: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """("subject", value), ("serialization", value), and ("resource", value) for each, in the order of the stream."""
    stream = JsonStream(chunks)
    present_keys: set[str] = set()
    for key in stream.keys():  # noqa: SIM118 - no dictionary
        if key == "predicate":
            yield from _predicate(stream, present_keys)
            continue
        value = stream.value()
        present_keys.add(key)
        if key == "_type" and value != STATEMENT_TYPE:
            raise NotJsonError(f"it is not an in-toto statement v1, but {str(value)[:100]}")
        if key == "predicateType" and value != PREDICATE_TYPE:
            raise NotJsonError(f"it is a statement about something else: {str(value)[:100]}")
        if key == "subject":
            yield key, value
    stream.finish()
    if missing := {"_type", "subject", "predicateType", "serialization", "resources"} - present_keys:
        raise NotJsonError(f"it has no '{min(missing)}'")


def _predicate(stream: JsonStream, present_keys: set[str]) -> Iterator[tuple[str, Any]]:
    count = 0
    for key in stream.keys():  # noqa: SIM118 - no dictionary
        present_keys.add(key)
        if key != "resources":
            value = stream.value()
            if key == "serialization":
                yield key, value
            continue
        for resource in stream.items():
            match resource:
                case {"name": str(), "algorithm": str(algorithm), "digest": str(), **other_fields} if not other_fields:
                    if not _ALGORITHM.fullmatch(algorithm):
                        raise NotJsonError(f"an entry has a digest by {algorithm[:64]!r}; SHA-256 is known")
                    yield "resource", resource
                case _:
                    raise NotJsonError("an entry is not exactly a name, an algorithm and a digest")
            count += 1
            if count > MOST_ENTRIES:
                raise NotJsonError(f"it has more than {MOST_ENTRIES} entries")


def _digest(resource: dict[str, str]) -> bytes:
    text = resource["digest"]
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size or len(text) != 2 * len(digest):
        raise NotJsonError(f"the digest of {resource['name'][:200]!r} is not the SHA-256 in hexadecimal")
    return digest


def _subject(value: Any) -> tuple[str, str]:
    match value:
        case [{"name": str(name), "digest": {"sha256": str(digest)}}]:
            return name, f"sha256:{digest}"
    raise NotJsonError("its subject is not one name with one SHA-256")


def _serialization(value: Any) -> Serialization:
    """The library writes integers as fractions (1000000000.0), which are accepted as integers."""
    match value:
        case {"method": str(method), "hash_type": "sha256", "allow_symlinks": bool(links), **other_fields}:
            size: Any = other_fields.pop("shard_size", 0 if method == FILES else None)
            ignored: Any = other_fields.pop("ignore_paths", [])
            is_valid_size = isinstance(size, int | float) and 0 <= size <= LARGEST_SHARD and size == int(size)
            if (
                method in {FILES, SHARDS}
                and is_valid_size
                and isinstance(ignored, list)
                and (method == FILES or size > 0)
            ):
                return Serialization(method, int(size), links, _ignored(ignored))
    raise NotJsonError("its serialization is unknown: method 'files' or 'shards', with SHA-256")


def _ignored(paths: list[Any]) -> tuple[str, ...]:
    """Paths left out are not verified, so only paths that no engine reads are accepted."""
    for path in paths:
        if not isinstance(path, str) or path not in MAY_BE_IGNORED:
            raise NotJsonError(f"it leaves out {str(path)[:100]!r}, and what is left out is not verified")
    return tuple(paths)
