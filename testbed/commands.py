"""Programs of several commands, one module each, imported only when asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping

from testbed.errors import BedError


def run(program: str, commands: Mapping[str, str], arguments: list[str]) -> int:
    """Runs the `main` of one command's module. Exit 2 for an unknown one, 1 when it gave up, else what it says."""
    if not arguments or arguments[0] not in commands:
        print(f"usage: python -m {program} {{{','.join(commands)}}} ...", file=sys.stderr)
        return 2
    command = importlib.import_module(commands[arguments[0]])
    try:
        return int(command.main(arguments[1:]))
    except BedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
