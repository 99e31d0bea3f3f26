"""Files that hold something else than their name says: a pointer of git-lfs, the page or the message of a server."""

from __future__ import annotations

import re
import unicodedata

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.opened import OpenedFile

MOST_SCANNED = 2**20
"""Bytes: larger files are data. A vocabulary has any sequence of letters in it."""
_TOKENS = (
    ("a token of Hugging Face", re.compile(rb"\b(?:hf_|api_org_)([A-Za-z]{34})\b")),
    ("a token of GitHub", re.compile(rb"\b(?:gh[pousr]_|github_pat_)([A-Za-z0-9_]{36,82})\b")),
    ("a token of GitLab", re.compile(rb"\bglpat-([A-Za-z0-9_-]{20})\b")),
    ("a key of NVIDIA NGC", re.compile(rb"\bnvapi-([A-Za-z0-9_-]{60,70})")),
    ("an access key of AWS", re.compile(rb"\b(?:AKIA|ASIA)([A-Z2-7]{16})\b")),
    ("an account key of Azure Storage", re.compile(rb"AccountKey=([A-Za-z0-9+/]{86}==)")),
    ("a shared access signature of Azure", re.compile(rb"[?&]sig=([A-Za-z0-9%/+]{43,60}(?:%3D|=))")),
    ("a password in an address", re.compile(rb"\bhttps?://[^\s/:@\"'<>]{1,100}:([^\s/:@\"'<>{}$]{8,200})@")),
    (
        "a private key",
        re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----(?:\r?\n|\\n)"
            rb"(?:[^\r\n-]{1,80}(?:\r?\n|\\n))*?([A-Za-z0-9+/=]{60,76})"),
    ),
)  # fmt: skip
_FEWEST_CHARACTERS = 8
"""Different ones in a token: placeholders repeat one or count up."""
_PLACEHOLDER = re.compile(rb"(?i)x{4}|example|your|token|abcdef|1234567|password|\*{3}|\.{3}")


class Twins:
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


_LARGEST_POINTER = 1024
_LARGEST_MESSAGE = 4096
# The first line of the specification of git-lfs (docs/spec.md), the one before it was renamed from hawser, and the
# pointers of git-xet and git-annex.
_POINTERS = (
    ("git-lfs", re.compile(rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/")),
    ("git-xet", re.compile(rb"# xet version [0-9]")),
    ("git-annex", re.compile(rb"/annex/objects/\S+\s*\Z")),
)
_MARKUP = (".html", ".htm", ".xhtml", ".xml", ".svg", ".md", ".markdown", ".rst", ".py", ".js", ".css")
"""Names of files that may begin as a page does. A README with HTML in it is usual."""
_PAGE = re.compile(rb"(?:<!doctype\s+html|<html[\s>]|<head[\s>])", re.IGNORECASE)
_XML_ERROR = re.compile(rb"<\?xml[^>]*\?>\s*<(?:Error|html)\b|<Error>", re.IGNORECASE)
"""What Azure Blob Storage and S3 answer: `<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code>`."""
_MESSAGE = re.compile(
    rb"(?:Entry not found|Invalid username or password|Invalid credentials|Repository not found|Access to model|"
    rb"Cannot access gated repo|Unauthorized|Forbidden|Not Found|404: Not Found|403 Forbidden|401 Unauthorized|"
    rb"Too Many Requests|AccessDenied|Bad Gateway|upstream connect error|Gateway Timeout)",
    re.IGNORECASE,
)
_JSON_ERROR = re.compile(rb'\{\s*"(?:error|errors|detail|message|requestStatus)"\s*:')
_TEXT = (".txt", ".log", ".rst", ".csv", "license", "notice", "readme", "copying")


def impostor(file: OpenedFile) -> WeightsFinding | None:
    """The finding for a file that was not downloaded; None for any other."""
    head = file.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if file.size <= _LARGEST_POINTER:
        for tool, pattern in _POINTERS:
            if pattern.match(head):
                observed = f"a pointer of {tool} of {file.size} bytes"
                return WeightsFinding(
                    WeightsReason.POINTER_NOT_RESOLVED, file.path, "the content of the file", observed
                )
    name = file.name.casefold()
    if name.endswith(_MARKUP):
        return None
    if _PAGE.match(head):
        return WeightsFinding(WeightsReason.DOWNLOAD_FAILED, file.path, "the content of the file", "a page in HTML")
    if _XML_ERROR.match(head):
        return WeightsFinding(WeightsReason.DOWNLOAD_FAILED, file.path, "the content of the file", "an error in XML")
    is_message = _MESSAGE.match(head) and not name.endswith(_TEXT) and "." in name
    if file.size <= _LARGEST_MESSAGE and (is_message or (name.endswith(".json") and _JSON_ERROR.match(head))):
        observed = f"the message of a server: {head[:80].decode(errors='replace')}"
        return WeightsFinding(WeightsReason.DOWNLOAD_FAILED, file.path, "the content of the file", observed)
    return None


def credential_in(content: bytes) -> str | None:
    """What kind of credential a file holds; None where it holds none that is recognised."""
    for kind, pattern in _TOKENS:
        for matched in pattern.finditer(content):
            secret = matched[1]
            if len({*secret}) >= min(_FEWEST_CHARACTERS, len(secret) // 2 + 1) and not _PLACEHOLDER.search(secret):
                return kind
    return None
