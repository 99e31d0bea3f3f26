"""The base of engines that are started with the flags of a table: what vLLM and SGLang have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Protocol, cast

from hermetic.api.engine import Member
from hermetic.api.engine_caches import EngineCaches
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.engine_variables import Environment
from hermetic.api.group_rules import NOT_IN_GROUPS
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.allow_list import COMMON, AllowList
from hermetic.engines.allowed_settings import refused_flags, refused_variables
from hermetic.engines.compile_caches import cache_containers, cache_key
from hermetic.engines.extra_arguments import WrittenFlag, read
from hermetic.engines.flag_objections import Typed, objection
from hermetic.engines.flag_tables import FlagTable, TableFolder
from hermetic.engines.group_members import interconnect_devices, is_group
from hermetic.engines.launch import (
    PROPAGATION_SECONDS,
    TEARDOWN_SECONDS,
    TLS,
    Launch,
    WritableFolder,
    as_group_member,
    keeping_first_errors,
    model_folders,
)
from hermetic.engines.offline_environment import HOME
from hermetic.engines.protocol import Extra, Objection, Refused
from hermetic.engines.release_history import why_missing
from hermetic.sizing.serving import Serving

VISIBLE_DEVICES = frozenset({"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
"""Variables that hide GPUs of the pod from the engine."""


class FlagEngineSettings(Protocol):
    """The fields of `spec.engine.<member>` that such an engine has."""

    image: str
    version: str
    kv_cache_dtype: str | None
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
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
    cache_offload_settings: frozenset[str]
    """Flags and variables that decide what `kvCacheOffload` decides."""
    not_in_groups: frozenset[str]
    """Flags that end the engine, or some of its ranks, where a replica has several nodes."""
    not_in_groups_unless: frozenset[str] = frozenset()
    """Flags beside which those have another meaning."""

    @abstractmethod
    def queue_metric(self, spec: ModelDeploymentSpec) -> str:
        """As in `EngineAdapter`."""

    @abstractmethod
    def serving(self, spec: ModelDeploymentSpec) -> Serving:
        """As in `EngineAdapter`."""

    @abstractmethod
    def groups(self, flags: Mapping[str, WrittenFlag]) -> int:
        """How many times the pod holds the GPUs of one tensor and pipeline parallel group: the data parallel size."""

    def tensor_parallel_size(self, spec: ModelDeploymentSpec) -> int:
        """The spec's value, else all GPUs of a pipeline stage of one group."""
        stages = self.pipeline_parallel_size(spec) * self.groups(self.written_flags(spec))
        return _chosen(spec).tensor_parallel_size or max(1, spec.accelerator.gpus // stages)

    def pipeline_parallel_size(self, spec: ModelDeploymentSpec) -> int:
        """The spec's value, else a stage for each node."""
        return _chosen(spec).pipeline_parallel_size or spec.accelerator.nodes

    def written_flags(self, spec: ModelDeploymentSpec) -> Mapping[str, WrittenFlag]:
        """The flags of `extraArgs` by their names, the last of each; none for a release that has no table."""
        return {written_flag.flag.name: written_flag for written_flag in self.every_written_flag(spec)}

    def every_written_flag(self, spec: ModelDeploymentSpec) -> tuple[WrittenFlag, ...]:
        """The flags of `extraArgs` in their order, without those that switch a flag off."""
        chosen = _chosen(spec)
        if not self.tables.is_supported(chosen.version):
            return ()
        written, _ = read(chosen.extra_args, self.tables.table_for(chosen.version))
        return tuple(written_flag for written_flag in written if not written_flag.is_negated)

    def gpu_models(self, spec: ModelDeploymentSpec) -> frozenset[str] | None:  # noqa: ARG002 - it names none
        return None

    def objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        chosen = _chosen(spec)
        dtype = chosen.kv_cache_dtype
        choices = (("kvCacheDtype", "--kv-cache-dtype", dtype),) if dtype is not None else ()
        refused = objection(Typed(self.member, chosen.version, chosen.extra_args, choices), self.tables, self.reserved)
        return (
            refused
            or self._group_objection(spec)
            or self._gpu_objection(spec)
            or self._visible_objection(spec)
            or (self._offload_objection(spec) if spec.kv_cache_offload is not None else None)
        )

    def _gpu_objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        """The GPUs that the engine would start workers on must be those of the pod."""
        groups, stages = self.groups(self.written_flags(spec)), self.pipeline_parallel_size(spec)
        tensor, count = self.tensor_parallel_size(spec), spec.accelerator.gpus
        product = tensor * stages * groups
        if product == count:
            return None
        field, remedy = (
            "`accelerator.count`",
            f"set `accelerator.count` to {product}, or sizes whose product is {count}",
        )
        if is_group(spec):
            field, remedy = "`accelerator.count` times `accelerator.nodes`", f"set sizes whose product is {count}"
        message = (
            f"{field} is {count}, and {self.name} would use {product} GPUs: tensor parallel {tensor} times pipeline "
            f"parallel {stages} times data parallel {groups}; {remedy}"
        )
        return Objection(EngineReason.GPU_COUNT_MISMATCH, message, "spec.accelerator.count")

    def _group_objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        """Flags that a group has no ranks for."""
        if not is_group(spec):
            return None
        written = self.written_flags(spec)
        for name in sorted(written.keys() & self.not_in_groups):
            if not (self.not_in_groups_unless & written.keys()):
                message = f"`engine.{self.member}.extraArgs` holds '{name}': it {NOT_IN_GROUPS}"
                return Objection(SpecReason.ENGINE_FLAG_RESERVED, message, f"spec.engine.{self.member}.extraArgs")
        return None

    def _visible_objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        """A choice of GPUs must have all of the pod: the engine starts a worker for each."""
        count = spec.accelerator.count
        for variable in _chosen(spec).extra_env:
            devices = [device for device in variable.value.split(",") if device.strip()]
            if variable.name in VISIBLE_DEVICES and devices and len(devices) != count:
                message = (
                    f"`engine.{self.member}.extraEnv` has {len(devices)} GPUs in '{variable.name}', and "
                    f"`accelerator.count` is {count}: leave it out, the device plug-in gives the pod its GPUs"
                )
                return Objection(EngineReason.GPU_COUNT_MISMATCH, message, f"spec.engine.{self.member}.extraEnv")
        return None

    def _offload_objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        """The memory of the pod was computed from the field: no argument or variable may ask for another size."""
        variables = {variable.name for variable in _chosen(spec).extra_env}
        for field, names in (("extraArgs", self.written_flags(spec).keys()), ("extraEnv", variables)):
            if settings := sorted(names & self.cache_offload_settings):
                message = (
                    f"`engine.{self.member}.{field}` holds '{settings[0]}', which would change what `kvCacheOffload` "
                    "sets; leave one of the two out"
                )
                return Objection(SpecReason.ENGINE_FLAG_RESERVED, message, f"spec.engine.{self.member}.{field}")
        return None

    def alternatives(self, spec: ModelDeploymentSpec, gpus: frozenset[str]) -> str:  # noqa: ARG002 - nothing else
        return ""

    def cache_key(self, spec: ModelDeploymentSpec) -> EngineCaches | str:
        if is_group(spec):
            return "it is not known which compile caches the ranks of several nodes share"
        return cache_key(self.member, _chosen(spec).version, self.serving(spec), spec.accelerator)

    def refused_settings(self, spec: ModelDeploymentSpec, extra: Extra) -> Iterator[Refused]:
        chosen, weights = _chosen(spec), model_folders(spec.weights)
        if not self.tables.is_supported(chosen.version):  # reported by `objection`
            return
        table, flags = self.tables.table_for(chosen.version), self.allowed.flags.with_names(extra.arguments)
        yield from refused_flags(chosen.extra_args, table, flags, self.reserved, weights)
        names = self.allowed.variables.read_by(table).joined(COMMON.variables).with_names(extra.variables)
        yield from refused_variables(chosen.extra_env, names, weights, partial(self._why_unread, table))

    def _why_unread(self, table: FlagTable, name: str) -> str:
        """One clause for a variable that other releases read; "" for any other."""
        history = why_missing(self.member, name, table, self.tables)
        return f"which {self.name} {table.version} does not read: {history}" if history else ""

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
            command=keeping_first_errors(*(as_group_member(*command) if is_group(spec) else command)),
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
            nodes=spec.accelerator.nodes,
            devices=interconnect_devices(spec.accelerator),
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
