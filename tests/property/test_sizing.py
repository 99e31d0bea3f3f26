"""Sizing for any model and any config.json: monotone where physics is, and never an exception or a promise."""

from __future__ import annotations

import json

from hypothesis import assume, given
from hypothesis import strategies as st

from hermetic.api.model_facts import Attention, LatentAttention, ModelFacts, SlidingWindow
from hermetic.plan.gate_results import Blocks
from hermetic.plan.model_fit import model_fits_the_gpus, model_placement
from hermetic.sizing.architectures import architectures
from hermetic.sizing.catalogue import Gpu, Storage, Value
from hermetic.sizing.comparison import BEST_FIRST
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.facts_file import file_content, parsed_facts
from hermetic.sizing.load_time import Files, load_time
from hermetic.sizing.memory import COLLECTIVES, FitAnswer, fit
from hermetic.sizing.parallelism import broken_rules
from hermetic.sizing.serving import Serving
from tests.corpus.manifests import changed
from tests.model_configs import DEEPSEEK_V3, GPT_OSS_120B, LLAMA_8B, QWEN3_235B_FP8
from tests.scenarios import a_share_model
from tests.snapshots import a_snapshot, spec_of

GIB = 2**30
POWERS = st.sampled_from((1, 2, 4, 8, 16))


@st.composite
def attentions(draw) -> Attention:
    layers = draw(st.integers(1, 200))
    heads = draw(st.sampled_from((1, 2, 8, 16, 32, 64, 128)))
    windowed = draw(st.integers(0, layers))
    window = SlidingWindow(tokens=draw(st.integers(1, 10**6)), layers=windowed) if windowed else None
    rank = draw(st.none() | st.integers(1, 2048))
    latent = LatentAttention(key_value_rank=rank, rope_head_dimension=64) if rank is not None else None
    return Attention(
        layers=layers,
        heads=heads,
        key_value_heads=draw(st.sampled_from([one for one in (1, 2, 4, 8, 16, 32, 64, 128) if one <= heads])),
        head_dimension=draw(st.sampled_from((64, 128, 256))),
        hidden_size=draw(st.integers(64, 16384)),
        sliding_window=window,
        latent=latent,
    )


@st.composite
def models(draw) -> ModelFacts:
    return ModelFacts(
        model_type="llama",
        parameter_bytes=draw(st.integers(10**8, 10**12)),
        max_model_length=draw(st.integers(1, 10**6)),
        attention=draw(attentions()),
    )


def gpu(memory: int) -> Gpu:
    return Gpu("", "a GPU", "nvidia", Value(memory, "test", True), 9.0)


memories = st.integers(10 * GIB, 300 * GIB)
lengths = st.integers(1, 2**31 - 1)


@given(models(), memories, POWERS, st.integers(0, 4))
def test_more_gpus_never_leave_less_room(model, memory, parts, doubled):
    """But for the buffers of collectives, which the second GPU brings with it once."""
    more = parts * 2**doubled
    few, many = (fit(model, Serving(tensor_parallel=size), gpu(memory)) for size in (parts, more))
    assert many.weights <= few.weights + 1
    assert many.spare >= few.spare - (COLLECTIVES if parts == 1 else 0) - 1
    assert many.cache.token_bytes <= few.cache.token_bytes


@given(models(), memories, POWERS, POWERS)
def test_more_stages_never_leave_less_room(model, memory, few, more):
    stages = sorted((few, more))
    first, second = (fit(model, Serving(pipeline_parallel=size), gpu(memory)) for size in stages)
    assert second.weights <= first.weights + 1
    if model.attention.sliding_window is None:
        assert second.cache.token_bytes <= first.cache.token_bytes


@given(models(), memories, memories)
def test_a_larger_gpu_never_answers_worse(model, one, other):
    small, large = (fit(model, Serving(), gpu(memory)) for memory in sorted((one, other)))
    assert BEST_FIRST.index(large.answer) <= BEST_FIRST.index(small.answer)
    assert large.longest_context >= small.longest_context


@given(models(), memories, lengths, lengths)
def test_a_longer_context_never_takes_less(model, memory, one, other):
    short, long = (fit(model, Serving(max_model_length=length), gpu(memory)) for length in sorted((one, other)))
    assert long.requested >= short.requested
    assert BEST_FIRST.index(long.answer) >= BEST_FIRST.index(short.answer)


@given(models(), memories, st.integers(10, 98), st.integers(10, 98))
def test_a_larger_share_of_the_gpu_never_leaves_less(model, memory, one, other):
    less, more = (fit(model, Serving(utilization_percent=share), gpu(memory)) for share in sorted((one, other)))
    assert more.spare >= less.spare


@given(models(), memories, st.integers(1, 64))
def test_the_longest_context_fits_and_one_block_more_does_not(model, memory, requests):
    found = fit(model, Serving(requests=requests), gpu(memory))
    longest = found.longest_context
    if longest:
        assert found.cache.request_bytes(longest) * requests <= found.spare
    assume(longest < 2**31 - 1)
    assert found.cache.request_bytes(longest + 1) * requests > max(0, found.spare)


@given(models(), memories, st.text(min_size=1, max_size=20))
def test_a_family_that_is_not_known_is_never_said_to_fit(model, memory, name):
    assume(name not in architectures().computed)
    other = model.model_copy(update={"model_type": name})
    assert fit(other, Serving(), gpu(memory)).answer in {FitAnswer.UNKNOWN, FitAnswer.DOES_NOT_FIT}


