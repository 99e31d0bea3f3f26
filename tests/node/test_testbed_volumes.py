"""Shares behind the kubelet's CSI socket: what makes them read-only, how they fail, and how they heal.

The plug-in stands in for Azure Files and NFS; kubelet, mounts and events are real.
"""

from __future__ import annotations

from typing import Any

import pytest

from testbed.csi.shares import AZURE_FILES, NFS
from testbed.images.model import stage_model
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

READ_ONLY = "Read-only file system"


@pytest.fixture
def mount(start_pod, share_volume):
    """Starts a pod with the test's own share at /weights; each way to say read-only can be left out."""

    def start(mount_read_only: bool = True, **how: Any):
        mounted = [{"name": "weights", "mountPath": "/weights", "readOnly": mount_read_only}]
        return start_pod("reader", {"volumeMounts": mounted}, volumes=[share_volume(**how)])

    return start


@pytest.mark.parametrize("driver", [AZURE_FILES, NFS])
def test_a_share_said_to_be_read_only_everywhere_refuses_every_write(mount, share, driver):
    stage_model(share)

    pod = mount(driver=driver).until("Ready")

    assert '"model_type": "llama"' in pod.shell("cat /weights/config.json")
    for attempt in ("touch /weights/new", "rm /weights/config.json", "echo >> /weights/config.json"):
        assert READ_ONLY in pod.shell(attempt)


def test_the_flag_of_the_volume_alone_leaves_the_share_writable(mount, share):
    pod = mount(options=(), claim_read_only=False, mount_read_only=False).until("Ready")

    assert pod.shell("echo mine > /weights/new && cat /weights/new") == "mine\n"
    assert (share / "new").read_text() == "mine\n"


@pytest.mark.parametrize(
    "only",
    [
        {"claim_read_only": False, "mount_read_only": False},
        {"options": (), "mount_read_only": False},
        {"options": (), "claim_read_only": False},
    ],
    ids=["mount option", "claim", "volume mount"],
)
def test_each_of_the_three_other_ways_is_enough_by_itself(mount, only):
    pod = mount(**only).until("Ready")

    assert READ_ONLY in pod.shell("touch /weights/new")


def test_a_missing_folder_fails_the_mount_and_the_pod_starts_once_it_is_there(mount, share):
    pod = mount(folderName="llama/fp8")

    warning = pod.until_warned("FailedMount", "No such file or directory")
    assert f"contosomodels.file.core.windows.net:/contosomodels/{share.name}/llama/fp8" in warning

    stage_model(share / "llama" / "fp8")
    pod.until("Ready", seconds=120)
    assert "model.safetensors" in pod.shell("ls /weights")


def test_a_mount_option_that_nfs_does_not_know_fails_the_mount(mount):
    mount(options=("ro", "nconect=4")).until_warned("FailedMount", "an incorrect mount option was specified")


def test_a_chmod_after_a_read_only_mount_fails_it_as_the_real_driver_does(mount, share):
    share.chmod(0o755)

    mount(mountPermissions="0777").until_warned("FailedMount", "read-only file system")


def test_an_injected_fault_is_what_the_kubelet_reports(mount, node, share):
    with node.broken_share(
        f"contosomodels/{share.name}", code="UNAVAILABLE", message="the storage account is throttled"
    ):
        pod = mount()
        pod.until_warned("FailedMount", "code = Unavailable", "the storage account is throttled")
    pod.until("Ready", seconds=120)


def test_the_call_log_says_what_the_driver_was_told(mount, node, share):
    mount().until("Ready")

    calls = [call for call in node.csi_calls() if share.name in call.get("volume", "")]
    staged, published = (next(c for c in calls if c["call"] == f"Node{verb}Volume") for verb in ("Stage", "Publish"))
    assert staged["mountOptions"] == ["ro", "nconnect=4", "noresvport"]
    assert staged["attributes"]["shareName"] == share.name
    assert staged["secrets"] == []
    assert published["readOnly"] is True
    assert published["attributes"]["csi.storage.k8s.io/pod.name"] == "reader"
