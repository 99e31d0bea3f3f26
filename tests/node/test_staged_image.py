"""An image that `hermetic stage` made, mounted as a volume by the real kubelet and containerd."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.commandline import hermetic
from tests.weights import a_model, contents

NAME = "contoso.azurecr.io/models/phi-4"


def test_staged_weights_are_mounted_as_an_image_volume(node, start_pod, tmp_path: Path) -> None:
    model = a_model(tmp_path / "model", size=5 * 2**20)
    ran = hermetic("stage", model, tmp_path / "image.tar", "--format", "oci-archive", "-o", "json")
    assert ran.code == 0, ran.err
    digest = json.loads(ran.out.splitlines()[-1])["image"]
    # through containerd's transfer service the name by digest is not one that the kubelet finds
    node.import_images(tmp_path / "image.tar", "--local", "--base-name", NAME, "--digests")

    pod = start_pod(
        "reader",
        {"volumeMounts": [{"name": "weights", "mountPath": "/weights"}]},
        volumes=[{"name": "weights", "image": {"reference": f"{NAME}@{digest}", "pullPolicy": "IfNotPresent"}}],
    ).until("Ready")

    listed = pod.shell("cd /weights && find . -type f | xargs sha256sum").splitlines()
    sums = {path: digest for digest, path in map(str.split, listed)}
    expected = {f"./{path}": hashlib.sha256(content).hexdigest() for path, content in contents(model).items()}
    assert {path: content for path, content in sums.items() if ".hermetic" not in path} == expected
    assert "./.hermetic/manifest.json" in sums
