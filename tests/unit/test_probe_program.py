"""The program that runs in the pod: what it needs, what it reads, and that its answer always fits."""

from __future__ import annotations

import ast
import json
import random
import struct
import sys
from importlib import resources

import pytest

from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.collect.probe.embedded_program import LOADER, MODULES, PACKAGE, command
from hermetic.collect.probe.program import asking, dns, machine, metadata, racing
from hermetic.collect.probe.targets import MOST_CALLS, ProbeListener, Targets
from tests.probe_runs import run, sealed

SOURCES = {name: resources.files(PACKAGE).joinpath(f"{name}.py").read_text(encoding="utf-8") for name in MODULES}


# ---------------------------------------------------------------- what it needs


@pytest.mark.parametrize("name", MODULES)
def test_it_is_python_3_8(name):
    ast.parse(SOURCES[name], feature_version=(3, 8))


@pytest.mark.parametrize("name", MODULES)
def test_annotations_are_never_evaluated(name):
    """Python 3.8 cannot evaluate `list[str]`; left as text, it does not have to."""
    assert "from __future__ import annotations" in SOURCES[name]


@pytest.mark.parametrize("name", MODULES)
def test_it_imports_the_standard_library_and_itself(name):
    for node in ast.walk(ast.parse(SOURCES[name])):
        if isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= sys.stdlib_module_names
        if isinstance(node, ast.ImportFrom):
            module = str(node.module)
            assert module.startswith(PACKAGE) or module.partition(".")[0] in sys.stdlib_module_names


def test_every_module_travels_after_those_it_imports():
    standard_modules: set[str] = set()
    for name in MODULES:
        imported = set()
        for node in ast.parse(SOURCES[name]).body:
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGE):
                inner = str(node.module)[len(PACKAGE) + 1 :]
                imported |= {inner} if inner else {alias.name for alias in node.names}
        assert imported <= standard_modules
        standard_modules.add(name)


def test_the_command_survives_kubernetes_and_exec():
    """Kubernetes expands `$(NAME)` in commands; Linux takes no argument above 128 KiB."""
    arguments = command()

    assert arguments[0] == "python3"
    assert not [word for word in arguments if "$" in word]
    assert max(len(word.encode()) for word in arguments) < 131072
    assert sum(len(word.encode()) for word in arguments) < 32768
    compile(LOADER, "loader", "exec")


# ---------------------------------------------------------------- that its answer fits


MOST = Targets(
    public_addresses=("198.51.100.1", "198.51.100.2", "198.51.100.3", "2001:db8::1", "2001:db8::2", "2001:db8::3"),
    tcp_ports=tuple(range(1, 9)),
    udp_ports=(1, 2, 3, 4),
    public_names=("login.microsoftonline.com", "management.azure.com", "mcr.microsoft.com", "www.microsoft.com"),
    storage_names=("one.blob.core.windows.net", "two.blob.core.windows.net"),
    resolvers=("10.0.0.1", "10.0.0.2", "10.0.0.3", "168.63.129.16"),
)


def longest_answer(targets: Targets) -> dict:
    """As long as every answer can be: IPv6 everywhere, names at their limits, slow answers."""
    questions_asked = json.loads(targets.questions("x" * 40, host_network=True))
    address = "2001:db8:1234:5678:9abc:def0:1234:5678"
    servers = [address] * (3 + len(questions_asked["resolvers"]))
    resolved = f"r0:{address},{address},{address};login.microsoftonline.com/10000"
    answers = sealed(host_network=True)["metadata"]
    return {
        "v": 1,
        "run": questions_asked["run"],
        "controls": [["e113:1.1@" + address + "/10000"] * 2] * 2,
        "targets": ["e113:1.1@" + address + "/10000" for _ in questions_asked["targets"]],
        "names": [f"{resolved}|e111:1.4@{address}/10000" for _ in questions_asked["names"]],
        "dns": [resolved] * len(servers),
        "known": [resolved] * len(servers),
        "clusterName": [resolved] * 3,
        "imds": ["e113:3.13@255.255.255.255/10000"] * 3,
        "servers": servers,
        "metadata": {**answers, "network": [200, ["255.255.255.255"] * 4]},
        "v4": ["255.255.255.255 eth00000000"] * 2,
        "v6": [f"{address} eth00000000"] * 2,
        "v6Addresses": [address] * 2,
        "nameservers": [address] * 3,
    }


def longest_different_answers(targets: Targets) -> dict:
    """As long, with a router and a time of its own for every call, so that packing gains little."""
    source = random.Random(7)
    text = json.dumps(longest_answer(targets)["targets"])
    for _ in range(text.count("2001:db8")):
        router = ":".join(f"{source.randrange(0x1000, 0x10000):x}" for _ in range(8))
        text = text.replace("2001:db8:1234:5678:9abc:def0:1234:5678/10000", f"{router}/{source.randrange(10000)}", 1)
    return {**longest_answer(targets), "targets": json.loads(text)}


