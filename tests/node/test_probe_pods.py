"""The probe as real pods, in the three states of an estate: no route out, an egress path, everything dropped.

Pods, kubelet, Services and packets are real. What is stood in for is everything beyond the node: a namespace inside the
node's own answers as the internet, as Azure's resolver and as the metadata service. All of it dies with the node.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from hermetic.audit.checks import probe
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.model.hops import written
from hermetic.audit.policy.declarations import Policy
from hermetic.collect.probe.job import ProbedNode, ProbePods, probed_nodes
from hermetic.collect.probe.readings import question
from hermetic.collect.probe.running import ProbeRounds
from hermetic.collect.probe.targets import Targets
from hermetic.controller.clock import SystemClock
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import from_kubeconfig
from testbed.certificates import Authority
from testbed.images.oci import Image, write_archive
from testbed.images.recipes import operator_image
from testbed.node.addresses import NODE_ADDRESS, POD_NETWORK
from testbed.node.handle import RunningNode
from tests.network.conftest import REMOTE_SERVERS
from tests.probe_runs import CLUSTER, SUBSCRIPTION

BEYOND, UPLINK, FAR_SIDE = "beyond", "203.0.113.1", "203.0.113.2"
AZURE_DNS, METADATA = "168.63.129.16", "169.254.169.254"
PUBLIC = ("198.51.100.1", "198.51.100.2", "198.51.100.3")
POLICY = Policy(allowed_dns_servers=(NODE_ADDRESS,))
DOCUMENTS = {
    "/metadata/loadbalancer": [200, {"loadbalancer": {"publicIpAddresses": [], "outboundRules": []}}],
    "/metadata/instance/network": [200, {"interface": [{"ipv4": {"ipAddress": [{"publicIpAddress": ""}]}}]}],
    "/metadata/instance/compute": [
        200,
        {"subscriptionId": SUBSCRIPTION, "resourceGroupName": "MC_gpu", "vmScaleSetName": "s", "vmId": "v"},
    ],
}
LINK = f"""
netns add {BEYOND}
link add up0 type veth peer name inet0 netns {BEYOND}
address add {UPLINK}/24 dev up0
link set up0 up
-n {BEYOND} link set lo up
-n {BEYOND} address add {FAR_SIDE}/24 dev inet0
-n {BEYOND} link set inet0 up
-n {BEYOND} route add default via {UPLINK}
route add {AZURE_DNS} via {FAR_SIDE}
route add {METADATA} via {FAR_SIDE}
"""
DROP = "table inet gap {\nchain in {\ntype filter hook input priority 0;\nip daddr 198.51.100.0/24 drop\n}\n}\n"


@pytest.fixture(scope="module")
def probe_image(node: RunningNode, tmp_path_factory) -> Image:
    """The image that ships: the probe needs its Python, and brings the program with the pod."""
    image = operator_image()
    archive = tmp_path_factory.mktemp("images") / "probe.tar"
    write_archive(archive, [image])
    node.import_images(archive)
    return image


@pytest.fixture(scope="module")
def beyond(node: RunningNode, tmp_path_factory) -> Iterator[None]:
    """A namespace beyond the node that answers as the internet would; without a route to it."""
    folder = tmp_path_factory.mktemp("beyond")
    certificate, key = Authority("nobody").server("far-end", ["far-end.example"]).write(folder, "far-end")
    stub_settings = {"certificate": str(certificate), "key": str(key), "dns": {AZURE_DNS: "refuses"}, "imds": DOCUMENTS}
    for line in LINK.strip().splitlines():
        ip(node, *line.split())
    for address in (*PUBLIC, AZURE_DNS, METADATA):
        ip(node, "-n", BEYOND, "address", "add", f"{address}/32", "dev", "lo")
    enter = [*node.printed["enter"], "ip", "netns", "exec", BEYOND]
    program = [*enter, sys.executable, "-I", str(REMOTE_SERVERS), json.dumps(stub_settings)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "listening\n"
        yield
        running.kill()
    ip(node, "link", "del", "up0")
    ip(node, "netns", "del", BEYOND)


def ip(node: RunningNode, *arguments: str) -> None:
    done = node.inside("ip", *arguments)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


@contextmanager
def open_way(node: RunningNode) -> Iterator[None]:
    ip(node, "route", "add", "default", "via", FAR_SIDE)
    try:
        yield
    finally:
        ip(node, "route", "del", "default")


@contextmanager
def dropping(node: RunningNode) -> Iterator[None]:
    """An egress path, on which everything is dropped."""
    in_beyond = ("ip", "netns", "exec", BEYOND, "nft")
    assert node.inside(*in_beyond, DROP).returncode == 0
    try:
        with open_way(node):
            yield
    finally:
        assert node.inside(*in_beyond, "delete table inet gap").returncode == 0


@pytest.fixture
def place(node: RunningNode, kubectl) -> Iterator[ProbedNode]:
    """The real node, labelled as AKS labels the machines of a subnet."""
    kubectl("label", "node", node.name, "kubernetes.azure.com/network-subnet=nodes", "--overwrite")
    (manifest,) = [kubectl.json("get", "node", node.name)]
    (probed_node,) = probed_nodes([manifest])
    yield probed_node
    kubectl("label", "node", node.name, "kubernetes.azure.com/network-subnet-")


@pytest.fixture
def spaces(kubectl, make_namespace: Callable[[str], str]) -> dict[str, str]:
    """A namespace that admits nothing but restricted pods, and one for those of the machine's network."""
    namespaces = {level: make_namespace(f"-{level[:4]}") for level in ("restricted", "privileged")}
    for level, name in namespaces.items():
        kubectl("label", "namespace", name, f"pod-security.kubernetes.io/enforce={level}")
    return namespaces


