"""Network namespaces for the probe, skipped with a reason where they cannot be made: a failure where all layers run.

network        node, router and what is beyond, everything open
start_beyond   starts the remote servers with what they answer
ask            runs the probe's program in the node's namespace, and reads what it says
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.estate.questions import Body
from hermetic.audit.model.findings import Evidence
from hermetic.collect.probe.embedded_program import command
from testbed.certificates import Authority
from tests.network.network_namespaces import NetworkLayout, NetworkNamespace, missing_requirement, network_namespaces

REMOTE_SERVERS = Path(__file__).with_name("remote_servers.py")


@pytest.fixture(scope="module")
def network() -> Iterator[NetworkLayout]:
    if reason := missing_requirement():
        pytest.skip(f"the probe meets no real packet: {reason}")
    with network_namespaces() as layout:
        yield layout


@pytest.fixture(scope="session")
def credential(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A certificate of an untrusted authority, as files."""
    folder = tmp_path_factory.mktemp("far-end")
    certificate, key = Authority("nobody").server("far-end", ["far-end.example"]).write(folder, "far-end")
    return {"certificate": str(certificate), "key": str(key)}


@pytest.fixture(scope="module")
def start_beyond(network: NetworkLayout, credential: dict[str, str]) -> Iterator[Callable[..., None]]:
    """`start_beyond(dns={...}, imds={...}, proxies={...})`; a later start takes the place of an earlier one."""
    running: list[subprocess.Popen[str]] = []

    def stop() -> None:
        for process in running:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        running.clear()

    def start(**behaviour: Any) -> None:
        stop()
        # -I: nothing of this checkout, and nothing of the product
        program = [sys.executable, "-I", str(REMOTE_SERVERS), json.dumps({**credential, **behaviour})]
        process = subprocess.Popen([*network.beyond.enter, *program], stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"

    yield start
    stop()


@pytest.fixture(scope="module")
def ask(network: NetworkLayout) -> Callable[..., ProbeRun]:
    """`ask(targets=[...], limit=0.3)`: one run, as a pod would make it; what is not given is not asked."""

    def run(environment: dict[str, str] | None = None, **questions: Any) -> ProbeRun:
        return ask_in(network.node, environment, **questions)

    return run


def ask_in(namespace: NetworkNamespace, environment: dict[str, str] | None = None, **asked_for: Any) -> ProbeRun:
    """One run in a namespace."""
    questions = json.dumps({**NOTHING_ASKED, **asked_for})
    program = [sys.executable, *command()[1:]]
    output = namespace.run(*program, environment={"HERMETIC_PROBE": questions, **(environment or {})})
    return read_run(questions, output)


NOTHING_ASKED = {
    "run": "test",
    "limit": 0.3,
    "controls": [["control", "tcp", "203.0.113.1", 9]],
    "targets": [],
    "names": [],
    "resolvers": [],
    "canary": "example.com",
    "knownName": "example.com",
    "clusterName": "kubernetes.default.svc.cluster.local",
    "imds": False,
}


def read_run(questions: str, answer: str, *, host_network: bool = True) -> ProbeRun:
    """The run as a collector hands it over."""
    value = {
        "id": "Pod test/probe",
        "pool": "gpu",
        "subnet": "nodes",
        "node": "node-0",
        "hostNetwork": host_network,
        "observedAt": "2026-09-01T10:00:00Z",
        "questions": questions,
        "answer": answer,
    }
    return ProbeRun.read(Body(value, (Evidence("Pod test/probe on node-0"),)))
