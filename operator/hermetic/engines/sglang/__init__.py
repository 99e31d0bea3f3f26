"""SGLang: the spec as `sglang serve --model-path PATH --flags`, each flag only where the release knows it.

Derived from the source of 0.5.21 to 0.5.23, not tested: no GPU was available.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.api.engine import Member
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.engine_sglang import SGLANG_FLAGS, Sglang
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines import failure_signatures
from hermetic.engines.adapters import sglang_adapter
from hermetic.engines.allow_list import AllowList
from hermetic.engines.benchmark import Load, sglang_benchmark
from hermetic.engines.extra_arguments import WrittenFlag, whole_number
from hermetic.engines.failure_signatures import Signatures
from hermetic.engines.flag_engine import FlagEngine, tls_flags
from hermetic.engines.group_members import group_environment, sglang_group_flags
from hermetic.engines.launch import BEYOND_GATEWAYS, Launch, from_secret, literal, model_path, pod_address, pod_uid
from hermetic.engines.offline_environment import CACHE_FOLDERS, HOME, OFFLINE
from hermetic.engines.sglang.tables import TABLES
from hermetic.sizing.serving import Serving

SIGNATURES: failure_signatures.Signatures = (
    *failure_signatures.compiled(
        # A warning with the same text is not a cause: only the error counts.
        (r"error: .*greater than the derived context_length", EngineReason.CONTEXT_TOO_LONG),
        (r"assertionerror: \d+ is not divisible by \d+", EngineReason.TENSOR_PARALLEL_INVALID),
        (r"not enough memory\. please try to increase --mem-fraction-static", EngineReason.GPU_MEMORY_TOO_SMALL),
        (r"leaves? (no gpu memory|no room) for the (full )?kv (cache|pool)", EngineReason.GPU_MEMORY_TOO_SMALL),
        (r"not enough gpu memory for hybrid", EngineReason.GPU_MEMORY_TOO_SMALL),
        (r"error: the memory capacity is unbalanced", EngineReason.GPU_BUSY),
    ),
    *failure_signatures.SIGNATURES,
)
ALLOWED = AllowList(__name__)
WITHOUT_A_KEY = (
    "the API key guards every path but those that begin with /health, /ready or /metrics, and not the WebSocket "
    "/v1/realtime; SGLang writes the key into the pod's log"
)
API_KEY = "SGLANG_SERVER_API_KEY"
ADMIN_KEY = "SGLANG_SERVER_ADMIN_KEY"
KEEP_ALIVE = "SGLANG_TIMEOUT_KEEP_ALIVE"
# An empty list means every domain. No TCP connection can be opened to the broadcast address: the kernel refuses it
# without sending a packet, and there is no name to resolve.
NOWHERE = "255.255.255.255"


class _Sglang(FlagEngine):
    """`spec.engine.sglang`.

    With SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION off /health is 503 until the warm-up has answered and from SIGTERM on,
    and 200 in between. A scheduler that hangs is ended by SGLang's own watchdog (--watchdog-timeout).
    """

    member: Member = "sglang"
    name = "SGLang"
    without_a_key = WITHOUT_A_KEY
    signatures: Signatures = SIGNATURES
    tables = TABLES
    allowed = ALLOWED
    reserved = SGLANG_FLAGS
    cache_offload_settings = frozenset(
        {
            "--enable-hierarchical-cache", "--hicache-size", "--hicache-ratio", "--hicache-host-memory-fraction",
            "--hicache-host-memory-mode", "--disable-radix-cache",
        }
    )  # fmt: skip
    # `check_server_args` in sglang/srt/arg_groups/validation_hook.py of 0.5.23 refuses them with several nodes.
    not_in_groups = frozenset({"--dp-size"})
    not_in_groups_unless = frozenset({"--enable-dp-attention"})

    def launch(self, spec: ModelDeploymentSpec) -> Launch:
        """The container of an SGLang server. Raises ValueError for a version that has no table."""
        sglang = _of(spec)
        args = (*TABLES.table_for(sglang.version).known_words(_flags(spec, sglang)), *sglang.extra_args)
        admin = (("--admin-api-key", ADMIN_KEY),)
        keys = admin if spec.endpoint.api_key is None else (("--api-key", API_KEY), *admin)
        # The kind of server is given: to detect it, SGLang would read the model and call plug-ins.
        command = ("sglang", "serve", "--model-type", "llm")
        return self.launched(spec, command, args, _environment(spec, sglang), keys)

    def queue_metric(self, spec: ModelDeploymentSpec) -> str:  # noqa: ARG002 - one name in every release
        """Source: docs.sglang.ai, Production Metrics."""
        return "sglang:num_queue_reqs"

    def benchmark(self, spec: ModelDeploymentSpec, load: Load, url: str) -> tuple[str, ...] | str:
        return sglang_benchmark(spec, load, url)

    def groups(self, flags: Mapping[str, WrittenFlag]) -> int:
        """Data parallel ranks have GPUs of their own; data parallel attention divides those of tensor parallelism.

        Source: docs.sglang.ai, server arguments, --dp-size and --enable-dp-attention.
        """
        return 1 if "--enable-dp-attention" in flags else max(1, whole_number(flags, "--dp-size"))

    def serving(self, spec: ModelDeploymentSpec) -> Serving:
        """Not computed: its formulas for memory share and cache differ from vLLM's, and were measured on no GPU."""
        sglang = _of(spec)
        return Serving(
            tensor_parallel=self.tensor_parallel_size(spec),
            pipeline_parallel=self.pipeline_parallel_size(spec),
            max_model_length=sglang.max_model_length,
            not_computed=("what SGLang takes beside the weights is not computed",),
            may_shrink_weights=bool(sglang.extra_args),
            nodes=spec.accelerator.nodes,
        )


