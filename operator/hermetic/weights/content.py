"""Whether a folder's content can be served, checked before it is copied and before an engine starts.

Only headers and small JSON files are read: time and memory do not depend on the size of the weights.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from hermetic.api.staged_folders import CACHES
from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.entries import NAMES, NOT_LISTED
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.listing import content_of
from hermetic.weights.names import BEGIN, LARGEST_NAMES
from hermetic.weights.safetensors_layout import wrong_with_header, wrong_with_length
from hermetic.weights.streamed_json import NotJsonError, read_configuration, read_small
from hermetic.weights.tree import EntryKind, Item, Tree, WeightsStopped

LARGEST_INDEX = 2**26
LARGEST_CONFIGURATION = 2**22
MOST_FINDINGS = 100
_CHUNK = 2**18
_INDEX_ENDING = ".index.json"
_SAFETENSORS = ".safetensors"
_CONFIGURATION = re.compile(r"config(?:\..+)?\.json|.*_config\.json", re.DOTALL)
"""Of the model, the tokenizer, the processor, an adapter and others: each may have an `auto_map`. `config.VERSION.json`
takes the place of `config.json`, which names it (`get_configuration_file` of transformers, configuration_utils.py)."""
_OF_THE_MODEL = re.compile(r"config(?:\..+)?\.json", re.DOTALL)
"""An engine does not start without it: transformers reads it as UTF-8, in which a byte order mark is no JSON, and takes
an object (`_dict_from_json_file` and `_get_config_dict`, configuration_utils.py)."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_CONFIGURATION = re.compile(r"config\..*\.json", re.DOTALL)
_MOST_READ_ONCE = 2**16
_Reader: TypeAlias = "Callable[[Tree, Item, Item, frozenset[str]], Iterator[WeightsFinding]]"
"""(tree, item, the file behind it, names that may hold code) -> findings."""
_PICKLE = (
    ".bin",
    ".pt",
    ".pt2",
    ".pth",
    ".ptl",
    ".pkl",
    ".pickle",
    ".p",
    ".pck",
    ".sav",
    ".cloudpickle",
    ".pdparams",
    ".pdopt",
    ".pth.txt",
    ".pkl.txt",
    ".pickle.txt",
    ".ckpt",
    ".joblib",
    ".dill",
    ".npy",
    ".npz",
    ".h5",
    ".hdf5",
    ".keras",
)
_CODE = (
    ".py",
    ".pyc",
    ".pyo",
    ".pyd",
    ".pyw",
    ".pyz",
    ".so",
    ".dll",
    ".dylib",
    ".exe",
    ".sh",
    ".bat",
    ".ps1",
    ".ipynb",
    ".pb",
)
_LIBRARY = ".so."
"""In the name of a library with its version, 'libx.so.1'."""
_ARCHIVE = (
    ".zip",
    ".tar",
    ".gz",
    ".tgz",
    ".tbz2",
    ".txz",
    ".bz2",
    ".xz",
    ".lzma",
    ".lz4",
    ".zst",
    ".7z",
    ".rar",
    ".nemo",
    ".mar",
    ".whl",
    ".egg",
)
_KINDS = {
    **dict.fromkeys(_PICKLE, "a pickle, or a form that may hold one"),
    **dict.fromkeys(_CODE, "code"),
    **dict.fromkeys(_ARCHIVE, "an archive"),
}


def preflight(
    tree: Tree, allowed: frozenset[str] = frozenset(), *, twins: bool = True, names: bool = True
) -> list[WeightsFinding]:
    """Findings about content that cannot be served. `allowed`: paths or names of files that may contain code.

    `twins`: also check for names that differ only in case; not needed where the files are served from. `names`: also
    for files that could take the place of `.hermetic/names.json` under the same root digest; not needed under a key.
    """
    findings: list[WeightsFinding] = []
    try:
        for finding in _findings(tree, allowed, _Twins() if twins else None, names=names):
            findings.append(finding)
            if len(findings) == MOST_FINDINGS:
                break
    except WeightsStopped as stopped:
        findings.append(stopped.finding)
    return findings


