"""The images of the test bed, each as one function."""

from __future__ import annotations

from testbed.images.oci import Image
from testbed.images.roots import busybox_layer


def pause_image() -> Image:
    """What holds a pod's namespaces open: it only has to stay."""
    return Image("localhost/pause", "1", (busybox_layer(),), command=("/bin/sleep", "2147483647"))
