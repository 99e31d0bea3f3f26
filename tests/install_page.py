"""What docs/install.md says: its commands and its YAML, by the heading they are under."""

from __future__ import annotations

import re

from testbed.installation import REPOSITORY

PAGE = REPOSITORY / "docs" / "install.md"


def commands(heading: str) -> list[str]:
    """The lines of the blocks without a language."""
    return [line for block in _blocks(heading, "") for line in block.splitlines()]


def manifest(heading: str) -> str:
    """The one block of YAML."""
    (block,) = _blocks(heading, "yaml")
    return block


def _blocks(heading: str, language: str) -> list[str]:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [text for found, text in blocks if found == language]
