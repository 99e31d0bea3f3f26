"""Dropped flags and variables as their successors, where the value is known to mean the same.

The table of `engines/dropped_names.py` has the dropped names and their successors. This module translates the value
where the successor takes another one; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hermetic.conversion.arguments import separated
from hermetic.conversion.outcomes import Note, left_out
from hermetic.conversion.server_command import FlagMember
from hermetic.engines.dropped_names import DroppedName, dropped_name
from hermetic.engines.extra_arguments import is_flag
from hermetic.engines.flag_tables import FlagTable

Items = tuple[str, ...]

# The value of these goes to a key of the successor.
_KEYS: Mapping[str, str] = {
    "--speculative-model": "--speculative-config.model",
    "--num-speculative-tokens": "--speculative-config.num_speculative_tokens",
    "--speculative-draft-tensor-parallel-size": "--speculative-config.draft_tensor_parallel_size",
    "--speculative-disable-by-batch-size": "--speculative-config.disable_by_batch_size",
    "--speculative-max-model-len": "--speculative-config.max_model_len",
    "--speculative-model-quantization": "--speculative-config.quantization",
    "--ngram-prompt-lookup-max": "--speculative-config.prompt_lookup_max",
    "--ngram-prompt-lookup-min": "--speculative-config.prompt_lookup_min",
    "--rope-scaling": "--hf-overrides.rope_scaling",
    "--rope-theta": "--hf-overrides.rope_theta",
    "--guided-decoding-backend": "--structured-outputs-config.backend",
    "--num-redundant-experts": "--eplb-config.num_redundant_experts",
    "--eplb-window-size": "--eplb-config.window_size",
    "--eplb-step-interval": "--eplb-config.step_interval",
    "VLLM_FLASH_ATTN_VERSION": "--attention-config.flash_attn_version",
    "VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH": ("--attention-config.flash_attn_max_num_splits_for_cuda_graph"),
    "VLLM_FLASHINFER_ALLREDUCE_FUSION_THRESHOLDS_MB": (
        "--compilation-config.pass_config.fi_allreduce_fusion_max_size_mb"
    ),
}
# Switches without a value.
_SWITCHES: Mapping[str, Items] = {
    "--guided-decoding-disable-any-whitespace": ("--structured-outputs-config.disable_any_whitespace", "true"),
    "--guided-decoding-disable-additional-properties": (
        "--structured-outputs-config.disable_additional_properties",
        "true",
    ),
    "--eplb-log-balancedness": ("--eplb-config.log_balancedness", "true"),
    "--disable-mm-preprocessor-cache": ("--mm-processor-cache-gb", "0"),
    "--enable-multimodal-encoder-data-parallel": ("--mm-encoder-tp-mode", "data"),
    "--enable-flashinfer-cutlass-moe": ("--moe-runner-backend", "flashinfer_cutlass"),
    "--enable-flashinfer-cutedsl-moe": ("--moe-runner-backend", "flashinfer_cutedsl"),
    "--enable-flashinfer-trtllm-moe": ("--moe-runner-backend", "flashinfer_trtllm"),
    "--enable-flashinfer-mxfp4-moe": ("--moe-runner-backend", "flashinfer_mxfp4"),
    "--enable-triton-kernel-moe": ("--moe-runner-backend", "triton_kernel"),
    "--enable-flashmla": ("--attention-backend", "flashmla"),
    "--enable-flashinfer-mla": ("--attention-backend", "flashinfer"),
    "--enable-deepep-moe": ("--moe-a2a-backend", "deepep"),
    "--enable-deepep-waterfill": ("--enable-waterfill",),
    "--stream-output": ("--incremental-streaming-output",),
    "--enable-breakable-cuda-graph": ("--cuda-graph-backend-prefill", "breakable"),
    "--disable-piecewise-cuda-graph": ("--cuda-graph-backend-prefill", "disabled"),
    "--enforce-piecewise-cuda-graph": ("--cuda-graph-backend-prefill", "tc_piecewise"),
    "--enable-dsa-prefill-context-parallel": ("--enable-prefill-cp",),
    "--enable-nsa-prefill-context-parallel": ("--enable-prefill-cp",),
    "--enable-prefill-context-parallel": ("--enable-prefill-cp",),
    "--enable-gdn-replayssm-spec": ("--enable-linear-replayssm-spec",),
    "--keep-mm-feature-on-device": ("--mm-feature-transport", "cuda_ipc"),
}
_POOLING: Items = ("--runner", "pooling")
_TRTLLM, _CUTLASS = ("--moe-backend", "flashinfer_trtllm"), ("--moe-backend", "flashinfer_cutlass")
# What each value becomes; other values are left out, and the table's own words say what to do.
_VALUES: Mapping[str, Mapping[str, Items]] = {
    "--task": {
        "generate": ("--runner", "generate"),
        **dict.fromkeys(("embed", "classify", "score", "reward"), _POOLING),
    },
    "VLLM_USE_TRTLLM_ATTENTION": {
        "1": ("--attention-config.use_trtllm_attention", "true"),
        "0": ("--attention-config.use_trtllm_attention", "false"),
    },
    "VLLM_FLASHINFER_DISABLE_Q_QUANTIZATION": {
        "1": ("--attention-config.disable_flashinfer_q_quantization", "true"),
    },
    "VLLM_FLASHINFER_MOE_BACKEND": {
        "latency": _TRTLLM,
        "throughput": _CUTLASS,
        "masked_gemm": ("--moe-backend", "flashinfer_cutedsl"),
    },
    "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8": {
        "1": (*_TRTLLM, "--quantization-config.moe.activation", "mxfp8"),
    },
    "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS": {
        "1": (*_CUTLASS, "--quantization-config.moe.activation", "mxfp8"),
    },
    "VLLM_USE_NVFP4_CT_EMULATIONS": {"1": ("--linear-backend", "emulation")},
    "VLLM_USE_FBGEMM": {"1": ("--linear-backend", "fbgemm")},
    "VLLM_ROCM_MONO_DECODE": {"1": ("--monokernel",)},
    "VLLM_PLE_CPU_OFFLOAD": {
        "1": ("--engram-config.cpu_offload", "true"),
        "0": ("--engram-config.cpu_offload", "false"),
    },
    "SGLANG_CUTLASS_MOE": {"1": ("--moe-runner-backend", "cutlass"), "true": ("--moe-runner-backend", "cutlass")},
}
# Variables whose successor is a variable with another value.
_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "VLLM_SKIP_DEEP_GEMM_WARMUP": {"1": "skip"},
    "VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4": {"1": "a8w4"},
}


@dataclass(frozen=True, slots=True)
class Current:
    """Arguments and variables with the successors of dropped names in their place, and a note for each of these."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    notes: tuple[Note, ...]


