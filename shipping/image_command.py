"""`python -m shipping image FILE`: builds the operator's image as a tar that is an OCI layout.

No container engine, no base image and no root are needed: apt-get fetches Debian packages, pip fetches wheels, both by
the hashes of a lock. One JSON object on stdout: the image by digest, its size in bytes, and the size of each part.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from shipping.layout import layout_files, write_tar
from shipping.operator_image import PARTS, operator_image
from testbed.console import say


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shipping image", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--repository", default="hermetic", help="the name in the archive, without a tag")
    chosen = parser.parse_args(arguments)
    image = operator_image(chosen.repository)
    write_tar(chosen.file, layout_files(image))
    parts = {name: len(layer.tar) for name, layer in zip(PARTS, image.layers, strict=True)}
    say(f"wrote {chosen.file}, {chosen.file.stat().st_size / 1e6:.0f} MB")
    print(json.dumps({"image": image.by_digest, "bytes": chosen.file.stat().st_size, "parts": parts}, indent=1))
    return 0
