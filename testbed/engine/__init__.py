"""The engine stand-in as files of an image: what a vLLM, SGLang or NIM image would have, as far as a pod uses it.

files      image_files() -> [(path in the image, content, mode)]; a root with Python 3.11 and a shell is added by
           the builder of the image. Nothing but the standard library is needed.
vLLM       entrypoint VLLM_ENTRYPOINT, environment vllm_environment("0.32.0")
SGLang     entrypoint SGLANG_ENTRYPOINT, environment sglang_environment("0.5.23")
NIM        entrypoint nim_entrypoint("2.1"), environment nim_environment("2.1")
behaviour  a file named BEHAVIOUR_FILE in the model folder: stand_in/behaviour.py has its keys
groups     vLLM and SGLang on several nodes take their real arguments and meet over the network: stand_in/group.py
"""

from __future__ import annotations

from pathlib import Path

HOME = "opt/hermetic-engine"
BEHAVIOUR_FILE = "stand-in.json"
VLLM_ENTRYPOINT = ("vllm", "serve")
SGLANG_ENTRYPOINT = ("sglang", "serve")
NIM_LINES = {"1.15": "0.24.0", "2.0": "0.24.0", "2.1": "0.31.0"}

ENGINES = Path(__file__).parents[2] / "operator" / "hermetic" / "engines"
VLLM_TABLES = ENGINES / "vllm" / "tables"
SGLANG_TABLES = ENGINES / "sglang" / "tables"
PROGRAM = """#!/usr/bin/env python3
# {name}, as the hermetic engine stand-in starts it
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[{levels}] / "opt" / "hermetic-engine"))

from stand_in.command import main

sys.exit(main())
"""
START_SCRIPT = "opt/nim/start_server.sh"


def image_files() -> list[tuple[str, bytes, int]]:
    """Every file of the stand-in: path without a leading slash, content, mode. The same bytes for the same checkout."""
    package = Path(__file__).parent / "stand_in"
    modules = [(f"{HOME}/stand_in/{path.name}", path.read_bytes(), 0o644) for path in sorted(package.glob("*.py"))]
    listed = [*sorted(VLLM_TABLES.glob("*.json")), *sorted(SGLANG_TABLES.glob("*.json"))]
    tables = [(f"{HOME}/tables/{path.name}", path.read_bytes(), 0o644) for path in listed]
    programs = [
        _program("usr/local/bin/vllm"),
        _program("usr/local/bin/sglang"),
        _program("usr/local/bin/nim-serve"),
        _program(START_SCRIPT),
    ]
    return [*modules, *tables, *programs]


def _program(path: str) -> tuple[str, bytes, int]:
    above = len(Path(path).parts) - 1
    return path, PROGRAM.format(name=Path(path).name, levels=above).encode(), 0o755


def vllm_environment(version: str) -> dict[str, str]:
    """What a vLLM image brings along besides PATH; `version` is the release stood in for, for example 0.32.0."""
    return {"VLLM_STAND_IN_VERSION": version, "VLLM_USAGE_SOURCE": "production-docker-image"}


def sglang_environment(version: str) -> dict[str, str]:
    """What an SGLang image brings along besides PATH; `version` is the release stood in for, for example 0.5.23."""
    return {"SGLANG_STAND_IN_VERSION": version}


def nim_entrypoint(line: str) -> tuple[str, ...]:
    """Line 1 images start a script by default, line 2 the action `nim-serve` of NVIDIA's CLI reference."""
    return ("nim-serve",) if line.startswith("2.") else (f"/{START_SCRIPT}",)


def nim_environment(line: str) -> dict[str, str]:
    """What a NIM image of this line brings along besides PATH; `line` is one of NIM_LINES."""
    return {"VLLM_STAND_IN_VERSION": NIM_LINES[line], "NIM_STAND_IN_LINE": line, "NIM_CACHE_PATH": "/opt/nim/.cache"}
