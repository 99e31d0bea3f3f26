"""How a command ends: exit codes, and errors as one line and its fix."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from hermetic.errors import HermeticError, InputError, Unreachable

DONE, FAILED, USAGE, UNKNOWN, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130


def report_failures(command: Callable[[], Any]) -> None:
    """Run a command and exit: 0 done, 1 failed, 2 bad input, 3 unknown, 4 unreachable, 130 interrupted."""
    try:
        code = command()
    except click.ClickException as error:
        error.show()
        code = USAGE
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except HermeticError as error:
        click.echo(f"error: {error.code}: {error.message}", err=True)
        if error.fix:
            click.echo(f"fix: {error.fix}", err=True)
        code = exit_code(error)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has gone: nobody is left to tell
        code = DONE
    sys.exit(code if isinstance(code, int) else DONE)


def exit_code(error: HermeticError) -> int:
    """The exit code of an error's kind."""
    if isinstance(error, InputError):
        return USAGE
    return UNREACHABLE if isinstance(error, Unreachable) else FAILED
