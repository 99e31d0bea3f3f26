"""The settings of a spec that decide how much memory vLLM takes on each GPU, as input of `hermetic.sizing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hermetic.api.adapters import Adapter
from hermetic.api.engine_vllm import Vllm
from hermetic.engines.extra_arguments import WrittenFlag, decimal_number, whole_number
from hermetic.sizing.catalogue import GIB
from hermetic.sizing.serving import DEFAULT_UTILIZATION, Lora, Serving

# Flags that make the weights on a GPU larger or smaller than those on disk.
OTHER_WEIGHTS = frozenset(
    {
        "--cpu-offload-params", "--dtype", "--hf-overrides", "--load-format", "--model-impl",
        "--model-loader-extra-config", "--offload-backend", "--offload-group-size", "--offload-num-in-group",
        "--offload-params", "--quantization", "--quantization-config",
    }
)  # fmt: skip
# Flags that change other memory use on a GPU in a way that the formula does not cover.
OTHER_MEMORY = frozenset(
    {
        "--block-size", "--compilation-config", "--cudagraph-capture-sizes", "--decode-context-parallel-size",
        "--disable-hybrid-kv-cache-manager", "--disable-sliding-window", "--enable-dbo", "--enable-eplb",
        "--eplb-config", "--kv-cache-dtype-skip-layers", "--kv-cache-memory-bytes", "--mamba-backend",
        "--mamba-block-size", "--mamba-cache-dtype", "--mamba-cache-mode", "--mamba-ssm-cache-dtype",
        "--max-cudagraph-capture-size", "--max-model-len", "--mm-encoder-only", "--mm-ipc-gpu-memory-gb",
        "--mm-processor-device", "--mm-processor-kwargs", "--num-gpu-blocks-override", "--performance-mode",
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
CPU_OFFLOAD = "--cpu-offload-gb"


def serving(
    vllm: Vllm, adapters: Sequence[Adapter], flags: Mapping[str, WrittenFlag], parallel: tuple[int, int]
) -> Serving:
    """The memory settings of one replica with these flags; `parallel`: GPUs for each layer, and pipeline stages."""
    not_sized = flags.keys() & (OTHER_WEIGHTS | OTHER_MEMORY)
    not_sized |= {name for name, most in COVERED.items() if name in flags and not 0 < whole_number(flags, name) <= most}
    offloaded = decimal_number(flags, CPU_OFFLOAD)
    not_sized |= {CPU_OFFLOAD} if CPU_OFFLOAD in flags and offloaded is None else set()
    variables = {variable.name for variable in vllm.extra_env} & OTHER_VARIABLES
    return Serving(
        tensor_parallel=parallel[0],
        pipeline_parallel=parallel[1],
        data_parallel=max(1, whole_number(flags, "--data-parallel-size")),
        max_model_length=vllm.max_model_length,
        utilization_percent=vllm.gpu_memory_utilization_percent or DEFAULT_UTILIZATION,
        kv_cache_dtype=vllm.kv_cache_dtype or "auto",
        batched_tokens=whole_number(flags, "--max-num-batched-tokens") or None,
        sequences=whole_number(flags, "--max-num-seqs") or None,
        expert_parallel="--enable-expert-parallel" in flags,
        lora=_lora(adapters, flags),
        # GiB of each GPU: `UVAOffloadConfig` in vllm/config/offload.py.
        cpu_offload=int((offloaded or 0) * GIB),
        not_computed=(*_clauses(not_sized, "extraArgs"), *_clauses(variables, "extraEnv")),
        may_shrink_weights=bool(not_sized & {*OTHER_WEIGHTS, CPU_OFFLOAD}),
    )


def _clauses(names: Iterable[str], field: str) -> Iterator[str]:
    for name in sorted(names):
        yield f"what {name} of `engine.vllm.{field}` does to memory is not computed"


def _lora(adapters: Sequence[Adapter], flags: Mapping[str, WrittenFlag]) -> Lora | None:
    """The room that vLLM keeps on every GPU: as many adapters as `--max-loras` says, each of the largest rank."""
    if not adapters:
        return None
    return Lora(whole_number(flags, "--max-loras") or len(adapters), max(adapter.rank for adapter in adapters))
