"""`python -m shipping image FILE`: builds the operator's image as a tar that is an OCI layout.

No container engine, no base image and no root are needed: apt-get fetches Debian packages, pip fetches wheels, both by
the hashes of a lock. The image is an index of one image for each platform. One JSON object on stdout: the index by
digest, the size of the file, and for each platform its digest, the size of the layers that a node pulls, and the size
of each part when it is unpacked.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from shipping.layout import layout_files, write_tar
from shipping.operator_image import PARTS, operator_image
from testbed.console import say
from testbed.images.oci import Image


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shipping image", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--repository", default="hermetic", help="the name in the archive, without a tag")
    chosen = parser.parse_args(arguments)
    image = operator_image(chosen.repository)
    write_tar(chosen.file, layout_files(image))
    size = chosen.file.stat().st_size
    say(f"wrote {chosen.file}, {size / 1e6:.0f} MB")
    platforms = {f"linux/{platform.architecture}": _facts(platform) for platform in image.images}
    print(json.dumps({"image": image.by_digest, "bytes": size, "platforms": platforms}, indent=1))
    return 0


def _facts(image: Image) -> dict[str, Any]:
    parts = {name: len(layer.tar) for name, layer in zip(PARTS, image.layers, strict=True)}
    pulled = sum(len(layer.blob) for layer in image.layers)
    return {"digest": image.digest, "pulledBytes": pulled, "parts": parts}
