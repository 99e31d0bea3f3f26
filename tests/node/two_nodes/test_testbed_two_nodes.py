"""Two real nodes in one cluster: pods of both reach each other, Services lead to both, and NetworkPolicies hold."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.kubectl import Kubectl
from testbed.node.addresses import FIRST, SECOND
from testbed.node.handle import RunningNode
from testbed.processes import wait_until
from tests.node.conftest import Pod
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

StartPod = Callable[..., Pod]
LISTEN = {"command": ["sh", "-c", "httpd -p 29501 -h /; exec httpd -f -p 1023 -h /"]}


def on(start_pod: StartPod, name: str, node: str, container: dict[str, Any] | None = None) -> Pod:
    return start_pod(name, container, nodeName=node)


def address(pod: Pod) -> str:
    return str(pod.status()["podIP"])


def is_reached(pod: Pod, host: str, port: int) -> bool:
    return "HTTP/1" in pod.shell(f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {host} {port}")


@pytest.fixture
def pods(start_pod: StartPod) -> tuple[Pod, Pod]:
    """A listener on each node."""
    first, second = on(start_pod, "first", FIRST.name, LISTEN), on(start_pod, "second", SECOND.name, LISTEN)
    return first.until("Ready"), second.until("Ready")


def test_both_nodes_advertise_their_own_gpus_and_volumes(kubectl: Kubectl) -> None:
    nodes = {node["metadata"]["name"]: node["status"] for node in kubectl.json("get", "nodes")["items"]}
    assert {name: status["allocatable"]["nvidia.com/gpu"] for name, status in nodes.items()} == {
        FIRST.name: "4",
        SECOND.name: "4",
    }
    drivers = {csi["metadata"]["name"]: len(csi["spec"]["drivers"]) for csi in kubectl.json("get", "csinodes")["items"]}
    assert drivers == {FIRST.name: 2, SECOND.name: 2}


def test_pods_of_both_nodes_reach_each_other_by_their_own_addresses(pods: tuple[Pod, Pod]) -> None:
    first, second = pods
    assert address(first).startswith("10.244.0.")
    assert address(second).startswith("10.244.1.")
    assert is_reached(first, address(second), 29501)
    assert is_reached(second, address(first), 29501)


def test_logs_and_shells_of_the_second_node_s_pods_are_reachable(start_pod: StartPod) -> None:
    talker = {"command": ["sh", "-c", "echo up; exec sleep 3600"]}
    pod = on(start_pod, "talker", SECOND.name, talker).until("Ready")
    assert pod.kubectl("logs", pod.name) == "up\n"
    assert pod.shell("hostname") == "talker\n"


def test_a_service_and_its_name_lead_to_a_pod_of_the_other_node(pods: tuple[Pod, Pod], namespace: str) -> None:
    first, second = pods
    for asking, served in ((first, second), (second, first)):
        ports = [{"port": 80, "targetPort": 29501}]
        spec = {"selector": {"app": served.name}, "ports": ports}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"to-{served.name}"}, "spec": spec}
        served.kubectl.apply(service)
        host = f"to-{served.name}.{namespace}.svc.cluster.local"
        wait_until("the Service", lambda asking=asking, host=host: is_reached(asking, host, 80), ())  # type: ignore[misc]


def test_no_address_outside_the_virtual_network_can_be_reached_from_the_second_node(
    start_pod: StartPod, node: RunningNode
) -> None:
    pod = on(start_pod, "probe", SECOND.name).until("Ready")
    assert "Network is unreachable" in pod.shell("nc -w 2 198.51.100.7 443")
    assert node.inside_second("ip", "route", "get", "198.51.100.7").returncode != 0


def between(name: str, namespace: str) -> dict[str, Any]:
    """Only between pods with the label `app` of this value, at ports from 1024 on."""
    peers = [{"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["first", "second"]}]}}]
    ports = [{"protocol": "TCP", "port": 1024, "endPort": 65535}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "podSelector": peers[0]["podSelector"],
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": peers, "ports": ports}],
            "egress": [{"to": peers, "ports": ports}],
        },
    }


def test_a_network_policy_opens_its_ports_to_its_peers_and_to_nobody_else(
    pods: tuple[Pod, Pod], start_pod: StartPod, namespace: str
) -> None:
    first, second = pods
    stranger = on(start_pod, "stranger", FIRST.name, LISTEN).until("Ready")
    assert is_reached(stranger, address(second), 29501)
    first.kubectl.apply(between("group", namespace))

    wait_until("the policy to hold", lambda: not is_reached(stranger, address(second), 29501), ())
    assert is_reached(first, address(second), 29501)
    assert is_reached(second, address(first), 29501)
    assert not is_reached(first, address(second), 1023)
    assert not is_reached(second, address(stranger), 29501)


def test_a_deny_all_policy_closes_a_pod_and_its_end_opens_it_again(pods: tuple[Pod, Pod], namespace: str) -> None:
    first, second = pods
    closed = between("closed", namespace)
    closed["spec"] = {"podSelector": {"matchLabels": {"app": "second"}}, "policyTypes": ["Ingress"]}
    first.kubectl.apply(closed)
    wait_until("a closed pod", lambda: not is_reached(first, address(second), 29501), ())
    first.kubectl("delete", "networkpolicy", "closed")
    wait_until("an open pod", lambda: is_reached(first, address(second), 29501), ())


# Prints who answers on a connection that stays open while another pod answers new ones, and who these are.
ASK_ON_AN_OPEN_CONNECTION = """
import http.client, pathlib, sys, time