def with_successors(
    arguments: Sequence[str], environment: Mapping[str, str], member: FlagMember, table: FlagTable
) -> Current:
    """The command as it is written for this release. A dropped name without a known successor stays as it is."""
    successors = Successors(member, table)
    written, notes = successors.of_arguments(separated(arguments))
    variables: dict[str, str] = {}
    for name, value in environment.items():
        successor = successors.of_variable(name, value)
        if not successor:
            variables[name] = value
            continue
        if not successor[0].startswith("-"):
            variables.setdefault(successor[0], successor[1])
        elif successors.is_given(successor[0], written):
            notes.append(left_out(name, f"the command has its successor {successor[0]} already"))
            continue
        else:
            written += successor
        notes.append(successors.note(name, successor))
    return Current(tuple(written), variables, tuple(notes))


@dataclass(frozen=True, slots=True)
class Successors:
    """The successors of one release of an engine."""

    member: FlagMember
    table: FlagTable

    def dropped(self, name: str) -> DroppedName | None:
        """The dropped flag or variable of this name; None for what the release has, or has not dropped."""
        if self.table.flag(name) is not None or name in self.table.environment:
            return None
        dropped = dropped_name(self.member, name)
        return dropped if dropped is not None and dropped.is_dropped_in(self.table.version) else None

    def note(self, name: str, successor: Items) -> Note:
        """The note about a name that is replaced. The value of a variable is not repeated."""
        dropped = self.dropped(name)
        since = f"; {self.table.dialect.product} {dropped.since} dropped it" if dropped is not None else ""
        return Note("replaced", name.partition("=")[0], f"by {successor[0]}{since}")

    def is_given(self, option: str, arguments: Sequence[str]) -> bool:
        """Whether the arguments have this flag, with the same key."""
        flag_keys = {(self.table.flag(argument), dotted(argument)) for argument in arguments if is_flag(argument)}
        return (self.table.flag(option), dotted(option)) in flag_keys

    def of_arguments(self, arguments: Sequence[str]) -> tuple[list[str], list[Note]]:
        """The arguments with the successors of their dropped flags, in their places."""
        current: list[str] = []
        notes: list[Note] = []
        position = 0
        while position < len(arguments):
            word = arguments[position]
            position += 1
            end = position
            while end < len(arguments) and not is_flag(arguments[end]):
                end += 1
            successor, value_count = self._of_flag(word, tuple(arguments[position:end])) if is_flag(word) else ((), 0)
            if successor:
                notes.append(self.note(word, successor))
                current += [*arguments[position + value_count : end], *successor]
                position = end
            else:
                current.append(word)
        return current, notes

    def _of_flag(self, word: str, behind: Items) -> tuple[Items, int]:
        """The words in place of a dropped flag, and how many of the words behind it were its values; () for others."""
        dropped = self.dropped(word)
        if dropped is None:
            return (), 0
        if dropped.name in _SWITCHES:
            return _SWITCHES[dropped.name], 0
        _, equals, value = word.partition("=")
        values = (value,) if equals else behind
        value_count = 0 if equals else len(behind)
        if dropped.name in _VALUES:
            return _VALUES[dropped.name].get(values[0] if values else "", ()), min(value_count, 1)
        if dropped.name in _KEYS:
            return ((_KEYS[dropped.name], values[0]), min(value_count, 1)) if values else ((), 0)
        return ((dropped.successor, *values), value_count) if dropped.keeps_value else ((), 0)

    def of_variable(self, name: str, value: str) -> Items:
        """A variable and its value, or arguments, in place of a dropped variable; () for others."""
        successor: Items = ()
        while (dropped := self.dropped(name)) is not None:
            if name in _VALUES or name in _KEYS:
                return _VALUES[name].get(value, ()) if name in _VALUES else (_KEYS[name], value)
            if name in _VARIABLES:
                successor = (dropped.successor, _VARIABLES[name][value]) if value in _VARIABLES[name] else ()
            else:
                successor = (dropped.successor, value) if dropped.keeps_value else ()
            if not successor or successor[0].startswith("-"):
                return successor
            name, value = successor
        return successor


def dotted(word: str) -> str:
    """The key of `--flag.key`; "" of a flag without one."""
    return word.partition("=")[0].partition(".")[2]
