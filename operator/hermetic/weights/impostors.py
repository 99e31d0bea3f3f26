"""Files that hold something else than their name says: a pointer of git-lfs, the page or the message of a server."""

from __future__ import annotations

import re

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.opened import OpenedFile

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
