"""Internal load balancers answer on their address, to whom they should, as the cloud's do.

kube-proxy does the work; the address comes from the stand-in for the cloud provider.
"""

from __future__ import annotations

import ipaddress
import sys

import pytest

from testbed.node.addresses import CLIENT_ADDRESS, LOAD_BALANCER_NETWORK, NODE_ADDRESS
from testbed.processes import wait_until
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

INTERNAL = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
# the answer is the address of the client
ECHO = {"command": ["sh", "-c", "mkdir -p /tmp/cgi-bin && cp /whoami /tmp/cgi-bin/ && exec httpd -f -p 8000 -h /tmp"]}
WHOAMI = "#!/bin/sh\necho 'Content-Type: text/plain'; echo; echo $REMOTE_ADDR\n"
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=1).read().decode())"


@pytest.fixture
def balanced(kubectl, namespace, start_pod):
    """Puts an echo pod behind an internal load balancer and returns where it answers."""
    ours = kubectl.within(namespace)

    def serve(annotations: dict[str, str] | None = None, **spec) -> str:
        script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "echo"}, "data": {"whoami": WHOAMI}}
        ours.apply(script, _service(annotations or INTERNAL, spec))
        start_pod(
            "echo",
            {**ECHO, "volumeMounts": [{"name": "script", "mountPath": "/whoami", "subPath": "whoami"}]},
            volumes=[{"name": "script", "configMap": {"name": "echo", "defaultMode": 0o755}}],
        ).until("Ready")
        ours("wait", "service/echo", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "--timeout=20s")
        return ours.json("get", "service", "echo")["status"]["loadBalancer"]["ingress"][0]["ip"]

    return serve


def _service(annotations: dict[str, str], spec: dict) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "echo", "annotations": annotations},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": "echo"},
            "ports": [{"port": 8000, "targetPort": 8000}],
            **spec,
        },
    }


def _answers(ask, address: str) -> str | None:
    """Who the asked one thinks has asked; None when nothing answers."""
    output = ask(sys.executable, "-c", ASK, f"http://{address}:8000/cgi-bin/whoami").stdout.strip()
    return output.strip("[]").removeprefix("::ffff:") or None


def _answered(ask, address: str) -> str:
    """The first answer: kube-proxy writes its rules within a second or two of the address."""
    answers: list[str] = []
    wait_until(f"an answer of {address}", lambda: bool(answers.append(_answers(ask, address)) or answers[-1]), (), 20)
    return answers[-1]


@pytest.mark.parametrize("policy", ["Cluster", "Local"])
def test_an_internal_load_balancer_answers_the_node_and_the_virtual_network(balanced, node, policy):
    address = balanced(externalTrafficPolicy=policy)

    assert ipaddress.ip_address(address) in ipaddress.ip_network(LOAD_BALANCER_NETWORK)
    assert _answered(node.inside, address)
    assert _answered(node.from_client, address)


def test_the_local_policy_keeps_the_address_of_the_client(balanced, node):
    address = balanced(externalTrafficPolicy="Local")

    assert _answered(node.from_client, address) == CLIENT_ADDRESS


def test_an_asked_for_address_is_the_one_that_answers(balanced, node):
    annotations = {**INTERNAL, "service.beta.kubernetes.io/azure-load-balancer-ipv4": "10.13.76.40"}

    assert balanced(annotations) == "10.13.76.40"
    assert _answered(node.from_client, "10.13.76.40")


@pytest.mark.parametrize(
    ("ranges", "welcome", "unwelcome"),
    [
        ([f"{CLIENT_ADDRESS}/32"], "from_client", "inside"),
        ([f"{NODE_ADDRESS}/32"], "inside", "from_client"),
    ],
    ids=["client only", "node only"],
)
@pytest.mark.parametrize("policy", ["Cluster", "Local"])
def test_source_ranges_let_in_only_whom_they_name(balanced, node, policy, ranges, welcome, unwelcome):
    address = balanced(loadBalancerSourceRanges=ranges, externalTrafficPolicy=policy)

    assert _answered(getattr(node, welcome), address)
    assert _answers(getattr(node, unwelcome), address) is None


def test_a_public_address_is_not_routed_anywhere(balanced, node):
    address = balanced({"service.beta.kubernetes.io/azure-load-balancer-internal": "True"})

    assert ipaddress.ip_address(address) not in ipaddress.ip_network("10.0.0.0/8")
    assert _answers(node.inside, address) is None
