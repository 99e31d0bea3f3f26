"""The settings of a spec that decide how much memory vLLM takes on each GPU, as input of `hermetic.sizing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hermetic.api.engine import Vllm
from hermetic.engines.extra_arguments import WrittenFlag, read
from hermetic.engines.vllm.tables import TABLES
from hermetic.sizing.serving import DEFAULT_BATCHED_TOKENS, DEFAULT_UTILIZATION, Lora, Serving

# Flags that make the weights on a GPU larger or smaller than those on disk.
OTHER_WEIGHTS = frozenset(
    {
        "--cpu-offload-gb", "--cpu-offload-params", "--data-parallel-size", "--dtype", "--hf-overrides",
        "--load-format", "--model-impl", "--model-loader-extra-config", "--offload-backend", "--offload-group-size",
        "--offload-num-in-group", "--offload-params", "--quantization", "--quantization-config",
    }
)  # fmt: skip
# Flags that change other memory use on a GPU in a way that the formula does not cover.
OTHER_MEMORY = frozenset(
    {
        "--block-size", "--compilation-config", "--cudagraph-capture-sizes", "--decode-context-parallel-size",
        "--disable-hybrid-kv-cache-manager", "--disable-sliding-window", "--enable-dbo", "--enable-eplb",
        "--eplb-config", "--kv-cache-dtype-skip-layers", "--kv-cache-memory-bytes", "--max-cudagraph-capture-size",
        "--mm-encoder-only", "--mm-ipc-gpu-memory-gb", "--mm-processor-device", "--num-gpu-blocks-override",
        "--prefill-context-parallel-size", "--skip-mm-profiling", "--spec-method", "--spec-model", "--spec-tokens",
        "--speculative-config",
    }
)  # fmt: skip
# Flags whose memory grows with their number: the overhead of the formula covers the largest default of vLLM
# (`_set_default_max_num_seqs_and_batched_tokens_args` in vllm/engine/arg_utils.py).
COVERED = {"--max-num-batched-tokens": 16_384, "--max-num-seqs": 1024}
# Variables that do either: the cache of every head in place of the latent one, weights in another format, a workspace.
OTHER_VARIABLES = frozenset(
    {"VLLM_MLA_DISABLE", "VLLM_MXFP4_EMULATION_DEQUANT_AT_LOAD", "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE"}
)
ADAPTERS_ACTIVE, ADAPTER_RANK = 1, 16
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


def serving(vllm: Vllm, tensor_parallel: int) -> Serving:
    """The memory settings of one replica with this many GPUs for each layer."""
    written = read(vllm.extra_args, TABLES.table_for(vllm.version))[0] if TABLES.is_supported(vllm.version) else ()
    flags = {one.flag.name: one for one in written if not one.is_negated}
    others = flags.keys() & (OTHER_WEIGHTS | OTHER_MEMORY)
    others |= {name for name, most in COVERED.items() if name in flags and not 0 < _number(flags, name) <= most}
    variables = {variable.name for variable in vllm.extra_env} & OTHER_VARIABLES
    return Serving(
        tensor_parallel=tensor_parallel,
        pipeline_parallel=vllm.pipeline_parallel_size,
        max_model_length=vllm.max_model_length,
        utilization_percent=vllm.gpu_memory_utilization_percent or DEFAULT_UTILIZATION,
        kv_cache_dtype=vllm.kv_cache_dtype or "auto",
        batched_tokens=_number(flags, "--max-num-batched-tokens") or DEFAULT_BATCHED_TOKENS,
        expert_parallel="--enable-expert-parallel" in flags,
        lora=_lora(flags),
        not_computed=(*_clauses(others, "extraArgs"), *_clauses(variables, "extraEnv")),
        may_shrink_weights=bool(flags.keys() & OTHER_WEIGHTS),
    )


def _clauses(names: Iterable[str], field: str) -> Iterator[str]:
    for name in sorted(names):
        yield f"what {name} of `engine.vllm.{field}` does to memory is not computed"


def _lora(flags: Mapping[str, WrittenFlag]) -> Lora | None:
    if "--enable-lora" not in flags:
        return None
    return Lora(_number(flags, "--max-loras") or ADAPTERS_ACTIVE, _number(flags, "--max-lora-rank") or ADAPTER_RANK)


def _number(flags: Mapping[str, WrittenFlag], name: str) -> int:
    """The value of a flag as a whole number, with the units of vLLM: 8k is 8000, 8K is 8192; 0 where it is none."""
    text = flags[name].values[-1] if name in flags and flags[name].values else ""
    digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    return int(digits) * unit if digits.isdecimal() and len(digits) < 12 else 0
