"""How a command ends: exit codes, and errors as one line and its fix."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import click

from hermetic.api.text import printable
from hermetic.errors import (
    ApiRefused,
    HermeticError,
    InputError,
    RegistryRefused,
    StagingUnconfirmed,
    Unreachable,
    WeightsUnread,
)

DONE, FAILED, USAGE, UNKNOWN, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130
OF_VERDICT = {"Pass": DONE, "Fail": FAILED, "Unknown": UNKNOWN}
"""By the verdict of an audit, or of a summary of audits."""


class SeveralErrors(HermeticError):
    """Several errors at once; at least one."""

    def __init__(self, errors: Sequence[HermeticError]) -> None:
        super().__init__(f"{len(errors)} problems")
        self.errors = tuple(errors)


class ReaderGone(Exception):
    """The reader of standard output has closed it."""


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """`hermetic render | head` is no failure. click by itself would answer it with exit code 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


def report_failures(command: Callable[[], Any]) -> NoReturn:
    """Run a command and exit: 0 done, 1 failed, 2 bad input, 3 unknown, 4 unreachable, 130 interrupted."""
    try:
        with reader_may_leave():
            code = _exit_code_of(command)
            sys.stdout.flush()
            sys.stderr.flush()
    except ReaderGone:
        write_to_devnull()
        code = DONE
    sys.exit(code)


def _exit_code_of(command: Callable[[], Any]) -> int:
    try:
        code = command()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return DONE
    except click.UsageError as error:
        help_of = error.ctx.command_path if error.ctx is not None else "hermetic"
        _print(InputError(error.format_message().rstrip("."), fix=f"'{help_of} --help' shows what it takes"))
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except HermeticError as error:
        return _report(error)
    return code if isinstance(code, int) else DONE


def _report(error: HermeticError) -> int:
    """Prints every error; a fix that consecutive errors share is printed once. Returns the smallest exit code."""
    errors = error.errors if isinstance(error, SeveralErrors) else (error,)
    for failure, following in zip(errors, (*errors[1:], None), strict=True):
        _print(failure, with_fix=following is None or following.fix != failure.fix)
    return min(exit_code(error) for error in errors)


def _print(error: HermeticError, *, with_fix: bool = True) -> None:
    click.echo(f"error: {error.code}: {_on_one_line(error.message)}", err=True)
    if with_fix:
        click.echo(f"fix: {_on_one_line(error.fix)}", err=True)


def _on_one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def exit_code(error: HermeticError) -> int:
    return exit_code_of(type(error))


def exit_code_of(kind: type[HermeticError]) -> int:
    """The exit code of an error's kind. A refused request is not a verdict and has another code than a failed one."""
    if issubclass(kind, InputError):
        return USAGE
    if issubclass(kind, (WeightsUnread, StagingUnconfirmed)):
        return UNKNOWN
    return UNREACHABLE if issubclass(kind, (Unreachable, ApiRefused, RegistryRefused)) else FAILED


def write_to_devnull() -> None:
    """Redirects the output streams to /dev/null: otherwise the interpreter reports unflushed output at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a stream without a file descriptor, as in tests
            os.dup2(devnull, stream.fileno())
