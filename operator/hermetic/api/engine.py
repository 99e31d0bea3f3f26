"""`spec.engine`: the engines, and how vLLM and NVIDIA NIM are tuned."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, StringConstraints

from hermetic.api.engine_parallelism import gpus_are_all_used
from hermetic.api.engine_sglang import RESERVED_OF_SGLANG, Sglang
from hermetic.api.engine_variables import Environment
from hermetic.api.field_types import AbsolutePath, PinnedImage, list_of, matches
from hermetic.api.reserved_flags import (
    NO_CONTROL_CHARACTER,
    NO_RESERVED_FLAG,
    NO_RESERVED_KEY,
    NO_URL,
    VLLM,
    ReservedFlags,
)
from hermetic.api.rules import ApiModel, Rule, exactly_one, member_is_immutable

Argument = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1024),
    NO_RESERVED_FLAG,
    NO_RESERVED_KEY,
    NO_URL,
    NO_CONTROL_CHARACTER,
]
Arguments = Annotated[list[Argument], Field(max_length=64), list_of("atomic")]


Member = Literal["vllm", "nim", "sglang"]
"""The fields of `spec.engine`, of which exactly one is set."""
MEMBERS: tuple[Member, ...] = get_args(Member)
RESERVED_FLAGS: Mapping[str, ReservedFlags] = MappingProxyType({"vLLM and NIM": VLLM, "SGLang": RESERVED_OF_SGLANG})
"""What may not stand in `extraArgs`, by the engines that it is for."""


class Vllm(ApiModel):
    """vLLM's OpenAI-compatible server, started as `vllm serve`."""

    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (gpus_are_all_used("vllm"),)

    image: PinnedImage
    """Serving image by digest, from a registry on the operator's allow list, for example
    'contoso.azurecr.io/vllm/vllm-openai@sha256:…'."""
    version: Annotated[
        str,
        StringConstraints(max_length=32),
        matches(r"^[0-9]+\.[0-9]+\.[0-9]+$", "must be a vLLM release such as '0.32.0'"),
    ]
    """vLLM release inside the image, for example '0.32.0'. It decides which flags may be rendered: an unknown flag ends
    the engine at once."""
    max_model_length: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Longest context in tokens (prompt and answer together), 1 to 10,000,000. Default: the value in the model's
    config.json."""
    gpu_memory_utilization_percent: Annotated[int, Field(ge=10, le=98)] | None = None
    """Share of each GPU's memory that vLLM may take, in percent, 10 to 98. Default: vLLM's own, 92."""
    kv_cache_dtype: (
        Annotated[
            str,
            StringConstraints(max_length=32),
            matches(r"^[a-z0-9_]+$", "must be a number format of vLLM, such as 'auto', 'fp8' or 'fp8_e5m2'"),
        ]
        | None
    ) = None
    """Number format of the key-value cache, for example 'fp8'. Default: 'auto', the model's own."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=16)] | None = None
    """GPUs that share each layer, 1 to 16. Default: `accelerator.count` divided by `pipelineParallelSize`."""
    pipeline_parallel_size: Annotated[int, Field(ge=1, le=16)] = 1
    """Stages that the layers are split into, on the GPUs of one pod, 1 to 16. Default: 1."""
    extra_args: Arguments = []
    """Further arguments of `vllm serve`, passed as they are, never through a shell. Flags that the version does not
    know, that are reserved or that are not on the reviewed list are refused, and values that are addresses. Default:
    none."""
    extra_env: Environment = []
    """Further environment variables, for example '{name: VLLM_LOGGING_LEVEL, value: INFO}': those of the reviewed list
    and those that the operator's configuration allows. Default: none."""


