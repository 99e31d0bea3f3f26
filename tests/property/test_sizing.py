"""Sizing for any model and any config.json: monotone where physics is, and never an exception or a promise."""

from __future__ import annotations

import copy
import json
from decimal import Decimal

from hypothesis import assume, given
from hypothesis import strategies as st

from hermetic.api.condition_updates import dated
from hermetic.api.conditions import LONGEST_MESSAGE
from hermetic.api.model_facts import (
    Attention,
    CompressedLayers,
    Encoder,
    LatentAttention,
    ModelFacts,
    RecurrentState,
    SlidingWindow,
    SparseIndex,
)
from hermetic.plan.gate_results import Blocks
from hermetic.plan.model_fit import model_fits_the_gpus, model_placement
from hermetic.sizing.architectures import architectures
from hermetic.sizing.catalogue import Gpu, Storage, Value, sizes, slices
from hermetic.sizing.comparison import BEST_FIRST
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.facts_file import file_content, parsed_facts
from hermetic.sizing.load_time import Files, load_time
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.mistral_form import config_of_params
from hermetic.sizing.overhead import COLLECTIVES
from hermetic.sizing.parallelism import broken_rules
from hermetic.sizing.placement import Demand, place
from hermetic.sizing.serving import Serving
from tests.corpus.manifests import changed
from tests.model_configs import DEEPSEEK_V3, GPT_OSS_120B, LLAMA_8B, QWEN3_235B_FP8
from tests.public_models import aiconfigurator_models
from tests.scenarios import a_share_model
from tests.snapshots import NOW, a_snapshot, spec_of

GIB = 2**30
POWERS = st.sampled_from((1, 2, 4, 8, 16))


def built(model: type, **values: st.SearchStrategy) -> st.SearchStrategy:
    """A part of the facts with fields of these values."""
    return st.fixed_dictionaries(values).map(lambda fields: model(**fields))


def recurrent_states(layers: int) -> st.SearchStrategy[RecurrentState]:
    return built(
        RecurrentState,
        layers=st.integers(1, layers),
        heads=st.sampled_from((0, 64, 128, 256)),
        head_dimension=st.sampled_from((64, 128)),
        state_dimension=st.sampled_from((16, 128, 256)),
        value_bytes=st.sampled_from((2, 4)),
        channels=st.sampled_from((0, 2048, 16_384)),
        channel_tokens=st.integers(0, 3),
    )


ENCODERS = st.lists(
    built(
        Encoder,
        inputs=st.sampled_from((["image"], ["image", "video"], ["audio"])),
        bytes=st.integers(0, 2**30),
        hidden_size=st.integers(1, 4096),
        intermediate_size=st.integers(1, 16_384),
        patches_per_token=st.integers(1, 16),
        patch_values=st.integers(1, 2048),
    ),
    max_size=2,
)


@st.composite
def attentions(draw) -> Attention:
    layers = draw(st.integers(1, 200))
    heads = draw(st.sampled_from((1, 2, 8, 16, 32, 64, 128)))
    windowed = draw(st.integers(0, layers))
    window = SlidingWindow(tokens=draw(st.integers(1, 10**6)), layers=windowed) if windowed else None
    rank = draw(st.none() | st.integers(1, 2048))
    latent = LatentAttention(key_value_rank=rank, rope_head_dimension=64) if rank is not None else None
    cached_layers = draw(st.none() | st.integers(windowed, layers))
    return Attention(
        layers=layers,
        heads=heads,
        key_value_heads=draw(
            st.sampled_from([head_count for head_count in (1, 2, 4, 8, 16, 32, 64, 128) if head_count <= heads])
        ),
        head_dimension=draw(st.sampled_from((64, 128, 256))),
        hidden_size=draw(st.integers(64, 16384)),
        sliding_window=window,
        latent=latent,
        key_value_layers=cached_layers,
        value_head_dimension=draw(st.none() | st.sampled_from((64, 128, 512))),
        index=draw(st.none() | built(SparseIndex, layers=st.integers(1, layers), token_bytes=st.integers(1, 512))),
        recurrent=draw(st.none() | recurrent_states(layers)),
    )


@st.composite
def models(draw) -> ModelFacts:
    return ModelFacts(
        model_type="llama",
        parameter_bytes=draw(st.integers(10**8, 10**12)),
        max_model_length=draw(st.integers(1, 10**6)),
        attention=draw(attentions()),
        encoders=draw(ENCODERS),
    )


