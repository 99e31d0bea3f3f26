"""docs/api.md is what the CRDs say, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from hermetic.api.reserved_flags import ENVIRONMENT, VLLM_FLAGS
from tools.api_reference import as_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def test_the_checked_in_page_equals_the_crds() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_markdown(), "run `make generate`"


def test_every_link_leads_to_a_heading() -> None:
    page = as_markdown()
    headings = {
        re.sub(r"[^a-z0-9-]", "", heading.lower().replace(" ", "-")) for heading in re.findall(r"^#+ (.*)$", page, re.M)
    }
    links = set(re.findall(r"\]\(#([^)]*)\)", page))
    assert len(links) > 20
    assert links <= headings


def test_every_row_has_as_many_cells_as_its_table() -> None:
    for row in re.findall(r"^\| `.*$", as_markdown(), re.M):
        assert len(re.findall(r"(?<!\\)\|", row)) in {3, 6}, row


def test_every_reserved_name_is_listed() -> None:
    page = as_markdown()
    assert {name for name in (*VLLM_FLAGS, *ENVIRONMENT) if f"`{name}`" not in page} == set()