SGLANG = _Sglang()


def _of(spec: ModelDeploymentSpec) -> Sglang:
    assert spec.engine.sglang is not None  # noqa: S101 - the registry passes specs of this engine only
    return spec.engine.sglang


def _flags(spec: ModelDeploymentSpec, sglang: Sglang) -> Iterator[tuple[str, ...]]:
    yield ("--model-path", model_path(spec.weights))
    yield ("--served-model-name", spec.model.name)
    # Its default is the loopback address.
    yield ("--host", "0.0.0.0")  # noqa: S104
    yield ("--allowed-media-domains", NOWHERE)
    yield ("--port", str(spec.endpoint.port))
    yield ("--tp-size", str(SGLANG.tensor_parallel_size(spec)))
    if sglang.pipeline_parallel_size > 1:
        yield ("--pp-size", str(sglang.pipeline_parallel_size))
    yield from sglang_group_flags(spec)
    if sglang.max_model_length is not None:
        yield ("--context-length", str(sglang.max_model_length))
    if sglang.mem_fraction_static_percent is not None:
        yield ("--mem-fraction-static", f"{sglang.mem_fraction_static_percent / 100:.2f}")
    if sglang.kv_cache_dtype is not None:
        yield ("--kv-cache-dtype", sglang.kv_cache_dtype)
    if spec.kv_cache_offload is not None:
        yield ("--enable-hierarchical-cache",)
        yield ("--hicache-size", str(_gigabytes_per_rank(spec)))
    if spec.autoscaling is not None:
        # Without it SGLang serves no metrics.
        yield ("--enable-metrics",)
    yield from tls_flags(spec)
    if spec.adapters:
        yield ("--enable-lora",)
        yield ("--lora-paths", *(sglang_adapter(spec, adapter) for adapter in spec.adapters))
        yield ("--max-lora-rank", str(max(adapter.rank for adapter in spec.adapters)))


def _gigabytes_per_rank(spec: ModelDeploymentSpec) -> int:
    """Whole gigabytes (10^9 bytes) of host memory for the process of each GPU, rounded down.

    Source: `HostKVCache` in sglang/srt/mem_cache/pool_host/base.py of 0.5.23; docs.sglang.io, SGLang HiCache Best
    Practices. 0 would mean a multiple of the GPU's own cache: a rule of the API refuses so little memory.
    """
    assert spec.kv_cache_offload is not None  # noqa: S101 - asked only with the field
    return spec.kv_cache_offload.gibibytes * 2**30 // (spec.accelerator.count * 10**9)


def _environment(spec: ModelDeploymentSpec, sglang: Sglang) -> tuple[dict[str, Any], ...]:
    ours = [
        *(variable for variable in (*OFFLINE, *CACHE_FOLDERS) if not variable["name"].startswith("VLLM_")),
        literal("SGLANG_USE_MODELSCOPE", "0"),
        literal("SGLANG_CACHE_DIR", f"{HOME}/.cache/sglang"),
        literal("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "0"),
        # Seconds within which the warm-up request must be answered; without it, 600.
        literal("SGLANG_WARMUP_TIMEOUT", str(spec.startup_budget_seconds)),
        # Without it SGLang opens a socket towards a public address to find its own address.
        pod_address("SGLANG_HOST_IP"),
        # Routes that change weights, adapters, caches and logging need this key. With an API key alone every client
        # could call them, without any key every pod that can connect.
        pod_uid(ADMIN_KEY),
    ]
    named = {variable.name for variable in sglang.extra_env}
    ours += group_environment(spec, SGLANG.ready_path, named)
    if spec.endpoint.gateway is not None and KEEP_ALIVE not in named:
        ours.append(literal(KEEP_ALIVE, BEYOND_GATEWAYS))
    if spec.endpoint.api_key is not None:
        ours.append(from_secret(API_KEY, spec.endpoint.api_key.secret_name, spec.endpoint.api_key.key))
    return (*ours, *(literal(variable.name, variable.value) for variable in sglang.extra_env))
