"""The real node itself: it runs pods as a cloud's node would, and nothing gets out of it."""

from __future__ import annotations

import json
import sys

import pytest

from testbed.fleet import Pool, add_nodes, remove_nodes
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def test_a_pod_runs_and_its_log_and_shell_are_reachable_from_outside(start_pod):
    pod = start_pod("talker", {"command": ["sh", "-c", "echo up; exec sleep 3600"]}).until("Ready")

    assert pod.kubectl("logs", pod.name) == "up\n"
    assert pod.shell("echo from $(hostname)") == "from talker\n"


def test_the_restricted_security_context_takes_effect(start_pod):
    pod = start_pod(
        "locked",
        {"securityContext": RESTRICTED, "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]},
        securityContext={"runAsUser": 2000, "runAsGroup": 0},
        volumes=[{"name": "tmp", "emptyDir": {}}],
    ).until("Ready")

    status = dict(line.split(":", 1) for line in pod.shell("cat /proc/1/status").splitlines())
    assert {name: status[name].split() for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")} == {
        "CapEff": ["0000000000000000"],
        "CapBnd": ["0000000000000000"],
        "NoNewPrivs": ["1"],
        "Seccomp": ["2"],
    }
    assert pod.shell("id -u; id -g").split() == ["2000", "0"]
    assert "Read-only file system" in pod.shell("touch /anywhere")
    assert pod.shell("touch /tmp/here && echo written") == "written\n"


def test_the_node_has_the_capacity_of_the_azure_size_it_is_labelled_with(kubectl, node):
    manifest = kubectl.json("get", "node", node.name)

    capacity, labels = manifest["status"]["capacity"], manifest["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "Standard_NC96ads_A100_v4"
    assert (capacity["cpu"], capacity["memory"]) == ("96", "880Gi")


@pytest.mark.parametrize("address", ["198.51.100.7", "8.8.8.8", "10.99.0.1"])
def test_no_address_outside_the_virtual_network_can_be_reached(start_pod, node, address):
    pod = start_pod("probe").until("Ready")
    attempt = f"import socket; print(socket.socket().connect_ex(('{address}', 443)))"

    assert node.inside(sys.executable, "-c", attempt).stdout == "101\n"  # ENETUNREACH
    assert "Network is unreachable" in pod.shell(f"nc -w 2 {address} 443")


def test_names_of_the_cluster_resolve_and_no_others(start_pod):
    pod = start_pod("asker").until("Ready")

    assert "10.96.0.1" in pod.shell("nslookup kubernetes.default.svc.cluster.local")
    assert "example.com" not in pod.shell("nslookup example.com. | grep -A1 Name:")


def test_the_api_server_is_reachable_from_pods_by_its_service(start_pod):
    pod = start_pod("caller").until("Ready")

    assert pod.shell("nc -w 2 kubernetes.default 443 < /dev/null && echo open") == "open\n"


def test_fake_nodes_live_beside_the_real_one(kubectl, api, namespace):
    (fake,) = add_nodes(api, Pool("beside", taints=()))
    try:
        ours = kubectl.within(namespace)
        ours("run", "imagined", "--image=nowhere.example/nothing:1", f"--overrides={_on(fake)}")
        ours("wait", "pod/imagined", "--for=condition=Ready", "--timeout=30s")
    finally:
        remove_nodes(api, [fake])


def _on(node: str) -> str:
    return json.dumps({"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}})


def test_a_process_that_outgrows_its_memory_limit_is_killed_and_said_so(start_pod):
    hungry = {"command": ["sh", "-c", "tail /dev/zero"], "resources": {"limits": {"memory": "32Mi"}}}
    pod = start_pod("hungry", hungry, restartPolicy="Never").until("jsonpath={.status.phase}=Failed")

    assert pod.status()["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"
