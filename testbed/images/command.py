"""`python -m testbed images FOLDER`: makes every image of the test bed, all in FOLDER/images.tar.

One JSON object on stdout: a short name for each image, and the reference, by digest, that a manifest needs. The names
are those of a registry, but no registry has the images: a node must be given the tar (`testbed node --images FOLDER`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from testbed.images.oci import Image, write_archive
from testbed.images.recipes import baked_image, model_image, nim_image, operator_image, sglang_image, vllm_image


def all_images() -> dict[str, Image]:
    """By the short name that the command prints."""
    return {
        "operator": operator_image(),
        "vllm": vllm_image(),
        "sglang": sglang_image(),
        "nim": nim_image("2.1"),
        "nim-1": nim_image("1.15"),
        "baked": baked_image("phi-4"),
        "model": model_image("phi-4"),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m testbed images", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder: Path = parser.parse_args(arguments).folder
    images = all_images()
    write_archive(folder / "images.tar", images.values())
    print(json.dumps({name: image.by_digest for name, image in images.items()}, indent=1))
    return 0
