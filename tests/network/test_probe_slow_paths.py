"""Paths with latency, jitter and loss: an open one stays found, and silence of a slow one never counts as isolation.

Packets from the node to the far end pass through `slow_link`, answers come back at once: the delay is the round trip
time. RFC 6298, section 2: TCP sends a first packet again after one second. No test measures how fast anything is: the
time limit is far above or far below the delay.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermetic.audit.estate.probe.readings import Reading
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.estate.questions import Body
from hermetic.audit.model.findings import Evidence, Finding, Verdict
from tests.network.network_namespaces import FAR, NetworkLayout
from tests.probe_runs import finding

SLOW_LINK = Path(__file__).with_name("slow_link.py")
TABLE = "100"
PUBLIC = ("198.51.100.7", "198.51.100.8", "198.51.100.9", "2001:db8:ff::7")
CALLS = [["public", kind, address, port] for address in PUBLIC for kind, port in (("tls", 443), ("udp", 53))]
ANSWERS = [Reading.TLS_ANSWERED, Reading.ANSWERED] * len(PUBLIC)
FAR_CONTROL, NEAR_CONTROL = ["control", "tls", "198.51.100.1", 443], ["control", "tls", "192.0.2.2", 443]
"""A control behind the slow link, and one beside it."""
PATIENT, LIMITED, HASTY = 8.0, 4.0, 0.3
"""Seconds of the probe's time limit: every answer comes, a control's answer comes, no answer comes."""
NEVER = 600_000
"""Milliseconds: longer than any test."""
Ask = Callable[..., ProbeRun]


@pytest.fixture(scope="module", autouse=True)
def far_end(start_beyond: Callable[..., None]) -> None:
    start_beyond()


@contextmanager
def slow_link(network: NetworkLayout, milliseconds: int, *, jitter: int = 0, lost: int | None = None) -> Iterator[None]:
    """The router sends what comes from the node to far addresses over a slow link."""
    wanted = {"milliseconds": milliseconds, "jitter": jitter, "seed": 7, "lost": lost}
    program = [*network.router.enter, sys.executable, "-I", str(SLOW_LINK), json.dumps(wanted)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            with _routed_over_the_link(network):
                yield
        finally:
            process.kill()


@contextmanager
def _routed_over_the_link(network: NetworkLayout) -> Iterator[None]:
    rules = [(f"-{family}", f"to {FAR[family]} iif down0 lookup {TABLE}".split()) for family in (4, 6)]
    for family, _ in rules:
        network.router.run("ip", family, "route", "add", "default", "dev", "slow0", "table", TABLE)
    for family, rule in rules:
        network.router.run("ip", family, "rule", "add", *rule)
    try:
        yield
    finally:
        for family, rule in rules:
            network.router.run("ip", family, "rule", "del", *rule)


def probe_internet(run: ProbeRun) -> Finding:
    """The finding after this run, once as that of a pod and once as that of a machine's own network."""
    facts = {"pool": "gpu", "subnet": "nodes", "node": "node-0", "observedAt": run.observed_at}
    bodies = [
        Body(
            {
                "id": f"Pod probes/{host}",
                "hostNetwork": host,
                "questions": run.questions,
                "answer": run.answer,
                **facts,
            },
            (Evidence("a pod in the node's namespace"),),
        )
        for host in (False, True)
    ]
    return finding("probe-internet", bodies)


@pytest.mark.parametrize(
    ("milliseconds", "jitter"), [(50, 0), (300, 0), (50, 250)], ids=["50 ms", "300 ms", "50 to 300 ms"]
)
def test_open_path_with_latency_is_found_open(network: NetworkLayout, ask: Ask, milliseconds: int, jitter: int) -> None:
    with slow_link(network, milliseconds, jitter=jitter):
        run = ask(targets=CALLS, controls=[FAR_CONTROL], limit=PATIENT)

    assert [reply.reading for reply in run.report.replies] == ANSWERS
    assert min(int(reply.raw.partition("/")[2]) for reply in run.report.replies) >= milliseconds
    assert probe_internet(run).verdict is Verdict.FAIL


def test_network_that_is_slower_than_the_time_limit_is_unknown(network: NetworkLayout, ask: Ask) -> None:
    with slow_link(network, NEVER):
        run = ask(targets=CALLS, controls=[FAR_CONTROL], limit=HASTY)

    assert {reply.reading for reply in run.report.replies} == {Reading.DROPPED}
    assert (probe_internet(run).verdict, probe_internet(run).reason) == (Verdict.UNKNOWN, "ControlSilent")


def test_silence_of_a_slow_far_end_names_the_time_limit_that_it_is_about(network: NetworkLayout, ask: Ask) -> None:
    """Silence cannot tell a path that is slower than every wait from a closed one: the message says how long it was."""
    with slow_link(network, NEVER):
        run = ask(targets=CALLS, controls=[NEAR_CONTROL], limit=LIMITED)

    assert run.report.control_answered
    assert f"was answered within {LIMITED:g} s" in probe_internet(run).message


@pytest.mark.parametrize("lost", [0, 1, 2], ids=["first", "second", "third"])
def test_open_path_that_loses_every_third_packet_is_found_open(network: NetworkLayout, ask: Ask, lost: int) -> None:
    with slow_link(network, 0, lost=lost):
        run = ask(targets=CALLS, controls=[FAR_CONTROL], limit=PATIENT)

    assert [reply.reading for reply in run.report.replies] == ANSWERS
    assert probe_internet(run).verdict is Verdict.FAIL


@pytest.mark.parametrize("lost", [0, 1], ids=["first", "second"])
def test_closed_network_is_proven_although_the_control_loses_a_packet(
    network: NetworkLayout, ask: Ask, lost: int
) -> None:
    closed = [f"{'ip' if family == 4 else 'ip6'} daddr {FAR[family]} iifname slow0 drop" for family in (4, 6)]
    control = f"ip daddr {FAR_CONTROL[2]} accept"
    with slow_link(network, 0, lost=lost), network.router.rules("forward", control, *closed):
        run = ask(targets=CALLS, controls=[FAR_CONTROL], limit=LIMITED)

    assert {reply.reading for reply in run.report.replies} == {Reading.DROPPED}
    assert probe_internet(run).verdict is Verdict.PASS
