"""The probe against what answers: TLS, names, proxies and the metadata service, from a leaking network to a sealed one.

Everything here is real but who answers: the far end of the network stands in for the internet, for Azure's resolver and
metadata service, and for the cluster's own resolver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hermetic.audit.checks import probe
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.probe.dns import DnsReading
from hermetic.audit.estate.probe.readings import Reading
from hermetic.audit.estate.questions import Answer, Body
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Evidence, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.collect.probe.readings import question
from hermetic.collect.probe.targets import ProbeListener, Targets
from tests.network.network_namespaces import DEFAULTS, FAR, NetworkLayout
from tests.probe_runs import CLUSTER, SUBSCRIPTION

AZURE_DNS, METADATA, API_SERVER, CLUSTER_DNS, PROXY = (
    "168.63.129.16",
    "169.254.169.254",
    "10.96.0.1",
    "10.96.0.10",
    "10.1.0.9",
)
INSIDE = (AZURE_DNS, METADATA, API_SERVER, CLUSTER_DNS, PROXY)
SERVICE = {"KUBERNETES_SERVICE_HOST": API_SERVER, "KUBERNETES_SERVICE_PORT": "443"}
BALANCER = {"loadbalancer": {"publicIpAddresses": [], "inboundRules": [], "outboundRules": []}}
LEAKING_BALANCER = {
    "loadbalancer": {
        "publicIpAddresses": [{"frontendIpAddress": "198.51.100.77", "privateIpAddress": "203.0.113.2"}],
        "inboundRules": [],
        "outboundRules": [{"frontendIpAddress": "198.51.100.77", "privateIpAddress": "203.0.113.2"}],
    }
}
COMPUTE = {"subscriptionId": SUBSCRIPTION, "resourceGroupName": "MC_gpu", "vmScaleSetName": "aks-gpu", "vmId": "1"}


def interface(public: str) -> dict:
    return {"interface": [{"ipv4": {"ipAddress": [{"privateIpAddress": "203.0.113.2", "publicIpAddress": public}]}}]}


def imds(balancer: object = BALANCER, public: str = "") -> dict:
    return {
        "/metadata/loadbalancer": [200, balancer],
        "/metadata/instance/network": [200, interface(public)],
        "/metadata/instance/compute": [200, COMPUTE],
    }


def everywhere(status: int, body: object) -> dict:
    return {path: [status, body] for path in imds()}


TARGETS = Targets(
    public_addresses=("198.51.100.1", "198.51.100.2", "198.51.100.3", "2001:db8:ff::1"),
    storage_names=("stranger.blob.core.windows.net",),
    proxies=(ProbeListener(address=PROXY, port=3128),),
    limit_seconds=1.5,
)


@pytest.fixture(scope="module", autouse=True)
def inside(network: NetworkLayout) -> None:
    """What every cluster reaches, sealed or not: the host, the API server, its resolver, a proxy of the company."""
    network.add_beyond(*INSIDE)
    for address in INSIDE:
        network.node.run("ip", "route", "add", address, "via", "203.0.113.1")
    set_resolver(network, CLUSTER_DNS)


def set_resolver(network: NetworkLayout, *servers: str) -> None:
    text = "search svc.cluster.local\n" + "".join(f"nameserver {server}\n" for server in servers)
    network.node.run(
        "sh", "-c", "cat > /run/resolv.conf; mount --bind /run/resolv.conf $(readlink -f /etc/resolv.conf)", stdin=text
    )


@pytest.fixture
def sealed_network(network: NetworkLayout) -> Iterator[None]:
    """No route to anything but what is inside."""
    with network.node.without(*DEFAULTS):
        yield


def judged(ask) -> dict[str, tuple[Verdict, str]]:
    """What the audit says after a run from each vantage; both are in the same namespace here."""
    bodies = []
    for host_network in (False, True):
        questions = TARGETS.questions("round", host_network=host_network)
        run = ask(SERVICE, **json.loads(questions))
        value = {**facts(host_network), "questions": run.questions, "answer": run.answer}
        bodies.append(Body(value, (Evidence("a pod in the node's namespace"),)))
    estate = Estate(CLUSTER, ["probe"], {question(CLUSTER): Answer(tuple(bodies))})
    findings = [
        finding
        for check in probe.CHECKS
        for finding in findings_of(check, estate, Policy(allowed_dns_servers=(CLUSTER_DNS,)))
    ]
    return {finding.check: (finding.verdict, finding.message) for finding in findings}


def facts(host_network: bool) -> dict:
    return {
        "id": f"Pod probes/{'host' if host_network else 'pod'}",
        "pool": "gpu",
        "subnet": "nodes",
        "node": "node-0",
        "hostNetwork": host_network,
        "observedAt": "2026-09-01T10:00:00Z",
    }


def test_an_open_network_fails_every_check_that_it_should(ask, start_beyond):
    start_beyond(
        dns={CLUSTER_DNS: "knows_everything"}, imds=imds(LEAKING_BALANCER, "198.51.100.77"), proxies={PROXY: 200}
    )

    verdict_of = judged(ask)

    failed = {check for check, (verdict, _) in verdict_of.items() if verdict is Verdict.FAIL}
    assert failed == {
        "probe-internet",
        "probe-storage",
        "probe-proxy",
        "wireserver",
        "host-plugin",
        "dns-recursion",
        "node-routes",
        "node-v6-default-route",
        "imds-lb",
        "imds-nic-pip",
    }
    assert "198.51.100.1:443/tcp TLS answered" in verdict_of["probe-internet"][1]
    assert verdict_of["imds-identity"][0] is verdict_of["node-resolv"][0] is Verdict.PASS


@pytest.mark.usefixtures("sealed_network")
def test_a_sealed_network_passes_what_the_probe_can_pass(network, ask, start_beyond):
    start_beyond(dns={CLUSTER_DNS: "knows_the_cluster", AZURE_DNS: "refuses"}, imds=imds(), proxies={PROXY: 403})
    with network.node.rules("output", f"ip daddr {AZURE_DNS} tcp dport {{ 53, 80, 32526 }} drop"):
        verdict_of = judged(ask)

    assert {check for check, (verdict, _) in verdict_of.items() if verdict is not Verdict.PASS} == {"probe-storage"}
    assert verdict_of["probe-storage"][0] is Verdict.UNKNOWN
    assert "no route (8)" in verdict_of["probe-internet"][1]


def test_a_network_that_drops_everything_passes_too_and_says_so(network, ask, start_beyond):
    start_beyond(dns={CLUSTER_DNS: "knows_the_cluster", AZURE_DNS: "denies"}, imds=imds())
    with network.router.rules("forward", f"ip daddr {FAR[4]} drop", f"ip6 daddr {FAR[6]} drop"):
        verdict_of = judged(ask)

    assert verdict_of["probe-internet"][0] is verdict_of["dns-recursion"][0] is Verdict.PASS
    assert "dropped on the way (8)" in verdict_of["probe-internet"][1]


def everything_dropped_but(*accepted: str) -> tuple[str, ...]:
    """Rules of a router that forwards nothing else to the far end, IPv4 and IPv6 alike."""
    families = (f"ip daddr {FAR[4]}", f"ip6 daddr {FAR[6]}")
    return tuple(f"{family} {match} accept" for match in accepted for family in families) + tuple(
        f"{family} drop" for family in families
    )


@pytest.mark.parametrize("port", [500, 4500, 51820, 3478])
@pytest.mark.parametrize("listens", [True, False], ids=["answered", "refused by the far end"])
def test_a_network_that_is_open_for_the_udp_port_of_a_tunnel_alone_is_found(network, ask, start_beyond, port, listens):
    """A round tries the four protocols at the four addresses. A refusal by the far end is proof as well."""
    start_beyond(dns={CLUSTER_DNS: "knows_the_cluster"}, imds=imds(), datagramPorts=[port] if listens else [])
    with network.router.rules("forward", *everything_dropped_but(f"udp dport {port}")):
        verdict_of = judged(ask)

    assert verdict_of["probe-internet"][0] is Verdict.FAIL
    assert f":{port}/udp" in verdict_of["probe-internet"][1]


def test_a_network_that_drops_the_udp_ports_of_tunnels_is_silent_although_servers_listen(network, ask, start_beyond):
    start_beyond(dns={CLUSTER_DNS: "knows_the_cluster"}, imds=imds(), datagramPorts=[500, 4500, 51820, 3478])
    with network.router.rules("forward", *everything_dropped_but()):
        verdict_of = judged(ask)

    assert verdict_of["probe-internet"][0] is Verdict.PASS


@pytest.mark.usefixtures("sealed_network")
def test_nothing_passes_where_the_api_server_does_not_answer(network, ask, start_beyond):
    start_beyond(dns={CLUSTER_DNS: "knows_the_cluster", AZURE_DNS: "refuses"}, imds=imds())
    with network.node.rules("output", f"ip daddr {API_SERVER} drop"):
        verdict_of = judged(ask)

    assert not [check for check, (verdict, _) in verdict_of.items() if verdict is Verdict.PASS]


@pytest.mark.usefixtures("sealed_network")
def test_storage_alone_that_leaks_is_found(network, ask, start_beyond):
    """As in a private subnet: nothing but a storage account of the region answers."""
    start_beyond(dns={CLUSTER_DNS: "knows_everything"}, imds=imds())
    with network.node.with_("198.51.100.30 via 203.0.113.1"):
        verdict_of = judged(ask)

    assert verdict_of["probe-storage"][0] is Verdict.FAIL
    assert "198.51.100.30:443/tcp TLS answered" in verdict_of["probe-storage"][1]
    assert verdict_of["probe-internet"][0] is Verdict.PASS


@pytest.mark.parametrize(
    ("behaviour", "random", "known"),
    [
        ("recurses", DnsReading.PUBLIC_DENIAL, DnsReading.PUBLIC_DENIAL),
        ("answers_everything", DnsReading.PUBLIC_ADDRESS, DnsReading.PUBLIC_ADDRESS),
        ("knows_the_cluster", DnsReading.DENIED, DnsReading.DENIED),
        ("refuses", DnsReading.DENIED, DnsReading.DENIED),
        ("denies", DnsReading.DENIED, DnsReading.DENIED),
        ("denies_as_the_root", DnsReading.DENIED, DnsReading.DENIED),
        ("sinks_everything", DnsReading.PRIVATE_ADDRESS, DnsReading.PRIVATE_ADDRESS),
        ("says_nothing_at_all", DnsReading.UNCLEAR, DnsReading.UNCLEAR),
        ("garbles", DnsReading.UNCLEAR, DnsReading.UNCLEAR),
        ("answers_another_question", DnsReading.UNCLEAR, DnsReading.UNCLEAR),
        ("points_at_itself", DnsReading.UNCLEAR, DnsReading.UNCLEAR),
    ],
)
def test_what_a_resolver_does_with_a_question_is_read_from_its_answer(ask, start_beyond, behaviour, random, known):
    start_beyond(dns={AZURE_DNS: behaviour})

    run = ask(resolvers=[AZURE_DNS], limit=2.0)

    assert [dns_reply.reading for dns_reply in run.report.dns if dns_reply.server == AZURE_DNS] == [random, known]


def test_a_listener_that_does_not_speak_tls_is_open_and_no_more(ask, start_beyond):
    start_beyond()
    run = ask(targets=[["public", "tls", "198.51.100.1", port] for port in (443, 80, 3128)], limit=1.0)

    assert [reply.reading for reply in run.report.replies] == [Reading.TLS_ANSWERED, Reading.OPEN, Reading.OPEN]


def test_the_usual_udp_ports_are_asked_what_makes_them_answer(ask, start_beyond):
    start_beyond()
    run = ask(
        targets=[
            ["public", "udp", address, port] for address in ("198.51.100.1", "2001:db8:ff::1") for port in (53, 123)
        ],
        limit=2.0,
    )

    assert [reply.reading for reply in run.report.replies] == [Reading.ANSWERED] * 4


@pytest.mark.usefixtures("sealed_network")
@pytest.mark.parametrize(
    "documents",
    [
        {},
        everywhere(500, ""),
        everywhere(200, "not json"),
        everywhere(200, {"loadbalancer": {}, "interface": []}),
        everywhere(200, {"loadbalancer": None, "interface": None}),
        everywhere(200, [[[]]]),
    ],
    ids=["404", "500", "no JSON", "empty", "null", "another shape"],
)
def test_a_metadata_service_that_says_nothing_useful_passes_nothing(ask, start_beyond, documents):
    start_beyond(dns={CLUSTER_DNS: "knows_the_cluster"}, imds=documents)
    verdict_of = judged(ask)

    assert {verdict_of[check][0] for check in ("imds-lb", "imds-nic-pip", "imds-identity")} == {Verdict.UNKNOWN}


def test_the_machines_resolvers_and_routes_are_read_from_its_files(network, ask):
    set_resolver(network, "10.0.0.4", "10.0.0.5")
    run = ask()
    set_resolver(network, CLUSTER_DNS)

    assert run.report.nameservers == ("10.0.0.4", "10.0.0.5")
    assert run.report.v6_defaults == ("2001:db8:1::1 up0",)
    assert run.report.v6_addresses == ("2001:db8:1::2",)
