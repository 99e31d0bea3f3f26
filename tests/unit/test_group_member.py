"""The program that runs an engine as a member of a group: real processes around an engine that records its start.

Two members are two processes with addresses of the loopback device, which the program itself would refuse as the
address of a head: in its text here, that one property is left out.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermetic.engines.launch import as_group_member, keeping_first_errors
from hermetic.in_container import group_member
from hermetic.in_container.group_member import NO_POD, Member, parse_head_address, rank_flags
from testbed.certificates import Authority
from testbed.processes import PATIENCE_VARIABLE, free_port

HEAD, MEMBER = "127.0.0.1", "127.0.0.2"
SECONDS = 60.0 * float(os.environ.get(PATIENCE_VARIABLE, "1"))
# Records its arguments, then serves until a signal, which it records too.
ENGINE = """#!{python}
import json, os, signal, sys, time
record = os.environ["RECORD"]
def stop(number, _):
    open(record + ".signals", "a").write(f"{{int(number)}}\\n")
    sys.exit(int(os.environ.get("CODE", "0")))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, stop)
open(record + ".new", "w").write(json.dumps({{"argv": sys.argv[1:], "pid": os.getpid()}}))
os.rename(record + ".new", record)
if "ENDS" in os.environ:
    sys.exit(os.environ["ENDS"] if not os.environ["ENDS"].isdecimal() else int(os.environ["ENDS"]))
while True:
    time.sleep(0.02)
"""


def until(condition: Callable[[], bool], what_for: str) -> None:
    """Waits for a state."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, f"not within {SECONDS:g} s: {what_for}"
        time.sleep(0.02)


@dataclass
class Pod:
    """One member of a group as a process, with the files that its engine writes."""

    process: subprocess.Popen[bytes]
    record: Path
    log: Path

    @property
    def has_engine(self) -> bool:
        return self.record.exists()

    def engine(self) -> dict:
        until(lambda: self.has_engine, f"an engine; {self.said()}")
        return json.loads(self.record.read_text())

    def signals(self) -> list[int]:
        file = self.record.with_name(f"{self.record.name}.signals")
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def said(self) -> str:
        return self.log.read_text()

    def ended(self) -> int:
        return self.process.wait(SECONDS)


@dataclass
class Group:
    """Starts members on ports of its own."""

    folder: Path
    address_port: int = field(default_factory=lambda: free_port("0.0.0.0"))
    endpoint_port: int = field(default_factory=lambda: free_port("0.0.0.0"))
    pods: list[Pod] = field(default_factory=list)

    def start(self, rank: int, engine: str = "vllm", wrap: bool = False, **environment: str) -> Pod:
        program = self.folder / engine
        if not program.exists():
            program.write_text(ENGINE.format(python=sys.executable))
            program.chmod(0o755)
        command_line = as_group_member(engine, "serve", "--port", "8000")
        command = [
            word.replace('"is_loopback", ', "")
            for word in (keeping_first_errors(*command_line) if wrap else command_line)
        ]
        assert command != [*command_line]
        record, log = self.folder / f"record-{len(self.pods)}", self.folder / f"log-{len(self.pods)}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable if word == "python3" else word for word in command],
                stdout=output,
                stderr=output,
                env={
                    "PATH": f"{self.folder}:{os.environ['PATH']}",
                    "RECORD": str(record),
                    "HERMETIC_GROUP_RANK": str(rank),
                    "HERMETIC_POD_ADDRESS": MEMBER if rank else HEAD,
                    "HERMETIC_HEAD_ADDRESS": HEAD,
                    "HERMETIC_ADDRESS_PORT": str(self.address_port),
                    "HERMETIC_ENDPOINT_PORT": str(self.endpoint_port),
                    "HERMETIC_HEALTH_PATH": "/health",
                    **environment,
                },
            )
        self.pods.append(Pod(process, record, log))
        return self.pods[-1]

    def health(self, path: str = "/health", context: ssl.SSLContext | None = None) -> int:
        """The status that the member answers, 0 where nothing listens."""
        kind = http.client.HTTPSConnection if context is not None else http.client.HTTPConnection
        connection = kind(MEMBER, self.endpoint_port, timeout=10, **({"context": context} if context else {}))
        with contextlib.closing(connection):
            try:
                connection.request("GET", path)
                return connection.getresponse().status
            except ConnectionError:
                return 0


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    members = Group(tmp_path)
    yield members
    for pod in members.pods:
        if pod.process.poll() is None:
            pod.process.kill()
        pod.process.wait()
        if pod.has_engine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pod.engine()["pid"], signal.SIGKILL)


