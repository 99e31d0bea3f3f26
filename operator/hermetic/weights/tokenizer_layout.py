"""Whether the file of a vocabulary is complete, as far as its structure says it: nothing is tokenized.

SentencePiece: `ModelProto` of sentencepiece_model.proto. tiktoken: lines of Base64 and a rank (`load_tiktoken_bpe`).
"""

from __future__ import annotations

import hashlib
import re

from hermetic.weights.json_syntax import wrong_with_json
from hermetic.weights.opened import OpenedFile

LARGEST_VOCABULARY = 2**28
_LARGEST_READ = 2**27
_TOKENIZER_JSON = re.compile(
    r"(?:tokenizer(?:[-_.].+)?|tekken(?:[-_.].+)?|vocab(?:[-_.].+)?|(?:.+[-_])?vocab|special_tokens_map|added_tokens)\.json"
)
_SENTENCEPIECE = re.compile(
    r"(?:.*tokenizer.*|.*spiece.*|.*sentencepiece.*|spm|.*bpe)\.(?:model|spm)(?:\.v[0-9].*)?|.*\.spm"
)
_TIKTOKEN = re.compile(r".*\.tiktoken")
_WORDS = re.compile(r"(?:.*[-_.])?(?:vocab|merges|dict|tokens)\.txt")
_MERGES = re.compile(r"(?:.*[-_.])?merges\.txt")
_RANKS = re.compile(rb"(?:[A-Za-z0-9+/]+={0,2} [0-9]+\r?(?:\n|\Z))++")
_NO_VOCABULARY = re.compile(rb'"vocab"\s*:\s*(?:\{\s*\}|\[\s*\]|null)')
_HAS_MODEL = re.compile(rb'"model"\s*:\s*\{')
_HAS_VOCABULARY = re.compile(rb'"vocab"\s*:\s*[\[{]')
_OVERLAP = 256
_LENGTH_DELIMITED = 2
"""The wire type of every field of a ModelProto."""
# By their published digests (openai_public.py of tiktoken). openai-harmony refuses another content.
_PUBLISHED = {
    "o200k_base.tiktoken": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base.tiktoken": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
Wrong = tuple[str, str]


def is_tokenizer_json(name: str) -> bool:
    """Whether a file of this name holds a vocabulary, or a part of one, in JSON."""
    return _TOKENIZER_JSON.fullmatch(name.casefold()) is not None


def wrong_with_tokenizer(file: OpenedFile) -> Wrong | None:
    """(expected, found) of the file of a tokenizer that is cut, empty or another file; None for any other file."""
    name = file.name.casefold()
    if is_tokenizer_json(file.name):
        return _wrong_with_json_vocabulary(file, name)
    if _SENTENCEPIECE.fullmatch(name):
        return _wrong_with_model(file)
    if _TIKTOKEN.fullmatch(name):
        return _wrong_with_published(file, _PUBLISHED[name]) if name in _PUBLISHED else _wrong_with_ranks(file)
    return _wrong_with_words(file, name) if _WORDS.fullmatch(name) else None


def _wrong_with_json_vocabulary(file: OpenedFile, name: str) -> Wrong | None:
    if file.size > LARGEST_VOCABULARY:
        return f"at most {LARGEST_VOCABULARY} bytes", f"{file.size} bytes"
    if (wrong := wrong_with_json(file.chunks())) is not None:
        return "JSON", wrong
    if name not in {"tokenizer.json", "tekken.json"}:
        return None
    has_model, has_vocabulary, is_empty = name == "tekken.json", False, False
    before = b""
    for chunk in file.chunks():
        text = before + chunk
        has_model = has_model or _HAS_MODEL.search(text) is not None
        has_vocabulary = has_vocabulary or _HAS_VOCABULARY.search(text) is not None
        is_empty = is_empty or _NO_VOCABULARY.search(text) is not None
        before = text[-_OVERLAP:]
    if not has_model or not has_vocabulary:
        return "a tokenizer with its vocabulary", "none"
    return ("a vocabulary", "an empty one") if is_empty else None


def _wrong_with_model(file: OpenedFile) -> Wrong | None:
    """A SentencePiece model, or the ranks of tiktoken, which the `tokenizer.model` of Llama 3 and of Kimi holds."""
    if file.size == 0:
        return "a SentencePiece model", "an empty file"
    if file.head[:1] != b"\x0a":
        wrong = _wrong_with_ranks(file)
        return wrong and ("a SentencePiece model, or lines of Base64 and a rank", wrong[1])
    content = file.bytes_at(0, _LARGEST_READ)
    at, pieces, trainer_fields = 0, 0, 0
    while at < len(content):
        tag, begin = _number(content, at)
        if begin >= 0 and tag & 7 != _LENGTH_DELIMITED:
            return "a SentencePiece model", f"another content at byte {at}"
        length, at = _number(content, begin) if begin >= 0 else (0, -1)
        if at < 0 or at + length > len(content):
            return "a SentencePiece model", f"one that is cut short: it has {file.size} bytes"
        pieces += tag >> 3 == 1
        trainer_fields += tag >> 3 in {2, 3}
        at += length
    if not pieces or not trainer_fields:
        return "pieces, and how they were trained", f"{pieces} pieces and nothing behind them"
    return None


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A number of protobuf, and what follows it; -1 where it does not end."""
    number = shift = 0
    while at < len(content) and shift < 64:
        byte = content[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    return 0, -1


def _wrong_with_published(file: OpenedFile, expected: str) -> Wrong | None:
    """The digest decides alone: no other content of that name is read by an engine."""
    vocabulary = f"the published vocabulary, sha256:{expected}"
    if file.size > _LARGEST_READ:
        return vocabulary, f"{file.size} bytes"
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    actual = digest.hexdigest()
    return None if actual == expected else (vocabulary, f"sha256:{actual}")


def _wrong_with_ranks(file: OpenedFile) -> Wrong | None:
    content = file.bytes_at(0, _LARGEST_READ)
    if not content.strip():
        return "lines of Base64 and a rank", "an empty file"
    if (ranks := _RANKS.match(content)) is None or content[ranks.end() :].strip():
        line = content.count(b"\n", 0, ranks.end() if ranks else 0) + 1
        return "lines of Base64 and a rank", f"another content in line {line}"
    *_, before, last = (b"-1", *(line.split()[-1] for line in content.split(b"\n")[-4:] if line.strip()))
    if int(last) <= int(before):
        return "ranks that rise", f"rank {int(last)} at the end, after {int(before)}: its end is missing"
    return None


def _wrong_with_words(file: OpenedFile, name: str) -> Wrong | None:
    content = file.bytes_at(0, _LARGEST_READ)
    if not content.strip():
        return "a vocabulary", "an empty file"
    if b"\0" in content:
        return "text", "a NUL"
    last = content.rstrip(b"\r\n").rpartition(b"\n")[2]
    if _MERGES.fullmatch(name) and last.startswith(b"#"):
        return "merges", "none behind the first line"
    if _MERGES.fullmatch(name) and len(last.rstrip(b"\r").split(b" ")) != 2:
        return "two parts in the last line", "another number of parts: its end is missing"
    return None
