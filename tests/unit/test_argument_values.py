"""What vLLM's parser would refuse is refused before a pod is scheduled: types, arity, JSON, and what must be together.

The expected verdicts are those of the real parser of 0.32.0; `tests/engine/test_parsers.py` asks that of each release
about every flag.
"""

from __future__ import annotations

import pytest

from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.argument_values import refused
from hermetic.engines.extra_arguments import read
from hermetic.engines.vllm.tables import TABLES
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gates import engine_flags_are_known
from tests.scenarios import VLLM_IMAGE, a_share_model
from tests.snapshots import a_snapshot, spec_of

every_version = pytest.mark.parametrize("minor", TABLES.supported)
REFUSED = [
    (["--max-num-seqs", "many"], "'many' for --max-num-seqs, which takes an integer"),
    (["--max-num-seqs", "1.5"], "which takes an integer"),
    (["--max-num-seqs=many"], "which takes an integer"),
    (["--max-num-seqs="], "which takes an integer"),
    (["--max_num_seqs", "many"], "which takes an integer"),
    (["--max-num-seq", "many"], "which takes an integer"),
    (["--max-num-seqs"], "'--max-num-seqs' without the value that it needs"),
    (["--max-num-seqs", "--enforce-eager"], "without the value that it needs"),
    (["--max-num-batched-tokens", "many"], "which takes an integer, with k, m, g or t"),
    (["--max-num-batched-tokens", "1.5K"], "which takes an integer, with k, m, g or t"),
    (["--limit-mm-per-prompt", "{image: 2}"], "'{image: 2}' for --limit-mm-per-prompt, which takes JSON"),
    (["--compilation-config", "{"], "which takes a JSON object"),
    (["--enforce-eager=true"], "--enforce-eager takes no value"),
    (["--enable-auto-tool-choice"], "which needs '--tool-call-parser' beside it"),
    (["--max-num-seqs", "9" * 500 + "x"], "…' for --max-num-seqs"),
    (["--limit-mm-per-prompt", "[" * 1000], "which takes JSON"),
    (["--max-num-batched-tokens", "auto"], "which takes an integer, with k, m, g or t"),
    (["--compilation-config", "[]"], "which takes a JSON object"),
    (["--compilation-config", "3"], "which takes a JSON object"),
    (["--compilation-config=NaN"], "which takes a JSON object"),
    (["--max-num-seqs.a", "1"], "--max-num-seqs takes no keys"),
    (["--enforce-eager.a=1"], "--enforce-eager takes no keys"),
    (["--dtype.a", "auto"], "--dtype takes no keys"),
]
TAKEN = [
    # Compared with the choices in lower case and with '_'.
    ["--moe-backend", "Deep-Gemm"],
    ["--linear-backend", "flashinfer_cutlass"],
    ["--max-num-seqs", "64"],
    ["--max-num-seqs=64"],
    ["--seed", "-1"],
    ["--max-num-batched-tokens", "8k"],
    ["--max-num-batched-tokens", "1.5k"],
    ["--max-num-batched-tokens", "2K"],
    ["--limit-mm-per-prompt", '{"image": 2}'],
    ["--limit-mm-per-prompt.image", "2"],
    ["--compilation-config", '{"mode": 3}'],
    ["-O3"],
    ["-O", "3"],
    ["-qfp8"],
    ["--enforce-eager"],
    ["--no-enforce-eager"],
    ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
    ["--no-enable-auto-tool-choice"],
    ["--quantization", "fp8"],
    ["--max-logprobs", "None"],
]


@pytest.mark.parametrize("word", ["-0.5", "-.5", "--5", "-\u00b2"])
def test_what_the_parser_takes_for_a_flag_is_no_value(word):
    """Behind '-0.5' vLLM's parser takes the next word away, whatever it is: the flag that was judged would be gone."""
    vllm = {"image": VLLM_IMAGE, "version": "0.33.0", "extraArgs": ["--watermark", word, "--disable-prefix-caching"]}
    verdict = engine_flags_are_known(spec_of(a_share_model(engine={"vllm": vllm})), a_snapshot())
    assert isinstance(verdict, Blocks)
    assert f"'{word}', which vLLM 0.33.0 does not know" in verdict.message


def clauses(arguments: list[str], minor: str) -> list[str]:
    table = TABLES.table_for(minor)
    return list(refused(read(arguments, table)[0], table))


@every_version
@pytest.mark.parametrize(
    ("arguments", "clause"), REFUSED, ids=lambda refused_arguments: " ".join(refused_arguments)[:40]
)
def test_what_the_parser_refuses_is_refused_with_what_it_takes(arguments, clause, minor):
    assert clause in " ".join(clauses(arguments, minor))
    assert bool(clauses(arguments, minor)) == bool(clause)


@every_version
@pytest.mark.parametrize("arguments", TAKEN, ids=" ".join)
def test_what_the_parser_takes_is_taken(arguments, minor):
    assert clauses(arguments, minor) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--reasoning-effort-map", '{"ultra": "max"}'],
        ["--reasoning-effort-map", '{"medium": 1}'],
        ["--reasoning-effort-map", '["medium"]'],
        ["--reasoning-effort-map", "3"],
        ['--reasoning-effort-map={"medium": null}'],
        ["--reasoning_effort_map", '{"ultra": "max"}'],
        ["--reasoning-effort-map.ultra", "max"],
        ["--reasoning-effort-map.medium=1"],
        ["--reasoning-effort-map", "{medium: low}"],
    ],
    ids=" ".join,
)
def test_what_validate_parsed_serve_args_refuses_is_refused(arguments):
    """The first three are of vLLM's own test, test_reasoning_effort_map_rejects_invalid of 0.33."""
    (clause,) = clauses(arguments, "0.33")
    assert "-" in clause


@pytest.mark.parametrize(
    "arguments",
    [
        ["--reasoning-effort-map", '{"medium": "low", "xhigh": "max"}'],
        ["--reasoning-effort-map", "{}"],
        ["--reasoning-effort-map", "null"],
        ["--reasoning-effort-map.medium", "low"],
    ],
    ids=" ".join,
)
def test_what_validate_parsed_serve_args_takes_is_taken(arguments):
    assert clauses(arguments, "0.33") == []


def test_the_gate_says_the_flag_the_value_and_what_it_takes():
    engine = {"vllm": {"image": VLLM_IMAGE, "version": "0.32.0", "extraArgs": ["--max-num-seqs", "many"]}}
    verdict = engine_flags_are_known(spec_of(a_share_model(engine=engine)), a_snapshot())
    assert isinstance(verdict, Blocks)
    assert verdict.reason is SpecReason.ENGINE_FLAG_UNKNOWN
    assert verdict.message == (
        "`engine.vllm.extraArgs` holds 'many' for --max-num-seqs, which takes an integer: "
        "vLLM 0.32.0 would end with exit code 2"
    )


@every_version
@pytest.mark.parametrize("flag", ["--moe-backend", "--linear-backend"])
def test_a_choice_that_is_compared_without_case_is_still_one_of_the_choices(flag: str, minor: str) -> None:
    (written,), _ = read([flag, "no-such-kernel"], TABLES.table_for(minor))
    assert list(written.wrong_values()) == ["no-such-kernel"]
