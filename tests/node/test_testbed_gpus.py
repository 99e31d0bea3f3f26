"""GPUs that are not there: counted, given out and broken as real ones are."""

from __future__ import annotations

import pytest

from testbed.processes import wait_until
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

GPU = "nvidia.com/gpu"


@pytest.fixture
def allocatable(kubectl, node):
    def count() -> int:
        return int(kubectl.json("get", "node", node.name)["status"]["allocatable"][GPU])

    return count


def test_a_container_gets_as_many_devices_as_it_asks_for(start_pod):
    pod = start_pod("user", {"resources": {"limits": {GPU: 2}}}).until("Ready")

    devices = pod.shell("echo -n $NVIDIA_VISIBLE_DEVICES").split(",")
    assert len(set(devices)) == 2
    assert all(device.startswith("GPU-") for device in devices)


def test_devices_of_an_init_container_are_those_of_the_container_after_it_and_no_further_ones(
    start_pod, toolbox, allocatable
):
    """Hermetic checks GPUs in an init container: https://github.com/kubernetes/kubernetes/issues/56818."""
    devices = {"resources": {"limits": {GPU: 2}}}
    write = ["sh", "-c", "echo -n $NVIDIA_VISIBLE_DEVICES >/dev/termination-log"]
    check = {"name": "check", "image": toolbox.by_digest, "command": write, **devices}
    pod = start_pod("handed-on", devices, initContainers=[check]).until("Ready")

    (checked,) = [state["state"]["terminated"]["message"] for state in pod.status()["initContainerStatuses"]]
    assert set(checked.split(",")) == set(pod.shell("echo -n $NVIDIA_VISIBLE_DEVICES").split(","))
    start_pod("rest", {"resources": {"limits": {GPU: allocatable() - 2}}}).until("Ready")


def test_more_than_the_node_has_are_never_given_out(start_pod, allocatable):
    pod = start_pod("greedy", {"resources": {"limits": {GPU: allocatable() + 1}}})

    assert "Insufficient nvidia.com/gpu" in pod.until_warned("FailedScheduling")


def test_an_unhealthy_device_lowers_what_is_allocatable_until_it_recovers(node, allocatable):
    healthy = allocatable()

    with node.unhealthy_gpu("GPU-3"):
        wait_until("one device less", lambda: allocatable() == healthy - 1, ())
    wait_until("all devices", lambda: allocatable() == healthy, ())
