"""`hermetic convert`: the command that starts a model elsewhere, as a ModelDeployment."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import click

from hermetic.api.kubernetes_yaml import Document, dump
from hermetic.cli.exit_codes import SeveralErrors
from hermetic.cli.manifest_validation import validate
from hermetic.cli.manifests import TypedManifest
from hermetic.cli.options import common_options
from hermetic.cli.terminal import note, write, write_json
from hermetic.conversion.deployment import convert
from hermetic.conversion.manifest import Conversion, Request
from hermetic.conversion.server_command import read_server_command
from hermetic.conversion.shell_words import LONGEST
from hermetic.errors import InputError

SCHEMA = "hermetic.dev/conversion/v1"
STANDARD_INPUT = "-"


@click.command(
    "convert",
    context_settings={"allow_interspersed_args": False},
    epilog="Example: hermetic convert --image vllm/vllm-openai:v0.32.0 --registry contoso.azurecr.io "
    "--share contosomodels/models/qwen3-8b -- vllm serve Qwen/Qwen3-8B --max-model-len 8192\n\n"
    "Example: hermetic convert -f - < docker-run.sh",
)
@click.option("--image", default="", help="Serving image. Default: the image of the pasted `docker run`.")
@click.option("--version", default="", help="Release of the engine in the image. Default: the one that its tag names.")
@click.option("--registry", default="", metavar="HOST", help="Your private registry, which takes a public one's place.")
@click.option("--env", "-e", "variables", multiple=True, metavar="NAME=VALUE", help="Variable. May be repeated.")
@click.option("--name", default="", help="Name of the ModelDeployment. Default: it follows from the model's name.")
@click.option("--namespace", "-n", default="", help="Namespace of the ModelDeployment. Default: the manifest has none.")
@click.option("--claim", default="", metavar="CLAIM[/FOLDER]", help="Claim that holds the staged model.")
@click.option("--share", default="", metavar="ACCOUNT/SHARE[/FOLDER]", help="NFS share that holds the staged model.")
@click.option("--file", "-f", "file", default="", metavar="FILE", help="File with the command, or '-'.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...")
@common_options(cluster=False)
def command(variables: tuple[str, ...], file: str, argv: tuple[str, ...], output: str, **chosen: str) -> None:
    """Print a ModelDeployment that serves what a command serves: `vllm serve`, `python -m sglang.launch_server`, or a
    `docker run` of one of them or of a NIM.

    Write the command behind `--`, in quotes as one argument, or in a file. Nothing is executed. Standard error lists
    what was left out, replaced, must be staged or must be set.
    """
    request = Request(**chosen, environment=dict(_variable(text) for text in variables))
    conversion = convert(read_server_command(_argv(file, argv)), request)
    _refuse_invalid(conversion)
    if output == "json":
        notes = [dataclasses.asdict(entry) for entry in conversion.notes]
        write_json({"schema": SCHEMA, "manifest": conversion.manifest, "notes": notes})
        return
    for entry in conversion.notes:
        note(str(entry))
    write(dump(conversion.manifest))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--env '{name[:64]}' has no value", fix="write it as --env NAME=VALUE")
    return name, value


def _argv(file: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command's words, or its whole text as one."""
    if file and argv:
        raise InputError("--file and a command are two inputs", fix="give one of them")
    if argv:
        return argv
    if not file:
        raise InputError("no command", fix="hermetic convert --image IMAGE -- vllm serve MODEL")
    return (_text_of(file),)


def _text_of(file: str) -> str:
    """The text of the file, or of standard input; no more of it than would be accepted, and one character."""
    try:
        if file == STANDARD_INPUT:
            content = sys.stdin.buffer.read(4 * LONGEST + 1)
        else:
            with Path(file).open("rb") as stream:
                content = stream.read(4 * LONGEST + 1)
        return content.decode("utf-8-sig") + "\n"
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8 at byte {error.start}", fix="save it as plain text") from error
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}", fix="name a file that holds the command") from error


def _refuse_invalid(conversion: Conversion) -> None:
    """Raises what `hermetic validate` would say of the manifest."""
    typed = TypedManifest("the manifest", Document(1, conversion.manifest), conversion.manifest)
    _, findings = validate([typed], namespace="default")
    if findings:
        raise SeveralErrors([finding.as_error() for finding in findings])