@pytest.fixture
def probed(node: RunningNode, probe_image: Image, place: ProbedNode, spaces, beyond) -> Callable[..., object]:  # noqa: ARG001
    """Runs a round and returns its findings by check."""

    async def run() -> dict[str, Finding]:
        targets = Targets(public_addresses=(*PUBLIC, "2001:db8:ff::1"), limit_seconds=1.5)
        pods = ProbePods(
            namespace=spaces["restricted"],
            host_namespace=spaces["privileged"],
            image=probe_image.by_digest,
            targets=targets,
        )
        async with KubernetesApi(await from_kubeconfig(str(node.kubeconfig))) as kube:
            answer = await ProbeRounds(kube, pods).whole_round(
                secrets.token_hex(4), [place], SystemClock(), patience=90
            )
        assert answer.problem is None, answer.problem
        runs = [ProbeRun.read(body) for body in answer.bodies]
        assert [(run.node, run.host_network, run.problem) for run in runs] == [
            (node.name, False, None),
            (node.name, True, None),
        ]
        estate = Estate(CLUSTER, ["probe"], {question(CLUSTER): answer})
        return {finding.check: finding for check in probe.CHECKS for finding in findings_of(check, estate, POLICY)}

    return run


async def test_without_a_route_nothing_answers_and_the_probe_passes_its_own_checks(probed):
    findings = await probed()

    assert findings["probe-internet"].verdict is Verdict.PASS, findings["probe-internet"].message
    # the machine itself, and IPv6 in the pod; the pod's IPv4 ends at the machine, which does not say so every time
    assert "no route (5)" in findings["probe-internet"].message
    assert "no route beyond a router" in findings["probe-internet"].message
    verdicts = {
        check: findings[check].verdict for check in ("dns-recursion", "imds-lb", "imds-identity", "node-routes")
    }
    assert set(verdicts.values()) == {Verdict.PASS}, verdicts
    assert findings["probe-internet"].resource == "agentPools/real/subnets/nodes"


async def test_an_open_way_is_found_from_the_pod_and_from_the_machine(node, probed):
    with a_way_back(node), open_way(node):
        finding = (await probed())["probe-internet"]

    assert finding.verdict is Verdict.FAIL
    paths = [written(path) for path in finding.paths]
    assert f"pool real -> pod on node {node.name} -> 198.51.100.1:443/tcp" in paths
    assert f"pool real -> node {node.name} -> 198.51.100.1:443/tcp" in paths


async def test_dropped_packets_read_as_dropped_and_not_as_no_route(node, probed):
    with a_way_back(node), dropping(node):
        finding = (await probed())["probe-internet"]

    assert finding.verdict is Verdict.PASS, finding.message
    assert "dropped on the way (6)" in finding.message


@contextmanager
def a_way_back(node: RunningNode) -> Iterator[None]:
    """The far side knows the way back to pods."""
    ip(node, "-n", BEYOND, "route", "add", POD_NETWORK, "via", UPLINK)
    try:
        yield
    finally:
        ip(node, "-n", BEYOND, "route", "del", POD_NETWORK)
