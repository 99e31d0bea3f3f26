"""Images made by hand are found by digest, as pods name them; what was not given to the node cannot be had."""

from __future__ import annotations

import pytest

from testbed.images.layers import layer_of_files
from testbed.images.oci import Image, write_archive
from testbed.images.roots import busybox_layer
from testbed.processes import wait_until
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE


@pytest.fixture
def give(node, tmp_path):
    """Gives images to the running node."""

    def give_images(*images: Image) -> None:
        write_archive(tmp_path / "images.tar", images)
        node.import_images(tmp_path / "images.tar")

    return give_images


def test_a_pod_that_names_an_image_by_digest_runs_that_very_image(start_pod, give):
    layer = layer_of_files({"said.txt": "this one\n"})
    image = Image("contoso.azurecr.io/tools/speaker", "1", (busybox_layer(), layer), command=("/bin/cat", "/said.txt"))
    give(image)

    pod = start_pod("speaker", {"image": image.by_digest}, restartPolicy="Never")
    pod.until("jsonpath={.status.phase}=Succeeded")

    assert pod.kubectl("logs", pod.name) == "this one\n"
    assert pod.status()["containerStatuses"][0]["imageID"].endswith(image.digest)


def test_two_images_of_one_name_are_told_apart_by_digest(start_pod, give):
    old, new = (
        Image(
            "contoso.azurecr.io/tools/twin", "1", (busybox_layer(), layer_of_files({"v": version})), ("/bin/cat", "/v")
        )
        for version in ("old", "new")
    )
    give(old)
    give(new)

    for image, version in ((old, "old"), (new, "new")):
        pod = start_pod(version, {"image": image.by_digest}, restartPolicy="Never")
        pod.until("jsonpath={.status.phase}=Succeeded")
        assert pod.kubectl("logs", pod.name) == version


def test_an_image_volume_by_digest_is_mounted_read_only(start_pod, give):
    model = Image("contoso.azurecr.io/models/phi-4", "1", (layer_of_files({"phi-4/config.json": "{}"}),))
    give(model)

    pod = start_pod(
        "reader",
        {"volumeMounts": [{"name": "weights", "mountPath": "/weights"}]},
        volumes=[{"name": "weights", "image": {"reference": model.by_digest, "pullPolicy": "IfNotPresent"}}],
    ).until("Ready")

    assert pod.shell("cat /weights/phi-4/config.json") == "{}"
    assert "Read-only file system" in pod.shell("touch /weights/anything")


def test_an_image_that_the_node_does_not_have_cannot_be_pulled(start_pod):
    missing = "contoso.azurecr.io/tools/missing@sha256:" + "0" * 64

    pod = start_pod("hopeful", {"image": missing})

    assert "failed to pull" in pod.until_warned("Failed", missing)
    wait_until("trouble", lambda: _waits_for(pod) in {"ErrImagePull", "ImagePullBackOff"}, ())


def _waits_for(pod) -> str:
    return pod.status()["containerStatuses"][0]["state"]["waiting"]["reason"]
