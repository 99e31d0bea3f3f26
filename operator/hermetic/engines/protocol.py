"""The interface of an inference engine. `registry.py` holds every implementation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from hermetic.api.engine import Member
from hermetic.api.engine_caches import EngineCaches
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.benchmark import Load
from hermetic.engines.failure_signatures import Signatures
from hermetic.engines.launch import Launch
from hermetic.sizing.serving import Serving

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an engine could not be started from a spec; `field` is the path of what is wrong, as in `spec.engine`."""

    reason: SpecReason | EngineReason
    message: str
    field: str


@dataclass(frozen=True, slots=True)
class Refused:
    """One variable or argument that may not be given to the engine.

    `kind`: because of its name, because of its value, or because the release does not read it.
    """

    field: Literal["variable", "argument"]
    kind: Literal["name", "value", "unread"]
    name: str
    why: str
    near: str = ""


@dataclass(frozen=True, slots=True)
class Extra:
    """Names that the operator's configuration allows in addition to the reviewed ones."""

    variables: frozenset[str] = _NONE
    arguments: frozenset[str] = _NONE


class EngineAdapter(Protocol):
    """One inference engine. Every method takes a spec that has this engine.

    What users write in the spec, with its rules for the API server and its reserved names, is `spec.engine.<member>` in
    `api/engine.py`.
    """

    @property
    def member(self) -> Member:
        """The field of `spec.engine`, which is also its name in `engineSettings` of the configuration."""

    @property
    def name(self) -> str:
        """The engine's name in the status, in labels and in columns."""

    @property
    def release_field(self) -> str:
        """The field of `spec.engine.<member>` that gives the release in the image."""

    @property
    def ready_path(self) -> str:
        """The path that answers 200 once it serves, in every release."""

    def queue_metric(self, spec: ModelDeploymentSpec) -> str:
        """The metric of its waiting requests, a gauge of each pod, as a metrics adapter publishes it."""

    @property
    def without_a_key(self) -> str:
        """One clause: what answers without the API key; "" where no key is checked."""

    @property
    def signatures(self) -> Signatures:
        """Patterns of its termination messages, the root cause first."""

    def launch(self, spec: ModelDeploymentSpec) -> Launch:
        """How it is started. Raises ValueError for a release that `objection` names."""

    def tensor_parallel_size(self, spec: ModelDeploymentSpec) -> int:
        """GPUs that share each layer."""

    def serving(self, spec: ModelDeploymentSpec) -> Serving:
        """The settings of a spec that decide how much memory it takes on each GPU."""

    def gpu_models(self, spec: ModelDeploymentSpec) -> frozenset[str] | None:
        """The GPUs that it runs on, as keys of the catalogue of sizing; None where it is not known to need any."""

    def alternatives(self, spec: ModelDeploymentSpec, gpus: frozenset[str]) -> str:
        """One clause: what else is staged that would run on these GPUs, keys of the catalogue; "" where not known."""

    def cache_key(self, spec: ModelDeploymentSpec) -> EngineCaches | str:
        """The key of the staged compile caches that it can use, or one clause why it can use none."""

    def benchmark(self, spec: ModelDeploymentSpec, load: Load, url: str) -> tuple[str, ...] | str:
        """The command of its own benchmark against `url`, or one clause why it has none that can be used.

        It writes the keys of `benchmark.FIGURES` into `benchmark.RESULT_FILE`.
        """

    def objection(self, spec: ModelDeploymentSpec) -> Objection | None:
        """Why its release or its arguments would end it at the start; None where no such reason is known."""

    def refused_settings(self, spec: ModelDeploymentSpec, extra: Extra) -> Iterator[Refused]:
        """Everything of `extraArgs` and `extraEnv` that is not on its reviewed lists."""