@given(models(), memories)
def test_what_is_not_confirmed_is_neither_promised_nor_refused(model, memory):
    assert fit(model, Serving(), gpu(memory), confirmed=False).answer is FitAnswer.UNKNOWN


@given(models(), POWERS)
def test_facts_survive_their_file(model, parts):
    assert parsed_facts(json.loads(file_content(model))) == model
    assert list(broken_rules(model, parts)) == list(broken_rules(parsed_facts(json.loads(file_content(model))), parts))


# ---------------------------------------------------------------- any config.json

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**18, 10**40)
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=20)
    | st.sampled_from(("llama", "fp8", "yarn", "sliding_attention", "bfloat16")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KEYS = sorted({*LLAMA_8B, *DEEPSEEK_V3, *GPT_OSS_120B, *QWEN3_235B_FP8, "text_config", "vision_config", "num_kv_heads"})
NESTED = {"rope_scaling": ["factor", "rope_type", "original_max_position_embeddings"]}
NESTED["quantization_config"] = ["quant_method", "weight_block_size", "group_size"]


@st.composite
def damaged_configs(draw):
    """A real config.json with some values replaced by anything."""
    config = dict(draw(st.sampled_from((LLAMA_8B, DEEPSEEK_V3, GPT_OSS_120B, QWEN3_235B_FP8))))
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=4)):
        config[key] = draw(json_values)
    for key, inner in NESTED.items():
        if isinstance(config.get(key), dict) and draw(st.booleans()):
            config[key] = {**config[key], draw(st.sampled_from(inner)): draw(json_values)}
    return {"text_config": config, "vision_config": {}} if draw(st.booleans()) else config


@given(damaged_configs() | json_values, st.integers(-5, 2**60), st.integers(-1, 2**30), json_values)
def test_any_config_gives_facts_and_an_answer(config, total, shards, quantization):
    found = facts_of(config, TensorSums({"BF16": total}, shards, total), quantization)
    ModelFacts.model_validate(found.model_dump(by_alias=True, exclude_none=True))
    answer = fit(found, Serving(max_model_length=1), gpu(10**18)).answer
    assert answer is FitAnswer.UNKNOWN if found.not_computed else answer in FitAnswer
    list(broken_rules(found, 7, 3))


@given(st.integers(1, 10**13), st.integers(1, 10**5), st.integers(1, 8), st.integers(1, 8), st.floats(1e6, 1e12))
def test_more_files_faster_storage_and_fewer_replicas_never_load_slower(total, shards, gpus, replicas, rate):
    cap = Value(3e8, "test", True)

    def took(**changes):
        settings = {"rate": rate, "shards": shards, "gpus": gpus, "replicas": replicas} | changes
        storage = Storage("", Value(settings["rate"], "test", True), cap, True)
        files = Files(total, settings["shards"], -(-total // settings["shards"]))
        return load_time(
            files, storage, nic=Value(1e9, "", True), pcie=25e9 * settings["gpus"], replicas=settings["replicas"]
        ).seconds

    base = took()
    assert took(rate=rate * 2) <= base
    assert took(shards=shards * 2) <= base * 1.0001
    assert took(gpus=gpus * 2) <= base
    assert took(replicas=replicas + 1) >= base


# ---------------------------------------------------------------- facts as any tenant may write them

ENDS = (1, 2, 3, 1000, 10_000)


@given(
    st.builds(
        dict,
        modelType=st.sampled_from(("llama", "deepseek_v3", "of-tomorrow")),
        parameterBytes=st.sampled_from((1, 10**9, 2**50)),
        maxModelLength=st.none() | st.sampled_from((1, 2**31 - 1)),
        dtype=st.sampled_from(("bfloat16", "float32")),
        quantization=st.none() | st.just({"method": "fp8", "block": 1_000_000}),
        experts=st.none() | st.just({"count": 1_000_000, "intermediateSize": 7}),
        attention=st.none()
        | st.builds(
            dict,
            layers=st.sampled_from(ENDS),
            heads=st.sampled_from((*ENDS, 100_000)),
            keyValueHeads=st.sampled_from((*ENDS, 100_000)),
            headDimension=st.sampled_from((1, 100_000)),
            hiddenSize=st.sampled_from((1, 1_000_000)),
            latent=st.none() | st.just({"keyValueRank": 1_000_000, "ropeHeadDimension": 0}),
        ),
        notComputed=st.lists(st.just("x" * 256), max_size=16),
    ),
    st.integers(1, 16),
)
def test_no_facts_that_the_api_takes_break_the_gate_or_the_status(typed, count):
    manifest = changed(
        a_share_model(),
        {
            "spec.weights.facts": typed,
            "spec.accelerator": {"count": count, "instanceTypes": ["Standard_ND96isr_H200_v5"]},
        },
    )
    spec, snapshot = spec_of(manifest), a_snapshot()
    verdict, condition = model_fits_the_gpus(spec, snapshot), model_placement(spec, snapshot).condition()
    assert len(condition.message) <= 2000
    assert (condition.status == "False") == isinstance(verdict, Blocks)
    if typed["modelType"] == "of-tomorrow" or typed["notComputed"]:
        assert condition.reason.value != "GpuMemorySufficient"