def _findings(tree: Tree, allowed: frozenset[str], twins: _Twins | None, *, names: bool) -> Iterator[WeightsFinding]:
    behind_links = _ReadOnce()
    for item in tree.walk():
        # An engine opens a link by the name of the link, whatever the file behind it is called.
        content = content_of(tree, item) if item.kind in {EntryKind.FILE, EntryKind.LINK} else None
        if content is None:
            continue
        if twins is not None and twins.has(item.path):
            yield WeightsFinding(
                WeightsReason.CASE_COLLISION, item.path, "one spelling", "a name that differs only in case or form"
            )
        if names and content is item and _holds_names(tree, item):
            what = "no names as .hermetic/names.json holds them", "names: with two files of them a digest is of both"
            yield WeightsFinding(WeightsReason.NAME_REFUSED, item.path, *what)
        if item.path.startswith(f"{CACHES}/"):
            continue  # compiled code by nature; no engine reads them unless `weights.caches` names them
        name = item.path.rpartition("/")[2]
        kind = _kind_of(name.lower())
        if kind is not None and not {item.path, name} & allowed:
            yield WeightsFinding(WeightsReason.EXECUTABLE_CONTENT, item.path, "weights, configuration or text", kind)
        reader = _reader_of(name)
        if reader is not None and (content is item or not behind_links.has(content, reader)):
            yield from reader(tree, item, content, allowed)


def _holds_names(tree: Tree, item: Item) -> bool:
    """Whether a listed file other than names.json could be listed as such, with other names for all the others."""
    if item.path == NAMES or item.path in NOT_LISTED or not len(BEGIN) <= item.size <= LARGEST_NAMES:
        return False
    descriptor = tree.open(item.path)
    try:
        return tree.read(descriptor, item.path, 0, len(BEGIN)) == BEGIN
    finally:
        os.close(descriptor)


def _kind_of(name: str) -> str | None:
    """What a file of this name, in lower case, holds that is code; None where its name says nothing of it."""
    if _LIBRARY in name:
        return "code"
    before, dot, ending = name.rpartition(".")
    longer = f".{before.rpartition('.')[2]}.{ending}"
    return _KINDS.get(f"{dot}{ending}") or (_KINDS.get(longer) if "." in before else None)


def _reader_of(name: str) -> _Reader | None:
    """What reads a file of this name for findings inside of it; None where none does."""
    if name.endswith(".safetensors"):
        return _safetensors
    if name.endswith(_INDEX_ENDING):
        return _index
    return _configuration if _CONFIGURATION.fullmatch(name) else None


def _safetensors(tree: Tree, item: Item, content: Item, _: frozenset[str]) -> Iterator[WeightsFinding]:
    descriptor = tree.open(content.path)
    try:
        length = int.from_bytes(tree.read(descriptor, item.path, 0, 8), "little")
        wrong = wrong_with_length(content.size, length)
        if wrong is None:
            wrong = wrong_with_header(content.size, length, _header(tree, descriptor, item.path, length))
    finally:
        os.close(descriptor)
    if wrong is not None:
        yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, item.path, *wrong)


def _header(tree: Tree, descriptor: int, path: str, length: int) -> Iterator[bytes]:
    at, end = 8, 8 + length
    while at < end and (chunk := tree.read(descriptor, path, at, min(_CHUNK, end - at))):
        at += len(chunk)
        yield chunk


def _index(tree: Tree, item: Item, content: Item, _: frozenset[str]) -> Iterator[WeightsFinding]:
    """Findings for shards that the index names and that are elsewhere, of another form, or not there.

    The files of an index of another form than safetensors may be left out, the index of which engines prefer.
    """
    is_safetensors = item.path.endswith(f"{_SAFETENSORS}{_INDEX_ENDING}")
    try:
        shards = _shards(read_small(tree.small(content.path, LARGEST_INDEX) or b""), needed=is_safetensors)
    except NotJsonError as error:
        yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, item.path, "an index of shards", str(error))
        return
    folder = item.path.rpartition("/")[0]
    for shard in sorted(shards):
        path = f"{folder}/{shard}" if folder else shard
        if "/" in shard or "\0" in shard or shard in {"", ".", ".."}:
            yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, item.path, "names of files beside it", shard[:200])
        elif is_safetensors and not shard.endswith(_SAFETENSORS):
            yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, item.path, "names of safetensors files", shard[:200])
        elif is_safetensors and tree.lstat(path) is None:
            yield WeightsFinding(WeightsReason.SHARD_MISSING, path, f"a file, by {item.path}", "none")