def report_of(result: dict, tmp_path, monkeypatch) -> tuple[str, str]:
    message = tmp_path / "termination-log"
    message.touch()
    monkeypatch.setattr(asking, "MESSAGE_FILE", message)
    asking.write_answer(result)
    return json.dumps(result, separators=(",", ":")), message.read_text()


@pytest.mark.parametrize("host_network", [False, True])
def test_the_answer_of_a_sealed_network_fits_into_the_pod_s_status_as_it_is(host_network, tmp_path, monkeypatch):
    line, message = report_of(sealed(Targets(), host_network=host_network), tmp_path, monkeypatch)

    assert message == line


@pytest.mark.parametrize("answer", [longest_answer, longest_different_answers])
@pytest.mark.parametrize("targets", [Targets(), MOST], ids=["default", "most"])
def test_the_longest_answer_of_all_fits_packed_and_is_read_again(targets, answer, tmp_path, monkeypatch):
    line, message = report_of(answer(targets), tmp_path, monkeypatch)

    assert len(message.encode()) <= 4096 < len(line)
    questions_asked = json.loads(targets.questions("x" * 40, host_network=True)) | {
        "resolvers": json.loads(line)["servers"]
    }
    questions = json.dumps(questions_asked)
    packed, plain = (ProbeRun.read(run(text, host_network=True, questions=questions)) for text in (message, line))
    assert packed.problem is None
    assert packed.report == plain.report
    assert len(packed.report.replies) == len(questions_asked["targets"])


def test_an_answer_that_does_not_fit_says_so_instead(tmp_path, monkeypatch):
    result = {**longest_answer(Targets()), "names": [random.Random(1).randbytes(5000).hex()]}
    line, message = report_of(result, tmp_path, monkeypatch)

    assert json.loads(message) == {"v": 1, "run": "x" * 40, "tooLong": len(line)}


PROXIES = tuple(ProbeListener(address="10.1.0.9", port=port) for port in (1080, 3128, 8080, 8888))


def test_more_calls_than_an_answer_has_room_for_are_refused():
    six = tuple(f"198.51.100.{number}" for number in range(6))

    with pytest.raises(ValueError, match=f"an answer has room for {MOST_CALLS}"):
        Targets(
            public_addresses=six,
            tcp_ports=tuple(range(1, 9)),
            udp_ports=(1, 2, 3, 4),
            proxies=PROXIES,
            forbidden=PROXIES,
        )


@pytest.mark.parametrize("addresses", [(), ("198.51.100.1", "198.51.100.2", "2001:db8::1")])
def test_three_public_ipv4_addresses_are_the_least(addresses):
    with pytest.raises(ValueError, match="at least 3"):
        Targets(public_addresses=addresses)


@pytest.mark.parametrize("address", ["example.com", "198.51.100", "", "1.2.3.4/32", "198.51.100.1 ", "fe80::1%eth0"])
def test_what_is_no_plain_address_is_refused(address):
    with pytest.raises(ValueError, match="address"):
        Targets(public_addresses=("198.51.100.1", "198.51.100.2", "198.51.100.3", address))


@pytest.mark.parametrize("inside", ["10.9.9.1", "168.63.129.16", "100.64.0.1", "fd00::1", "::ffff:192.168.0.1"])
def test_an_address_inside_stands_for_nothing_outside(inside):
    public = ("198.51.100.1", "198.51.100.2", "198.51.100.3")

    with pytest.raises(ValueError, match=r"`publicAddresses`: .* is not public"):
        Targets(public_addresses=(*public, inside))
    with pytest.raises(ValueError, match=r"`storageAddresses`: .* is not public"):
        Targets(storage_addresses=(inside,))


def test_addresses_are_written_as_the_kernel_writes_them():
    written = Targets(public_addresses=("198.51.100.1", "198.51.100.2", "198.51.100.3", "2001:0DB8:0::1"))

    assert written.public_addresses[-1] == "2001:db8::1"


