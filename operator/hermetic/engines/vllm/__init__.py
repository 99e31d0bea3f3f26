"""vLLM: the spec as `vllm serve PATH --flags`, each flag only where the version knows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hermetic.api.engine import Member
from hermetic.api.engine_vllm import Vllm
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reserved_flags import NOWHERE, VLLM_FLAGS
from hermetic.engines.adapters import vllm_adapter
from hermetic.engines.allow_list import AllowList
from hermetic.engines.benchmark import Load, vllm_benchmark
from hermetic.engines.extra_arguments import WrittenFlag, whole_number
from hermetic.engines.failure_signatures import SIGNATURES, Signatures
from hermetic.engines.flag_engine import FlagEngine, tls_flags
from hermetic.engines.flag_tables import FlagTable
from hermetic.engines.group_members import group_environment, vllm_group_flags
from hermetic.engines.launch import BEYOND_GATEWAYS, Launch, from_secret, literal, model_path, pod_address
from hermetic.engines.offline_environment import CACHE_FOLDERS, OFFLINE
from hermetic.engines.vllm.input_limits import inputs_off
from hermetic.engines.vllm.memory import serving
from hermetic.engines.vllm.tables import TABLES
from hermetic.sizing.catalogue import GIB
from hermetic.sizing.serving import Serving

ALLOWED = AllowList(__name__)
WITHOUT_A_KEY = (
    "the API key guards /v1, /v2 and /inference; other paths, /invocations (inference) among them, need none"
)
QUEUE_METRIC = "vllm:num_requests_waiting"
KEEP_ALIVE = "VLLM_HTTP_TIMEOUT_KEEP_ALIVE"
VOCABULARY_INCLUDED = 31
"""First minor release of vLLM 0 whose `oss-harmony` includes the vocabulary; it fails if configured to read another."""


class _Vllm(FlagEngine):
    """`spec.engine.vllm`."""

    member: Member = "vllm"
    name = "vLLM"
    without_a_key = WITHOUT_A_KEY
    signatures: Signatures = SIGNATURES
    tables = TABLES
    allowed = ALLOWED
    reserved = VLLM_FLAGS
    cache_offload_settings = frozenset(
        {"--kv-offloading-size", "--kv-offloading-backend", "VLLM_USE_SIMPLE_KV_OFFLOAD"}
    )
    # A headless rank refuses a number of API servers (`ServeSubcommand.cmd` in vllm/entrypoints/cli/serve.py).
    # Data parallel ranks of several nodes meet at an address of their own.
    not_in_groups = frozenset(
        {
            "--api-server-count", "--data-parallel-size", "--data-parallel-size-local",
            "--prefill-context-parallel-size",
        }
    )  # fmt: skip

    def launch(self, spec: ModelDeploymentSpec) -> Launch:
        """The container of a vLLM server. Raises ValueError for a version that has no table."""
        vllm = _of(spec)
        table = TABLES.table_for(vllm.version)
        args = (model_path(spec.weights), *table.known_words(_flags(spec, vllm)), *vllm.extra_args)
        # The command, not the image's entrypoint: it works with upstream, NVIDIA's and ROCm's images alike.
        launch = self.launched(spec, ("vllm", "serve"), args, _environment(spec, vllm, table))
        # vLLM maps the offloaded cache from files in /dev/shm, which all of its workers share.
        offload = spec.kv_cache_offload
        return launch if offload is None else replace(launch, shared_memory=offload.memory)

    def queue_metric(self, spec: ModelDeploymentSpec) -> str:  # noqa: ARG002 - one name in every release
        """Source: docs.vllm.ai, Production Metrics."""
        return QUEUE_METRIC

    def serving(self, spec: ModelDeploymentSpec) -> Serving:
        parallel = (self.tensor_parallel_size(spec), self.pipeline_parallel_size(spec))
        settings = serving(_of(spec), spec.adapters, self.written_flags(spec), parallel)
        offload = spec.kv_cache_offload
        return replace(
            settings,
            inputs_off=frozenset(inputs_off(self.every_written_flag(spec))),
            host_cache=0 if offload is None else offload.gibibytes * GIB,
            nodes=spec.accelerator.nodes,
        )

    def benchmark(self, spec: ModelDeploymentSpec, load: Load, url: str) -> tuple[str, ...] | str:
        return vllm_benchmark(spec, self.written_flags(spec), load, url)

    def groups(self, flags: Mapping[str, WrittenFlag]) -> int:
        """vLLM starts tensor x pipeline x prefill context workers for each data parallel rank.

        Decode context parallelism divides the GPUs of tensor parallelism (`ParallelConfig` in vllm/config/parallel.py).
        """
        sizes = (whole_number(flags, "--data-parallel-size"), whole_number(flags, "--prefill-context-parallel-size"))
        return max(1, sizes[0]) * max(1, sizes[1])


VLLM = _Vllm()


def _of(spec: ModelDeploymentSpec) -> Vllm:
    assert spec.engine.vllm is not None  # noqa: S101 - the registry passes specs of this engine only
    return spec.engine.vllm


def before_minor(version: str, minor: int) -> bool:
    """Whether a supported release comes before 0.`minor`."""
    return int(version.split(".")[1]) < minor


def _flags(spec: ModelDeploymentSpec, vllm: Vllm) -> Iterator[tuple[str, ...]]:
    yield ("--served-model-name", spec.model.name, *spec.model.aliases)
    yield ("--port", str(spec.endpoint.port))
    yield ("--tensor-parallel-size", str(VLLM.tensor_parallel_size(spec)))
    if (stages := VLLM.pipeline_parallel_size(spec)) > 1:
        yield ("--pipeline-parallel-size", str(stages))
    yield from vllm_group_flags(spec)
    if vllm.max_model_length is not None:
        yield ("--max-model-len", str(vllm.max_model_length))
    if vllm.gpu_memory_utilization_percent is not None:
        yield ("--gpu-memory-utilization", f"{vllm.gpu_memory_utilization_percent / 100:.2f}")
    if vllm.kv_cache_dtype is not None:
        yield ("--kv-cache-dtype", vllm.kv_cache_dtype)
    if spec.kv_cache_offload is not None:
        # Each data parallel rank is an engine with a buffer of its own (vllm/v1/kv_offload/config.py of 0.33.0).
        ranks = max(1, whole_number(VLLM.written_flags(spec), "--data-parallel-size"))
        yield ("--kv-offloading-size", f"{spec.kv_cache_offload.gibibytes / ranks:g}")
        yield ("--kv-offloading-backend", "native")
    yield ("--shutdown-timeout", str(spec.drain_seconds))
    # An empty list means every domain: one that cannot be a host disables the server-side fetch of media URLs.
    yield ("--allowed-media-domains", NOWHERE)
    yield ("--enable-offline-docs",)
    yield ("--sse-keep-alive-interval", "30")
    yield ("--disable-access-log-for-endpoints", "/health,/metrics,/ping")
    yield from tls_flags(spec)
    if spec.adapters:
        # All of them stay on the GPU: a request never waits until one is read from the share again.
        yield ("--enable-lora",)
        yield ("--lora-modules", *(vllm_adapter(spec, adapter) for adapter in spec.adapters))
        yield ("--max-loras", str(len(spec.adapters)))
        yield ("--max-cpu-loras", str(len(spec.adapters)))
        yield ("--max-lora-rank", str(max(adapter.rank for adapter in spec.adapters)))


def _environment(spec: ModelDeploymentSpec, vllm: Vllm, table: FlagTable) -> tuple[dict[str, Any], ...]:
    ours = [
        *OFFLINE,
        *CACHE_FOLDERS,
        # Without it vLLM opens a socket towards a public address to find its own address.
        pod_address("VLLM_HOST_IP"),
        literal("VLLM_ENGINE_READY_TIMEOUT_S", str(spec.startup_budget_seconds)),
    ]
    variables = [
        variable
        for variable in ours
        if not variable["name"].startswith("VLLM_") or variable["name"] in table.environment
    ]
    named = {variable.name for variable in vllm.extra_env}
    if before_minor(vllm.version, VOCABULARY_INCLUDED) and "TIKTOKEN_ENCODINGS_BASE" not in named:
        # Where gpt-oss reads its vocabulary, if at all: without a folder, it is fetched from a public store.
        variables.append(literal("TIKTOKEN_ENCODINGS_BASE", model_path(spec.weights)))
    variables.extend(group_environment(spec, VLLM.ready_path, named))
    if spec.endpoint.gateway is not None and KEEP_ALIVE not in named:
        variables.append(literal(KEEP_ALIVE, BEYOND_GATEWAYS))
    if spec.endpoint.api_key is not None:
        variables.append(from_secret("VLLM_API_KEY", spec.endpoint.api_key.secret_name, spec.endpoint.api_key.key))
    return (*variables, *(literal(variable.name, variable.value) for variable in vllm.extra_env))