@st.composite
def compressed_models(draw) -> ModelFacts:
    """Models whose layers keep one vector for several tokens, as DeepSeek-V4."""
    layers = draw(st.integers(2, 100))
    parts = [
        CompressedLayers(tokens=tokens, layers=draw(st.integers(1, layers)))
        for tokens in draw(st.lists(st.sampled_from((4, 128)), min_size=1, max_size=2, unique=True))
    ]
    window = SlidingWindow(tokens=128, layers=layers)
    update = {"compressed": parts, "sliding_window": window, "key_value_layers": None, "index": None, "recurrent": None}
    model = draw(models())
    attention = model.attention.model_copy(update={"layers": layers, **update})
    return model.model_copy(update={"model_type": "deepseek_v4", "attention": attention})


def gpu(memory: int) -> Gpu:
    return Gpu("", "a GPU", "nvidia", Value(memory, "test", True), 9.0)


EQUAL = Serving(batched_tokens=8192, sequences=256)
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
def test_a_larger_gpu_never_answers_worse(model, first, second):
    """With equal settings: by default vLLM takes more requests and longer steps on larger GPUs."""
    small, large = (fit(model, EQUAL, gpu(memory)) for memory in sorted((first, second)))
    assert BEST_FIRST.index(large.answer) <= BEST_FIRST.index(small.answer)
    assert large.longest_context >= small.longest_context


@given(models(), memories, lengths, lengths)
def test_a_longer_context_never_takes_less(model, memory, first, second):
    short, long = (fit(model, Serving(max_model_length=length), gpu(memory)) for length in sorted((first, second)))
    assert long.requested >= short.requested
    assert BEST_FIRST.index(long.answer) >= BEST_FIRST.index(short.answer)


ORDER = {FitAnswer.FITS: 0, FitAnswer.TIGHT: 1, FitAnswer.UNKNOWN: 2, FitAnswer.DOES_NOT_FIT: 3}


@given(compressed_models(), memories, POWERS, st.integers(0, 4), lengths, lengths)
def test_compressed_layers_take_less_on_more_gpus_and_more_for_a_longer_context(
    model, memory, parts, doubled, first, second
):
    few, many = (fit(model, Serving(tensor_parallel=size), gpu(memory)) for size in (parts, parts * 2**doubled))
    assert many.spare >= few.spare - (COLLECTIVES if parts == 1 else 0) - 1
    short, long = (fit(model, Serving(max_model_length=length), gpu(memory)) for length in sorted((first, second)))
    assert long.requested >= short.requested
    assert ORDER[long.answer] >= ORDER[short.answer]


@given(models() | compressed_models(), st.integers(20 * GIB, 300 * GIB), POWERS, st.integers(1, 4))
def test_more_gpus_never_turn_a_fit_into_a_refusal(model, memory, parts, doubled):
    """The second GPU brings buffers of collectives, so the comparison begins with two."""
    few, many = (
        fit(model, Serving(tensor_parallel=size), gpu(memory)).answer for size in (2 * parts, 2 * parts * 2**doubled)
    )
    if few in {FitAnswer.FITS, FitAnswer.TIGHT}:
        assert many is not FitAnswer.DOES_NOT_FIT


@given(models(), memories)
def test_inputs_that_are_switched_off_never_make_an_answer_worse(model, memory):
    on, off = (fit(model, Serving(inputs_off=inputs), gpu(memory)) for inputs in (frozenset(), frozenset({"*"})))
    assert (off.encoder, off.weights <= on.weights) == (0, True)
    assert ORDER[off.answer] <= ORDER[on.answer] or on.answer is FitAnswer.UNKNOWN


@given(models() | compressed_models(), memories, st.integers(1, 1024), st.integers(1, 1024))
def test_more_requests_at_a_time_never_make_an_answer_better(model, memory, first, second):
    fewer, more = (fit(model, Serving(sequences=count), gpu(memory)) for count in sorted((first, second)))
    assert more.needed >= fewer.needed
    assert ORDER[more.answer] >= ORDER[fewer.answer]


@given(models(), memories, lengths)
def test_a_cache_in_fp8_never_needs_more_than_one_in_16_bits(model, memory, length):
    # The format of sparse attention has a fixed number of bytes for each token, whatever the rank is.
    assume(model.attention is None or model.attention.index is None)
    wide, narrow = (
        fit(model, Serving(max_model_length=length, kv_cache_dtype=name), gpu(memory)) for name in ("bfloat16", "fp8")
    )
    assert narrow.requested <= wide.requested


@given(models(), memories, st.integers(10, 98), st.integers(10, 98))
def test_a_larger_share_of_the_gpu_never_leaves_less(model, memory, first, second):
    less, more = (fit(model, Serving(utilization_percent=share), gpu(memory)) for share in sorted((first, second)))
    assert more.spare >= less.spare


