"""The real kubectl understands every kubectl command of Hermetic's pages and remedies.

No API server is there. kubectl looks at a command, its options and what they need first, and connects then: a command
that is understood ends at the refused connection.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermetic import __version__
from testbed.programs import programs
from tests.remedy_commands import ROOT, Typed, commands_of

CONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody, user: {}}]
current-context: nowhere
"""
UNDERSTOOD = re.compile(
    r"The connection to the server 127\.0\.0\.1:1 was refused|dial tcp 127\.0\.0\.1:1: connect: connection refused"
    r'|the path "[^"]+" does not exist|no objects passed to (apply|create)'
    r"|(error reading|Cannot read file) [^\n]*: no such file or directory"
    r"|unable to find one of 'kustomization\.yaml'|must build at directory: not a valid directory"
)
ONLY_NAMED = re.compile(r"must specify|must be specified|required|needs an argument|resources by argument or filename")
WRONG = {
    "no command of that name": "kubectl remove service x",
    "no command of a group": "kubectl rollout again deployment x",
    "an option that is not there": "kubectl delete service x --frobnicate",
    "a required option is missing": "kubectl patch service x --type merge",
    "a file is missing": "kubectl apply --server-side",
    "what to wait for is missing": "kubectl wait --for=condition=Ready",
    "a value that is not known": "kubectl patch service x --type guess --patch '{}'",
}


@pytest.fixture(scope="session")
def kubectl() -> Path:
    return programs("kubernetes")["kubectl"]


@pytest.fixture
def problem(kubectl: Path, tmp_path: Path) -> Callable[[Typed], str]:
    """What kubectl has against a command; "" where it would go on to the API server."""
    config = tmp_path / "config"
    config.write_text(CONFIG)
    plug_in = tmp_path / "kubectl-hermetic"
    plug_in.write_text("#!/bin/sh\n")  # found by its name on the PATH
    plug_in.chmod(0o755)
    environment = {"KUBECONFIG": str(config), "HOME": str(tmp_path), "EDITOR": "true", "PATH": str(tmp_path)}

    def ask(typed: Typed) -> str:
        ran = subprocess.run(
            [kubectl, *typed.words], env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
        )  # fmt: skip
        if ran.returncode == 0 or UNDERSTOOD.search(ran.stderr):
            return ""
        if typed.is_named_only and ONLY_NAMED.search(ran.stderr):
            return ""
        return ran.stderr.strip()[-300:]

    return ask


def test_every_kubectl_command_is_understood_by_the_real_kubectl(
    problem: Callable[[Typed], str], record_property: Callable[[str, object], None]
) -> None:
    commands = commands_of("kubectl")
    refused = {f"{typed.origin}: {typed.command}": why for typed in commands if (why := problem(typed))}
    summary = f"{len(commands) - len(refused)} of {len(commands)}"
    record_property("remedies parsed by the real kubectl", summary)
    assert refused == {}
    assert len(commands) > 40


@pytest.mark.parametrize("why", WRONG)
def test_the_real_kubectl_refuses_what_is_wrong(problem: Callable[[Typed], str], why: str) -> None:
    assert problem(Typed(WRONG[why], ""))


def test_kubectl_runs_hermetic_as_its_plug_in(kubectl: Path, tmp_path: Path) -> None:
    (tmp_path / "kubectl-hermetic").symlink_to(Path(sys.executable).parent / "hermetic")
    environment = {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    ran = subprocess.run(
        [kubectl, "hermetic", "version"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert __version__ in ran.stdout
