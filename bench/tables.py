"""What every section of the page is made of: tables, and the line that says where its figures are from."""

from __future__ import annotations

from collections.abc import Sequence

from bench import results

Row = tuple[str, ...]


def origin(found: results.Result) -> str:
    machine, packages = found["machine"], found["machine"]["packages"]
    return (
        f"<sub>{machine['cores']} cores ({machine['processor']}), {machine['memoryGiB']} GiB, Linux"
        f" {machine['kernel']}; Kubernetes {machine['kubernetes']}, Python {machine['python']}, kopf"
        f" {packages['kopf']}, kubernetes {packages['kubernetes']}; load average before: {found['loadBefore']}</sub>\n"
    )


def table(head: Row, rows: Sequence[Row]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
