"""`hermetic version`: what was built, and from which commit."""

from __future__ import annotations

import click

from hermetic import __version__
from hermetic.cli.build import this_build
from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo, write_json


@click.command("version", epilog="Example: hermetic version -o json")
@common_options(cluster=False)
def command(output: str) -> None:
    """Show the version and the commit that was built."""
    if output == "json":
        write_json(
            {"schema": "hermetic.dev/version/v1", "version": __version__, "revision": this_build().revision or ""}
        )
    else:
        echo(version_line())


def version_line() -> str:
    """The line that `hermetic --version` prints as well."""
    revision = this_build().revision
    return f"hermetic, version {__version__}" + (f", revision {revision}" if revision else "")
