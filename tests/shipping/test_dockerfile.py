"""The Dockerfile builds what `make image` builds, on another base: what it says is compared, what it runs is run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from shipping.operator_image import ENVIRONMENT
from shipping.root import UID
from shipping.wheels import REPOSITORY, copy_wheels
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

LINES = [
    line.split(maxsplit=1)
    for line in (REPOSITORY / "shipping" / "Dockerfile").read_text().splitlines()
    if line and not line.startswith("#")
]


def arguments_of(instruction: str) -> list[str]:
    return [arguments for name, arguments in LINES if name == instruction]


def test_the_base_is_given_and_nothing_else_is_pulled():
    assert arguments_of("ARG") == ["BASE"]
    assert arguments_of("FROM") == ["${BASE}"]
    assert [argument.split()[0] for argument in arguments_of("COPY")] == ["dist/wheels"]
    assert arguments_of("ADD") == []


def test_no_step_needs_a_shell_or_a_network():
    for step in arguments_of("RUN"):
        command = json.loads(step)
        assert "pip" not in command or "--no-index" in command
        assert not re.search(r"https?:", step)


def test_it_runs_as_the_image_that_ships_does():
    environment = dict(assignment.split("=", 1) for assignment in shlex.split(arguments_of("ENV")[0]))
    del environment["PATH"]

    assert environment == ENVIRONMENT
    assert arguments_of("USER") == [f"{UID}:{UID}"]
    assert json.loads(arguments_of("ENTRYPOINT")[0])[1:] == ["-m", "hermetic"]
    assert json.loads(arguments_of("CMD")[0]) == ["run"]


@pytest.mark.sampled(0)
def test_its_steps_install_the_command_from_the_wheels_alone(tmp_path):
    copy_wheels(tmp_path / "wheels", "{}.{}".format(*sys.version_info))  # the Python that installs them here
    here = {
        "/wheels": str(tmp_path / "wheels"),
        "/opt/hermetic": str(tmp_path / "hermetic"),
        '"python3"': f'"{sys.executable}"',
    }
    for step in arguments_of("RUN"):
        for there, path in here.items():
            step = step.replace(there, path)  # noqa: PLW2901
        subprocess.run(json.loads(step), check=True, capture_output=True, text=True)

    done = subprocess.run([tmp_path / "hermetic/bin/hermetic", "--help"], check=True, capture_output=True, text=True)
    assert "attest" in done.stdout
