"""What the probe's answers may say, and what they never may: silence passes only after a control that answered, and
only for the check's own id."""

from __future__ import annotations

import json

import pytest

from hermetic.audit.checks import probe
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.collect.probe.targets import ProbeListener, Targets
from tests.probe_runs import (
    ALLOWED,
    CLUSTER,
    HELD_NAMES,
    TARGETS,
    UNEXPECTED_ADDRESS,
    both,
    called,
    changed,
    finding,
    findings,
    run,
    sealed,
)

IDS = [check.page.id for check in probe.CHECKS]
ALWAYS = [name for name in IDS if name not in {"probe-proxy", "probe-networks"}]
FROM_THE_HOST = {"node-resolv", "node-routes", "node-v6-default-route", "imds-lb", "imds-nic-pip", "imds-identity"} | {
    "host-plugin"
}
FILTERED = Policy(profile="filtered", firewall=f"{CLUSTER}/firewall")
FIRST = "198.51.100.1"
REACHED = [f"r0:{UNEXPECTED_ADDRESS};|t/1600"]


def sealed_with_storage() -> list:
    """A sealed network, in which storage was called and stayed silent: its name was given with its address."""
    names = [*HELD_NAMES, f"r0:{UNEXPECTED_ADDRESS};|t/1500"]
    return both(changed(names=names), changed(host_network=True, names=names))


# ---------------------------------------------------------------- what passes


@pytest.mark.parametrize("check", sorted(set(ALWAYS) - {"probe-storage", "dns-recursion"}))
def test_a_sealed_network_passes(check):
    result = finding(check, both(), ALLOWED)

    assert (result.verdict, result.remedy) == (Verdict.PASS, "")
    assert result.evidence


def test_storage_that_was_called_and_stayed_silent_passes():
    assert finding("probe-storage", sealed_with_storage()).verdict is Verdict.PASS


def test_resolvers_that_answer_for_the_cluster_only_pass():
    assert finding("dns-recursion", both()).verdict is Verdict.PASS


def test_what_stands_in_the_way_is_told():
    assert "dropped on the way (6), no route (2)" in finding("probe-internet", both()).message


# ---------------------------------------------------------------- what no silence can pass


@pytest.mark.parametrize("check", ALWAYS)
@pytest.mark.parametrize(
    "rounds",
    [[["t"], ["t"]], [["s/1"], ["t"]], [["t"], ["s/1"]], [["e101/0"], ["e101/0"]], [[], []], [["e111/0"], ["e111/0"]]],
    ids=["silent", "silent after", "silent before", "no route", "no control", "refused"],
)
def test_without_its_control_silence_counts_for_nothing(check, rounds):
    bodies = both(changed(controls=rounds), changed(host_network=True, controls=rounds))

    assert finding(check, bodies, ALLOWED).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("check", ALWAYS)
@pytest.mark.parametrize("host_network", [False, True], ids=["pod alone", "machine alone"])
def test_one_vantage_says_nothing_for_the_other(check, host_network):
    bodies = [run(sealed(host_network=host_network), host_network=host_network)]
    result = finding(check, bodies, ALLOWED)

    speaks_from = {True} if check in FROM_THE_HOST else {False} if check == "wireserver" else {False, True}
    if speaks_from == {host_network}:
        assert result.verdict is Verdict.PASS
    else:
        assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "VantageMissing")


@pytest.mark.parametrize("check", ALWAYS)
@pytest.mark.parametrize(
    "line",
    [
        "",
        "Traceback (most recent call last):\n  ImportError",
        json.dumps(sealed(host_network=True))[:-1],
        json.dumps({**sealed(host_network=True), "run": "another"}),
        json.dumps({**sealed(host_network=True), "v": 2}),
        json.dumps({"v": 1, "run": "r1/job", "tooLong": 5000}),
        json.dumps({**sealed(host_network=True), "targets": []}),
        json.dumps({**sealed(host_network=True), "servers": ["10.0.0.4"], "dns": ["r2:;"], "known": ["r2:;"]}),
        json.dumps([1, 2]),
        "[" * 30000,
        "x" * 70000,
    ],
    ids=[
        "nothing",
        "crash",
        "cut",
        "other run",
        "other version",
        "too long",
        "short",
        "unasked",
        "list",
        "deep",
        "huge",
    ],
)
def test_an_answer_that_cannot_be_read_is_never_a_pass(check, line):
    bodies = both(line, line)

    assert finding(check, bodies, ALLOWED).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("check", IDS)
