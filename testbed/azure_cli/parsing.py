"""Run by the az CLI's own Python: reads commands as JSON from stdin, says of each on stdout what az says of it.

    [["network", "nic", "show", "--ids", "/subscriptions/..."]]  ->  [{"problem": "", "preview": false}]

az loads its command table, builds its parser and parses; the command itself is never run. No connection can be made.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import socket
import sys
from typing import Any, NoReturn


class Parsed(BaseException):
    """az has understood the command, and would run it now. No exception of az's own, so that az does not catch it."""

    def __init__(self, is_preview: bool) -> None:
        super().__init__()
        self.is_preview = is_preview


def main() -> None:
    socket.socket.connect = _no_network  # type: ignore[method-assign]
    socket.socket.connect_ex = _no_network  # type: ignore[method-assign]
    command_lines = json.load(sys.stdin)
    answers = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()):
        cli = importlib.import_module("azure.cli.core").get_default_cli()
        events = importlib.import_module("knack.events")
        cli.register_event(events.EVENT_INVOKER_POST_PARSE_ARGS, _understood)
        parsed = [_answer(cli, command_line) for command_line in command_lines]
    json.dump(parsed, answers)


def _answer(cli: Any, texts: list[str]) -> dict[str, Any]:
    cli.invocation = cli.invocation_cls(
        cli_ctx=cli, parser_cls=cli.parser_cls, commands_loader_cls=cli.commands_loader_cls, help_cls=cli.help_cls
    )
    captured = io.StringIO()
    try:
        with contextlib.redirect_stderr(captured):
            cli.invocation.execute(texts)
    except Parsed as parsed:
        return {"problem": "", "preview": parsed.is_preview}
    except SystemExit:
        problem = captured.getvalue().strip().split("\n\n")[0]
    except Exception as error:  # noqa: BLE001 - az and its validators raise whatever they like
        problem = f"{type(error).__name__}: {error}"
    else:
        problem = "az answered without running anything: this is a group, or asks for help"
    return {"problem": problem or "refused without a word", "preview": False}


def _understood(_: Any, command: str, args: Any, **_more: Any) -> NoReturn:
    command_class = vars(args)["_cmd"]
    if missing := _missing(command_class, args):
        raise ValueError(f"{command}: required, and not given: {', '.join(missing)}")
    raise Parsed(is_preview=bool(command_class.preview_info))


def _missing(command_class: Any, args: Any) -> list[str]:
    """Generated commands ask for their names only when they run; --ids may stand for all of them."""
    schema = getattr(command_class, "get_arguments_schema", None)
    if schema is None or getattr(args, "_ids", None) or getattr(args, "ids", None):
        return []
    undefined = importlib.import_module("azure.cli.core.aaz").AAZUndefined
    return [
        name
        for name, field in schema()._fields.items()
        if getattr(field, "_required", False) and _value(getattr(args, name, None)) in (None, undefined)
    ]


def _value(given: Any) -> Any:
    return None if repr(given) == "Undefined" else given


def _no_network(*_: Any, **__: Any) -> NoReturn:
    raise OSError("no connection is made while commands are parsed")


if __name__ == "__main__":
    main()
