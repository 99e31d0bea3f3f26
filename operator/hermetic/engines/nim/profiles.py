"""Names of NIM profiles: engine, GPU, precision, and the number of GPUs that the profile is for.

`vllm-bf16-tp2-pp1`, `tensorrt_llm-h100_nvl-fp8-tp4-pp1-throughput-…`: the form that NVIDIA's pages and
`list-model-profiles` show. An id (64 hex digits) and names of another form give no information, and nothing is
concluded from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hermetic.api.model_facts import StagedProfile
from hermetic.api.text import first_of

SHOWN = 4
"""Profiles that one message names."""
_NAME = re.compile(
    r"(?P<backend>tensorrt_llm|trtllm|vllm|sglang)"
    r"(-(?P<gpu>[a-z0-9_]+))?"
    r"-(?P<precision>bf16|fp16|fp8|fp4|mxfp4|nvfp4|int4|int8|w4a16|w8a8|int4wo|int8wo)"
    r"-tp(?P<tensor>[0-9]{1,3})(-pp(?P<pipeline>[0-9]{1,3}))?(-.*)?",
    re.IGNORECASE,
)
# Names in profiles, and the GPUs in the catalogue of sizing. A TensorRT engine runs on that GPU only.
_GPUS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "a100": frozenset({"A100-40GB", "A100-80GB"}),
        "a100_sxm4_40gb": frozenset({"A100-40GB"}),
        "h100": frozenset({"H100-80GB"}),
        "h100_nvl": frozenset({"H100-NVL"}),
        "h200": frozenset({"H200"}),
        "gb200": frozenset({"GB200"}),
        "gb300": frozenset({"GB300"}),
        "rtx6000_blackwell_sv": frozenset({"RTX-PRO-6000"}),
        **dict.fromkeys(("a10", "a10g", "b200", "h20", "h200_nvl", "l40s", "l4", "l20", "gh200"), frozenset()),
    }
)


@dataclass(frozen=True, slots=True)
class Profile:
    """The content of a profile's name. `gpus` are keys of the catalogue, None where it runs on any GPU."""

    tensor_parallel: int
    pipeline_parallel: int
    gpus: frozenset[str] | None

    @property
    def count(self) -> int:
        """GPUs that it needs."""
        return self.tensor_parallel * self.pipeline_parallel


def read_profile(text: str) -> Profile | None:
    """The content of a profile's name; None for a name of another form."""
    match = _NAME.fullmatch(text)
    if match is None or not int(match["tensor"]):
        return None
    # Only a TensorRT engine is compiled for one GPU; the others name the GPU that they were tuned on.
    compiled = match["backend"].lower() in {"tensorrt_llm", "trtllm"}
    gpus = _GPUS.get((match["gpu"] or "").lower()) if compiled else None
    return Profile(int(match["tensor"]), max(1, int(match["pipeline"] or 1)), gpus)


def chosen(profiles: Iterable[StagedProfile], text: str) -> StagedProfile | None:
    """The staged profile with this id or name."""
    return next((profile for profile in profiles if text in (profile.id, profile.name)), None)


def fitting(profiles: Iterable[StagedProfile], count: int, gpus: frozenset[str]) -> list[StagedProfile]:
    """The staged profiles for this many GPUs whose names do not say that they are compiled for others than `gpus`.

    `gpus` are keys of the catalogue; empty where they are not known.
    """
    return [profile for profile in profiles if _fits(read_profile(profile.name), count, gpus)]


def _fits(profile: Profile | None, count: int, gpus: frozenset[str]) -> bool:
    if profile is None or profile.count != count:
        return False
    return profile.gpus is None or not gpus or bool(profile.gpus & gpus)


def listed(profiles: Sequence[StagedProfile], staged: int) -> str:
    """One clause that names the profiles that would fit, out of so many that are staged; "" where none is known."""
    if not staged:
        return ""
    if not profiles:
        return f"none of the {staged} staged profiles fits"
    named = [f"'{profile.name}'" + (f" ({profile.id})" if profile.id else "") for profile in profiles]
    return f"of the staged profiles these fit: {first_of(named, SHOWN)}"


def shapes(gpus: int) -> str:
    """The forms of profiles for this many GPUs, as their names spell them."""
    return ", ".join(f"tp{size}-pp{gpus // size}" for size in range(gpus, 0, -1) if gpus % size == 0)