def test_a_pod_that_has_not_answered_makes_the_whole_unknown(check):
    problem = Problem(UnreadReason.UNAVAILABLE, "the probe has not answered from pool cpu")
    verdicts_by_resource = {
        finding.resource: finding.verdict for finding in findings(check, both(), ALLOWED, problem=problem)
    }

    assert verdicts_by_resource[CLUSTER] is Verdict.UNKNOWN


@pytest.mark.parametrize("check", IDS)
def test_no_run_at_all_is_unknown(check):
    assert [finding.verdict for finding in findings(check, [])] == [Verdict.UNKNOWN]


@pytest.mark.parametrize("check", ALWAYS)
@pytest.mark.parametrize("field", ["pool", "node", "hostNetwork", "questions", "answer", "observedAt"])
def test_a_damaged_record_is_never_a_pass(check, field):
    damaged = [run(sealed(host_network=host), host_network=host, **{field: ["?"]}) for host in (False, True)]

    assert {finding.verdict for finding in findings(check, damaged, ALLOWED)} == {Verdict.UNKNOWN}


# ---------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("kind", "port", "answer"), [("tls", 443, "s/9"), ("tls", 443, "o/9"), ("tcp", 22, "o/9"), ("udp", 53, "a/9")]
)
def test_an_answer_from_outside_fails_and_its_path_is_drawn(kind, port, answer):
    result = finding("probe-internet", both(called({(kind, FIRST, port): answer})))

    transport = "udp" if kind == "udp" else "tcp"
    assert (result.verdict, result.severity) == (Verdict.FAIL, Severity.CRITICAL)
    assert result.path_texts == (f"pool gpu -> pod on node gpu-0 -> {FIRST}:{port}/{transport}",)


def test_one_vantage_is_enough_for_a_fail():
    bodies = [run(called({("tls", FIRST, 443): "s/9"}, host_network=True), host_network=True)]

    assert finding("probe-internet", bodies).verdict is Verdict.FAIL


def test_an_answer_counts_even_where_the_control_was_silent():
    fields = {**called({("tls", FIRST, 443): "s/9"}), "controls": [["t"], ["t"]]}

    assert finding("probe-internet", both(fields)).verdict is Verdict.FAIL


def test_a_refusal_by_icmp_of_the_address_itself_is_the_far_end_s():
    result = finding("probe-internet", both(called({("tcp", FIRST, 49152): f"e111:3.3@{FIRST}/8"})))

    assert result.verdict is Verdict.FAIL
    assert "the call left" in result.message


@pytest.mark.parametrize("port", [80, 22, 49152])
def test_a_reset_beside_a_silent_listener_is_unknown_and_its_remedy_names_the_ports(port):
    """A firewall that resets some ports and drops the others: `deny ssh -> reset` beside `deny all -> drop`."""
    result = finding("probe-internet", both(called({("tcp", FIRST, port): "e111/8"})))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "RefusedBySomebody")
    assert "tcpPorts" in result.remedy


def test_a_reset_beside_a_tls_handshake_is_a_leak():
    answers = {("tcp", FIRST, 22): "e111/8", ("tls", FIRST, 443): "s/9"}

    assert "the call left" in finding("probe-internet", both(called(answers))).message


def test_dns_that_a_resolver_inside_can_have_written_is_unknown():
    result = finding("probe-internet", both(called({("udp", FIRST, 53): "d/2"})))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "RedirectedDns")
    assert "udpPorts" in result.remedy


KNOWN_OWNERS = Targets(public_addresses=("1.1.1.1", "8.8.8.8", "129.6.15.28", FIRST))


