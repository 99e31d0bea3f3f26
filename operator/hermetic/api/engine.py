"""`spec.engine`: exactly one of the engines."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from hermetic.api.engine_nim import Nim
from hermetic.api.engine_sglang import RESERVED_OF_SGLANG, Sglang
from hermetic.api.engine_vllm import Vllm
from hermetic.api.reserved_flags import NIM, REMOTE_CODE, VLLM, ReservedFlags
from hermetic.api.rules import ApiModel, exactly_one, member_is_immutable

Member = Literal["vllm", "nim", "sglang"]
"""The fields of `spec.engine`, of which exactly one is set."""
MEMBERS: tuple[Member, ...] = get_args(Member)
RESERVED_FLAGS: Mapping[str, ReservedFlags] = MappingProxyType({"vLLM": VLLM, "NIM": NIM, "SGLang": RESERVED_OF_SGLANG})
"""What may not stand in `extraArgs`, by the engines that it is for."""


class Engine(ApiModel):
    """Exactly one inference engine."""

    RULES = (exactly_one(*MEMBERS), member_is_immutable(*MEMBERS))

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

    @property
    def runs_remote_code(self) -> bool:
        """Whether the engine is asked to run code of the model folder."""
        return REMOTE_CODE in self.chosen.extra_args
