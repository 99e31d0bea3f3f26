"""Run by the real engine's Python, with the sources of one release before its own: what that release's parser says.

Reads lists of arguments of `vllm serve` as JSON from stdin; writes {version, flags, environment, refused} to stdout.
`flags` are all spellings, and `refused` has for each list what the parser says against it, "" where it takes it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import sys
import types
from typing import Any

# What a later release than the installed one imports besides, to encode answers: no argument rests on it.
ABSENT = ("orjson",)


def main() -> None:
    asked, answers = json.load(sys.stdin), sys.stdout
    for name in ABSENT:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = types.ModuleType(name)
    with contextlib.redirect_stdout(io.StringIO()):
        parser, serve, command = _parser()
        parsed = {
            "flags": sorted({option for action in serve._actions for option in action.option_strings}),  # noqa: SLF001
            "environment": sorted(importlib.import_module("vllm.envs").environment_variables),
            "refused": [_refusal(parser, command, arguments) for arguments in asked],
        }
    json.dump(parsed, answers)


def _parser() -> tuple[Any, Any, Any]:
    try:
        parsers = importlib.import_module("vllm.utils.argparse_utils")
    except ImportError:
        parsers = importlib.import_module("vllm.utils")
    parser = parsers.FlexibleArgumentParser(prog="vllm")
    command = importlib.import_module("vllm.entrypoints.cli.serve").ServeSubcommand()
    return parser, command.subparser_init(parser.add_subparsers(dest="subparser")), command


def _refusal(parser: Any, command: Any, arguments: list[str]) -> str:
    captured = io.StringIO()
    try:
        with contextlib.redirect_stderr(captured):
            command.validate(parser.parse_args(["serve", "/weights", *arguments]))
    except SystemExit:
        return captured.getvalue().strip().rpartition("\n")[2] or "refused without a word"
    except (argparse.ArgumentError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    main()
