"""The command line: one module or package per command, imported when the command is called."""

from __future__ import annotations

import importlib
from typing import Any

import click

from hermetic.cli.exit_codes import reader_may_leave, report_failures

COMMANDS = {
    "run": "Run the operator (what the image starts).",
    "render": "Print the objects that the operator would apply.",
    "validate": "Check manifests without a cluster.",
    "convert": "Turn the command that starts a model into a ModelDeployment.",
    "plan": "Compute whether a model fits its GPUs, and how long it takes to load.",
    "rbac": "Print the rights and admission policies of an installation.",
    "init": "Write the files of a first installation.",
    "check": "Check a cluster before installing, or what is installed in it.",
    "status": "Show what serves, what does not, and the command that fixes it.",
    "bench": "Run the engine's own benchmark against a model, and record the result.",
    "audit": "Look for egress paths, in Azure, in the cluster and with packets.",
    "summary": "Summarize the audits of several clusters.",
    "attest": "Verify signed evidence of isolation.",
    "images": "List every image that the registry must hold, its source, and what uses it.",
    "stage": "Copy a model to where it is served, with its manifest.",
    "manifest": "Write the manifest of a folder of weights.",
    "sign": "Sign the manifest of a folder of weights.",
    "verify": "Verify a folder of weights against its manifest.",
    "bundle": "Verify an air-gap bundle, and load it into a registry.",
    "explain": "Explain error codes, reasons, conditions and checks, offline.",
    "version": "Show the version and the commit that was built.",
}
PACKAGES = frozenset({"plan", "status", "check", "audit", "attest", "images", "bundle", "bench", "init"})
"""Commands of several files: a package each, with the click command in its module `command`."""
WEIGHTS = frozenset({"stage", "manifest", "sign", "verify"})
"""Commands about weights, which share one package."""
MEANT = {
    "help": "--help",
    "get": "status",
    "list": "status",
    "describe": "status",
    "lint": "validate",
    "template": "render",
    "preflight": "check",
    "scan": "audit",
    "benchmark": "bench",
}
"""What commands of other programs are called here."""


def module_of(name: str) -> str:
    """Return the module that holds the click command of this name, in its attribute `command`."""
    if name in WEIGHTS:
        return f"hermetic.cli.weights.{name}"
    return f"hermetic.cli.{name}.command" if name in PACKAGES else f"hermetic.cli.{name}"


class LazyCommands(click.Group):
    """Commands that are imported when they are called: `hermetic --version` must not pay for kubeconfigs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of typical use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's own module."""
        if cmd_name not in COMMANDS:
            if not ctx.resilient_parsing and not cmd_name.startswith("-"):
                ctx.fail(f"unknown command '{cmd_name}'{_did_you_mean(cmd_name)}")
            return None
        command: click.Command = importlib.import_module(module_of(cmd_name)).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Output of --help and --version happens here: a closed pipe is handled."""
        with reader_may_leave():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Output of the commands happens here: a closed pipe is handled."""
        with reader_may_leave():
            try:
                return super().invoke(ctx)
            except click.UsageError as error:
                if error.ctx is None:  # click's parser does not say of which command an option lacks its value
                    error.ctx = _context_below(ctx)
                raise


def _context_below(ctx: click.Context) -> click.Context:
    """The context of the invoked command, or of this one."""
    name = ctx.invoked_subcommand
    command = ctx.command.get_command(ctx, name) if name and isinstance(ctx.command, click.Group) else None
    return click.Context(command, ctx, name) if command is not None else ctx


def _did_you_mean(name: str) -> str:
    import difflib  # for names that do not exist

    near = [MEANT[name]] if name in MEANT else difflib.get_close_matches(name, COMMANDS, n=1)
    return f"; did you mean 'hermetic {near[0]}'?" if near else f"; there are {', '.join(COMMANDS)}"


def _print_version(ctx: click.Context) -> None:
    from hermetic.cli.version import version_line  # for one option

    click.echo(version_line())
    ctx.exit()


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="'hermetic COMMAND --help' shows an example of each. Exit codes: 0 done, 1 failed, 2 wrong input, "
    "3 could not see enough, 4 not reachable, 130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=lambda ctx, _option, is_asked: _print_version(ctx) if is_asked and not ctx.resilient_parsing else None,
    help="Show the version and the commit that was built, and exit.",
)
def commands() -> None:
    """GPU inference in clusters that must never reach the internet."""


def main(arguments: list[str] | None = None) -> Any:
    """Run a command; every failure ends in one line, its fix, and the exit code of its kind."""
    return report_failures(lambda: commands.main(arguments, prog_name="hermetic", standalone_mode=False))
