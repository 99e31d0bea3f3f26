"""`spec.adapters`: LoRA adapters that the engine loads beside the model when it starts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hermetic.api.field_types import list_of, matches
from hermetic.api.integrity import RootDigest
from hermetic.api.rules import ApiModel, Rule
from hermetic.api.weights import ShareFolder, Weights

MOST_ADAPTERS = 16
AdapterName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=63),
    matches(
        r"^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$",
        "must be letters, digits, '-', '_' or '.', starting and ending with a letter or digit",
    ),
]


class AdapterIntegrity(ApiModel):
    """What an adapter must be before an engine starts."""

    digest: RootDigest
    """Root digest that the manifest of the adapter must have, as 'hermetic stage' prints it."""


class Adapter(ApiModel):
    """A LoRA adapter in the form of PEFT: a folder with adapter_config.json and adapter_model.safetensors."""

    name: AdapterName
    """Name by which clients ask for it, other than the names of the model: at most 63 letters, digits, '-', '_' and
    '.'. Clients of vLLM send 'NAME' as `model`, those of SGLang 'MODEL:NAME'."""
    folder: ShareFolder
    """Folder of the adapter in the share, volume or image of `weights`, from its root, for example
    'adapters/support-de'. In a share or volume its integrity is verified on its own, unless it lies in the folder of
    the model, whose manifest then lists it."""
    rank: Literal[8, 16, 32, 64, 128, 256, 512]
    """Rank for which the engine keeps room: of 8, 16, 32, 64, 128, 256 and 512 the least that is at least `r` in
    adapter_config.json. The largest of all adapters decides."""
    integrity: AdapterIntegrity | None = None
    """How the adapter is verified, by the policy and the keys of `weights.integrity`. It must be left out where the
    weights are an image, and where the adapter lies in the folder of the model. Default: any adapter that is signed by
    a trusted key.

    integrity: {digest: "sha256:…"}"""


Adapters = Annotated[list[Adapter], Field(max_length=MOST_ADAPTERS), list_of("map", "name")]


class AdapterStatus(ApiModel):
    """What is known of one adapter."""

    name: Annotated[str, StringConstraints(max_length=63)]
    """Name of the adapter."""
    state: Literal["Pending", "RollingOut", "Serving"]
    """Pending: no pod that serves has loaded it. RollingOut: some of the pods that serve have. Serving: all of them
    have. An engine that cannot load an adapter does not start."""
    verification: Annotated[str, StringConstraints(max_length=71)] | None = None
    """The root digest with which a pod verified it, or the reason why it does not match; absent until a pod has
    verified it, and where it is not verified on its own."""


def lies_in(folder: str, parent: str) -> bool:
    """Whether a folder is the parent, or lies below it; "" is the root."""
    return not parent or f"{folder}/".startswith(f"{parent}/")


def is_part_of_the_model(adapter: Adapter, weights: Weights) -> bool:
    """Whether the manifest of the model, or the digest of the image, covers the adapter."""
    return not weights.is_mounted or lies_in(adapter.folder, weights.folder)


def _in_cel(source: str, folder: str) -> str:
    return f"has(self.weights.{source}) && has(self.weights.{source}.{folder}) ? self.weights.{source}.{folder} + '/'"


_MODEL_FOLDER = (
    f"({_in_cel('azureFiles', 'folder')} : {_in_cel('nfs', 'folder')} : "
    f"{_in_cel('persistentVolumeClaim', 'folder')} : '')"
)
_OF_AN_IMAGE = "has(self.weights.bakedImage) || has(self.weights.imageVolume)"


def _has_own_names(spec: Any) -> bool:
    return {adapter.name for adapter in spec.adapters}.isdisjoint({spec.model.name, *spec.model.aliases})


def _holds_no_model(spec: Any) -> bool:
    folder = spec.weights.folder
    return not spec.weights.is_mounted or not any(
        folder and lies_in(folder, adapter.folder) for adapter in spec.adapters
    )


ADAPTER_RULES: tuple[Rule, ...] = (
    Rule(
        cel="!has(self.adapters) || self.adapters.all(adapter, adapter.name != self.model.name && "
        "(!has(self.model.aliases) || !(adapter.name in self.model.aliases)))",
        message="must have names other than `model.name` and `model.aliases`: clients ask for each by its name",
        holds=_has_own_names,
        field=".adapters",
    ),
    Rule(
        cel="!has(self.adapters) || self.adapters.size() == 0 || !has(self.engine.nim)",
        message="needs engine `vllm` or `sglang`: a NIM starts without the adapters that it cannot read, and loads "
        "pickled ones",
        holds=lambda spec: not spec.adapters or spec.engine.nim is None,
        field=".adapters",
    ),
    Rule(
        cel=f"!has(self.adapters) || {_OF_AN_IMAGE} || {_MODEL_FOLDER} == '' || "
        f"!self.adapters.exists(adapter, {_MODEL_FOLDER}.startsWith(adapter.folder + '/'))",
        message="must have folders that do not hold the model: an adapter lies beside the folder of the model, or "
        "below it",
        holds=_holds_no_model,
        field=".adapters",
    ),
    Rule(
        cel="!has(self.adapters) || !self.adapters.exists(adapter, has(adapter.integrity) && "
        f"({_OF_AN_IMAGE} || adapter.folder.startsWith({_MODEL_FOLDER})))",
        message="must have no `integrity` where the weights are an image or the adapter lies in the folder of the "
        "model: the digest of the weights covers the adapter",
        holds=lambda spec: (
            not any(
                adapter.integrity is not None and is_part_of_the_model(adapter, spec.weights)
                for adapter in spec.adapters
            )
        ),
        field=".adapters",
    ),
)
"""Rules of the whole `spec`; as in `engine_rules`, they take it as Any."""
