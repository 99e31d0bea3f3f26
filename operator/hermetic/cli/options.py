"""The options that every command has, and how they are interpreted."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermetic.cli.terminal import color_is_unwanted

if TYPE_CHECKING:
    from hermetic.api.configuration import Configuration

Function = TypeVar("Function", bound=Callable[..., Any])
PASSPHRASE_VARIABLE = "HERMETIC_SIGNING_PASSPHRASE"  # noqa: S105 - the name of one


def _choose_color(ctx: click.Context, _: click.Parameter, unwanted: bool) -> None:
    if unwanted or color_is_unwanted():
        ctx.color = False


no_color_option = click.option(
    "--no-color", is_flag=True, expose_value=False, callback=_choose_color, help="Plain text."
)


def common_options(*, cluster: bool, lists: Sequence[str] = ()) -> Callable[[Function], Function]:
    """--kubeconfig, --context, -o and --no-color. `lists` names further forms of the output.

    A command that works offline (`cluster` False) accepts the first two, for scripts that always pass them, and ignores
    them.
    """

    def decorated(function: Function) -> Function:
        for option in (
            no_color_option,
            click.option(
                "--output",
                "-o",
                type=click.Choice(["text", "json", *lists]),
                default="text",
                help="Form of the data on stdout.",
            ),
            click.option("--context", help="Context of the kubeconfig.", hidden=not cluster, expose_value=cluster),
            click.option(
                "--kubeconfig",
                help="Kubeconfig file. Default: $KUBECONFIG, the pod's service account, or ~/.kube/config.",
                hidden=not cluster,
                expose_value=cluster,
            ),
        ):
            function = option(function)
        return function

    return decorated


def manifest_files(function: Function) -> Function:
    """-f, and further files without it, as shells expand `-f models/*.yaml`; the command gets all as `files`."""

    @functools.wraps(function)
    def with_files(named: tuple[str, ...], more: tuple[str, ...], **options: Any) -> Any:
        return function(files=(*named, *more), **options)

    decorated = click.argument("more", nargs=-1, metavar="[FILE]...")(with_files)
    return click.option(  # type: ignore[return-value]
        "--file", "-f", "named", multiple=True, metavar="FILE", help="File, folder or '-'. May be repeated."
    )(decorated)


class Amount(click.FloatRange):
    """A number within bounds; `nan` and `inf` are within none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click.BadParameter."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def configuration_in(file: Path | None) -> Configuration | None:
    """The operator's configuration in the file of --config; None without one."""
    if file is None:
        return None
    from hermetic.controller.settings import load_configuration

    return load_configuration(file)


def signing_passphrase() -> bytes | None:
    """The passphrase of an encrypted private key; None where PASSPHRASE_VARIABLE is not set."""
    value = os.environ.get(PASSPHRASE_VARIABLE)
    return None if value is None else value.encode()
