"""What docs/install.md, or another page, says: its commands and its YAML, by the heading they are under."""

from __future__ import annotations

import re
from pathlib import Path

from testbed.installation import REPOSITORY

PAGE = REPOSITORY / "docs" / "install.md"


def commands(heading: str, page: Path = PAGE, *languages: str) -> list[str]:
    """The lines of the blocks without a language, or of these languages."""
    return [line for block in _blocks(page, heading, *(languages or ("",))) for line in block.splitlines()]


def manifest(heading: str) -> str:
    """The blocks of YAML, which together are one file."""
    return "".join(_blocks(PAGE, heading, "yaml"))


def documented(page: str, heading: str) -> str:
    """The blocks of YAML below a heading of another page."""
    return "".join(_blocks(REPOSITORY / page, heading, "yaml"))


def _blocks(page: Path, heading: str, *languages: str) -> list[str]:
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [text for language, text in blocks if language in languages]