def _shards(index: Any, *, needed: bool) -> set[str]:
    match index:
        case {"weight_map": dict(weight_map)} if all(isinstance(shard, str) for shard in weight_map.values()):
            return set(weight_map.values())
        case {"weight_map": _}:
            pass
        case _ if not needed:
            return set()
    raise NotJsonError("it has no weight_map from tensors to files")


def _configuration(tree: Tree, item: Item, content: Item, allowed: frozenset[str]) -> Iterator[WeightsFinding]:
    written = tree.small(content.path, LARGEST_CONFIGURATION) or b""
    try:
        held = read_configuration(written)
    except NotJsonError as error:
        yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, item.path, "JSON", str(error))
        return
    if _OF_THE_MODEL.fullmatch(item.path.rpartition("/")[2]):
        if written.startswith(_BYTE_ORDER_MARK):
            what = "UTF-8 without a byte order mark, as engines read it", "a byte order mark"
            yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, item.path, *what)
        if not isinstance(held, dict):
            found = "a list" if isinstance(held, list) else "a single value"
            yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, item.path, "a JSON object", found)
    for named in _other_configurations(held):
        yield WeightsFinding(
            WeightsReason.CONFIGURATION_INVALID, item.path, "configuration_files: config.VERSION.json", named[:200]
        )
    for named in sorted(_remote_code(held)):
        if "--" in named:
            yield WeightsFinding(
                WeightsReason.REMOTE_CODE_ELSEWHERE, item.path, "code in this folder", f"auto_map: {named}"
            )
        elif f"{named.partition('.')[0]}.py" not in allowed:
            yield WeightsFinding(
                WeightsReason.REMOTE_CODE, item.path, "a model that the engine knows", f"auto_map: {named}"
            )


def _other_configurations(held: Any) -> Iterator[str]:
    """The files named to take the place of `config.json` that are not read here as configurations."""
    named = held.get("configuration_files") if isinstance(held, dict) else None
    for each in named if isinstance(named, list) else ():
        is_taken = isinstance(each, str) and _OTHER_CONFIGURATION.search(each) is not None
        if is_taken and ("/" in each or _CONFIGURATION.fullmatch(each) is None):
            yield each


def _remote_code(held: Any) -> set[str]:
    """The files that the auto_map of a configuration, or of a part of it, names."""
    found: set[str] = set()
    waiting = [held]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            found |= set(_texts(value.get("auto_map")))
            waiting.extend(value.values())
    return found


def _texts(value: Any) -> Iterator[str]:
    """Texts in nested lists and objects; the JSON reader limits the depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


class _ReadOnce:
    """Which files behind links were read, so that many links to one large file cost little.

    What is inside of an index depends on the folder that it is in, so an index is read for each link.
    """

    def __init__(self) -> None:
        self._read: set[tuple[str, _Reader]] = set()

    def has(self, content: Item, reader: _Reader) -> bool:
        """Whether it was read by this reader already; it counts as read from now on."""
        key = content.path, reader
        if reader is _index or key not in self._read:
            if len(self._read) < _MOST_READ_ONCE:
                self._read.add(key)
            return False
        return True


class _Twins:
    """Finds names that are equal to a file system that ignores case or Unicode normalisation.

    A walk visits each folder once, so only the folders on the path of the current file are kept.
    """

    def __init__(self) -> None:
        self._folders: list[str] = []
        self._seen: list[set[int]] = [set()]

    def has(self, path: str) -> bool:
        """Whether another name in the same folder, or beside one of its parent folders, is equal in that sense."""
        *folders, name = path.split("/")
        common = 0
        while common < min(len(folders), len(self._folders)) and folders[common] == self._folders[common]:
            common += 1
        del self._folders[common:], self._seen[common + 1 :]
        is_twin = False
        for folder in folders[common:]:
            is_twin = self._is_twin(folder) or is_twin
            self._folders.append(folder)
            self._seen.append(set())
        return self._is_twin(name) or is_twin

    def _is_twin(self, name: str) -> bool:
        form = hash(unicodedata.normalize("NFC", name).casefold())
        if form in self._seen[-1]:
            return True
        self._seen[-1].add(form)
        return False
