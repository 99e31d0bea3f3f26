"""Credentials inside of files: patterns that match a token or a private key itself, and no placeholder of one.

Forms of tokens: the rules of gitleaks (config/gitleaks.toml) and GitHub's page "About GitHub's token formats".
"""

from __future__ import annotations

import re

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


def credential_in(content: bytes) -> str | None:
    """What kind of credential a file holds; None where it holds none that is recognised."""
    for kind, pattern in _TOKENS:
        for matched in pattern.finditer(content):
            secret = matched[1]
            if len({*secret}) >= min(_FEWEST_CHARACTERS, len(secret) // 2 + 1) and not _PLACEHOLDER.search(secret):
                return kind
    return None