@given(models(), memories, st.integers(1, 64))
def test_the_longest_context_fits_and_one_block_more_does_not(model, memory, requests):
    answer = fit(model, Serving(requests=requests), gpu(memory))
    longest = answer.longest_context
    if answer.spare < 0:
        # A model without layers that keep keys and values needs no cache, and still has no room here.
        assert longest == 0
        return
    # A recurrent state has a fixed size: no context at all fits where the states of all requests do not.
    assert longest == 0 or answer.cache.request_bytes(longest) * requests <= answer.spare
    assume(longest < 2**31 - 1)
    assert answer.cache.request_bytes(longest + 1) * requests > answer.spare


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
FAMILIES = tuple(model.config for model in aiconfigurator_models().values())
FAMILY_KEYS = sorted(
    {key for config in FAMILIES for key in (*config, *config.get("text_config", {}))} | {"audio_config"}
)
KEYS = sorted({*LLAMA_8B, *DEEPSEEK_V3, *GPT_OSS_120B, *QWEN3_235B_FP8, "text_config", "vision_config", "num_kv_heads"})
MISTRAL_KEYS = ("dim", "n_layers", "n_heads", "head_dim", "moe", "yarn", "quantization", "sliding_window")
MISTRAL_KEYS += ("multimodal", "vision_encoder", "qk_nope_head_dim", "kv_lora_rank", "max_seq_len")
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


@st.composite
def damaged_families(draw):
    """A config.json of any public model with some values replaced by anything, at any depth of it."""
    config = copy.deepcopy(draw(st.sampled_from(FAMILIES)))
    for key in draw(st.lists(st.sampled_from(FAMILY_KEYS), max_size=4)):
        part = config.get("text_config", config) if draw(st.booleans()) else config
        part[key] = draw(json_values)
    nested = [value for value in config.values() if isinstance(value, dict) and value]
    if nested and draw(st.booleans()):
        part = draw(st.sampled_from(nested))
        part[draw(st.sampled_from(sorted(part)))] = draw(json_values)
    return config


@given(damaged_families(), st.integers(1, 2**45), json_values)
def test_any_config_of_a_public_family_gives_facts_and_an_answer(config, total, quantization):
    model_facts = facts_of(config, TensorSums({"BF16": total}, 4, total), quantization)
    assert parsed_facts(json.loads(file_content(model_facts))) == model_facts
    result = fit(model_facts, Serving(max_model_length=1, sequences=1), gpu(10**18))
    assert result.answer in FitAnswer
    if model_facts.not_computed:
        assert (result.answer, result.cache, result.needed) == (FitAnswer.UNKNOWN, None, None)
    list(broken_rules(model_facts, 7, 3, data_parallel=5))


@given(json_values | st.dictionaries(st.sampled_from(MISTRAL_KEYS), json_values, max_size=6))
def test_any_form_of_mistral_gives_facts(params):
    model_facts = facts_of(config_of_params(params), TensorSums({"BF16": 2**30}, 1, 2**30))
    assert parsed_facts(json.loads(file_content(model_facts))) == model_facts


@given(damaged_configs() | json_values, st.integers(-5, 2**60), st.integers(-1, 2**30), json_values)
def test_any_config_gives_facts_and_an_answer(config, total, shards, quantization):
    model_facts = facts_of(config, TensorSums({"BF16": total}, shards, total), quantization)
    ModelFacts.model_validate(model_facts.model_dump(by_alias=True, exclude_none=True))
    answer = fit(model_facts, Serving(max_model_length=1), gpu(10**18)).answer
    assert answer is FitAnswer.UNKNOWN if model_facts.not_computed else answer in FitAnswer
    list(broken_rules(model_facts, 7, 3))


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
    assert len(dated(condition, 1, {}, NOW)["message"]) <= LONGEST_MESSAGE
    assert (condition.status == "False") == isinstance(verdict, Blocks)
    if typed["modelType"] == "of-tomorrow" or typed["notComputed"]:
        assert condition.reason.value != "GpuMemorySufficient"


SLICES = [(size, profile) for size in sizes().values() for profile in slices().get(size.gpu.key, {})]


@given(models(), st.integers(1, 10**6), st.sampled_from(SLICES))
def test_a_slice_never_has_more_room_than_its_gpu_and_one_that_is_not_confirmed_never_fits(model, length, sliced):
    size, profile = sliced
    uncut, part = (
        place(model, Serving(max_model_length=length), size, Demand(resource, 1, Decimal(1), Decimal(0)))
        for resource in ("nvidia.com/gpu", f"nvidia.com/mig-{profile}")
    )
    assert part.fit.allowed <= uncut.fit.allowed
    if not slices()[size.gpu.key][profile].confirmed:
        assert part.fit.answer is FitAnswer.UNKNOWN
