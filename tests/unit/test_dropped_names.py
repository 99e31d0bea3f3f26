"""What a release of an engine dropped is told as dropped, with what to write instead."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hermetic.engines.dropped_names import dropped_name, dropped_names
from hermetic.engines.sglang.tables import TABLES as SGLANG_TABLES
from hermetic.engines.vllm.tables import TABLES as VLLM_TABLES

TABLES = {"vllm": VLLM_TABLES, "sglang": SGLANG_TABLES}
PAIRS = [
    pytest.param(engine, older, newer, id=f"{engine}-{newer}")
    for engine, tables in TABLES.items()
    for older, newer in pairwise(tables.supported)
]
by_engine = pytest.mark.parametrize("engine", TABLES)


def spellings(table) -> set[str]:
    return {flag.name for flag in table.flags.values()}


@pytest.mark.parametrize(("engine", "older", "newer"), PAIRS)
def test_every_name_that_a_release_drops_is_in_the_table_of_dropped_names(engine, older, newer):
    before, after = TABLES[engine].table_for(older), TABLES[engine].table_for(newer)
    gone = (spellings(before) - spellings(after)) | (before.environment - after.environment)
    newest = TABLES[engine].table_for(TABLES[engine].supported[-1])
    lost = gone - spellings(newest) - newest.environment
    missing = [name for name in sorted(lost) if name not in dropped_names(engine)]
    assert not missing, f"{missing}: add them to {engine}/dropped.toml"


@by_engine
def test_a_dropped_name_is_known_to_no_supported_release_from_its_first_on(engine):
    tables = [TABLES[engine].table_for(release) for release in TABLES[engine].supported]
    known_names = [
        (entry.name, table.version)
        for entry in dropped_names(engine).values()
        for table in tables
        if entry.is_dropped_in(table.version) and (entry.name in table.environment or table.flag(entry.name))
    ]
    assert not known_names


@by_engine
def test_the_successor_of_a_dropped_name_is_known_to_the_newest_release(engine):
    newest = TABLES[engine].table_for(TABLES[engine].supported[-1])
    for entry in dropped_names(engine).values():
        successor = entry.successor
        if successor and entry.name != "AITER_SITUV2_A8W4":  # its successor was dropped in turn, and its text says so
            assert newest.flag(successor) or successor in newest.environment, entry
        assert entry.source
        assert entry.instead.startswith(("write ", "leave it out")), entry
        assert entry.keeps_value is False or successor, entry


def test_a_successor_that_was_dropped_in_turn_is_named_with_its_own_successor():
    assert "VLLM_ROCM_USE_AITER_MOE_SITUV2'" in dropped_name("vllm", "AITER_SITUV2_A8W4").instead


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("--rope-scaling", "--rope-scaling"),
        ("--rope_scaling", "--rope-scaling"),
        ('--rope_scaling={"factor": 4}', "--rope-scaling"),
        ("--task=embed", "--task"),
        ("--rope-scaling.factor", "--rope-scaling"),
        ("VLLM_ATTENTION_BACKEND", "VLLM_ATTENTION_BACKEND"),
    ],
)
def test_dropped_name_finds_every_spelling_of_a_flag(written, name):
    assert dropped_name("vllm", written).name == name
    assert dropped_name("nim", written).name == name


@pytest.mark.parametrize("name", ["--max-num-seqs", "--tasks", "VLLM_LOGGING_LEVEL", "vllm_use_v1", ""])
def test_dropped_name_of_another_name_is_none(name):
    assert dropped_name("vllm", name) is None


def test_dropped_names_of_one_engine_are_not_those_of_the_other():
    assert dropped_name("sglang", "--task") is None
    assert dropped_name("vllm", "--stream-output") is None


@pytest.mark.parametrize(
    ("since", "release", "dropped"),
    [("--swap-space", "0.17.1", False), ("--swap-space", "0.18.0", True), ("--swap-space", "0.33.0", True)],
)
def test_is_dropped_in_compares_numbers_and_not_texts(since, release, dropped):
    assert dropped_name("vllm", since).is_dropped_in(release) is dropped
    assert dropped_name("vllm", "--enable-reasoning").is_dropped_in("0.9.2") is False
