"""vLLM: the spec as `vllm serve PATH --flags`, each flag only where the version knows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermetic.api.engine import Member, Vllm
from hermetic.api.engine_caches import EngineCaches
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reserved_flags import NOWHERE, VLLM_FLAGS
from hermetic.engines.allow_list import COMMON, AllowList
from hermetic.engines.allowed_settings import refused_flags, refused_variables
from hermetic.engines.compile_caches import cache_containers, cache_key
from hermetic.engines.failure_signatures import SIGNATURES, Signatures
from hermetic.engines.flag_objections import Typed, objection
from hermetic.engines.flag_tables import FlagTable
from hermetic.engines.launch import (
    PROPAGATION_SECONDS,
    TEARDOWN_SECONDS,
    TLS,
    Launch,
    WritableFolder,
    from_secret,
    keeping_first_errors,
    literal,
    model_folders,
    model_path,
    pod_address,
)
from hermetic.engines.offline_environment import OFFLINE, cache_folders
from hermetic.engines.protocol import Extra, Objection, Refused
from hermetic.engines.vllm.memory import serving
from hermetic.engines.vllm.tables import TABLES
from hermetic.sizing.serving import Serving

ALLOWED = AllowList(__name__)
HOME = "/home/hermetic"
READY_PATH = "/health"
WITHOUT_A_KEY = (
    "the API key guards /v1, /v2 and /inference; other paths, /invocations (inference) among them, need none"
)
VOCABULARY_INCLUDED = 31
"""First minor release of vLLM 0 whose `oss-harmony` includes the vocabulary; it fails if configured to read another."""


class _Vllm:
    """`spec.engine.vllm`."""

    member: Member = "vllm"
    name = "vLLM"
    release_field = "version"
    ready_path = READY_PATH
    without_a_key = WITHOUT_A_KEY
    signatures: Signatures = SIGNATURES

    def launch(self, spec: ModelDeploymentSpec) -> Launch:
        """The container of a vLLM server. Raises ValueError for a version that has no table."""
        vllm = _of(spec)
        table = TABLES.table_for(vllm.version)
        return Launch(
            engine=self.name,
            image=vllm.image,
            # The command, not the image's entrypoint: it works with upstream, NVIDIA's and ROCm's images alike.
            command=keeping_first_errors("vllm", "serve"),
            args=(model_path(spec.weights), *table.known_words(_flags(spec, vllm)), *vllm.extra_args),
            env=_environment(spec, vllm, table),
            live_path=READY_PATH,
            ready_path=READY_PATH,
            writable=(WritableFolder("cache", HOME), WritableFolder("tmp", "/tmp")),  # noqa: S108
            user=2000,
            group=0,
            read_only_root=True,
            sleep_before_stop_seconds=PROPAGATION_SECONDS,
            grace_seconds=PROPAGATION_SECONDS + spec.drain_seconds + TEARDOWN_SECONDS,
            init_containers=cache_containers(spec.weights, self.cache_key(spec), vllm.image, HOME),
        )

    def tensor_parallel_size(self, spec: ModelDeploymentSpec) -> int:
        """The spec's value, else all GPUs of a pipeline stage."""
        vllm = _of(spec)
        return vllm.tensor_parallel_size or spec.accelerator.count // vllm.pipeline_parallel_size

    def serving(self, spec: ModelDeploymentSpec) -> Serving:
        return serving(_of(spec), self.tensor_parallel_size(spec))

    def gpu_models(self, spec: ModelDeploymentSpec) -> frozenset[str] | None:  # noqa: ARG002 - it names none
        return None

    def objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        vllm = _of(spec)
        chosen = (("kvCacheDtype", "--kv-cache-dtype", vllm.kv_cache_dtype),) if vllm.kv_cache_dtype is not None else ()
        return objection(Typed(self.member, vllm.version, vllm.extra_args, chosen), TABLES, VLLM_FLAGS)

    def alternatives(self, spec: ModelDeploymentSpec, gpus: frozenset[str]) -> str:  # noqa: ARG002 - nothing else
        return ""

    def cache_key(self, spec: ModelDeploymentSpec) -> EngineCaches | str:
        return cache_key(self.member, _of(spec).version, self.serving(spec), spec.accelerator)

    def refused_settings(self, spec: ModelDeploymentSpec, extra: Extra) -> Iterator[Refused]:
        vllm, weights = _of(spec), model_folders(spec.weights)
        if not TABLES.is_supported(vllm.version):  # reported by `objection`
            return
        table, flags = TABLES.table_for(vllm.version), ALLOWED.flags.with_names(extra.arguments)
        yield from refused_flags(vllm.extra_args, table, flags, VLLM_FLAGS, weights)
        names = ALLOWED.variables.read_by(table).joined(COMMON.variables).with_names(extra.variables)
        yield from refused_variables(vllm.extra_env, names, weights)


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
    if vllm.pipeline_parallel_size > 1:
        yield ("--pipeline-parallel-size", str(vllm.pipeline_parallel_size))
    if vllm.max_model_length is not None:
        yield ("--max-model-len", str(vllm.max_model_length))
    if vllm.gpu_memory_utilization_percent is not None:
        yield ("--gpu-memory-utilization", f"{vllm.gpu_memory_utilization_percent / 100:.2f}")
    if vllm.kv_cache_dtype is not None:
        yield ("--kv-cache-dtype", vllm.kv_cache_dtype)
    yield ("--shutdown-timeout", str(spec.drain_seconds))
    # An empty list means every domain: one that cannot be a host disables the server-side fetch of media URLs.
    yield ("--allowed-media-domains", NOWHERE)
    yield ("--enable-offline-docs",)
    yield ("--sse-keep-alive-interval", "30")
    yield ("--disable-access-log-for-endpoints", "/health,/metrics,/ping")
    if spec.endpoint.tls is not None:
        yield ("--ssl-keyfile", f"{TLS}/tls.key")
        yield ("--ssl-certfile", f"{TLS}/tls.crt")
        # A certificate that is renewed in the Secret is served without a restart.
        yield ("--enable-ssl-refresh",)


def _environment(spec: ModelDeploymentSpec, vllm: Vllm, table: FlagTable) -> tuple[dict[str, Any], ...]:
    ours = [
        *OFFLINE,
        *cache_folders(HOME),
        # Without it vLLM opens a socket towards a public address to find its own address.
        pod_address("VLLM_HOST_IP"),
        literal("VLLM_ENGINE_READY_TIMEOUT_S", str(spec.startup_budget_seconds)),
    ]
    known = [
        variable
        for variable in ours
        if not variable["name"].startswith("VLLM_") or variable["name"] in table.environment
    ]
    named = {variable.name for variable in vllm.extra_env}
    if before_minor(vllm.version, VOCABULARY_INCLUDED) and "TIKTOKEN_ENCODINGS_BASE" not in named:
        # Where gpt-oss reads its vocabulary, if at all: without a folder, it is fetched from a public store.
        known.append(literal("TIKTOKEN_ENCODINGS_BASE", model_path(spec.weights)))
    if spec.endpoint.api_key is not None:
        known.append(from_secret("VLLM_API_KEY", spec.endpoint.api_key.secret_name, spec.endpoint.api_key.key))
    return (*known, *(literal(variable.name, variable.value) for variable in vllm.extra_env))
