"""docs/architecture.md and CONTRIBUTING.md name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PRODUCT = REPOSITORY / "operator/hermetic"
NAMED = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|toml))?)`")


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_exists(page: str) -> None:
    named = set(NAMED.findall((REPOSITORY / page).read_text(encoding="utf-8")))
    assert len(named) > 20
    assert (
        sorted(
            path_named
            for path_named in named
            if not (PRODUCT / path_named).exists() and not (REPOSITORY / path_named).exists()
        )
        == []
    )


def test_the_glossary_is_short() -> None:
    glossary = (
        (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8").split("## Glossary")[1].split("\n## ")[0]
    )
    assert len(glossary.strip().splitlines()) <= 30
