"""Whether a ModelDeployment may have an argument or a variable, by the rules of the API and of the engine.

The rules are those of `hermetic validate`; nothing here repeats them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.validation_errors import problems_of
from hermetic.engines.flag_engine import FlagEngine
from hermetic.engines.protocol import EngineAdapter, Extra

_ANY_IMAGE = f"registry.invalid/engine@sha256:{'0' * 64}"


Adapter = TypeVar("Adapter", FlagEngine, EngineAdapter)


@dataclass(frozen=True, slots=True)
class Trial(Generic[Adapter]):
    """A spec that is valid but for what is tried in it.

    `release`: the field of the engine that names its release ('version' or 'line'), with its value. `weights`: as in
    the manifest that it is tried for.
    """

    engine: Adapter
    release: Mapping[str, str]
    weights: Mapping[str, Any]

    def objection_to_argument(self, items: Sequence[str], gpus: int) -> str:
        """Why `extraArgs` may not hold these items, for a pod of so many GPUs; "" where it may."""
        return self._objection({"extraArgs": list(items)}, gpus)

    def objection_to_variable(self, name: str, value: str) -> str:
        """Why `extraEnv` may not hold the variable; "" where it may. Its value is not repeated."""
        return self._objection({"extraEnv": [{"name": name, "value": value}]}, 1)

    def _objection(self, settings: Mapping[str, Any], gpus: int) -> str:
        engine = {"image": _ANY_IMAGE, **self.release, **settings}
        document = {
            "model": {"name": "model"},
            "engine": {self.engine.member: engine},
            "weights": self.weights,
            "accelerator": {"count": gpus},
        }
        try:
            spec = ModelDeploymentSpec.model_validate(document)
        except ValidationError as error:
            return problems_of(error, ModelDeploymentSpec)[0].message
        # The reviewed lists first: their reasons repeat no value of a flag that could hold a secret.
        refused = next(self.engine.refused_settings(spec, Extra()), None)
        if refused is not None:
            return refused.why
        objection = self.engine.objection(spec)
        return objection.message if objection is not None else ""
