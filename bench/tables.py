"""What every section of the page is made of: tables, and the line that says where its figures are from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench import results

Row = tuple[str, ...]


def origin(result: results.Result) -> str:
    machine, packages = result["machine"], result["machine"]["packages"]
    return (
        f"<sub>{machine['cores']} cores ({machine['processor']}), {machine['memoryGiB']} GiB, Linux"
        f" {machine['kernel']}; Kubernetes {machine['kubernetes']}, Python {machine['python']}, kopf"
        f" {packages['kopf']}, kubernetes {packages['kubernetes']}; load average before: {result['loadBefore']}</sub>\n"
    )


def table(head: Row, rows: Sequence[Row]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def middle(rounds: list[dict[str, Any]], key: str) -> str:
    values = sorted(figures[key] for figures in rounds)
    return f"{values[len(values) // 2]:g}"
