"""The platforms of the operator's image: how Debian, wheels and OCI name each.

Nodes with NVIDIA Grace (GB200, GB300) are arm64; the image runs on them as egress probe and as verifier of weights.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from testbed.images.oci import ARCHITECTURES

OLDEST_GLIBC, NEWEST_GLIBC = 5, 36
"""Minor versions of glibc 2 in the tags of wheels (https://peps.python.org/pep-0600/). The image has 2.41; the command
line also runs on machines with an older one.
"""


@dataclass(frozen=True)
class Platform:
    """`architecture`: of Debian and OCI. `machine`: of the kernel and wheels. `loader`: the path in ELF files."""

    architecture: str
    machine: str
    loader: str

    @property
    def libraries(self) -> str:
        """The name of the folders of Debian's libraries."""
        return f"{self.machine}-linux-gnu"

    @property
    def wheel_tags(self) -> list[str]:
        """The platform tags of wheels that run on it. pip takes a list where others take a bound."""
        versions = range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)
        return [f"manylinux_2_{minor}_{self.machine}" for minor in versions] + [f"manylinux2014_{self.machine}", "any"]


AMD64 = Platform("amd64", "x86_64", "lib64/ld-linux-x86-64.so.2")
ARM64 = Platform("arm64", "aarch64", "lib/ld-linux-aarch64.so.1")
PLATFORMS = (AMD64, ARM64)


def native_platform() -> Platform:
    """The platform of this machine."""
    architecture = ARCHITECTURES[platform.machine()]
    return next(candidate for candidate in PLATFORMS if candidate.architecture == architecture)