class Nim(ApiModel):
    """An NVIDIA NIM for large language models."""

    RULES = (
        Rule(
            cel="!(has(self.profile) && has(self.modelPath))",
            message="must not set both `profile` (a staged NIM cache) and `modelPath` (a staged model folder)",
            holds=lambda nim: nim.profile is None or nim.model_path is None,
        ),
        Rule(
            cel="!has(self.extraArgs) || self.extraArgs.size() == 0 || self.line.startsWith('2.')",
            message="`extraArgs` needs a NIM of line 2: line 1 takes its settings from the environment only",
            holds=lambda nim: not nim.extra_args or nim.line.startswith("2."),
        ),
    )

    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!(has(self.endpoint.apiKey) && has(self.engine.nim))",
            message="`endpoint.apiKey` needs engine `vllm` or `sglang`: a NIM does not check API keys",
            holds=lambda spec: spec.endpoint.api_key is None or spec.engine.nim is None,
            field=".endpoint.apiKey",
        ),
        Rule(
            cel="!has(self.model.aliases) || self.model.aliases.size() == 0 || has(self.engine.vllm)",
            message="`model.aliases` needs engine `vllm`: the others serve one name",
            holds=lambda spec: not spec.model.aliases or spec.engine.vllm is not None,
            field=".model.aliases",
        ),
        Rule(
            cel="!has(self.engine.nim) || !has(self.weights.bakedImage) || !has(self.engine.nim.profile)",
            message="`engine.nim.profile` needs staged weights: a baked image brings its own model folder",
            holds=lambda spec: (
                spec.engine.nim is None or spec.weights.baked_image is None or spec.engine.nim.profile is None
            ),
            field=".engine.nim.profile",
        ),
    )

    image: PinnedImage
    """NIM image by digest, from a registry on the operator's allow list."""
    line: Annotated[
        str,
        StringConstraints(max_length=8),
        matches(
            r"^[12]\.[0-9]{1,3}$",
            "must be a NIM release line: '1.0' to '1.15', or '2.0' and later of line 2; line 3 is not supported, "
            "because what keeps it offline could not be verified",
        ),
    ]
    """NIM release line of the image, for example '1.15' or '2.1'. It decides variables, arguments and group."""
    profile: (
        Annotated[
            str,
            StringConstraints(min_length=1, max_length=128),
            matches(r"^[A-Za-z0-9_.-]+$", "must be the id or name of a profile: letters, digits, '-', '_' and '.'"),
        ]
        | None
    ) = None
    """Model profile (id or name) that the staged NIM cache holds. The cache is linked read-only into a writable one.
    Default: none, and the weights are served as a model folder."""
    model_path: AbsolutePath | None = None
    """Model folder inside the container. Default: where the weights are: '/weights', or the path of a baked image."""
    max_model_length: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Longest context in tokens (prompt and answer together), 1 to 10,000,000. Default: that of the model or
    profile."""
    extra_args: Arguments = []
    """Arguments for the engine behind a NIM of line 2, passed as they are and written out. Reserved flags and flags
    that are not on the reviewed list are refused. From line 2.1 on
    an image holds vLLM or SGLang: for vLLM add '--allowed-media-domains=NOWHERE.invalid', which keeps it from fetching
    what a request links to; line 2.0 gets it anyway. Default: none."""
    extra_env: Environment = []
    """Further environment variables: those of the reviewed list and those that the operator's configuration allows.
    Default: none."""


class Engine(ApiModel):
    """Exactly one inference engine."""

    RULES = (exactly_one(*MEMBERS), member_is_immutable(*MEMBERS))
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (*Vllm.SPEC_RULES, *Nim.SPEC_RULES, *Sglang.SPEC_RULES)
    """What the engines ask of the other parts of `spec`: rules of the whole of it."""

    vllm: Vllm | None = None
    """Serve with vLLM's OpenAI-compatible server.

    vllm: {image: contoso.azurecr.io/vllm@sha256:…, version: "0.32.0"}"""
    nim: Nim | None = None
    """Serve with an NVIDIA NIM for large language models.

    nim: {image: contoso.azurecr.io/nim/llama@sha256:…, line: "2.1"}"""
    sglang: Sglang | None = None
    """Serve with SGLang's OpenAI-compatible server.

    sglang: {image: contoso.azurecr.io/lmsysorg/sglang@sha256:…, version: "0.5.23"}"""

    @property
    def member(self) -> Member:
        """The field that is set: a spec that satisfies the rules has exactly one."""
        return next(member for member in MEMBERS if getattr(self, member) is not None)

    @property
    def chosen(self) -> Vllm | Nim | Sglang:
        """The value of that field."""
        chosen: Vllm | Nim | Sglang = getattr(self, self.member)
        return chosen