# ---------------------------------------------------------------- what it reads


ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
*\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0
"""
ANY, PREFIX = "0" * 32, "20010db8000100000000000000000000"
V6_ROUTES = f"""\
{PREFIX} 40 {ANY} 00 {ANY} 00000100 00000001 00000000 00000001 up0
{ANY} 00 {ANY} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 up0
{ANY} 00 {ANY} 00 {ANY} ffffffff 00000001 00000000 00200200 lo
"""
V6_ADDRESSES = """\
00000000000000000000000000000001 01 80 10 80       lo
20010db8000100000000000000000002 02 40 00 80      up0
fe80000000000000022248fffe9f0001 02 40 20 80      up0
"""


def test_default_routes_are_read_and_refusing_ones_left_out():
    assert machine.v4_defaults(ROUTES) == ["10.0.0.1 eth0"]
    assert machine.v6_defaults(V6_ROUTES) == ["fe80::1 up0"]
    assert machine.v6_globals(V6_ADDRESSES) == ["2001:db8:1::2"]


@pytest.mark.parametrize("read", [machine.v6_defaults, machine.v6_globals, machine.v4_defaults])
def test_a_table_of_another_shape_is_not_an_empty_one(read, tmp_path):
    table = tmp_path / "table"
    table.write_text("head\nwhat is this\n")

    assert machine.parsed(str(table), read) is None


def test_a_file_that_is_not_there_is_not_an_empty_one(tmp_path):
    assert machine.parsed(str(tmp_path / "nothing"), machine.nameservers) is None


def test_name_servers_are_read_as_the_resolver_reads_them():
    text = (
        "# nameserver 10.0.0.9\nsearch a b\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nnameserver\noptions ndots:5\n"
    )

    assert machine.nameservers(text) == ["10.0.0.1", "fe80::1"]


def test_a_dns_question_asks_for_recursion():
    query = dns.query("a.example.com", dns.A)

    assert query[2:] == b"\x01\x00\0\x01\0\0\0\0\0\0\x01a\x07example\x03com\0\0\x01\0\x01"


def message(question: bytes, code: int, *records: bytes, authorities: int = 0) -> bytes:
    head = question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records) - authorities, authorities, 0)
    return head + question[12:] + b"".join(records)


def record(kind: int, content: bytes) -> bytes:
    return b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(content)) + content


def test_dns_answers_are_read():
    query = dns.query("x.example.com", dns.A)
    address, alias = record(dns.A, bytes([198, 51, 100, 7])), record(dns.CNAME, b"\x05other\xc0\x0e")
    soa = b"\xc0\x0e" + struct.pack("!HHIH", dns.SOA, 1, 60, 24) + b"\x02ns\xc0\x0e" + bytes(19)

    assert dns.answer(query, message(query, 0, address)) == "r0:198.51.100.7;"
    assert dns.answer(query, message(query, 0, alias, address)) == "r0:198.51.100.7,other.example.com;"
    assert dns.answer(query, message(query, 3, soa, authorities=1)) == "r3:;example.com"
    assert dns.answer(query, message(query, 5)) == "r5:;"


def test_an_address_behind_many_aliases_is_called(monkeypatch):
    aliases = [record(dns.CNAME, b"\x01" + letter + b"\xc0\x0e") for letter in (b"a", b"b", b"c")]
    address = record(dns.A, bytes([198, 51, 100, 7]))
    called = []

    def answers_at_once(_server, _port, question, _limit, read):
        return read(message(question, 0, *aliases, address))
        yield

    def listens(address, *_call):
        called.append(address)
        return "s"
        yield

    monkeypatch.setattr(dns, "ask", answers_at_once)
    monkeypatch.setattr(dns, "tls", listens)
    (report_of,) = racing.race([dns.named("x.example.com", 443, ["10.0.0.4"], 1.0)])

    assert report_of.startswith("r0:198.51.100.7,a.example.com,b.example.com;|s")
    assert called == ["198.51.100.7"]


def test_a_dns_answer_to_another_question_is_none():
    query = dns.query("x.example.com", dns.A)

    assert dns.answer(query, message(b"??" + query[2:], 0)) == "g"
    assert dns.answer(query, query) == "g"


def test_what_a_label_holds_cannot_change_the_meaning_of_an_answer():
    query = dns.query("x.example.com", dns.A)
    answered = dns.answer(query, message(query, 0, record(dns.CNAME, b'\x08a;b,c|/"\0')))

    assert answered == "r0:a?b?c???;"


def test_documents_of_the_metadata_service_are_cut_to_what_matters():
    balancer = {"loadbalancer": {"publicIpAddresses": [{"frontendIpAddress": "198.51.100.7"}], "outboundRules": []}}
    network = {"interface": [{"ipv4": {"ipAddress": [{"publicIpAddress": "198.51.100.7"}, {"publicIpAddress": ""}]}}]}

    assert metadata.summary("loadbalancer", balancer) == {
        "public": ["198.51.100.7"],
        "more": 0,
        "outboundRules": 0,
    }
    assert metadata.summary("network", network) == ["198.51.100.7"]


@pytest.mark.parametrize("name", metadata.PATHS)
@pytest.mark.parametrize(
    "body", [None, [], {}, "text", 7, {"loadbalancer": []}, {"interface": [{}]}, {"interface": []}]
)
def test_a_document_of_another_shape_says_nothing(name, body):
    assert metadata.summary(name, body) is None


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"", (0, None)),
        (b"garbage\r\n\r\n", (0, None)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{}", (0, None)),
        (b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}", (404, {})),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", (200, {})),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe", (200, None)),
    ],
)
def test_http_is_read_or_is_none(received, expected):
    assert metadata.response(received) == expected


# ---------------------------------------------------------------- racing


def breaks():
    raise KeyError("odd")
    yield


def says(word: str):
    return word
    yield


def test_one_question_that_breaks_the_probe_silences_no_other():
    answers = racing.race([says("o"), breaks(), says("s")])

    assert [answer.partition("/")[0] for answer in answers] == ["o", "xKeyError", "s"]
