"""The committed tables and their reading: what a version knows, and how its parser takes an argument."""

from __future__ import annotations

import pytest

from hermetic.engines.flag_tables import UnsupportedVersion
from hermetic.engines.vllm.tables import TABLES

EVERY = [TABLES.table_for(minor) for minor in TABLES.supported]
by_version = pytest.mark.parametrize("table", EVERY, ids=lambda table: table.version)


def knowing(flag: str) -> list[str]:
    return [minor for minor in TABLES.supported if flag in TABLES.table_for(minor).flags]


def test_every_supported_minor_version_has_a_table():
    assert TABLES.supported == tuple(f"0.{minor}" for minor in range(24, 34))


@pytest.mark.parametrize("version", ["0.32.0", "0.32", "v0.32.0", "0.32.7", "0.32.0rc1", "0.32.0+cu130"])
def test_any_release_of_a_minor_version_reads_its_table(version):
    assert TABLES.table_for(version).version.startswith("0.32.")


@pytest.mark.parametrize("version", ["0.8.2", "0.23.0", "0.34.0", "0.3", "1.0.0", "latest", ""])
def test_a_version_without_table_is_refused_with_those_that_have_one(version):
    with pytest.raises(UnsupportedVersion, match=r"not supported, only 0\.24, .*, 0\.33"):
        TABLES.table_for(version)
    assert issubclass(UnsupportedVersion, ValueError)


@pytest.mark.parametrize(
    "flag",
    [
        "--allowed-media-domains",
        "--disable-access-log-for-endpoints",
        "--enable-offline-docs",
        "--fail-on-environ-validation",
        "--headless",
        "--language-model-only",
        "--nnodes",
        "--port",
        "--safetensors-load-strategy",
        "--served-model-name",
        "--shutdown-timeout",
        "--ssl-certfile",
    ],
)
def test_flags_we_render_always_are_known_to_every_supported_version(flag):
    assert knowing(flag) == list(TABLES.supported)


@pytest.mark.parametrize(
    ("flag", "since"),
    [("--max-num-queued-reqs", "0.29"), ("--max-num-queued-tokens", "0.29"), ("--sse-keep-alive-interval", "0.29")],
)
def test_a_younger_flag_is_known_from_its_first_version_on(flag, since):
    assert knowing(flag)[0] == since
    assert knowing(flag)[-1] == TABLES.supported[-1]


def test_variables_are_registered_by_the_version_that_introduced_them():
    assert all({"VLLM_NO_USAGE_STATS", "VLLM_HOST_IP", "VLLM_API_KEY"} <= table.environment for table in EVERY)
    assert "VLLM_LOG_LEVEL" not in TABLES.table_for("0.33").environment


@by_version
def test_one_spelling_never_means_two_flags(table):
    spellings = [spelling for flag in table.flags.values() for spelling in flag.spellings]
    assert len(spellings) == len(set(spellings))


@by_version
def test_every_spelling_is_understood_as_its_own_flag(table):
    for flag in table.flags.values():
        for spelling in flag.spellings:
            assert table.understood_as(spelling) == (flag,), spelling


@by_version
def test_shapes_of_well_known_flags(table):
    assert table.flag("-tp") is table.flags["--tensor-parallel-size"]
    assert (table.flags["--tensor-parallel-size"].value, table.flags["--tensor-parallel-size"].type) == ("one", "int")
    assert table.flags["--served-model-name"].value == "many"
    assert table.flags["--max-model-len"].type == "size"
    assert table.flags["--compilation-config"].type == "object"
    assert table.flags["--headless"].value == "none"
    assert not table.flags["--headless"].negations
    assert table.flags["--enforce-eager"].negations == ("--no-enforce-eager",)
    assert table.flags["--middleware"].repeats


def test_the_newest_parser_also_switches_off_with_disable():
    """0.33 pairs --enable-x with --disable-x; before, the latter was an unknown flag."""
    newest = TABLES.table_for("0.33")
    assert newest.flag("--disable-prefix-caching") is newest.flags["--enable-prefix-caching"]
    assert not TABLES.table_for("0.32").knows("--disable-prefix-caching")


@pytest.mark.parametrize(
    ("argument", "flag"),
    [
        ("--tensor-parallel-size", "--tensor-parallel-size"),
        ("--tensor_parallel_size=2", "--tensor-parallel-size"),
        ("--tensor", "--tensor-parallel-size"),
        ("--tensor_par=2", "--tensor-parallel-size"),
        ("-tp=2", "--tensor-parallel-size"),
        ("-O3", "--optimization-level"),
        ("-O", "--optimization-level"),
        ("-qfp8", "--quantization"),
        ("--compilation-config.pass_config.fuse", "--compilation-config"),
        ("--no-enforce", "--enforce-eager"),
        ("--device-mem", "--gpu-memory-utilization"),
    ],
)
def test_an_argument_is_taken_for_a_flag_as_the_parser_would(argument, flag):
    assert [flag_found.name for flag_found in TABLES.table_for("0.33").understood_as(argument)] == [flag]
    assert TABLES.table_for("0.33").knows(argument)


def test_an_ambiguous_abbreviation_names_every_flag_it_could_mean():
    flag_names = {flag.name for flag in TABLES.table_for("0.33").understood_as("--ssl-c")}
    assert flag_names == {"--ssl-certfile", "--ssl-ca-certs", "--ssl-cert-reqs", "--ssl-ciphers"}
    assert not TABLES.table_for("0.33").knows("--ssl-c")


@pytest.mark.parametrize("argument", ["--no-such-flag", "/models/a", "8000", "", "--tensor-parallel-size-x", "-Z"])
def test_what_is_no_flag_is_understood_as_none(argument):
    assert TABLES.table_for("0.33").understood_as(argument) == ()
    assert not TABLES.table_for("0.33").knows(argument)
