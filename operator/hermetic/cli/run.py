"""`hermetic run`: the operator."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from hermetic.api.configuration import Configuration
from hermetic.cli.options import common_options
from hermetic.cli.output import write, write_json


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
    from hermetic.controller.composition import run
    from hermetic.controller.telemetry import configure_logging

    configure_logging()
    asyncio.run(run(configuration, kubeconfig=kubeconfig, context=context))
