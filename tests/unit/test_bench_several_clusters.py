"""The figures of one audit of many clusters: what a run measures, and the row for each of them on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import audit, audit_page, results

FIGURES: dict[str, Any] = {
    "clusters": 1,
    "resources": 55,
    "seconds": 2.5,
    "quota_bound_seconds": 0.0,
    "requests": 140,
    "by_sort": {"reads": 130, "graph": 2, "actions": 8},
    "refused_429": 0,
    "cpu_seconds": 1.6,
    "peak_rss": 73.4,
}


def test_a_measurement_has_memory_and_quota_of_both_runs() -> None:
    figures = audit.measure_several(2)

    single, several = figures["single"], figures["several"]
    assert (single.keys(), single["clusters"], several["clusters"]) == (several.keys(), 1, 2)
    assert single["resources"] < several["resources"] <= 2 * single["resources"]
    assert single["requests"] < several["requests"] == sum(several["by_sort"].values())
    assert several["by_sort"]["graph"] == single["by_sort"]["graph"], "the shared subscription is listed once"
    assert single["peak_rss"] > 30
    assert several["refused_429"] == 0


def test_the_page_has_a_row_for_memory_and_for_each_part_of_the_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = FIGURES | {"clusters": 20, "by_sort": {"reads": 2100, "graph": 9, "actions": 160}, "peak_rss": 98.7}
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    results.save("several-clusters", {"single": FIGURES, "several": several}, 0.1)

    page = "\n".join(audit_page.several_clusters_section())

    assert page.startswith("## One audit of 20 clusters of one subscription\n")
    assert "| peak memory (MiB) | <= 250 | 73.4 | 98.7 |" in page
    assert "| reads |  | 130 | 2,100 |" in page
    assert "| queries of Resource Graph |  | 2 | 9 |" in page
    assert "| actions |  | 8 | 160 |" in page


def test_the_goals_hold_in_the_stored_measurement() -> None:
    stored = json.loads((results.FOLDER / "several-clusters.json").read_text())["figures"]["several"]
    assert stored["clusters"] == audit.SEVERAL
    assert stored["peak_rss"] <= 250
    assert stored["refused_429"] == 0
