"""The images of the test bed, each as one function."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from shipping.operator_image import platform_image
from shipping.platforms import native_platform
from testbed import simulated_nvml
from testbed.engine import (
    SGLANG_ENTRYPOINT,
    VLLM_ENTRYPOINT,
    image_files,
    nim_entrypoint,
    nim_environment,
    sglang_environment,
    vllm_environment,
)
from testbed.images.layers import Entry, Layer, folder, layer, text
from testbed.images.model import model_entries
from testbed.images.oci import Image
from testbed.images.roots import PYTHON, busybox_layer, python_layer

REGISTRY = "contoso.azurecr.io"
TAG = "testbed"


def pause_image() -> Image:
    """What holds a pod's namespaces open: it only has to stay."""
    return Image("localhost/pause", "1", (busybox_layer(),), command=("/bin/sleep", "2147483647"))


@cache
def operator_image() -> Image:
    """The image that ships, for this machine. A security update of Debian must not stop the test bed: it takes the
    present packages.
    """
    return platform_image(f"{REGISTRY}/hermetic", native_platform(), TAG, exactly=False)


def model_image(name: str) -> Image:
    """A model and nothing else, for image volumes: its files lie in a folder of its name."""
    return Image(f"{REGISTRY}/models/{name}", TAG, (layer(model_entries(name)),))


def vllm_image(version: str = "0.32.0") -> Image:
    """The engine stand-in with vLLM's face: `vllm serve` is on the PATH and refuses what that version refuses."""
    return Image(
        f"{REGISTRY}/vllm/vllm-openai",
        f"v{version}",
        _engine_layers(),
        entrypoint=VLLM_ENTRYPOINT,
        environment=vllm_environment(version),
    )


def sglang_image(version: str = "0.5.23") -> Image:
    """The engine stand-in with SGLang's face: `sglang serve` refuses what that release refuses."""
    return Image(
        f"{REGISTRY}/lmsysorg/sglang",
        f"v{version}",
        _engine_layers(),
        entrypoint=SGLANG_ENTRYPOINT,
        environment=sglang_environment(version),
    )


def nim_image(line: str = "2.1", model: str = "meta/llama-3.1-8b-instruct") -> Image:
    """The engine stand-in with the face of a NIM of this line."""
    return Image(
        f"{REGISTRY}/nim/{model}",
        line,
        (*_engine_layers(), layer([folder("opt/nim/.cache", 0o777)])),
        entrypoint=nim_entrypoint(line),
        environment=nim_environment(line),
    )


def baked_image(name: str, version: str = "0.32.0") -> Image:
    """A vLLM image that has its model inside, under /models."""
    return Image(
        f"{REGISTRY}/models/{name}-vllm",
        f"v{version}",
        (*_engine_layers(), layer(model_entries(f"models/{name}"))),
        entrypoint=VLLM_ENTRYPOINT,
        environment=vllm_environment(version),
    )


DRIVER_AT_START = f"""# loads the simulated driver in a container to which the device plug-in gave one
import os

if os.path.isdir("{simulated_nvml.FOLDER}"):
    import simulated_nvml

    simulated_nvml.install()
"""


@cache
def _engine_layers() -> tuple[Layer, ...]:
    return (busybox_layer(), python_layer(), layer(_engine_entries()))


def _engine_entries() -> Iterable[Entry]:
    yield from (Entry(path, mode, content) for path, content, mode in image_files())
    yield Entry(f"usr/local/lib/{PYTHON}/simulated_nvml.py", content=Path(simulated_nvml.__file__).read_bytes())
    yield text(f"usr/local/lib/{PYTHON}/sitecustomize.py", DRIVER_AT_START)
