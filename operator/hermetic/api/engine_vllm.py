"""`spec.engine.vllm`: how vLLM is tuned."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.engine_variables import Environment
from hermetic.api.field_types import PinnedImage, list_of, matches
from hermetic.api.reserved_flags import LONGEST_CONTEXT, NO_CONTROL_CHARACTER, NO_RESERVED_KEY, NO_URL, VLLM
from hermetic.api.rules import ApiModel, Rule

Argument = Annotated[
    str, StringConstraints(min_length=1, max_length=1024), *VLLM.rules(), NO_RESERVED_KEY, NO_URL, NO_CONTROL_CHARACTER
]


class Vllm(ApiModel):
    """vLLM's OpenAI-compatible server, started as `vllm serve`."""

    RULES = (
        Rule(
            cel="!has(self.maxModelLength) || !has(self.extraArgs) || "
            f"!self.extraArgs.exists(argument, argument == '{LONGEST_CONTEXT}')",
            message=f"must not set both `maxModelLength` and '{LONGEST_CONTEXT}'",
            holds=lambda vllm: vllm.max_model_length is None or LONGEST_CONTEXT not in vllm.extra_args,
        ),
    )

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
    tensor_parallel_size: Annotated[int, Field(ge=1, le=256)] | None = None
    """GPUs that share each layer, 1 to 256. Default: all GPUs of a replica divided by `pipelineParallelSize`."""
    pipeline_parallel_size: Annotated[int, Field(ge=1, le=16)] | None = None
    """Stages that the layers are split into, 1 to 16. Default: `accelerator.nodes`, so that the GPUs of one node share
    each layer."""
    extra_args: Annotated[list[Argument], Field(max_length=64), list_of("atomic")] = []
    """Further arguments of `vllm serve`, passed as they are, never through a shell. Flags that the version does not
    know, that are reserved or that are not on the reviewed list are refused, and values that are addresses. Default:
    none."""
    extra_env: Environment = []
    """Further environment variables, for example '{name: VLLM_LOGGING_LEVEL, value: INFO}': those of the reviewed list
    and those that the operator's configuration allows. Default: none."""
