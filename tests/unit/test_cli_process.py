"""The program as scripts and terminals meet it: what it loads, how it ends, what becomes of a reader that leaves."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hermetic import __version__
from hermetic.cli import COMMANDS
from tests.commandline import PROGRAM, hermetic, hermetic_process
from tests.scenarios import a_share_model

HEAVY = {"kubernetes", "kopf", "aiohttp", "structlog", "jinja2", "prometheus_client", "asyncio"}
TALKING = (HEAVY - {"asyncio"}) | {"httpx", "azure", "cryptography"}
HEAVIER_THAN_VERSION = HEAVY | {"pydantic", "yaml"}


def loaded_by(*arguments: str, stdin: str = "") -> set[str]:
    """The top-level modules that a command has loaded when it ends."""
    script = (
        "import atexit, sys; from hermetic.cli import main;"
        "atexit.register(lambda: print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr));"
        f"main({list(arguments)!r})"
    )
    done = subprocess.run([sys.executable, "-c", script], input=stdin, capture_output=True, text=True, check=False)
    return set(ast.literal_eval(done.stderr.splitlines()[-1]))


def test_the_version_loads_nothing_but_the_parser_of_the_command_line() -> None:
    assert loaded_by("--version") & HEAVIER_THAN_VERSION == set()


@pytest.mark.parametrize("command", ["render", "validate"])
def test_commands_that_need_no_cluster_load_none_of_its_clients(command: str) -> None:
    assert loaded_by(command, "-f", "-", stdin=yaml.safe_dump(a_share_model())) & HEAVY == set()


def test_explanations_load_none_of_its_clients() -> None:
    assert loaded_by("explain", "Serving") & HEAVY == set()


def test_explaining_a_check_loads_no_client_of_a_network() -> None:
    assert loaded_by("explain", "subnet-nat-gateway") & TALKING == set()


@pytest.mark.parametrize("arguments", [("--help",), (), ("--kube", "--policy", "/nowhere")])
def test_an_audit_loads_what_talks_only_when_there_is_nothing_left_to_refuse(arguments: tuple[str, ...]) -> None:
    assert loaded_by("audit", *arguments) & TALKING == set()


def test_the_version_is_printed() -> None:
    assert hermetic("--version").out == f"hermetic, version {__version__}\n"
    assert hermetic("version").out == hermetic("--version").out
    shown = json.loads(hermetic("version", "-o", "json").out)
    assert shown == {"schema": "hermetic.dev/version/v1", "version": __version__, "revision": ""}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_shows_an_example_and_the_common_options(command: str) -> None:
    ran = hermetic(command, "--help")
    assert ran.code == 0
    assert f"Example: hermetic {command}" in ran.out or f"| hermetic {command}" in ran.out
    assert "--output" in ran.out
    assert "--no-color" in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_options_that_scripts_always_pass(command: str) -> None:
    common = ("--kubeconfig", "/nowhere", "--context", "x", "--no-color", "-o", "json")
    assert "No such option" not in hermetic(command, *common, "--help").err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rendr"], "unknown command 'rendr'; did you mean 'hermetic render'?"),
        (["frobnicate"], "unknown command 'frobnicate'; there are run, render,"),
        (["render", "--fil", "x", "--no"], "No such option"),
        (["render"], "no input file"),
        (["status", "-o", "xml"], "'xml' is not one of"),
        (["status", "a", "b"], "unexpected extra argument"),
        (["status", "a", "-A"], "-A goes with neither NAME nor -n"),
    ],
)
def test_bad_usage_is_told_in_the_form_of_every_error(arguments: list[str], says: str) -> None:
    ran = hermetic(*arguments)
    assert ran.code == 2
    assert ran.errors[0].startswith("error: HRM-INP-001: ")
    assert says in ran.errors[0]
    assert len(ran.fixes) == 1


@pytest.mark.parametrize("arguments", [["render", "-f", "-"], ["--help"], ["--version"], ["explain"]])
def test_a_reader_that_leaves_is_no_failure(arguments: list[str]) -> None:
    program = subprocess.Popen(
        [*PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdout.close()
    many = [a_share_model(f"model-{number}") for number in range(20)]
    _, output = program.communicate(yaml.safe_dump_all(many).encode(), timeout=60)
    assert program.returncode == 0
    assert b"Traceback" not in output
    assert b"BrokenPipe" not in output


def test_a_reader_of_both_streams_that_leaves_is_no_failure() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "validate", "-f", "/no/such/file"], stdout=writing, stderr=writing, timeout=60, check=False
    )
    os.close(writing)
    assert done.returncode == 0


def test_ctrl_c_ends_with_130_and_without_a_traceback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubeconfig = str(_kubeconfig(tmp_path, silent.getsockname()[1]))
        command = [*PROGRAM, "status", "--kubeconfig", kubeconfig]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        silent.settimeout(60)
        connection, _ = silent.accept()  # it waits for an answer now
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
        connection.close()
    assert program.returncode == 130
    assert out == b""
    assert b"Traceback" not in err


def test_a_server_that_is_not_there_ends_with_4(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        kubeconfig = _kubeconfig(tmp_path, unused.getsockname()[1])
        ran = hermetic_process("status", "--kubeconfig", kubeconfig)
    assert ran.code == 4
    assert ran.errors[0].startswith(
        "error: HRM-NET-001: GET /apis/hermetic.dev/v1alpha1/namespaces/default/modeldeployments"
    )
    assert ran.errors[0].endswith(": connection refused")
    assert ran.fixes[0].startswith("fix: check that the API server is up and reachable from here; that of a private")


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (None, 4, "no kubeconfig at"),
        ("", 2, "is not a kubeconfig"),
        ("clusters: [", 2, "is not a kubeconfig"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_told(tmp_path: Path, text: str | None, code: int, says: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if text is not None:
        kubeconfig.write_text(text)
    ran = hermetic_process("status", "--kubeconfig", kubeconfig)
    assert ran.code == code
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_a_terminal_without_utf8_gets_what_it_can_show() -> None:
    manifest = a_share_model()
    manifest["spec"]["weights"]["azureFiles"]["folder"] = "modèles"
    typed = yaml.safe_dump(manifest, allow_unicode=True).encode()
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    rendered = hermetic_process("render", "-f", "-", stdin=typed, environ=ascii_only)
    assert "folderName: modèles\n" in rendered.out
    explained = hermetic_process("explain", environ=ascii_only)
    assert (rendered.code, explained.code) == (0, 0)


def _kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return path
