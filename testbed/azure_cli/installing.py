"""`python -m testbed azure-cli`: the az CLI of `requirements.lock` in the cache folder, installed once per lock."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import BuildError
from testbed.locked_environment import LockedEnvironment
from testbed.processes import bound_to_us

HERE = Path(__file__).resolve().parent
LOCK = HERE / "requirements.lock"
PARSER = HERE / "parsing.py"
NAME = "azure-cli"
ENVIRONMENT = LockedEnvironment(NAME, LOCK, "about 90 MB to fetch, 0.8 GB on disk, one to five minutes")
PARSING_SECONDS = 600


@dataclass(frozen=True)
class Answer:
    """What az says of one command: `problem` is "" where it would run it, `preview` whether az calls it a preview."""

    problem: str
    preview: bool


def azure_cli() -> Path:
    """The Python that has the az CLI; installs it when it is not there yet."""
    return ENVIRONMENT.installed() / "bin" / "python"


def parsed(commands: Sequence[Sequence[str]]) -> list[Answer]:
    """What the real az CLI says of each command, given without `az` as words; one process for all, and no network."""
    python = azure_cli()
    with tempfile.TemporaryDirectory(prefix="hermetic-az-") as folder:
        ran = subprocess.run(
            bound_to_us([str(python), "-I", str(PARSER)]), input=json.dumps([list(command) for command in commands]),
            env=_environment(Path(folder)), capture_output=True, text=True, timeout=PARSING_SECONDS, check=False,
        )  # fmt: skip
    if ran.returncode != 0:
        raise BuildError(f"{NAME}: the parser ended with {ran.returncode}\n{ran.stderr[-2000:]}")
    return [Answer(answer["problem"], answer["preview"]) for answer in json.loads(ran.stdout)]


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of the caller's: no login, no settings, no extensions, no telemetry."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "AZURE_CONFIG_DIR": str(folder / "azure"),
        "AZURE_EXTENSION_DIR": str(folder / "extensions"),
        "AZURE_EXTENSION_USE_DYNAMIC_INSTALL": "no",
        "AZURE_CORE_COLLECT_TELEMETRY": "no",
        "AZURE_CORE_NO_COLOR": "yes",
        "AZURE_CORE_SURVEY_MESSAGE": "no",
    }


def main(arguments: list[str]) -> int:
    """Installs the az CLI when it is not there, then prints the path of its Python."""
    argparse.ArgumentParser(prog="python -m testbed azure-cli", description=azure_cli.__doc__).parse_args(arguments)
    print(azure_cli())
    return 0
