"""NVIDIA NIM: the spec as the environment variables of its release line; model folder or staged cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermetic.api.engine import Member
from hermetic.api.engine_caches import EngineCaches
from hermetic.api.engine_nim import Nim
from hermetic.api.model_facts import StagedProfile
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reserved_flags import MEDIA_FROM_NOWHERE
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.allow_list import COMMON, AllowList
from hermetic.engines.allowed_settings import refused_flags_in_full, refused_variables
from hermetic.engines.benchmark import Load
from hermetic.engines.dropped_names import dropped_name
from hermetic.engines.failure_signatures import SIGNATURES, Signatures
from hermetic.engines.launch import (
    PROPAGATION_SECONDS,
    TEARDOWN_SECONDS,
    TLS,
    InitContainer,
    Launch,
    WritableFolder,
    literal,
    model_folders,
    model_path,
    pod_address,
)
from hermetic.engines.link_farm import linked
from hermetic.engines.nim.profiles import Profile, chosen, fitting, listed, read_profile, shapes
from hermetic.engines.offline_environment import OFFLINE
from hermetic.engines.protocol import Extra, Objection, Refused
from hermetic.engines.vllm import ALLOWED as ALLOWED_OF_VLLM
from hermetic.engines.vllm import QUEUE_METRIC as QUEUE_METRIC_OF_VLLM
from hermetic.engines.vllm.tables import TABLES
from hermetic.sizing.catalogue import sizes
from hermetic.sizing.serving import Serving

ALLOWED = AllowList(__name__)
SGLANG_INSIDE = AllowList(__name__, "sglang_flags.toml")
CACHE = "/opt/nim/.cache"
READY_PATH = "/v1/health/ready"


class _Nim:
    """`spec.engine.nim`."""

    member: Member = "nim"
    name = "NIM"
    release_field = "line"
    ready_path = READY_PATH
    without_a_key = ""
    signatures: Signatures = SIGNATURES

    def launch(self, spec: ModelDeploymentSpec) -> Launch:
        """The container of a NIM.

        The NIM cache is always writable and private: a read-only cache is not known to work. A staged cache
        (`profile`) is linked into it; a model folder is read where it is mounted. The image's own entrypoint starts
        every line: NVIDIA documents arguments for it (of line 2, `docker run IMAGE --max-model-len 4096`), and no
        program to name instead.
        """
        nim = _of(spec)
        line_two = nim.line.startswith("2.")
        return Launch(
            engine=self.name,
            image=nim.image,
            command=(),
            args=(*_closed_to_media(nim), *nim.extra_args),
            env=tuple(_environment(spec, nim)),
            live_path="/v1/health/live",
            ready_path=READY_PATH,
            writable=(WritableFolder("nim-cache", CACHE), WritableFolder("tmp", "/tmp")),  # noqa: S108
            user=1000,
            group=0 if line_two else 1000,
            # Lines 1 and 2 write outside their cache (proxy, workspace); no document guarantees a read-only root.
            read_only_root=False,
            # A NIM has no documented drain: it serves until requests in flight had time to end.
            sleep_before_stop_seconds=PROPAGATION_SECONDS + spec.drain_seconds,
            grace_seconds=PROPAGATION_SECONDS + spec.drain_seconds + TEARDOWN_SECONDS,
            init_containers=_init_containers(spec, nim),
        )

    def queue_metric(self, spec: ModelDeploymentSpec) -> str:
        """Of line 1 as NVIDIA documents it; of line 2, whose backend is vLLM, that of vLLM: no document lists it.

        Source: docs.nvidia.com/nim/large-language-models, Observability for NVIDIA NIM for LLMs.
        """
        return QUEUE_METRIC_OF_VLLM if _of(spec).line.startswith("2.") else "num_requests_waiting"

    def tensor_parallel_size(self, spec: ModelDeploymentSpec) -> int:
        """All GPUs of the pod, as an upper bound: a NIM's profile decides."""
        return spec.accelerator.count

    def serving(self, spec: ModelDeploymentSpec) -> Serving:
        """Not computed: its profile chooses precision and cache, which is documented only inside its image."""
        return Serving(
            tensor_parallel=spec.accelerator.count,
            max_model_length=_of(spec).max_model_length,
            not_computed=("a NIM chooses precision and cache by its profile",),
            may_shrink_weights=True,
        )

    def gpu_models(self, spec: ModelDeploymentSpec) -> frozenset[str] | None:
        """The GPUs that the profile is built for, if its name contains them."""
        profile = _profile(spec)
        return profile.gpus if profile is not None else None

    def alternatives(self, spec: ModelDeploymentSpec, gpus: frozenset[str]) -> str:
        staged = _staged(spec)
        return listed(fitting(staged, spec.accelerator.count, gpus), len(staged))

    def objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        """A profile that is not staged, or for another number of GPUs; there are no flag tables for NIM."""
        if not (clause := _not_staged(spec) or _another_count(spec)):
            return None
        vm_sizes, sizes_named = sizes(), spec.accelerator.instance_types
        alternatives = self.alternatives(
            spec, frozenset(vm_sizes[name].gpu.key for name in sizes_named if name in vm_sizes)
        )
        more = f"; {alternatives}" if alternatives else ""
        return Objection(SpecReason.NIM_PROFILE_MISMATCH, f"{clause}{more}", "spec.engine.nim.profile")

    def cache_key(self, spec: ModelDeploymentSpec) -> EngineCaches | str:  # noqa: ARG002 - none of a NIM is known
        return "no public source documents how the compile caches of a NIM could be staged"

    def benchmark(self, spec: ModelDeploymentSpec, load: Load, url: str) -> tuple[str, ...] | str:  # noqa: ARG002
        return "NVIDIA documents no benchmark inside the image of a NIM"

    def refused_settings(self, spec: ModelDeploymentSpec, extra: Extra) -> Iterator[Refused]:
        nim = _of(spec)
        weights = (*model_folders(spec.weights), *((nim.model_path,) if nim.model_path is not None else ()))
        flags = ALLOWED_OF_VLLM.flags.joined(ALLOWED.flags)
        variables = ALLOWED.variables.joined(COMMON.variables)
        if nim.line.startswith("2."):
            variables = variables.joined(ALLOWED_OF_VLLM.variables)
        if nim.line != "2.0":
            flags = flags.joined(SGLANG_INSIDE.flags)
        newest = TABLES.table_for(TABLES.supported[-1])
        yield from refused_flags_in_full(nim.extra_args, newest, flags.with_names(extra.arguments), weights)
        yield from refused_variables(nim.extra_env, variables.with_names(extra.variables), weights, _why_unread)


