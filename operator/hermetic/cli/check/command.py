"""`hermetic check`: whether a cluster can take an installation, and whether an existing one is complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermetic.api.text import wrapped
from hermetic.cli.check.rows import CheckRow, RowVerdict, overall
from hermetic.cli.exit_codes import DONE, FAILED, UNKNOWN
from hermetic.cli.options import common_options, configuration_in
from hermetic.cli.running import run
from hermetic.cli.terminal import columns, echo, fitted, write_json
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.api.configuration import Configuration

SCHEMA = "hermetic.dev/check/v1"
EXIT_CODES = {RowVerdict.PASS: DONE, RowVerdict.FAIL: FAILED, RowVerdict.UNKNOWN: UNKNOWN}
NAMESPACE = "hermetic-system"
_WIDEST_VERDICT = max(map(len, RowVerdict))


@click.command(
    "check",
    epilog="Example: hermetic check\n\n"
    "Example: hermetic check --config config.yaml -o json\n\n"
    "Example: hermetic check --installed\n\n"
    "Exit codes: 0 nothing fails, 1 something does, 3 something could not be read, 4 not reachable.",
)
@click.option("--installed", is_flag=True, help="Look at the installation in the cluster instead.")
@click.option(
    "--namespace", "-n", default=NAMESPACE, show_default=True, help="Namespace of the operator, with --installed."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The configuration to install with: its namespaces are checked too.",
)
@common_options(cluster=True)
def command(
    installed: bool, namespace: str, config: Path | None, kubeconfig: str | None, context: str | None, output: str
) -> int:
    """Check a cluster before Hermetic is installed, or with --installed what is installed in it.

    Reads and asks what the caller may do; writes nothing. Each row says what is, why it matters and what to do.
    Whether nodes can pull an image is never reported: only a pod can show it.
    """
    if installed and config is not None:
        raise InputError("--installed reads the configuration in the cluster", fix="leave --config out")
    rows = run(_rows(installed, namespace, configuration_in(config), kubeconfig, context))
    if output == "json":
        write_json(as_document(rows, "installed" if installed else "before"))
    else:
        for line in lines(rows, columns()):
            echo(line)
    return EXIT_CODES[overall(rows)]


async def _rows(
    installed: bool, namespace: str, configuration: Configuration | None, kubeconfig: str | None, context: str | None
) -> tuple[CheckRow, ...]:
    from hermetic.cli.check import before, collecting
    from hermetic.cli.check.configuration import verification
    from hermetic.cli.check.installed import rows_installed
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    async with KubernetesApi(await find_connection(kubeconfig=kubeconfig, context=context)) as api:
        if installed:
            return rows_installed(await collecting.installed(api, namespace))
        rows = before.rows_before(await collecting.before(api), namespaces_of(configuration))
        return (*rows, *(verification(configuration) if configuration is not None else ()))


def namespaces_of(configuration: Configuration | None) -> tuple[str, ...]:
    """Where models are to run: the watched namespaces, else those that registries and shares are allowed for."""
    if configuration is None:
        return ()
    named = configuration.watch_namespaces or [
        *(name for registry in configuration.registries for name in registry.namespaces),
        *(name for share in configuration.shares for name in share.namespaces),
    ]
    return tuple(dict.fromkeys(name for name in named if "*" not in name))


def as_document(rows: Sequence[CheckRow], mode: str) -> dict[str, object]:
    """The rows as JSON."""
    counts = Counter(row.verdict for row in rows)
    return {
        "schema": SCHEMA,
        "mode": mode,
        "verdict": overall(rows).value,
        "summary": {verdict.value: counts[verdict] for verdict in RowVerdict},
        "rows": [
            {
                "check": row.check,
                "verdict": row.verdict.value,
                "message": row.message,
                "why": row.why,
                "fix": row.fix,
                "commands": list(row.commands),
            }
            for row in rows
        ],
    }


def lines(rows: Sequence[CheckRow], width: int) -> Iterator[str]:
    """Each row in lines of this width (0: not wrapped), and last the overall verdict.

    What consecutive rows have in common (why it matters, what to do) is printed once, below the last of them.
    """
    for row, following in zip(rows, (*rows[1:], None), strict=True):
        yield from fitted(f"{row.verdict:<{_WIDEST_VERDICT}}  {row.check}: {row.message}", width)
        if following is not None and _advice(following) == _advice(row):
            continue
        for label, text in (("why", row.why), ("fix", row.fix)):
            if text:
                yield from wrapped(f"{label}: {text}", width, "  ", "    ")
        yield from (f"    {line}" for line in row.commands)
    counts = Counter(row.verdict for row in rows)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in RowVerdict if counts[verdict])
    yield from wrapped(f"{overall(rows)}: {summary}", width)


def _advice(row: CheckRow) -> tuple[str, str, tuple[str, ...]]:
    return row.why, row.fix, row.commands
