"""Compile caches of an engine that are staged with the weights, and the key that says which engine can use them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.field_types import matches
from hermetic.api.model_facts import Word
from hermetic.api.rules import ApiModel


class EngineCaches(ApiModel):
    """The key of staged compile caches: an engine uses them only where all of it matches."""

    engine: Literal["vllm", "sglang"]
    """The engine that wrote them: vllm or sglang."""
    version: Annotated[
        str,
        StringConstraints(min_length=1, max_length=32),
        matches(r"^[0-9][0-9A-Za-z.+]*$", "must be a release of the engine such as '0.32.0'"),
    ]
    """Its release, as in `spec.engine`, for example '0.32.0'."""
    gpu: Word
    """The GPU model that they were compiled for, as `hermetic stage` prints it, for example 'H100-80GB'."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=256)]
    """GPUs that shared each layer, 1 to 256."""
    pipeline_parallel_size: Annotated[int, Field(ge=1, le=256)] = 1
    """Stages that the layers were split into, 1 to 256. Default: 1."""

    @property
    def folder(self) -> str:
        """The name of their folder below CACHES."""
        parallel = f"tp{self.tensor_parallel_size}-pp{self.pipeline_parallel_size}"
        return f"{self.engine}-{self.version}-{self.gpu}-{parallel}"
