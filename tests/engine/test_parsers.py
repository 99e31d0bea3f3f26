"""The real parser of every supported release against the committed tables, and against what the gate refuses."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.reserved_flags import VLLM_FLAGS
from hermetic.engines.argument_values import refused
from hermetic.engines.extra_arguments import read
from hermetic.engines.flag_tables import Flag
from hermetic.engines.vllm.tables import TABLES
from testbed.package_index import IndexUnavailable, choose, configured_index, fetch, source_distributions

PARSING = Path(__file__).parents[2] / "testbed" / "real_engine" / "parsing.py"
SAMPLES = {
    "int": ("3", "many", "1.5", "3k"),
    "float": ("0.5", "1", "much"),
    "size": ("4096", "4k", "1.5k", "2K", "many"),
    "json": ('{"image": 2}', "{image: 2}"),
    "object": ("{}", "{", "nothing"),
    "text": ("text",),
}
MAPS = {"--reasoning-effort-map": ('{"medium": "low"}', '{"ultra": "max"}', '{"medium": 1}', '["medium"]')}
# What a parse does besides: it prints help and ends, or reads a file.
NOT_TRIED = {"--help", "--config", "--log-config-file", "--chat-template"}
# Left to the parser: a choice that depends on the machine's platform, a list of JSON objects, and flags that only make
# sense with others that no spec can give.
LEFT_TO_THE_PARSER = {
    "--mm-processor-device",
    "--lora-modules",
    "--grpc-port",
    "--data-parallel-multi-port-external-lb",
}
# Values that the parser takes and the server compares when it starts (`validate_api_server_args`, `VllmConfig`).
COMPARED_AT_THE_START = {"--tool-call-parser", "--reasoning-parser", "--optimization-level"}


def sources(version: str, folder: Path) -> Path:
    """The Python files of the release, from its source distribution."""
    try:
        index = configured_index()
        archive = fetch(index, choose(source_distributions(index), version))
    except IndexUnavailable as error:
        pytest.skip(f"no package index to read vLLM {version} from: {error}")
    with tarfile.open(archive) as packed:
        for member in packed:
            inside = member.name.partition("/")[2]
            if member.isfile() and inside.startswith("vllm/") and ".." not in inside:
                file = folder / inside
                file.parent.mkdir(parents=True, exist_ok=True)
                content = packed.extractfile(member)
                assert content is not None
                file.write_bytes(content.read())
    return folder


def parsed_by_the_engine(environment: Path, folder: Path, asked: list[list[str]]) -> dict[str, Any]:
    ran = subprocess.run(
        [environment / "bin" / "python", PARSING],
        input=json.dumps(asked),
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(folder), "VLLM_NO_USAGE_STATS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout)


def tried(flags: list[Flag]) -> list[list[str]]:
    attempts = [["--enable-auto-tool-choice"], ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]]
    flag_names = {flag.name for flag in flags}
    attempts += [[name, value] for name, values in MAPS.items() if name in flag_names for value in values]
    for flag in flags:
        if flag.name in NOT_TRIED | LEFT_TO_THE_PARSER:
            continue
        attempts.append([flag.name])
        if flag.value == "none":
            attempts.append([f"{flag.name}=true"])
        elif not flag.choices:
            attempts += [[flag.name, value] for value in SAMPLES[flag.type]]
        else:
            attempts.append([flag.name, flag.choices[0]])
            attempts += [[flag.name, "no-such-choice"]] if flag.name not in COMPARED_AT_THE_START else []
    return attempts


@pytest.mark.parametrize("minor", TABLES.supported)
def test_the_table_and_the_gate_say_what_the_parser_says(minor: str, environment: Path, tmp_path: Path) -> None:
    table = TABLES.table_for(minor)
    tries = tried([flag for name, flag in table.flags.items() if name not in VLLM_FLAGS or flag.type != "text"])
    real = parsed_by_the_engine(environment, sources(table.version, tmp_path), tries)

    spellings = {spelling for flag in table.flags.values() for spelling in flag.spellings}
    assert set(real["flags"]) <= spellings
    # 0.33 takes `--no-enable-...` and `--no-disable-...` and hides them from its own list.
    assert {
        spelling
        for spelling in spellings - set(real["flags"])
        if not spelling.startswith(("--no-enable-", "--no-disable-"))
    } == set()
    assert set(real["environment"]) == table.environment

    wrong = []
    for arguments, refusal in zip(tries, real["refused"], strict=True):
        understood, _ = read(arguments, table)
        ours = next(refused(understood, table), "") or next(
            (value for flag in understood for value in flag.wrong_values()), ""
        )
        if bool(ours) != bool(refusal):
            wrong.append((arguments, refusal, ours))
    assert wrong == []
