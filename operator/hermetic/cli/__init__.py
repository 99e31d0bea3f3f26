"""The command line: one file per command, loaded when it is called."""

from __future__ import annotations

import importlib
from typing import Any

import click

from hermetic import __version__
from hermetic.cli.failures import report_failures

COMMANDS = {
    "run": "Run the operator (what the image starts).",
}


class LazyCommands(click.Group):
    """Commands that are imported when they are called: `hermetic --version` must not pay for a Kubernetes client."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of a day's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command's own module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hermetic.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hermetic")
def commands() -> None:
    """GPU inference in clusters that must never reach the internet."""


def main(arguments: list[str] | None = None) -> Any:
    """Run a command; every failure ends in one line, its fix, and the exit code of its kind."""
    return report_failures(lambda: commands.main(arguments, prog_name="hermetic", standalone_mode=False))
