"""Whether a folder's content can be served, checked before it is copied and before an engine starts.

Only headers and small JSON files are read: time and memory do not depend on the size of the weights.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hermetic.api.staged_folders import CACHES
from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.adapter_configuration import CONFIGURATION as ADAPTER
from hermetic.weights.adapter_configuration import RANKS, problems_of_adapter
from hermetic.weights.entries import FACTS, NAMES, NOT_LISTED
from hermetic.weights.executable_names import kind_of_code
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.gguf_layout import wrong_with_gguf
from hermetic.weights.json_syntax import wrong_with_json
from hermetic.weights.listing import content_of
from hermetic.weights.model_layout import WEIGHTS, ModelLayout, cache_root
from hermetic.weights.names import BEGIN, LARGEST_NAMES
from hermetic.weights.opened import OpenedFile
from hermetic.weights.refused_files import MOST_SCANNED, Twins, credential_in, impostor
from hermetic.weights.remote_code import ModelClasses, classes_beside, configuration_in, content_at, named_code
from hermetic.weights.safetensors_layout import wrong_with_header, wrong_with_length
from hermetic.weights.selection import DOWNLOAD_TOOL, is_credential
from hermetic.weights.shards import Shards
from hermetic.weights.streamed_json import NotJsonError, read_configuration, read_small
from hermetic.weights.templates import templates_in, wrong_with_template, wrong_with_template_file
from hermetic.weights.tokenizer_layout import is_tokenizer_json, wrong_with_tokenizer
from hermetic.weights.tree import EntryKind, Item, Tree, WeightsStopped

LARGEST_INDEX = 2**26
LARGEST_CONFIGURATION = 2**22
MOST_FINDINGS = 100
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
_LARGEST_SINGLE_VALUE = 2**16
_OWN = NOT_LISTED | {NAMES, FACTS}
_ARIA2, _PARTIAL = ".aria2", frozenset({".incomplete", ".part", ".partial", ".crdownload"})


@dataclass(slots=True)
class Allowed:
    """Files that may hold code, by path or name. `used`: those without which there would be findings."""

    names: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)

    def has(self, *names: str) -> bool:
        """Whether one of these names of a file is allowed."""
        matching = self.names & {*names}
        self.used |= matching
        return bool(matching)


def preflight(
    tree: Tree,
    allowed: Allowed | None = None,
    *,
    twins: bool = True,
    names: bool = True,
    is_adapter: bool = False,
    largest_rank: int = RANKS[-1],
) -> list[WeightsFinding]:
    """Findings about content that cannot be served. `allowed`: files that may hold code.

    `twins`: also check for names that differ only in case; not needed where the files are served from. `names`: also
    for files that could take the place of `.hermetic/names.json` under the same root digest; not needed under a key.
    `is_adapter`: an engine loads the folder as an adapter, whatever else is in it. `largest_rank`: that such
    an engine loads.
    """
    check = _ContentCheck(
        tree,
        allowed or Allowed(),
        Twins() if twins else None,
        names=names,
        is_adapter=is_adapter,
        largest_rank=largest_rank,
    )
    findings: list[WeightsFinding] = []
    try:
        for finding in check.findings():
            findings.append(finding)
            if len(findings) == MOST_FINDINGS:
                break
    except WeightsStopped as stopped:
        findings.append(stopped.finding)
    return findings


class _ContentCheck:
    """One check of a folder, and what is known of it as a whole."""

    def __init__(
        self,
        tree: Tree,
        allowed: Allowed,
        twins: Twins | None,
        *,
        names: bool,
        is_adapter: bool,
        largest_rank: int,
    ) -> None:
        self._tree, self._allowed, self._twins, self._names = tree, allowed, twins, names
        self._is_adapter, self._largest_rank = is_adapter, largest_rank
        self._behind_links = _ReadOnce()
        self._layout, self._shards = ModelLayout(), Shards()
        self._classes: tuple[str, ModelClasses] | None = None

    def findings(self) -> Iterator[WeightsFinding]:
        """Of the folder, of each file, then of the files together."""
        if (finding := cache_root(self._tree)) is not None:
            yield finding
            return
        for item in self._tree.walk():
            # An engine opens a link by the name of the link, whatever the file behind it is called.
            content = content_of(self._tree, item) if item.kind in {EntryKind.FILE, EntryKind.LINK} else None
            if content is None:
                continue
            yield from self._of_names(item, content)
            # Compile caches are code by nature, and read only if the spec names them.
            if not item.path.startswith(f"{CACHES}/") and item.path not in _OWN:
                yield from self._of_file(item, content)
        yield from self._incomplete()
        yield from self._shards.findings()
        if self._is_adapter or self._layout.is_adapter:
            yield from self._of_adapter()
        if (finding := self._layout.finding()) is not None:
            yield finding

    def _of_names(self, item: Item, content: Item) -> Iterator[WeightsFinding]:
        if self._twins is not None and self._twins.has(item.path):
            yield WeightsFinding(
                WeightsReason.CASE_COLLISION, item.path, "one spelling", "a name that differs only in case or form"
            )
        if self._names and content is item and _holds_names(self._tree, item):
            details = "no names as .hermetic/names.json holds them", "names: with two files of them a digest is of both"
            yield WeightsFinding(WeightsReason.NAME_REFUSED, item.path, *details)

    def _of_file(self, item: Item, content: Item) -> Iterator[WeightsFinding]:
        self._layout.add(item.path)
        self._shards.add(item.path)
        if is_credential(item.path):
            yield WeightsFinding(WeightsReason.CREDENTIAL, item.path, "no credentials", "a file of them, by its name")
        name = item.path.rpartition("/")[2]
        kind = kind_of_code(name.lower())
        if kind is not None and not self._allowed.has(item.path, name):
            yield WeightsFinding(WeightsReason.EXECUTABLE_CONTENT, item.path, "weights, configuration or text", kind)
        reader = _reader_of(name)
        if content is not item and self._behind_links.has(content, reader):
            return
        with OpenedFile(self._tree, item.path, content) as file:
            finding = impostor(file) or _credential(file)
            if finding is not None:
                yield finding
            elif reader is not None:
                yield from reader(self, file)

    def _incomplete(self) -> Iterator[WeightsFinding]:
        """Files beside which a download tool keeps its own: aria2 until the end, others in place of the file."""
        left_out = dict(self._tree.selection.recorded()) if self._tree.selection is not None else {}
        for path, reason in left_out.items():
            complete, dot, ending = path.rpartition(".")
            if reason != DOWNLOAD_TOOL or f"{dot}{ending}".casefold() not in {_ARIA2, *_PARTIAL}:
                continue
            is_there = self._tree.lstat(complete) is not None
            if is_there == (ending.casefold() == _ARIA2[1:]):
                partial_name = path.rpartition("/")[2][:200]
                yield WeightsFinding(WeightsReason.DOWNLOAD_INCOMPLETE, complete, "a complete file", partial_name)

    def _of_adapter(self) -> Iterator[WeightsFinding]:
        """Why no engine loads the folder as an adapter. Other findings tell of a file that is no JSON or too large."""
        if self._tree.lstat(ADAPTER) is None:
            yield WeightsFinding(WeightsReason.ADAPTER_UNSUPPORTED, ADAPTER, "the configuration of an adapter", "none")
            return
        content = content_at(self._tree, "", ADAPTER)
        configuration = configuration_in(content)
        if content is not None and configuration is not None:
            yield from _wrong_with_model_configuration(ADAPTER, content, configuration)
        problems = [*problems_of_adapter(configuration, self._largest_rank)] if isinstance(configuration, dict) else []
        if problems and not self._allowed.has(ADAPTER):
            for problem in problems:
                yield WeightsFinding(WeightsReason.ADAPTER_UNSUPPORTED, ADAPTER, *problem)

    def safetensors(self, file: OpenedFile) -> Iterator[WeightsFinding]:
        """Whether its header fits it; its tensors are remembered for the index."""
        length = int.from_bytes(file.head[:8], "little")
        names: list[str] = []
        wrong = wrong_with_length(file.size, length)
        if wrong is None:
            wrong = wrong_with_header(file.size, length, file.chunks(8, 8 + length), names.append)
        if wrong is not None:
            yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, file.path, *wrong)
        else:
            self._shards.add_tensors(file.path, names)

    def gguf(self, file: OpenedFile) -> Iterator[WeightsFinding]:
        """Whether its header fits it."""
        if (wrong := wrong_with_gguf(file)) is not None:
            yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, file.path, *wrong)

    def index(self, file: OpenedFile) -> Iterator[WeightsFinding]:
        """Findings for shards that the index names and that are elsewhere, of another form, or not there.

        The files of an index of another form than safetensors may be left out, the index of which engines prefer.
        """
        is_safetensors = file.path.endswith(f"{_SAFETENSORS}{_INDEX_ENDING}")
        try:
            weight_map = _weight_map(read_small(_whole(file, LARGEST_INDEX)), needed=is_safetensors)
        except NotJsonError as error:
            self._shards.add_unread_index(file.path)
            yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, file.path, "an index of shards", str(error))
            return
        folder = file.path.rpartition("/")[0]
        for shard in sorted({*weight_map.values()}):
            path = f"{folder}/{shard}" if folder else shard
            if "/" in shard or "\0" in shard or shard in {"", ".", ".."}:
                self._shards.add_unread_index(file.path)
                yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, file.path, "names of files beside it", shard[:200])
            elif is_safetensors and not shard.endswith(_SAFETENSORS):
                details = "names of safetensors files", shard[:200]
                self._shards.add_unread_index(file.path)
                yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, file.path, *details)
            elif is_safetensors and self._tree.lstat(path) is None:
                yield WeightsFinding(WeightsReason.SHARD_MISSING, path, f"a file, by {file.path}", "none")
        if is_safetensors:
            self._shards.add_index(file.path, weight_map)

    def configuration(self, file: OpenedFile) -> Iterator[WeightsFinding]:
        """Whether it is JSON that an engine reads, its chat template one, and its code known to engines."""
        written = _whole(file, LARGEST_CONFIGURATION)
        try:
            configuration = read_configuration(written)
        except NotJsonError as error:
            yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, file.path, "JSON", str(error))
            return
        if _OF_THE_MODEL.fullmatch(file.name):
            yield from _wrong_with_model_configuration(file.path, written, configuration)
        for other in _other_configurations(configuration):
            details = "configuration_files: config.VERSION.json", other[:200]
            yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, file.path, *details)
        for template in templates_in(configuration):
            if (wrong := wrong_with_template(template)) is not None:
                yield WeightsFinding(WeightsReason.TEMPLATE_INVALID, file.path, *wrong)
        yield from self._code(file.path, configuration)

    def _code(self, path: str, configuration: Any) -> Iterator[WeightsFinding]:
        if "auto_map" not in json.dumps(configuration):
            return
        folder = path.rpartition("/")[0]
        if self._classes is None or self._classes[0] != folder:
            self._classes = folder, classes_beside(self._tree, folder)
        for code in sorted(named_code(configuration, self._classes[1])):
            elsewhere, _, own = code.rpartition("--")
            if not self._allowed.has(f"{own.partition('.')[0]}.py"):
                reason = WeightsReason.REMOTE_CODE_ELSEWHERE if elsewhere else WeightsReason.REMOTE_CODE
                yield WeightsFinding(reason, path, "a model that the engine knows", f"auto_map: {code}")

    def text_form(self, file: OpenedFile) -> Iterator[WeightsFinding]:
        """Whether a tokenizer, a template or any other JSON is complete."""
        if (wrong := wrong_with_tokenizer(file)) is not None:
            yield WeightsFinding(WeightsReason.TOKENIZER_INVALID, file.path, *wrong)
        elif (wrong := wrong_with_template_file(file)) is not None:
            yield WeightsFinding(WeightsReason.TEMPLATE_INVALID, file.path, *wrong)
        elif (why := _wrong_with_other_json(file)) is not None:
            yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, file.path, "JSON", why)


_Reader: TypeAlias = "Callable[[_ContentCheck, OpenedFile], Iterator[WeightsFinding]]"


def _holds_names(tree: Tree, item: Item) -> bool:
    """Whether a listed file other than names.json could be listed as such, with other names for all the others."""
    if item.path == NAMES or item.path in NOT_LISTED or not len(BEGIN) <= item.size <= LARGEST_NAMES:
        return False
    descriptor = tree.open(item.path)
    try:
        return tree.read(descriptor, item.path, 0, len(BEGIN)) == BEGIN
    finally:
        os.close(descriptor)


def _reader_of(name: str) -> _Reader:
    """What reads a file of this name for findings inside of it."""
    if name.endswith(_SAFETENSORS):
        return _ContentCheck.safetensors
    if name.endswith(".gguf"):
        return _ContentCheck.gguf
    if name.endswith(_INDEX_ENDING):
        return _ContentCheck.index
    return _ContentCheck.configuration if _CONFIGURATION.fullmatch(name) else _ContentCheck.text_form


def _credential(file: OpenedFile) -> WeightsFinding | None:
    is_data = file.size > MOST_SCANNED or file.name.casefold().endswith(WEIGHTS)
    if is_data or (kind := credential_in(file.bytes_at(0, file.size))) is None:
        return None
    return WeightsFinding(WeightsReason.CREDENTIAL, file.path, "no credentials", kind)


def _whole(file: OpenedFile, largest: int) -> bytes:
    if file.size > largest:
        details = f"at most {largest} bytes", f"{file.size} bytes"
        raise WeightsStopped(WeightsFinding(WeightsReason.TOO_MUCH, file.path, *details))
    return file.bytes_at(0, file.size)


def _wrong_with_other_json(file: OpenedFile) -> str | None:
    if not file.name.casefold().endswith(".json") or is_tokenizer_json(file.name):
        return None
    wrong = wrong_with_json(file.chunks())
    return None if wrong is None or _is_single_value(file) else wrong


def _is_single_value(file: OpenedFile) -> bool:
    """Whether a small file is JSON without an object or a list."""
    try:
        return file.size < _LARGEST_SINGLE_VALUE and not isinstance(
            read_configuration(file.bytes_at(0, file.size)), dict | list
        )
    except NotJsonError:
        return False


def _weight_map(index: Any, *, needed: bool) -> dict[str, str]:
    match index:
        case {"weight_map": dict(weight_map)} if all(isinstance(shard, str) for shard in weight_map.values()):
            if needed and not weight_map:
                raise NotJsonError("its weight_map is empty")
            return weight_map
        case {"weight_map": _}:
            pass
        case _ if not needed:
            return {}
    raise NotJsonError("it has no weight_map from tensors to files")


def _wrong_with_model_configuration(path: str, written: bytes, configuration: Any) -> Iterator[WeightsFinding]:
    if written.startswith(_BYTE_ORDER_MARK):
        details = "UTF-8 without a byte order mark, as engines read it", "a byte order mark"
        yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, path, *details)
    if not isinstance(configuration, dict):
        observed = "a list" if isinstance(configuration, list) else "a single value"
        yield WeightsFinding(WeightsReason.CONFIGURATION_INVALID, path, "a JSON object", observed)


def _other_configurations(configuration: Any) -> Iterator[str]:
    """The files named to take the place of `config.json` that are not read here as configurations."""
    file_names = configuration.get("configuration_files") if isinstance(configuration, dict) else None
    for other in file_names if isinstance(file_names, list) else ():
        is_taken = isinstance(other, str) and _OTHER_CONFIGURATION.search(other) is not None
        if is_taken and ("/" in other or _CONFIGURATION.fullmatch(other) is None):
            yield other


class _ReadOnce:
    """Which files behind links were read, so that many links to one large file cost little.

    What is inside of an index depends on the folder that it is in, so an index is read for each link.
    """

    def __init__(self) -> None:
        self._read: set[tuple[str, object]] = set()

    def has(self, content: Item, reader: object) -> bool:
        """Whether it was read by this reader already; it counts as read from now on."""
        key = content.path, reader
        if reader is _ContentCheck.index or key not in self._read:
            if len(self._read) < _MOST_READ_ONCE:
                self._read.add(key)
            return False
        return True