host, marker = sys.argv[1], pathlib.Path(sys.argv[2])

def ask(connection):
    connection.request("GET", "/name")
    return connection.getresponse().read().decode().strip()

def ask_anew():
    connection = http.client.HTTPConnection(host, 8000, timeout=5)
    try:
        return ask(connection)
    except OSError:
        return ""
    finally:
        connection.close()

opened = http.client.HTTPConnection(host, 8000, timeout=30)
opened.connect()
opened.putrequest("GET", "/name")
first = ask_anew()
marker.touch()
until = time.monotonic() + 60
while (other := ask_anew()) in ("", first) and time.monotonic() < until:
    time.sleep(0.2)
opened.endheaders()
print(opened.getresponse().read().decode().strip(), other)
"""
NAMED = {"command": ["sh", "-c", "mkdir -p /tmp/w && hostname > /tmp/w/name && exec httpd -f -p 8000 -h /tmp/w"]}


def internal_balancer(namespace: str) -> dict[str, Any]:
    """Of the pods with the label `serves`, each node for its own."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "balanced",
            "namespace": namespace,
            "annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
        },
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "selector": {"serves": "yes"},
            "ports": [{"port": 8000, "targetPort": 8000}],
        },
    }


def test_an_open_connection_stays_on_its_node_while_new_ones_go_to_the_other(
    start_pod: StartPod, node: RunningNode, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    ours = kubectl.within(namespace)
    ours.apply(internal_balancer(namespace))
    for name, on_node in (("first", FIRST.name), ("second", SECOND.name)):
        on(start_pod, name, on_node, NAMED).until("Ready")
    ours("label", "pod/first", "serves=yes")
    ours("wait", "service/balanced", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "--timeout=60s")
    host = ours.json("get", "service", "balanced")["status"]["loadBalancer"]["ingress"][0]["ip"]
    wait_until("an answer", lambda: bool(node.from_client("curl", "-sf", f"http://{host}:8000/name").stdout), ())

    printed: list[str] = []
    asking = (sys.executable, "-c", ASK_ON_AN_OPEN_CONNECTION, host, str(tmp_path / "opened"))
    client = threading.Thread(target=lambda: printed.append(str(node.from_client(*asking, timeout=120))))
    client.start()
    wait_until("an open connection", (tmp_path / "opened").exists, ())
    ours("label", "pod/second", "serves=yes")
    ours("label", "pod/first", "serves-")
    client.join()
    assert "stdout='first second\\n'" in printed[0], printed