@contextlib.contextmanager
def an_address_port(port: int, answer: Callable[[socket.socket], None]) -> Iterator[list[int]]:
    """A server in the place of the head; yields a list with an item for each connection."""
    connections: list[int] = []
    with socket.create_server((HEAD, port)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                connections.append(1)
                with client, contextlib.suppress(OSError):
                    answer(client)

        threading.Thread(target=serve, daemon=True).start()
        yield connections
        server.shutdown(socket.SHUT_RDWR)


# ---------------------------------------------------------------------- head and member


@pytest.mark.parametrize(
    ("engine", "of_head", "of_member"),
    [
        (
            "vllm",
            ["--node-rank", "0", "--master-addr", HEAD],
            ["--node-rank", "1", "--master-addr", HEAD, "--headless"],
        ),
        (
            "sglang",
            ["--node-rank", "0", "--dist-init-addr", f"{HEAD}:20000"],
            ["--node-rank", "1", "--dist-init-addr", f"{HEAD}:20000", "--host", "127.0.0.1"],
        ),
    ],
)
def test_each_rank_starts_its_engine_with_the_address_that_the_head_serves(group, engine, of_head, of_member):
    head, member = group.start(0, engine), group.start(1, engine)
    assert head.engine()["argv"] == ["serve", "--port", "8000", *of_head]
    assert member.engine()["argv"] == ["serve", "--port", "8000", *of_member]


def test_a_member_waits_for_the_head_says_so_once_and_answers_no_probe_before(group):
    member = group.start(1)
    until(lambda: "rank 1 waits for the head at 127.0.0.1" in member.said(), "a line about the head")
    assert not member.has_engine
    assert group.health() == 0
    group.start(0)
    member.engine()
    assert member.said().count("waits for the head") == 1


class EarlierTimeoutError(Exception):
    """`asyncio.TimeoutError` before Python 3.11: neither an OSError nor the built-in TimeoutError."""


def answered_by(monkeypatch: pytest.MonkeyPatch, *answers: bytes | None) -> None:
    """The head answers so, one connection after the other; None: not in time, as images with Python 3.10 see it."""
    left = iter(answers)

    async def read_answer(_host: str, _port: int) -> bytes:
        if (answer := next(left)) is None:
            raise EarlierTimeoutError
        return answer

    monkeypatch.setattr(asyncio, "TimeoutError", EarlierTimeoutError)
    monkeypatch.setattr(group_member, "read_answer", read_answer)
    monkeypatch.setattr(group_member, "SECONDS_BETWEEN_TRIES", 0.0)


RANK_1 = Member(1, "10.1.2.3", "10.0.0.1", 29500, 8000, "/health", "", False)


def test_a_head_that_does_not_answer_in_time_is_asked_again_with_an_earlier_python(monkeypatch):
    answered_by(monkeypatch, None, None, b"10.1.2.4\n")
    assert asyncio.run(group_member.find_head(RANK_1)) == "10.1.2.4"


def test_a_head_that_does_not_answer_in_time_has_ended_with_an_earlier_python(monkeypatch):
    answered_by(monkeypatch, b"10.1.2.4\n", None, None)
    asyncio.run(group_member.wait_for_end_of_head(RANK_1, "10.1.2.4"))


@pytest.mark.parametrize(("path", "status"), [("/health", 200), ("/v1/models", 404), ("/", 404)])
def test_a_member_answers_the_probe_of_the_kubelet_and_nothing_else(group, path, status):
    group.start(0)
    group.start(1).engine()
    assert group.health(path) == status


def test_a_member_answers_the_probe_over_tls(group, tmp_path):
    credential = Authority("tests").server("llama", [MEMBER])
    (tmp_path / "tls.crt").write_bytes(credential.certificate)
    (tmp_path / "tls.key").write_bytes(credential.key)
    group.start(0)
    group.start(1, HERMETIC_ENDPOINT_TLS=str(tmp_path)).engine()
    assert group.health(context=ssl._create_unverified_context()) == 200
    with socket.create_connection((MEMBER, group.endpoint_port), timeout=10) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert b"200" not in plain.recv(1000)


def test_clients_that_send_nothing_keep_no_probe_waiting(group):
    group.start(0)
    group.start(1).engine()
    with contextlib.ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(socket.create_connection((MEMBER, group.endpoint_port)))
        assert group.health() == 200


@pytest.mark.parametrize("request_text", [b"x" * 10_000, b"GET /health\r\n\r\n", b"\r\n\r\n", b"\xff\xfe\r\n\r\n"])
def test_a_client_that_speaks_no_http_gets_nothing(group, request_text):
    group.start(0)
    group.start(1).engine()
    client = socket.create_connection((MEMBER, group.endpoint_port), timeout=10)
    with client, contextlib.suppress(ConnectionError):
        client.sendall(request_text)
        assert client.recv(100) == b""
    assert group.health() == 200


# ---------------------------------------------------------------------- ends and signals


@pytest.mark.parametrize(("ends", "code"), [("3", 3), ("an error", 1)])
@pytest.mark.parametrize("rank", [0, 1])
def test_the_exit_code_is_the_engine_s(group, rank, ends, code):
    if rank:
        group.start(0).engine()
    assert group.start(rank, ENDS=ends).ended() == code


@pytest.mark.parametrize("rank", [0, 1])
def test_an_engine_that_ends_without_being_asked_to_has_failed(group, rank):
    if rank:
        group.start(0).engine()
    pod = group.start(rank, ENDS="0")
    assert pod.ended() == 1
    assert f"hermetic: error: the engine of rank {rank} ended, and nothing had asked it to" in pod.said()


def test_a_killed_engine_ends_its_member_which_answers_no_probe_any_more(group):
    group.start(0)
    member = group.start(1)
    os.kill(member.engine()["pid"], signal.SIGKILL)
    assert member.ended() == 128 + signal.SIGKILL
    assert group.health() == 0


def test_a_failed_engine_of_a_member_leaves_its_first_error_as_the_termination_message(group, tmp_path):
    termination_log = tmp_path / "termination-log"
    termination_log.touch()
    group.start(0).engine()
    command_line = [
        word.replace("/dev/termination-log", str(termination_log)).replace('"is_loopback", ', "")
        for word in keeping_first_errors(*as_group_member("vllm", "serve"))
    ]
    ended = subprocess.run(
        [sys.executable if word == "python3" else word for word in command_line],
        capture_output=True,
        timeout=SECONDS,
        check=False,
        env={
            "PATH": f"{group.folder}:{os.environ['PATH']}",
            "RECORD": str(tmp_path / "record"),
            "ENDS": "RuntimeError: NCCL error: unhandled system error",
            "HERMETIC_GROUP_RANK": "1",
            "HERMETIC_POD_ADDRESS": MEMBER,
            "HERMETIC_HEAD_ADDRESS": HEAD,
            "HERMETIC_ADDRESS_PORT": str(group.address_port),
            "HERMETIC_ENDPOINT_PORT": str(group.endpoint_port),
            "HERMETIC_HEALTH_PATH": "/health",
        },
    )
    assert ended.returncode == 1
    assert termination_log.read_text().startswith("RuntimeError: NCCL error: unhandled system error\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_head_gets_every_signal_at_once(group, number):
    head = group.start(0, CODE="7")
    head.engine()
    os.kill(head.process.pid, number)
    assert (head.ended(), head.signals()) == (7, [number])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_member_that_waits_for_its_head_ends_at_once(group, number):
    member = group.start(1)
    until(lambda: "waits for the head" in member.said(), "a line about the head")
    os.kill(member.process.pid, number)
    assert member.ended() == 128 + number
    assert not member.has_engine


def a_head(client: socket.socket) -> None:
    client.sendall(f"{HEAD}\n".encode())


def test_a_member_serves_on_after_sigterm_until_its_head_has_ended(group):
    with an_address_port(group.address_port, a_head) as connections:
        member = group.start(1)
        member.engine()
        os.kill(member.process.pid, signal.SIGTERM)
        until(lambda: len(connections) > 3, "several questions whether the head is still there")
        assert (member.signals(), group.health()) == ([], 200)
    assert (member.ended(), member.signals()) == (0, [signal.SIGTERM])


def test_a_member_ends_with_a_head_that_drains(group):
    head, member = group.start(0), group.start(1)
    head.engine()
    member.engine()
    for pod in (member, head):
        os.kill(pod.process.pid, signal.SIGTERM)
    assert (head.ended(), head.signals()) == (0, [signal.SIGTERM])
    assert (member.ended(), member.signals()) == (0, [signal.SIGTERM])


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_reaches_a_member_at_once(group, second):
    with an_address_port(group.address_port, a_head) as connections:
        member = group.start(1)
        member.engine()
        os.kill(member.process.pid, signal.SIGTERM)
        until(lambda: len(connections) > 1, "a question whether the head is still there")
        os.kill(member.process.pid, second)
        assert (member.ended(), member.signals()) == (0, [second])


def test_signals_pass_through_the_program_that_keeps_errors(group):
    head = group.start(0, wrap=True, CODE="5")
    head.engine()
    os.kill(head.process.pid, signal.SIGTERM)
    assert (head.ended(), head.signals()) == (5, [signal.SIGTERM])


def test_an_engine_that_is_not_there_ends_the_member(group):
    command_line = as_group_member("no-such-engine")
    (group.folder / "empty").mkdir()
    pod = group.start(0)
    pod.engine()
    environment = {"PATH": str(group.folder / "empty"), "HERMETIC_GROUP_RANK": "0"}
    ended = subprocess.run(
        [sys.executable, *command_line[1:]], capture_output=True, timeout=60, check=False, env=environment
    )
    assert ended.returncode == 1
    assert b"HERMETIC_POD_ADDRESS" in ended.stderr


# ---------------------------------------------------------------------- hostile answers

REFUSED = {
    "nothing": b"",
    "no address": b"llama-group-0-0\n",
    "a public address": b"8.8.8.8\n",
    "a public IPv6 address": b"2001:4860:4860::8888\n",
    "the loopback device": b"127.0.0.1\n",
    "a link-local address": b"169.254.169.254\n",
    "every address": b"0.0.0.0\n",
    "multicast": b"224.0.0.1\n",
    "broadcast": b"255.255.255.255\n",
    "an address of the other family": b"fd00::1\n",
    "a public address behind IPv6": b"::ffff:8.8.8.8\n",
    "its own address": b"10.1.2.3\n",
    "flags behind the address": b"10.1.2.4 --trust-remote-code\n",
    "a second line": b"10.1.2.4\n10.1.2.5\n",
    "a port": b"10.1.2.4:22\n",
    "a network": b"10.0.0.0/8\n",
    "digits of another script": "\u0661\u0660.1.2.4\n".encode(),
    "bytes that are no text": b"\xff\xfe\n",
    "too much": b"10.1.2.4" + b" " * 100,
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=list(REFUSED))
def test_an_answer_that_is_no_head_of_this_cluster_is_refused(answer):
    with pytest.raises(ValueError):
        parse_head_address(answer, "10.1.2.3")


@pytest.mark.parametrize(
    ("answer", "own", "address"),
    [
        (b"10.1.2.4\n", "10.1.2.3", "10.1.2.4"),
        (b"10.1.2.4", "10.1.2.3", "10.1.2.4"),
        (b"100.64.3.4\n", "100.64.3.5", "100.64.3.4"),
        (b"192.168.0.9\n", "192.168.0.8", "192.168.0.9"),
        (b"fd00::2\n", "fd00::1", "fd00::2"),
    ],
)
def test_the_private_address_of_another_pod_is_taken(answer, own, address):
    assert parse_head_address(answer, own) == address


def test_only_the_loopback_device_is_left_out_in_these_tests():
    assert '"is_loopback", ' in as_group_member("vllm")[5]
    assert "is_loopback" in NO_POD


def test_an_ipv6_address_is_written_as_a_host_with_a_port_where_there_is_one():
    assert rank_flags("sglang", 0, "fd00::2")[3] == "[fd00::2]:20000"
    assert rank_flags("vllm", 0, "fd00::2")[3] == "fd00::2"


def flood(client: socket.socket) -> None:
    while True:
        client.sendall(b"1" * 65536)


def hang_up(_: socket.socket) -> None:
    """Closes the connection without an answer."""


@pytest.mark.parametrize("answer", [flood, hang_up, lambda client: client.sendall(b"8.8.8.8\n")])
def test_a_member_asks_again_until_a_head_answers(group, answer):
    with an_address_port(group.address_port, answer) as connections:
        member = group.start(1)
        until(lambda: len(connections) > 1, "a second question")
        assert not member.has_engine
        assert member.said().count("refuses the answer") == 1
    group.start(0)
    assert member.engine()["argv"][-2:] == [HEAD, "--headless"]


def test_the_program_can_be_read_by_the_oldest_python_of_an_image():
    ast.parse(as_group_member("vllm")[5], feature_version=(3, 8))


def test_a_kubelet_finds_nothing_to_expand_and_a_policy_can_quote_the_program():
    program = as_group_member("vllm")[5]
    assert "$(" not in program
    assert "$$" not in program
    assert "'''" not in program
