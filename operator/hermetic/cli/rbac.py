"""`hermetic rbac`: the rights and admission policies of one installation."""

from __future__ import annotations

from pathlib import Path

import click

from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import dump
from hermetic.cli.installation import ACCOUNT, MODELS, Installation, rights
from hermetic.cli.options import common_options
from hermetic.cli.terminal import note, write, write_json


@click.command(
    "rbac",
    epilog="Example: hermetic rbac --config config.yaml | kubectl apply --server-side -f -\n\n"
    "Example: hermetic rbac --namespaces team-a,team-b",
)
@click.option("--config", type=click.Path(path_type=Path), help="The operator's configuration file (YAML).")
@click.option(
    "--namespaces",
    metavar="NAMES",
    help="Namespaces to manage, separated by commas, in place of `watchNamespaces` of the configuration.",
)
@click.option(
    "--account",
    default=ACCOUNT,
    show_default=True,
    metavar="NAME",
    help="ServiceAccount of the operator, in the namespace `lease.namespace` of the configuration.",
)
@common_options(cluster=False)
def command(config: Path | None, namespaces: str | None, account: str, output: str) -> None:
    """Print the rights and admission policies of an installation, for its configuration.

    With namespaces to watch, the operator may write in these and no others. Without, it may write in every namespace.
    With a configuration, the policies hold its account to the registries and shares that are allowed there. No cluster
    is asked. docs/rights.md explains every right.
    """
    configuration = _configuration(config, namespaces)
    printed = rights(Installation(configuration, account, limited=config is not None))
    if configuration.watch_namespaces:
        note(
            f"the operator may write in {', '.join(configuration.watch_namespaces)}; bindings of an earlier "
            f"installation in the whole cluster stay until 'kubectl delete clusterrolebinding {MODELS}'"
        )
    else:
        note("`watchNamespaces` is empty: the operator may write in every namespace")
    if output == "json":
        write_json({"apiVersion": "v1", "kind": "List", "items": printed})
    else:
        write("---\n".join(dump(manifest) for manifest in printed))


def _configuration(file: Path | None, namespaces: str | None) -> Configuration:
    from hermetic.controller.settings import load_configuration, with_namespaces

    configuration = load_configuration(file) if file is not None else Configuration()
    return configuration if namespaces is None else with_namespaces(configuration, namespaces.split(","))
