"""The facts of a model that decide what memory it needs: read once from its folder, then kept with it.

`hermetic.sizing.facts` derives them from `config.json` and the sums of the safetensors headers. They are the content
of the file `.hermetic/model-facts.json` of a staged model, the output of `hermetic plan --show-facts`, and
`spec.weights.facts`, from which the operator sizes a deployment without reading the share. Every value is an integer or
a short word.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.field_types import list_of, matches
from hermetic.api.rules import ApiModel, Rule

SCHEMA = "hermetic.dev/model-facts/v1"
"""What `schema` of that file says, beside `facts`."""

MOST_BYTES = 2**50
MOST_TOKENS = 2**31 - 1
MOST_LAYERS = 10_000
MOST_HEADS = 100_000
MOST_COUNT = 1_000_000

Word = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64),
    matches(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "must be one word: letters, digits, '.', '_' and '-'"),
]
Bytes = Annotated[int, Field(ge=0, le=MOST_BYTES)]
Count = Annotated[int, Field(ge=1, le=MOST_COUNT)]
Clause = Annotated[
    str,
    StringConstraints(min_length=1, max_length=256),
    matches(r"^[^\x00-\x1f\x7f]*$", "must be one line without control characters"),
]


class TensorBytes(ApiModel):
    """Bytes of all tensors of one number format."""

    format: Word
    """Number format as safetensors spells it, for example BF16 or F8_E4M3."""
    bytes: Bytes
    """Bytes of all tensors of that format, 0 to 1125899906842624."""


class Shards(ApiModel):
    """The files that the tensors lie in."""

    count: Count
    """Number of safetensors files, 1 to 1,000,000."""
    largest_bytes: Bytes
    """Size of the largest of them in bytes, 0 to 1125899906842624."""


class SlidingWindow(ApiModel):
    """Layers with sliding-window attention."""

    tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)]
    """Length of the window in tokens, 1 to 2147483647."""
    layers: Count
    """How many layers have it; the others attend to all tokens, 1 to 1000000."""
    key_value_heads: Annotated[int, Field(ge=1, le=MOST_HEADS)] | None = None
    """Key-value heads of these layers, 1 to 100000. Default: those of `attention`."""
    head_dimension: Annotated[int, Field(ge=1, le=MOST_HEADS)] | None = None
    """Length of the key of one head in these layers, 1 to 100000. Default: that of `attention`."""
    value_head_dimension: Annotated[int, Field(ge=1, le=MOST_HEADS)] | None = None
    """Length of the value of one head in these layers, 1 to 100000. Default: that of the key."""


class LatentAttention(ApiModel):
    """Multi-head latent attention (MLA): one compressed key-value vector for all heads."""

    key_value_rank: Count
    """Length of the compressed vector, `kv_lora_rank` of config.json, 1 to 1000000."""
    rope_head_dimension: Annotated[int, Field(ge=0, le=MOST_COUNT)]
    """Length of its part with positions, `qk_rope_head_dim` of config.json, 0 to 1000000."""


class SparseIndex(ApiModel):
    """The index by which sparse attention chooses tokens, kept beside the key-value cache on every GPU."""

    layers: Count
    """Layers that have an index, 1 to 1000000."""
    token_bytes: Count
    """Bytes of the index of one token in one layer, 1 to 1000000."""


class CompressedLayers(ApiModel):
    """Layers that keep one compressed key-value vector for several tokens, as DeepSeek-V4 does."""

    tokens: Count
    """Tokens of one vector, 1 to 1000000."""
    layers: Count
    """How many layers compress so, 1 to 1000000."""


class RecurrentState(ApiModel):
    """Layers with linear attention, state-space or convolution: a state of fixed size for each request."""

    layers: Count
    """How many layers keep such a state, 1 to 1000000."""
    heads: Annotated[int, Field(ge=0, le=MOST_HEADS)] = 0
    """Heads of the recurrent state, which tensor parallelism divides, 0 to 100000. Default: 0, no recurrent state."""
    head_dimension: Annotated[int, Field(ge=0, le=MOST_HEADS)] = 0
    """Length of the value of one head, 0 to 100000. Default: 0."""
    state_dimension: Annotated[int, Field(ge=0, le=MOST_HEADS)] = 0
    """Length of the key of one head, or of the state, 0 to 100000. Default: 0."""
    value_bytes: Annotated[int, Field(ge=1, le=8)] = 4
    """Bytes of one value of the recurrent state, 1 to 8. Default: 4."""
    channels: Annotated[int, Field(ge=0, le=MOST_COUNT)] = 0
    """Channels of the convolution, which tensor parallelism divides, 0 to 1000000. Default: 0, no convolution."""
    channel_tokens: Annotated[int, Field(ge=0, le=MOST_HEADS)] = 0
    """Tokens that each channel keeps: the length of the convolution minus 1, 0 to 100000. Default: 0."""
    groups: Annotated[int, Field(ge=0, le=MOST_HEADS)] = 0
    """Groups of channels that are replicated on more GPUs than there are groups, 0 to 100000. Default: 0, none."""


class Encoder(ApiModel):
    """The part of a model that turns images or sound of a request into tokens."""

    inputs: Annotated[list[Word], Field(min_length=1, max_length=8), list_of("atomic")]
    """Kinds of input that it reads, as `--limit-mm-per-prompt` of vLLM names them: image, video, audio ..."""
    bytes: Bytes = 0
    """Bytes of its weights, part of `parameterBytes`, 0 to 1125899906842624. Default: 0, not known."""
    hidden_size: Count | None = None
    """Length of the vector of one patch between its layers, 1 to 1000000. Default: not known, and nothing fits."""
    intermediate_size: Count | None = None
    """Width of its feed-forward layers, 1 to 1000000. Default: not known, and nothing fits."""
    patches_per_token: Count | None = None
    """Patches of an image that become one token, 1 to 1000000. Default: not known, and nothing fits."""
    patch_values: Count | None = None
    """Numbers of one patch before the first layer, 1 to 1000000. Default: not known, and nothing fits."""
    item_tokens: Count | None = None
    """Tokens of the largest image, 1 to 1000000. Default: not known; the largest of known families counts."""


class Experts(ApiModel):
    """The experts of a mixture-of-experts model."""

    count: Count
    """Experts of each layer that are chosen among, 1 to 1000000."""
    per_token: Count | None = None
    """Experts that one token uses, 1 to 1000000. Default: not known."""
    intermediate_size: Count | None = None
    """Width of one expert, which tensor parallelism divides, 1 to 1000000. Default: not known."""
    bytes: Bytes = 0
    """Bytes of the experts that are chosen among, part of `parameterBytes`, 0 to 1125899906842624. Default: 0,
    not known."""


class Quantization(ApiModel):
    """How the weights are stored in fewer bits."""

    method: Word
    """Method as config.json names it, for example fp8, mxfp4, awq, gptq or compressed-tensors."""
    block: Count | None = None
    """Values that are scaled together, 1 to 1000000; the share of a GPU must be a multiple. Default: no rule."""
    key_value_cache: Word | None = None
    """Number format of the key-value cache that the checkpoint names for the engine, for example fp8. `fp8-maybe`: it
    is named where not every engine reads it. Default: that of the model."""


class Attention(ApiModel):
    """Layers and heads: what the key-value cache is made of."""

    RULES = (
        Rule(
            cel="!has(self.slidingWindow) || self.slidingWindow.layers <= self.layers",
            message="`slidingWindow.layers` must not exceed `layers`",
            holds=lambda facts: facts.sliding_window is None or facts.sliding_window.layers <= facts.layers,
            field=".slidingWindow.layers",
        ),
        Rule(
            cel="!has(self.keyValueLayers) || self.keyValueLayers <= self.layers",
            message="`keyValueLayers` must not exceed `layers`",
            holds=lambda facts: facts.key_value_layers is None or facts.key_value_layers <= facts.layers,
            field=".keyValueLayers",
        ),
        Rule(
            cel="!has(self.keyValueLayers) || !has(self.slidingWindow) || "
            "self.slidingWindow.layers <= self.keyValueLayers",
            message="`slidingWindow.layers` must not exceed `keyValueLayers`",
            holds=lambda facts: (
                facts.key_value_layers is None
                or facts.sliding_window is None
                or facts.sliding_window.layers <= facts.key_value_layers
            ),
            field=".slidingWindow.layers",
        ),
    )

    layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)]
    """Layers of the model, 1 to 10,000."""
    heads: Annotated[int, Field(ge=1, le=MOST_HEADS)]
    """Attention heads of each layer, 1 to 100000."""
    key_value_heads: Annotated[int, Field(ge=1, le=MOST_HEADS)]
    """Key-value heads of each layer; fewer than `heads` with grouped queries, 1 to 100000."""
    head_dimension: Annotated[int, Field(ge=1, le=MOST_HEADS)]
    """Length of the vector of one head, 1 to 100000."""
    hidden_size: Count
    """Length of the vector of one token between layers, 1 to 1000000."""
    intermediate_size: Count | None = None
    """Width of the feed-forward layers, which tensor parallelism divides, 1 to 1000000. Default: not known."""
    latent: LatentAttention | None = None
    """Compressed key-value cache (MLA). Default: one key and one value vector for each head."""
    sliding_window: SlidingWindow | None = None
    """Layers with sliding-window attention. Default: none."""
    key_value_layers: Annotated[int, Field(ge=0, le=MOST_LAYERS)] | None = None
    """Layers that keep a key-value cache of their own, 0 to 10,000. Default: all."""
    value_head_dimension: Annotated[int, Field(ge=1, le=MOST_HEADS)] | None = None
    """Length of the value of one head, 1 to 100000. Default: `headDimension`."""
    index: SparseIndex | None = None
    """Index of sparse attention. Default: none."""
    compressed: Annotated[list[CompressedLayers], Field(max_length=8), list_of("map", "tokens")] = []
    """Layers that keep one vector for several tokens. Default: none."""
    recurrent: RecurrentState | None = None
    """Layers that keep a state of fixed size for each request. Default: none."""


class StagedProfile(ApiModel):
    """One profile of an NVIDIA NIM that a staged NIM cache holds."""

    name: Annotated[
        str,
        StringConstraints(min_length=1, max_length=128),
        matches(r"^[A-Za-z0-9_.:-]+$", "must be the name of a profile: letters, digits, '-', '_', '.' and ':'"),
    ]
    """Name as `list-model-profiles` prints it, for example 'vllm-bf16-tp2-pp1'."""
    id: (
        Annotated[str, StringConstraints(max_length=64), matches(r"^[a-f0-9]{64}$", "must be 64 lower-case hex digits")]
        | None
    ) = None
    """Id as `list-model-profiles` prints it. Default: not known."""


class ModelFacts(ApiModel):
    """What sizing needs to know of a model, as its folder says it."""

    model_type: Word
    """Family of the model, `model_type` of config.json. Sizing knows a list of them and says Unknown for others."""
    architecture: Word | None = None
    """First of `architectures` of config.json. Default: not known."""
    parameter_bytes: Annotated[int, Field(ge=1, le=MOST_BYTES)]
    """Bytes of all tensors of the safetensors files, 1 to 1125899906842624 (1 PiB)."""
    tensor_bytes: Annotated[list[TensorBytes], Field(max_length=32), list_of("map", "format")] = []
    """The same by number format. Default: not known."""
    shards: Shards | None = None
    """The files that the tensors lie in. Default: not known."""
    dtype: Annotated[
        str, StringConstraints(max_length=16), matches(r"^(bfloat16|float16|float32)$", "must be a number format")
    ] = "bfloat16"
    """Number format that the model computes in: bfloat16, float16 or float32. Default: bfloat16."""
    max_model_length: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    """Longest context in tokens that the model was made for, 1 to 2147483647. Default: not known."""
    certain_model_length: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    """Longest context in tokens that every release of the engine takes, 1 to 2147483647. Default: `maxModelLength`."""
    attention: Attention | None = None
    """Layers and heads. Default: not known, and no size can be computed."""
    experts: Experts | None = None
    """Experts of a mixture-of-experts model. Default: none."""
    quantization: Quantization | None = None
    """How the weights are stored in fewer bits. Default: as they are."""
    encoders: Annotated[list[Encoder], Field(max_length=4), list_of("atomic")] = []
    """The parts that read images or sound. Default: none."""
    not_computed: Annotated[list[Clause], Field(max_length=16), list_of("atomic")] = []
    """What of the model sizing cannot compute, one clause each. With any, no size is reported to fit. Default: none."""
    nim_profiles: Annotated[list[StagedProfile], Field(max_length=64), list_of("atomic")] = []
    """Profiles of an NVIDIA NIM that the staged cache holds. With any, `engine.nim.profile` must be one of them.
    Default: not known."""
