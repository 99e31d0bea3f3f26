"""`hermetic run`: the operator."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from hermetic.api.configuration import Configuration


@click.command(
    "run",
    epilog="Example: hermetic run --config /etc/hermetic/config.yaml",
)
@click.option("--config", type=click.Path(path_type=Path), help="Configuration file (YAML). Default: every default.")
@click.option("--print-config", is_flag=True, help="Print the effective configuration and exit.")
@click.option("--kubeconfig", help="Kubeconfig to use instead of the pod's service account.")
@click.option("--context", help="Context of the kubeconfig.")
def command(config: Path | None, print_config: bool, kubeconfig: str | None, context: str | None) -> None:
    """Run the operator.

    It talks to the API server only, as the account that the kubeconfig or the pod gives it.
    """
    from hermetic.controller.settings import dump_configuration, load_configuration

    configuration = load_configuration(config) if config is not None else Configuration()
    if print_config:
        click.echo(dump_configuration(configuration), nl=False)
        return
    from hermetic.controller.telemetry import configure_logging
    from hermetic.controller.wiring import run

    configure_logging()
    asyncio.run(run(configuration, kubeconfig=kubeconfig, context=context))
