"""Memory fit against published figures, one by one. The figures are typed from their sources, not from the product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hermetic.sizing.catalogue import Gpu, Value, sizes
from hermetic.sizing.kv_cache import kv_cache
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.parallelism import broken_rules, possible
from hermetic.sizing.serving import Lora, Serving
from tests.model_configs import (
    DEEPSEEK_V3,
    DEEPSEEK_V3_BYTES,
    GPT_OSS_120B,
    GPT_OSS_120B_BYTES,
    LLAMA_8B,
    LLAMA_8B_BYTES,
    LLAMA_70B,
    LLAMA_70B_BYTES,
    QWEN3_235B_FP8,
    QWEN3_235B_FP8_BYTES,
    facts,
)

GIB = 2**30
L8, L70 = facts(LLAMA_8B, LLAMA_8B_BYTES), facts(LLAMA_70B, LLAMA_70B_BYTES)
V3, OSS = facts(DEEPSEEK_V3, DEEPSEEK_V3_BYTES), facts(GPT_OSS_120B, GPT_OSS_120B_BYTES)
QWEN = facts(QWEN3_235B_FP8, QWEN3_235B_FP8_BYTES)


def gpu(gib: float) -> Gpu:
    return Gpu("", f"{gib} GiB", "nvidia", Value(int(gib * GIB), "test", True), 9.0)


def per_token(model, **settings) -> float:
    return kv_cache(model.attention, Serving(**settings)).token_bytes


PER_TOKEN = (
    ("Llama-3.1-8B, one GPU", per_token(L8), 131_072),
    ("Llama-3.3-70B, in all", per_token(L70), 327_680),
    ("Llama-3.3-70B, TP 4", per_token(L70, tensor_parallel=4), 81_920),
    ("Llama-3.3-70B, TP 8", per_token(L70, tensor_parallel=8), 40_960),
    ("Llama-3.3-70B, TP 16: heads replicated", per_token(L70, tensor_parallel=16), 40_960),
    ("DeepSeek-V3, one GPU", per_token(V3), 70_272),
    ("DeepSeek-V3, TP 8: on every rank", per_token(V3, tensor_parallel=8), 70_272),
    ("gpt-oss-120b, every layer full", per_token(OSS), 73_728),
    ("Llama-3.1-8B, cache in fp8", per_token(L8, kv_cache_dtype="fp8"), 65_536),
    ("Llama-3.1-8B, cache in float32", per_token(L8, kv_cache_dtype="float32"), 262_144),
    ("Llama-3.3-70B, two stages", per_token(L70, pipeline_parallel=2), 163_840),
)


@pytest.mark.parametrize(("label", "computed", "published"), PER_TOKEN, ids=[title for title, _, _ in PER_TOKEN])
def test_bytes_of_one_token_on_one_gpu(label, computed, published):
    assert computed == published, label


def test_a_context_of_8192_tokens_of_llama_8b_takes_one_gib():
    assert kv_cache(L8.attention, Serving()).request_bytes(8192) == GIB


def test_half_of_the_layers_of_gpt_oss_hold_their_window_only():
    cache = kv_cache(OSS.attention, Serving(batched_tokens=8192))
    assert (cache.whole_layers, cache.windowed_layers) == (18, 18)
    # 18 layers of 2048 bytes for each token, and 18 that hold 128 - 1 + 2 x 8192 tokens: blocks of 16, and one more.
    assert cache.request_bytes(131_072) == 18 * 2048 * 131_072 + 18 * 2048 * (16_512 + 16)


@dataclass(frozen=True)
class Vector:
    """One published statement, that a model fits such GPUs or not, and the answer that is right for it.

    Tight is right for one that is published to fit, and never for one that is published not to.
    """

    what: str
    model: object
    memory: float
    serving: Serving
    answer: FitAnswer
    longest: int | None = None

    @property
    def published(self) -> str:
        return "does not fit" if self.answer is FitAnswer.DOES_NOT_FIT else "fits"


VECTORS = (
    # vLLM at 0.92: about 55 GiB or 447 k tokens are left on an 80 GB A100, 2.4 GiB or 19.6 k tokens on an A10, none
    # on a T4.
    Vector("8B on an 80 GB A100", L8, 79.25, Serving(max_model_length=8192), FitAnswer.FITS, 447_000),
    Vector("8B on a 24 GB A10", L8, 22.5, Serving(max_model_length=8192), FitAnswer.TIGHT, 19_600),
    Vector("8B on a 16 GB T4", L8, 15.0, Serving(max_model_length=8192), FitAnswer.DOES_NOT_FIT, 0),
    # Its own context of 131072 tokens takes 16 GiB: vLLM refuses to start on an A10 without a shorter one.
    Vector("8B with its own context on an A10", L8, 22.5, Serving(), FitAnswer.DOES_NOT_FIT, 19_600),
    # The model card of gpt-oss-120b: fits one GPU of 80 GB.
    Vector("gpt-oss-120b on one H100", OSS, 79.1, Serving(max_model_length=32768), FitAnswer.TIGHT),
    # README of DeepSeek-V3: 8 GPUs of 141 GB hold it, 8 GPUs of 80 GB do not.
    Vector("DeepSeek-V3 on 8 H200", V3, 139.72, Serving(tensor_parallel=8), FitAnswer.FITS),
    Vector("DeepSeek-V3 on 8 H100", V3, 79.1, Serving(tensor_parallel=8), FitAnswer.DOES_NOT_FIT, 0),
    # Meta's card of Llama 3.3 70B: 141 GB in bf16 need several GPUs of 80 GB.
    Vector("70B on one A100", L70, 79.1, Serving(max_model_length=8192), FitAnswer.DOES_NOT_FIT, 0),
    Vector("70B on four A100", L70, 79.1, Serving(tensor_parallel=4), FitAnswer.FITS),
    Vector("70B on one MI300X", L70, 191.69, Serving(max_model_length=8192), FitAnswer.FITS),
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.what)
def test_what_is_published_to_fit_fits_and_what_does_not_does_not(vector):
    fit_result = fit(vector.model, vector.serving, gpu(vector.memory))
    assert fit_result.answer is vector.answer
    if vector.longest is not None:
        assert fit_result.longest_context == pytest.approx(vector.longest, rel=0.01)


PAGE = (Path(__file__).parents[2] / "docs" / "sizing.md").read_text("utf-8").splitlines()


def listed(vector: Vector) -> str:
    """The row of the page for this vector."""
    fit_result = fit(vector.model, vector.serving, gpu(vector.memory))
    needed = f"{fit_result.needed / GIB:.1f} of {fit_result.allowed / GIB:.1f} GiB"
    return f"| {vector.what} | {vector.published} | {needed} | {fit_result.answer} |"


def test_every_vector_is_on_the_page():
    assert [row for row in map(listed, VECTORS) if row not in PAGE] == []
    rows = [f"| {title} | {published} | {computed:.0f} |" for title, computed, published in PER_TOKEN]
    assert [row for row in rows if row not in PAGE] == []


def test_the_room_that_is_published_for_an_80_gb_a100_and_an_a10():
    assert fit(L8, Serving(), gpu(79.25)).spare / GIB == pytest.approx(55, abs=0.5)
    assert fit(L8, Serving(), gpu(22.5)).spare / GIB == pytest.approx(2.4, abs=0.05)


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "works"),
    [
        # 'output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128'
        pytest.param(QWEN, 8, False, id="experts of 1536 in blocks of 128 over 8"),
        pytest.param(QWEN, 4, True, id="experts of 1536 in blocks of 128 over 4"),
        pytest.param(V3, 8, True, id="experts of 2048 in blocks of 128 over 8"),
        pytest.param(V3, 16, True, id="experts of 2048 in blocks of 128 over 16"),
        pytest.param(V3, 32, False, id="experts of 2048 in blocks of 128 over 32"),
        # 'must be divisible by tensor parallel size'
        pytest.param(L8, 3, False, id="32 heads over 3"),
        pytest.param(L8, 32, True, id="8 key-value heads over 32, replicated"),
        pytest.param(L70, 16, True, id="8 key-value heads over 16, replicated"),
        pytest.param(L70, 64, True, id="64 heads over 64"),
    ],
)
def test_rules_that_end_the_engine(model, tensor_parallel, works):
    assert any(broken_rules(model, tensor_parallel)) is not works


def test_experts_stay_whole_with_expert_parallelism():
    assert list(broken_rules(QWEN, 8))
    assert not list(broken_rules(QWEN, 8, expert_parallel=True))


def test_a_pipeline_has_no_more_stages_than_layers():
    assert list(broken_rules(L8, 1, 33)) == ["32 layers are fewer than 33 pipeline stages"]


def test_what_is_possible_is_listed_smallest_first():
    assert possible(L8, 8) == (1, 2, 4, 8)
    assert possible(QWEN, 8) == (1, 2, 4)


def test_nothing_unconfirmed_is_ever_said_to_fit():
    small = facts(LLAMA_8B | {"num_hidden_layers": 1}, 1000)
    for size in sizes().values():
        answer = fit(small, Serving(max_model_length=1), size.gpu, confirmed=size.confirmed).answer
        assert answer is (FitAnswer.FITS if size.confirmed else FitAnswer.UNKNOWN), size.name


def test_weights_alone_that_are_too_large_do_not_fit_whatever_else_is_unknown():
    mamba = facts({"model_type": "mamba"}, LLAMA_70B_BYTES)
    assert fit(mamba, Serving(), gpu(79.1)).answer is FitAnswer.DOES_NOT_FIT
    shrunk = Serving(may_shrink_weights=True, not_computed=("--quantization",))
    assert fit(mamba, shrunk, gpu(79.1)).answer is FitAnswer.UNKNOWN
    assert fit(mamba, Serving(), gpu(79.1), confirmed=False).answer is FitAnswer.UNKNOWN


def test_adapters_take_memory_in_proportion_to_their_rank_and_number():
    none, single = fit(L8, Serving(), gpu(79.1)), fit(L8, Serving(lora=Lora(1, 16)), gpu(79.1))
    many = fit(L8, Serving(lora=Lora(4, 64)), gpu(79.1))
    # rank x (in + out) of q, k, v, o, gate, up and down, in 16 bits, in 32 layers
    by_hand = 32 * 16 * 2 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))
    assert single.overhead - none.overhead == by_hand
    assert many.overhead - none.overhead == 16 * by_hand


def test_a_format_of_the_cache_that_is_not_known_never_fits_and_has_no_numbers():
    fit_result = fit(L8, Serving(kv_cache_dtype="nvfp4"), gpu(79.1))
    assert (fit_result.cache, fit_result.needed, fit_result.longest_context) == (None, None, None)
    assert fit_result.answer is FitAnswer.UNKNOWN


def test_the_answer_turns_where_the_formula_says():
    """Between 0.9 and 1.1 of what is allowed it is tight: below it fits, above it does not."""
    answers = [fit(L8, Serving(max_model_length=8192), gpu(20 + step / 10)).answer for step in range(60)]
    assert list(dict.fromkeys(answers)) == [FitAnswer.TIGHT, FitAnswer.FITS]
    smaller = [fit(L8, Serving(max_model_length=8192), gpu(10 + step / 10)).answer for step in range(120)]
    assert list(dict.fromkeys(smaller)) == [FitAnswer.DOES_NOT_FIT, FitAnswer.TIGHT]


def test_more_requests_at_a_time_leave_a_shorter_context():
    single, four = (fit(L8, replace(Serving(), requests=count), gpu(79.1)).longest_context for count in (1, 4))
    assert single // 4 - 16 <= four <= single // 4
