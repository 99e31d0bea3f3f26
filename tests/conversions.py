"""Conversions as tests use them: one command, its manifest, its notes and the arguments that the engine is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.modeldeployment import ModelDeployment
from hermetic.conversion.deployment import Conversion, Request, convert
from hermetic.conversion.outcomes import Note
from hermetic.conversion.server_command import read_server_command
from hermetic.engines.registry import launch

VLLM_IMAGE = "contoso.azurecr.io/vllm/vllm-openai:v0.33.0"
SGLANG_IMAGE = "contoso.azurecr.io/lmsysorg/sglang:v0.5.23"


@dataclass(frozen=True)
class Converted:
    """One conversion and what can be asked of it."""

    conversion: Conversion

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.conversion.manifest["spec"]
        return spec

    @property
    def engine(self) -> Mapping[str, Any]:
        """The settings of the engine."""
        (settings,) = self.spec["engine"].values()
        return settings  # type: ignore[no-any-return]

    @property
    def arguments(self) -> list[str]:
        """The items of `extraArgs`."""
        return list(self.engine.get("extraArgs", []))

    @property
    def variables(self) -> dict[str, str]:
        """The items of `extraEnv`."""
        return {entry["name"]: entry.get("value", "") for entry in self.engine.get("extraEnv", [])}

    @property
    def launched(self) -> tuple[str, ...]:
        """The arguments that the container of the pod gets."""
        return launch(ModelDeployment.model_validate(self.conversion.manifest).spec).args

    def notes(self, kind: str, subject: str = "") -> list[Note]:
        """The notes of this kind, about this subject unless it is ""."""
        return [note for note in self.conversion.notes if note.kind == kind and subject in ("", note.subject)]


def converted(*words: str, image: str = VLLM_IMAGE, **chosen: Any) -> Converted:
    """The conversion of a command."""
    return Converted(convert(read_server_command(words), Request(image=image, **chosen)))


def of_vllm(*arguments: str, **chosen: Any) -> Converted:
    """`vllm serve org/model` with these arguments."""
    return converted("vllm", "serve", "org/model", *arguments, **chosen)


def of_sglang(*arguments: str, **chosen: Any) -> Converted:
    """`sglang serve --model-path org/model` with these arguments."""
    return converted("sglang", "serve", "--model-path", "org/model", *arguments, **{"image": SGLANG_IMAGE, **chosen})