@pytest.mark.parametrize(
    ("addresses", "verdict", "reason"),
    [
        pytest.param(
            ("1.1.1.1", "129.6.15.28"), Verdict.UNKNOWN, "RedirectedTime", id="an address that serves no time"
        ),
        pytest.param(("129.6.15.28",), Verdict.FAIL, "WayOut", id="the time server alone"),
        pytest.param((FIRST,), Verdict.FAIL, "WayOut", id="an address of an unknown owner"),
        pytest.param((FIRST, "8.8.8.8"), Verdict.UNKNOWN, "RedirectedTime", id="unknown owner and a resolver"),
    ],
)
def test_time_that_every_address_answers_comes_from_a_server_inside(addresses, verdict, reason):
    """Networks redirect NTP to their own servers, as they do with DNS."""
    answers = called({("udp", address, 123): "a/2" for address in addresses}, targets=KNOWN_OWNERS)
    result = finding("probe-internet", both(answers, targets=KNOWN_OWNERS))

    assert (result.verdict, result.reason) == (verdict, reason)
    assert verdict is Verdict.FAIL or "udpPorts" in result.remedy


def test_redirected_time_hides_no_other_answer():
    answers = {("udp", "1.1.1.1", 123): "a/2", ("udp", "1.1.1.1", 443): "a/2"}

    observed = both(called(answers, targets=KNOWN_OWNERS), targets=KNOWN_OWNERS)
    assert finding("probe-internet", observed).verdict is Verdict.FAIL


@pytest.mark.parametrize(("policy", "verdict"), [(None, Verdict.FAIL), (FILTERED, Verdict.UNKNOWN)])
def test_a_tls_alert_proves_no_far_end_behind_a_declared_firewall(policy, verdict):
    """An inspecting firewall answers a ClientHello that it denies with an alert of its own."""
    assert finding("probe-internet", both(called({("tls", FIRST, 443): "l/9"})), policy).verdict is verdict


def test_refusals_at_a_port_that_listens_cannot_be_attributed():
    refused = {("tls", FIRST, 443): "e111/1", ("tcp", FIRST, 22): "e111/1"}
    result = finding("probe-internet", both(called(refused)))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "RefusedBySomebody")


@pytest.mark.parametrize("answer", ["e111:3.3@10.0.0.1/1", "e111:3.3@=/1", "e113:3.13@10.0.0.1/1", "e1/0", "e22/0"])
def test_a_rejection_from_within_is_consistent_with_isolation(answer):
    assert finding("probe-internet", both(called({("tls", FIRST, 443): answer}))).verdict is Verdict.PASS


def test_a_rejection_by_a_public_router_is_not():
    result = finding("probe-internet", both(called({("tls", FIRST, 443): "e113:3.13@192.0.2.77/9"})))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "RejectedOutside")


@pytest.mark.parametrize("answer", ["", "xMemoryError", "e24/0", "e99/0", "e999/0", "z", "o/", "e111:3.3@/1"])
def test_what_is_no_known_answer_is_unknown(answer):
    assert finding("probe-internet", both(called({("tls", FIRST, 443): answer}))).verdict is Verdict.UNKNOWN


def test_a_handshake_alone_may_be_the_declared_firewall_s():
    silent_handshake = both(called({("tls", FIRST, 443): "o/9"}))

    assert finding("probe-internet", silent_handshake, FILTERED).verdict is Verdict.UNKNOWN
    assert finding("probe-internet", both(called({("tls", FIRST, 443): "s/9"})), FILTERED).verdict is Verdict.FAIL


def test_a_name_that_resolves_and_answers_is_an_egress_path():
    names = ["r0:198.51.100.20;|s/20", *HELD_NAMES]

    assert finding("probe-internet", both(changed(names=names))).verdict is Verdict.FAIL


@pytest.mark.parametrize("answer", ["r0:a.example.com,b.example.com;/5", "r0:198.51.100.20;/5"])
def test_a_name_that_was_found_and_never_called_passes_nothing(answer):
    result = finding("probe-internet", both(changed(names=[answer, *HELD_NAMES])))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "NameNotCalled")


@pytest.mark.parametrize("answer", ["r2:;/5", "r3:a.example.com;/5", "r0:;example.com/5", "t/1500"])
def test_a_name_that_leads_nowhere_needs_no_call(answer):
    assert finding("probe-internet", both(changed(names=[answer, *HELD_NAMES]))).verdict is Verdict.PASS


def test_a_private_endpoint_is_no_egress_path():
    names = [*HELD_NAMES, "r0:10.13.5.5;|s/20"]
    bodies = both(changed(names=names), changed(host_network=True, names=names))
    result = finding("probe-storage", bodies)

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "StorageNotCalled")


