"""What to do about a model that was not staged: the complete command, where another one helps."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from hermetic.api.weights_reasons import WeightsReason
from hermetic.cli.terminal import note
from hermetic.errors import WeightsRefused, WeightsUnread

if TYPE_CHECKING:
    from hermetic.weights.findings import WeightsFinding

_MOST_SHOWN = 20
_NEEDED = (".safetensors", ".gguf")


def with_fix(refused: WeightsRefused, source: Path, destination: Path, excludes: tuple[str, ...]) -> WeightsRefused:
    """The same refusal with the command that helps. Findings beside the one of its message are shown before."""
    if isinstance(refused, WeightsUnread):
        return refused
    findings: tuple[WeightsFinding, ...] = refused.findings
    for finding in findings[1 : _MOST_SHOWN + 1]:
        note(finding.message)
    first = findings[0]
    if first.reason is WeightsReason.MODEL_BELOW:
        refused.fix = f"{_command(source / first.file, destination, excludes)}"
        return refused
    removable = [finding.file for finding in findings if finding.reason is WeightsReason.EXECUTABLE_CONTENT]
    if first.reason is WeightsReason.EXECUTABLE_CONTENT and _has_other_weights(source):
        patterns = tuple(dict.fromkeys(_patterns(removable)))
        refused.fix = (
            f"No engine needs them beside the other weights; leave them out: "
            f"{_command(source, destination, (*excludes, *patterns))}"
        )
    return refused


def _has_other_weights(source: Path) -> bool:
    try:
        return any(path.name.endswith(_NEEDED) for path in source.iterdir())
    except OSError:
        return False


def _patterns(files: Iterable[str]) -> Iterator[str]:
    """One pattern for each ending; the path itself where the name has none that says what it is."""
    for file in files:
        name = file.rpartition("/")[2]
        _, dot, ending = name.rpartition(".")
        is_plain = bool(dot) and ending.isalpha() and ending.isascii()
        yield f"*.{ending}" if is_plain else glob.escape(file)


def _command(source: Path, destination: Path, excludes: tuple[str, ...]) -> str:
    """The command of this run with another source or more patterns."""
    arguments = ["hermetic", "stage", str(source), str(destination)]
    context = click.get_current_context()
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if not isinstance(option, click.Option) or not is_given or option.name == "excludes":
            continue
        value = context.params.get(option.name or "")
        if option.is_flag:
            arguments.append(option.opts[0])
        else:
            for single in value if option.multiple and value is not None else (value,):
                arguments += [option.opts[0], str(single)]
    for pattern in excludes:
        arguments += ["--exclude", pattern]
    return shlex.join(arguments)