NIM = _Nim()


def _why_unread(name: str) -> str:
    """One clause for a variable that vLLM, which the image holds, has dropped; its release is not known."""
    dropped = dropped_name("nim", name)
    return f"which vLLM from {dropped.since} on does not read; {dropped.instead}" if dropped is not None else ""


def _of(spec: ModelDeploymentSpec) -> Nim:
    assert spec.engine.nim is not None  # noqa: S101 - the registry passes specs of this engine only
    return spec.engine.nim


def _staged(spec: ModelDeploymentSpec) -> list[StagedProfile]:
    return spec.weights.facts.nim_profiles if spec.weights.facts is not None else []


def _profile(spec: ModelDeploymentSpec) -> Profile | None:
    """What the name of the profile says: its own, or that of the staged profile with this id."""
    text = _of(spec).profile or ""
    staged = chosen(_staged(spec), text)
    return read_profile(staged.name if staged is not None else text)


def _not_staged(spec: ModelDeploymentSpec) -> str:
    """One clause where the staged profiles are known and the spec names none of them."""
    nim, staged = _of(spec), _staged(spec)
    if not staged or (nim.profile is not None and chosen(staged, nim.profile) is not None):
        return ""
    if nim.profile is not None:
        return f"`engine.nim.profile` '{nim.profile}' is not among the staged profiles of `weights.facts.nimProfiles`"
    if nim.model_path is not None:
        return ""
    return (
        "`weights.facts.nimProfiles` shows that a NIM cache is staged, and `engine.nim.profile` names no profile of it"
    )


def _another_count(spec: ModelDeploymentSpec) -> str:
    profile, count = _profile(spec), spec.accelerator.count
    if profile is None or profile.count == count:
        return ""
    return (
        f"`engine.nim.profile` '{_of(spec).profile}' is for {profile.count} GPUs (tensor parallel "
        f"{profile.tensor_parallel}, {profile.pipeline_parallel} pipeline stages), and `accelerator.count` is {count}; "
        f"set the count to {profile.count}, or stage a profile with {shapes(count)} in its name"
    )


def _closed_to_media(nim: Nim) -> tuple[str, ...]:
    """Line 2.0 is vLLM behind a proxy, which fetches media from URLs unless configured otherwise.

    A later line is vLLM or SGLang, depending on the image, and SGLang would refuse the flag: there the user may set it.
    """
    return (MEDIA_FROM_NOWHERE,) if nim.line == "2.0" else ()


def _environment(spec: ModelDeploymentSpec, nim: Nim) -> Iterator[dict[str, Any]]:
    yield from OFFLINE
    yield literal("NIM_TELEMETRY_MODE", "0")
    yield literal("NIM_DISABLE_MODEL_DOWNLOAD", "1")
    yield literal("NIM_CACHE_PATH", CACHE)
    yield literal("OUTLINES_CACHE_DIR", "/tmp/outlines")  # noqa: S108
    yield literal("NIM_SERVER_PORT", str(spec.endpoint.port))
    yield literal("NIM_HTTP_API_PORT", str(spec.endpoint.port))
    yield literal("NIM_SERVED_MODEL_NAME", spec.model.name)
    if "NIM_LOG_LEVEL" not in {variable.name for variable in nim.extra_env}:
        yield literal("NIM_LOG_LEVEL", "INFO")
    yield pod_address("VLLM_HOST_IP")
    yield from _model(spec, nim)
    if nim.max_model_length is not None:
        yield literal("NIM_MAX_MODEL_LEN", str(nim.max_model_length))
    if spec.endpoint.tls is not None:
        yield literal("NIM_SSL_MODE", "TLS")
        yield literal("NIM_SSL_KEY_PATH", f"{TLS}/tls.key")
        yield literal("NIM_SSL_CERTS_PATH", f"{TLS}/tls.crt")
    for variable in nim.extra_env:
        yield literal(variable.name, variable.value)


def _model(spec: ModelDeploymentSpec, nim: Nim) -> Iterator[dict[str, Any]]:
    if nim.profile is not None:
        yield literal("NIM_MODEL_PROFILE", nim.profile)
        return
    folder = nim.model_path or model_path(spec.weights)
    yield literal("NIM_MODEL_PATH" if nim.line.startswith("2.") else "NIM_MODEL_NAME", folder)
    yield literal("NIM_TENSOR_PARALLEL_SIZE", str(spec.accelerator.count))


def _init_containers(spec: ModelDeploymentSpec, nim: Nim) -> tuple[InitContainer, ...]:
    """Builds a writable tree of links to a staged cache: the staged files stay where they are, read-only."""
    if nim.profile is None:
        return ()
    return (linked(nim.image, model_path(spec.weights), CACHE, "nim-cache"),)