def test_storage_of_a_stranger_that_answers_is_an_egress_path():
    names = [*HELD_NAMES, f"r0:{UNEXPECTED_ADDRESS};|s/5"]

    assert finding("probe-storage", both(changed(names=names))).verdict is Verdict.FAIL


# Such targets are refused where they are typed; an answer that is read from elsewhere may still hold them.
INSIDE = Targets.model_construct(
    public_addresses=("10.9.9.1", "10.9.9.2", "10.9.9.3"), storage_addresses=("10.9.9.9",), public_names=()
)


def test_silence_of_private_addresses_says_nothing_about_the_internet():
    result = finding("probe-internet", both(targets=INSIDE))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "TooFewTargets")


def test_silence_of_a_private_address_says_nothing_about_storage():
    result = finding("probe-storage", both(targets=INSIDE))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "StorageNotCalled")


def test_storage_that_is_not_named_is_unknown_and_says_what_to_name():
    unnamed = Targets(public_addresses=TARGETS.public_addresses)
    result = finding("probe-storage", both(targets=unnamed))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "NoStorageNamed")
    assert "Name the endpoint of a storage account" in result.remedy


NAMED = Targets(
    public_addresses=TARGETS.public_addresses,
    proxies=(ProbeListener(address="10.1.0.9", port=3128),),
    forbidden=(ProbeListener(address="10.9.0.1", port=22),),
)


@pytest.mark.parametrize(
    ("check", "purpose", "answer", "verdict"),
    [
        ("probe-proxy", "proxy", "p200/3", Verdict.FAIL),
        ("probe-proxy", "proxy", "p204/3", Verdict.FAIL),
        ("probe-proxy", "proxy", "p403/3", Verdict.PASS),
        ("probe-proxy", "proxy", "p405/3", Verdict.UNKNOWN),
        ("probe-proxy", "proxy", "p407/3", Verdict.UNKNOWN),
        ("probe-proxy", "proxy", "o/3", Verdict.UNKNOWN),
        ("probe-proxy", "proxy", "t", Verdict.PASS),
        ("probe-networks", "forbidden", "o/3", Verdict.FAIL),
        ("probe-networks", "forbidden", "t", Verdict.PASS),
    ],
)
def test_proxies_and_forbidden_addresses_are_judged_where_they_are_named(check, purpose, answer, verdict):
    answers = sealed(NAMED, host_network=False)
    rows = json.loads(NAMED.questions("r1/job", host_network=False))["targets"]
    answers["targets"] = [
        answer if row[0] == purpose else recorded for row, recorded in zip(rows, answers["targets"], strict=True)
    ]

    assert finding(check, both(answers, targets=NAMED)).verdict is verdict


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("p403/1", "p403/1", "o/1"), (Verdict.PASS, "NothingAnswered")),
        (("p405/1", "p200/1", "o/1"), (Verdict.FAIL, "WayOut")),
        (("p405/1", "p404/1", "o/1"), (Verdict.FAIL, "WayOut")),
        (("p403/1", "p302/1", "o/1"), (Verdict.PASS, "NothingAnswered")),
        (("p405/1", "p405/1", "o/1"), (Verdict.UNKNOWN, "ProxySaidNothing")),
        (("o/1", "o/1", "p200/1"), (Verdict.FAIL, "WayOut")),
        (("o/1", "o/1", "p403/1"), (Verdict.PASS, "NothingAnswered")),
        (("o/1", "o/1", "p407/1"), (Verdict.UNKNOWN, "ProxyWantsCredentials")),
        (("o/1", "o/1", "o/1"), (Verdict.UNKNOWN, "ProxySaidNothing")),
    ],
)
def test_a_proxy_is_evaluated_from_all_protocols_together(answers, expected):
    """In order: CONNECT, a forwarded GET, SOCKS5."""
    document = sealed(NAMED, host_network=False)
    rows = json.loads(NAMED.questions("r1/job", host_network=False))["targets"]
    proxied = dict(zip(("proxy", "forward", "socks"), answers, strict=True))
    document["targets"] = [
        proxied.get(row[1], recorded) for row, recorded in zip(rows, document["targets"], strict=True)
    ]
    result = finding("probe-proxy", both(document, targets=NAMED))

    assert (result.verdict, result.reason) == expected


