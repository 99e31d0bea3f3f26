"""The images of the test bed, each as one function."""

from __future__ import annotations

from pathlib import Path

from testbed.images.layers import layer
from testbed.images.model import model_entries
from testbed.images.oci import Image
from testbed.images.packages import SITE_PACKAGES, package_entries
from testbed.images.roots import busybox_layer, python_layer

REGISTRY = "contoso.azurecr.io"
TAG = "testbed"


def pause_image() -> Image:
    """What holds a pod's namespaces open: it only has to stay."""
    return Image("localhost/pause", "1", (busybox_layer(),), command=("/bin/sleep", "2147483647"))


def operator_image(project: str, sources: Path) -> Image:
    """A Python project with its run-time packages, started by its module name, as a user that is not root.

    USER is set because the container's user has no passwd entry, and Python's getpass wants a name.
    """
    return Image(
        f"{REGISTRY}/{project}",
        TAG,
        (busybox_layer(), python_layer(), layer(package_entries(project, sources))),
        entrypoint=("/usr/local/bin/python3", "-m", sources.name),
        command=("run",),
        environment={
            "HOME": "/tmp",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"/{SITE_PACKAGES}",
            "PYTHONUNBUFFERED": "1",
            "USER": project,
        },
        user="2000:2000",
    )


def model_image(name: str) -> Image:
    """A model and nothing else, for image volumes: its files lie in a folder of its name."""
    return Image(f"{REGISTRY}/models/{name}", TAG, (layer(model_entries(name)),))
