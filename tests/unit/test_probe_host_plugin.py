"""The host's own channel: asked over HTTP from both vantages, and weighed by who has the machine's network."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hermetic.audit.checks import probe
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.probe.readings import ProbeTarget, Reading, reply
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Evidence, Finding, Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.collect.probe.program import calling
from hermetic.collect.probe.program.racing import race
from hermetic.collect.probe.readings import question
from tests.probe_runs import CLUSTER, both, called, finding, run, sealed

HOST = "168.63.129.16"
PLUGIN = called({("http", HOST, 32526): "h200/1", ("http", HOST, 80): "h200/1"}, host_network=True)


def with_pods(*pods: dict[str, Any], problem: Problem | None = None) -> Finding:
    """The finding about machines on which the channel answers, where the cluster was asked for its pods."""
    of_pods = Question(Pod.SOURCE, "list", Pod.TYPE, EVERYWHERE, Pod.API_VERSION)
    evidence = (Evidence("GET /api/v1/pods", 200),)
    answer = Answer(tuple(Body(pod, evidence) for pod in pods), evidence, problem)
    estate = Estate(CLUSTER, ["probe", "kube"], {question(CLUSTER): Answer(tuple(both(None, PLUGIN))), of_pods: answer})
    (check,) = (candidate for candidate in probe.CHECKS if candidate.page.id == "host-plugin")
    (host_finding,) = findings_of(check, estate, Policy())
    return host_finding


def on_the_host(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hostNetwork": True, "containers": [{"name": "a", "image": "contoso.azurecr.io/a@sha256:0"}]},
    }


def test_a_channel_that_is_silent_on_the_machine_passes() -> None:
    assert finding("host-plugin", both()).verdict is Verdict.PASS


def test_on_the_machine_it_is_medium_and_says_what_that_means() -> None:
    host_finding = finding("host-plugin", both(None, PLUGIN))
    assert (host_finding.verdict, host_finding.severity, host_finding.reason) == (
        Verdict.FAIL,
        Severity.MEDIUM,
        "HostPluginReachable",
    )
    assert f"{HOST}:32526/tcp HTTP answered" in host_finding.message
    assert "--kube" in host_finding.message
    assert host_finding.path_texts == ("pool gpu -> node gpu-0 -> host plug-in -> internet",)
    assert host_finding.remedy
    assert host_finding.evidence


def test_from_a_pod_it_is_high_by_another_id() -> None:
    answers = called({("http", HOST, 32526): "h200/1"})
    host_finding = finding("wireserver", both(answers))
    assert (host_finding.verdict, host_finding.severity) == (Verdict.FAIL, Severity.HIGH)
    assert finding("host-plugin", both(answers)).verdict is Verdict.PASS


def test_another_pod_on_the_host_makes_it_high() -> None:
    host_finding = with_pods(on_the_host("web", "team"))
    assert (host_finding.verdict, host_finding.severity) == (Verdict.FAIL, Severity.HIGH)
    assert "web" in host_finding.message


@pytest.mark.parametrize("problem", [None, Problem(UnreadReason.FORBIDDEN, "no")])
def test_without_another_pod_on_the_host_it_stays_medium(problem: Problem | None) -> None:
    pod = on_the_host("web", "team")
    pod["spec"]["hostNetwork"] = False
    host_finding = with_pods(pod, problem=problem)
    assert (host_finding.verdict, host_finding.severity) == (Verdict.FAIL, Severity.MEDIUM)


@pytest.mark.parametrize(("answer", "verdict"), [("t", Verdict.UNKNOWN), ("o/1", Verdict.FAIL)])
def test_an_older_probe_that_asked_no_http_proves_nothing(answer: str, verdict: Verdict) -> None:
    answers = sealed(host_network=True)
    body = run(answers, host_network=True)
    questions = json.loads(body.value["questions"])
    rows = questions["targets"]
    questions["targets"] = [["wireserver", "tcp", *row[2:]] if row[0] == "wireserver" else row for row in rows]
    answers["targets"] = [
        answer if row[0] == "wireserver" else old for row, old in zip(rows, answers["targets"], strict=True)
    ]
    older = run(answers, host_network=True, questions=json.dumps(questions))
    assert finding("host-plugin", [both()[0], older]).verdict is verdict


@pytest.mark.parametrize("answer", ["e111/1", "h200", "hello", "h", "xValueError"])
def test_what_is_not_clear_never_passes(answer: str) -> None:
    answers = called({("http", HOST, 32526): answer}, host_network=True)
    assert finding("host-plugin", both(None, answers)).verdict is not Verdict.PASS


@pytest.mark.parametrize(("raw", "reading"), [("h200/3", Reading.HTTP_ANSWERED), ("h403", Reading.HTTP_ANSWERED)])
def test_any_status_means_that_something_answered(raw: str, reading: Reading) -> None:
    observed = reply(ProbeTarget("wireserver", "http", HOST, 32526), raw)
    assert observed.reading is reading
    assert observed.reading.came_through


@pytest.fixture
def listener() -> Iterator[tuple[socket.socket, list[bytes]]]:
    """A server that keeps the first request and answers as its list says."""
    server, received = socket.create_server(("127.0.0.1", 0)), list[bytes]()
    yield server, received
    server.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "h200"),
        (b"HTTP/1.1 403 No\r\n\r\n", "h403"),
        (b"SSH-2.0-x\r\n", "o"),
        (b"HTTP/1.1\r\n", "o"),
        (b"", "o"),
    ],
)
def test_the_probe_asks_for_versions_and_reads_the_status(
    listener: tuple[socket.socket, list[bytes]], answer: bytes, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, received = listener
    port = server.getsockname()[1]
    monkeypatch.setitem(calling.VERSIONS, port, "/versions")

    def serve() -> None:
        connection, _ = server.accept()
        received.append(connection.recv(1024))
        connection.sendall(answer)
        connection.close()

    serving = threading.Thread(target=serve)
    serving.start()
    (answered,) = race([calling.http("127.0.0.1", port, 5.0)])
    serving.join()
    assert answered.partition("/")[0] == expected
    assert received[0].startswith(b"GET /versions HTTP/1.1\r\nHost: 127.0.0.1\r\n")


def test_both_vantages_ask_both_ports_over_http() -> None:
    for body in both():
        rows = [row for row in json.loads(body.value["questions"])["targets"] if row[0] == "wireserver"]
        assert rows == [["wireserver", "http", HOST, 80], ["wireserver", "http", HOST, 32526]]