def test_what_is_not_named_has_no_finding():
    assert findings("probe-proxy", both()) == findings("probe-networks", both()) == []


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [("o/1", Verdict.FAIL), ("h200/2", Verdict.FAIL), ("h403/2", Verdict.FAIL), ("e111/1", Verdict.UNKNOWN)],
)
def test_a_pod_that_reaches_the_host_channel_fails(answer, verdict):
    answers = called({("http", "168.63.129.16", 32526): answer})

    assert finding("wireserver", both(answers)).verdict is verdict


def test_azure_dns_answers_pods_and_is_no_channel_of_the_host():
    answers = called({("tcp", "168.63.129.16", 53): "o/1"})

    assert finding("wireserver", both(answers)).verdict is Verdict.PASS


def test_the_machine_itself_may_reach_the_host_channel():
    answers = called({("http", "168.63.129.16", 80): "h200/1"}, host_network=True)

    assert finding("wireserver", both(None, answers)).verdict is Verdict.PASS
    assert finding("probe-internet", both(None, answers)).verdict is Verdict.PASS


# ---------------------------------------------------------------- addresses that one rule blocks together


def public_findings(*addresses: str) -> list:
    targets = Targets(public_addresses=addresses)
    return findings("probe-internet", both(targets=targets))


@pytest.mark.parametrize(
    ("addresses", "shared"),
    [
        (("1.1.1.1", "8.8.8.8", "9.9.9.9", "2606:4700:4700::1111"), "kind (public resolver)"),
        (("1.0.0.1", "8.8.4.4", "149.112.112.112", "208.67.222.222"), "kind (public resolver)"),
        (("140.82.121.3", "185.199.108.153", "192.30.255.112"), "owner (GitHub)"),
        (("1.1.1.1", "1.0.0.1", "104.16.132.229"), "owner (Cloudflare)"),
    ],
)
def test_public_addresses_of_one_owner_or_kind_are_a_warning_beside_the_pass(addresses, shared):
    passed, warned = sorted(public_findings(*addresses), key=lambda finding: finding.verdict is not Verdict.PASS)

    assert passed.verdict is Verdict.PASS
    assert (warned.verdict, warned.reason, warned.severity) == (Verdict.FAIL, "AddressesAlike", Severity.MEDIUM)
    assert shared in warned.message
    assert "spec.probe.targets.publicAddresses" in warned.remedy


@pytest.mark.parametrize(
    "addresses",
    [
        ("1.1.1.1", "8.8.8.8", "13.107.6.152"),
        ("1.1.1.1", "8.8.8.8", "198.51.100.1"),
        ("198.51.100.1", "198.51.100.2", "198.51.100.3"),
    ],
    ids=["two kinds", "one that is not in the table", "none in the table"],
)
def test_public_addresses_of_several_owners_or_of_none_that_is_known_are_no_warning(addresses):
    assert [finding.verdict for finding in public_findings(*addresses)] == [Verdict.PASS]


def test_default_public_addresses_are_no_warning():
    results = findings("probe-internet", both(targets=Targets()))

    assert [finding.verdict for finding in results] == [Verdict.PASS]


def test_a_pass_says_what_the_probe_does_not_see():
    message = finding("probe-internet", both()).message
    assert "answered within 1.5 s" in message
    assert "slower, or open for other addresses, ports or protocols alone is not seen" in message
    assert (
        "at another address, or tunnels to other names alone is not seen"
        in finding("probe-proxy", both(targets=NAMED)).message
    )


def test_a_refusal_at_a_port_of_the_round_names_a_remedy_that_can_be_followed():
    answers = sealed(TARGETS, host_network=False)
    rows = json.loads(TARGETS.questions("r1/job", host_network=False))["targets"]
    position = next(
        index
        for index, (purpose, kind, _, port) in enumerate(rows)
        if (purpose, kind) == ("public", "tcp") and port not in (*TARGETS.tcp_ports, 443)
    )
    answers["targets"][position] = "e111/4"
    result = finding("probe-internet", both(answers))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "RefusedBySomebody")
    assert "Let the firewall drop" in result.remedy
