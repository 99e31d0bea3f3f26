"""The reader of SGLang's flags, on sources in their shape: what it understands, and what it refuses to guess."""

from __future__ import annotations

import pytest

from testbed.python_sources import NotUnderstood, Sources
from testbed.sglang_tables.reading import Reading

SERVER_ARGS = """
from sglang.srt.fields import Serving, choices
from sglang.srt.names import SAMPLING
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        listed = set(SAMPLING)
        parser.add_argument("--sampling-backend", type=str, choices=listed, help=f"one of {listed}")
        parser.add_argument("--old", action=DeprecatedStoreTrueAction, new_flag="--new", help="x")
        parser.add_argument("--older", action=DeprecatedStoreConstAction, nargs=None, choices=["amd"])
_INPUT_NAMESPACES = [Serving]
ServerArgs = defstruct("ServerArgs")
"""
FIELDS = """
import argparse
from sglang.srt.names import MORE, Backend
class Serving:
    host: A[str, "The " "host."] = "127.0.0.1"
    tp_size: A[int, Arg(help="x", aliases=["--tensor-parallel-size"])] = 1
    fp8_runner: A[str, Arg(cli_name="--fp8-backend", choices=MORE + ["auto"])] = "auto"
    is_on: A[Optional[bool], "x"] = None
    both: A[Optional[bool], Arg(action=argparse.BooleanOptionalAction)] = None
    mode: A[Optional[Literal["a", "b"]], "x"] = None
    sizes: A[Optional[List[int]], "x"] = None
    words: A[List[str], Arg(nargs="*")] = []
    graph: A[str, Arg(choices=Backend.ALL)] = "full"
    room: A[int, Arg(type_parser=human_readable_int)] = 1
    hidden: A[int, Arg(no_cli=True)] = 1
    rank: A[int, Derived(doc="x")]
    plain: int = 3
"""
NAMES = """
SAMPLING = frozenset({"flashinfer", "pytorch"})
MORE = ["triton"]
class Backend:
    FULL = "full"
    OFF = "disabled"
    ALL = (FULL, OFF)
"""


def reading(**changed: str) -> Reading:
    texts = {"server_args": SERVER_ARGS, "fields": FIELDS, "names": NAMES, **changed}
    return Reading(Sources({f"sglang.srt.{name}": text.encode() for name, text in texts.items()}, frozenset()))


def test_fields_and_arguments_become_flags_as_argparse_would_have_them():
    assert reading().flags() == {
        "--help": {"value": "none", "aliases": ["-h"]},
        "--host": {"value": "one"},
        "--tp-size": {"value": "one", "aliases": ["--tensor-parallel-size"], "type": "int"},
        "--fp8-backend": {"value": "one", "choices": ["auto", "triton"]},
        "--is-on": {"value": "none"},
        "--both": {"value": "none", "negations": ["--no-both"]},
        "--mode": {"value": "one", "choices": ["a", "b"]},
        "--sizes": {"value": "many", "type": "int"},
        "--words": {"value": "any"},
        "--graph": {"value": "one", "choices": ["disabled", "full"]},
        "--room": {"value": "one", "type": "si-size"},
        "--sampling-backend": {"value": "one", "choices": ["flashinfer", "pytorch"]},
        "--old": {"value": "none"},
        "--older": {"value": "one", "choices": ["amd"]},
    }


@pytest.mark.parametrize(
    "field",
    [
        "x: A[str, Arg(choices=computed())] = ''",
        "x: A[str, Arg(type_parser=something_new)] = ''",
        "x: A[str, Arg(action=SomethingNew)] = ''",
        "tp: A[int, Arg(aliases=['--host'])] = 1",
    ],
)
def test_what_cannot_be_read_is_an_error_and_no_guess(field):
    with pytest.raises(NotUnderstood):
        reading(fields=f"{FIELDS}    {field}\n").flags()


def test_a_statement_that_could_add_an_argument_is_an_error():
    more = SERVER_ARGS.replace("_INPUT_NAMESPACES", "        add_more(parser)\n_INPUT_NAMESPACES", 1)
    with pytest.raises(NotUnderstood):
        reading(server_args=more).flags()


def test_variables_are_those_of_the_registry():
    environ = "class Envs:\n    A_NAME = EnvBool(False)\n    other = 3\n    B_NAME = EnvStr(None)\n"
    assert reading(environ=environ).environment() == ["A_NAME", "B_NAME"]
