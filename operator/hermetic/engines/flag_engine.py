"""The base of engines that are started with the flags of a table: what vLLM and SGLang have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from hermetic.api.engine import Member
from hermetic.api.engine_caches import EngineCaches
from hermetic.api.engine_variables import Environment
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.allow_list import COMMON, AllowList
from hermetic.engines.allowed_settings import refused_flags, refused_variables
from hermetic.engines.compile_caches import cache_containers, cache_key
from hermetic.engines.flag_objections import Typed, objection
from hermetic.engines.flag_tables import TableFolder
from hermetic.engines.launch import PROPAGATION_SECONDS, TEARDOWN_SECONDS, TLS, Launch, WritableFolder, model_folders
from hermetic.engines.offline_environment import HOME
from hermetic.engines.protocol import Extra, Objection, Refused
from hermetic.sizing.serving import Serving


class FlagEngineSettings(Protocol):
    """The fields of `spec.engine.<member>` that such an engine has."""

    image: str
    version: str
    kv_cache_dtype: str | None
    tensor_parallel_size: int | None
    pipeline_parallel_size: int
    extra_args: list[str]
    extra_env: Environment


class FlagEngine(ABC):
    """`tables` are the flags of its releases, `allowed` the reviewed ones, `reserved` those that belong to Hermetic."""

    member: Member
    name: str
    release_field = "version"
    ready_path = "/health"
    tables: TableFolder
    allowed: AllowList
    reserved: Mapping[str, str]

    @abstractmethod
    def serving(self, spec: ModelDeploymentSpec) -> Serving:
        """As in `EngineAdapter`."""

    def tensor_parallel_size(self, spec: ModelDeploymentSpec) -> int:
        """The spec's value, else all GPUs of a pipeline stage."""
        chosen = _chosen(spec)
        return chosen.tensor_parallel_size or spec.accelerator.count // chosen.pipeline_parallel_size

    def gpu_models(self, spec: ModelDeploymentSpec) -> frozenset[str] | None:  # noqa: ARG002 - it names none
        return None

    def objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        chosen = _chosen(spec)
        dtype = chosen.kv_cache_dtype
        choices = (("kvCacheDtype", "--kv-cache-dtype", dtype),) if dtype is not None else ()
        return objection(Typed(self.member, chosen.version, chosen.extra_args, choices), self.tables, self.reserved)

    def alternatives(self, spec: ModelDeploymentSpec, gpus: frozenset[str]) -> str:  # noqa: ARG002 - nothing else
        return ""

    def cache_key(self, spec: ModelDeploymentSpec) -> EngineCaches | str:
        return cache_key(self.member, _chosen(spec).version, self.serving(spec), spec.accelerator)

    def refused_settings(self, spec: ModelDeploymentSpec, extra: Extra) -> Iterator[Refused]:
        chosen, weights = _chosen(spec), model_folders(spec.weights)
        if not self.tables.is_supported(chosen.version):  # reported by `objection`
            return
        table, flags = self.tables.table_for(chosen.version), self.allowed.flags.with_names(extra.arguments)
        yield from refused_flags(chosen.extra_args, table, flags, self.reserved, weights)
        names = self.allowed.variables.read_by(table).joined(COMMON.variables).with_names(extra.variables)
        yield from refused_variables(chosen.extra_env, names, weights)

    def launched(
        self,
        spec: ModelDeploymentSpec,
        command: tuple[str, ...],
        args: tuple[str, ...],
        env: tuple[dict[str, Any], ...],
        args_from_env: tuple[tuple[str, str], ...] = (),
    ) -> Launch:
        """The container; it ends when the last request has ended, or by the kubelet after the grace period."""
        image = _chosen(spec).image
        return Launch(
            engine=self.name,
            image=image,
            command=command,
            args=args,
            args_from_env=args_from_env,
            env=env,
            live_path=self.ready_path,
            ready_path=self.ready_path,
            writable=(WritableFolder("cache", HOME), WritableFolder("tmp", "/tmp")),  # noqa: S108
            user=2000,
            group=0,
            read_only_root=True,
            sleep_before_stop_seconds=PROPAGATION_SECONDS,
            grace_seconds=PROPAGATION_SECONDS + spec.drain_seconds + TEARDOWN_SECONDS,
            init_containers=cache_containers(spec.weights, self.cache_key(spec), image, HOME),
        )


def _chosen(spec: ModelDeploymentSpec) -> FlagEngineSettings:
    return cast("FlagEngineSettings", spec.engine.chosen)  # the registry passes specs of such engines only


def tls_flags(spec: ModelDeploymentSpec) -> Iterator[tuple[str, ...]]:
    """The flags of an endpoint with TLS; none without."""
    if spec.endpoint.tls is not None:
        yield ("--ssl-keyfile", f"{TLS}/tls.key")
        yield ("--ssl-certfile", f"{TLS}/tls.crt")
        # A certificate that is renewed in the Secret is served without a restart.
        yield ("--enable-ssl-refresh",)
