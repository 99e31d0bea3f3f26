"""`hermetic run`: the operator."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hermetic.api.configuration import Configuration
from hermetic.cli.options import common_options
from hermetic.cli.terminal import write, write_json

UNUSED_PACKAGES = ("kubernetes", "rich")
"""Packages that others import where they are installed, for features that the operator lacks. kopf imports the official
client for its objects (12 MiB), structlog imports rich for colored tracebacks (3 MiB). Only commands use the client."""


@click.command(
    "run",
    epilog="Example: hermetic run --config /etc/hermetic/config.yaml\n\n"
    "Example: hermetic run --config config.yaml --print-config",
)
@click.option("--config", type=click.Path(path_type=Path), help="Configuration file (YAML). Default: every default.")
@click.option("--print-config", is_flag=True, help="Print the effective configuration and exit.")
@common_options(cluster=True)
def command(config: Path | None, print_config: bool, kubeconfig: str | None, context: str | None, output: str) -> None:
    """Run the operator until SIGTERM.

    It talks to the API server only, as the account that the kubeconfig or the pod gives it. Its log goes to standard
    output, one JSON object per line. docs/configuration.md describes every key of the configuration.
    """
    from hermetic.controller.settings import dump_configuration, effective, load_configuration

    configuration = load_configuration(config) if config is not None else Configuration()
    if print_config:
        if output == "json":
            write_json(effective(configuration))
        else:
            write(dump_configuration(configuration))
        return
    with _without(UNUSED_PACKAGES):
        from hermetic.controller.composition import run
        from hermetic.controller.telemetry import configure_logging

    configure_logging(configuration.log)
    asyncio.run(run(configuration, kubeconfig=kubeconfig, context=context))


@contextmanager
def _without(packages: tuple[str, ...]) -> Iterator[None]:
    """Let imports of these packages raise ImportError, as where they are not installed.

    None in `sys.modules` does that (https://docs.python.org/3/reference/import.html#the-module-cache).
    """
    absent = [package for package in packages if package not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # the value None is documented
    try:
        yield
    finally:
        for package in absent:
            del sys.modules[package]
