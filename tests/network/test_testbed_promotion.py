"""Requests through the real Envoy to two engine stand-ins while the weights move: the bed loses none by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed.engine import vllm_environment
from testbed.engine.local import Running, running, unpack
from testbed.gateway.snapshot import Manifest
from testbed.images.model import stage_model
from testbed.installation import REPOSITORY
from tests.gateway_objects import a_route, a_rule, a_service, a_slice
from tests.network.local_gateway import LocalGateway

NAMESPACE, MODEL = "models", "meta/llama-3.1-8b-instruct"
PROMOTION = ((100, 0), (90, 10), (50, 50), (0, 100))
RATE = 100


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[LocalGateway]:
    started = LocalGateway(tmp_path)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[dict[str, Running]]:
    """Two models served by vLLM's stand-in."""
    root, model = unpack(tmp_path / "image"), tmp_path / "model"
    stage_model(model)
    environment = {**vllm_environment("0.32.0"), "HOME": str(tmp_path), "USER": "hermetic"}
    arguments = ["serve", str(model), "--port", "0", "--served-model-name", MODEL]
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(running(root, "usr/local/bin/vllm", arguments, environment))
            for name in ("stable", "canary")
        }


@pytest.fixture
def load(gateway: LocalGateway) -> Iterator[Callable[[float], subprocess.Popen[str]]]:
    """`load(seconds)` starts to send chat requests to the Gateway, a part of them streamed."""
    senders: list[subprocess.Popen[str]] = []

    def start(seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, str(REPOSITORY / "testbed" / "load.py"), f"http://127.0.0.1:{gateway.port}/chat/v1"]
        options = ["--model", MODEL, "--rate", str(RATE), "--seconds", str(seconds), "--keep-alive", "--streamed"]
        senders.append(subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True))
        return senders[-1]

    yield start
    for sender in senders:
        sender.kill()
        sender.wait()
        assert sender.stdout is not None
        sender.stdout.close()


def outcome(sender: subprocess.Popen[str]) -> dict[str, Any]:
    """What the load says at its end."""
    report: dict[str, Any] = json.loads(sender.communicate(timeout=60)[0])
    return report


def test_a_promotion_by_weights_loses_no_request_and_a_killed_engine_does(
    gateway: LocalGateway, engines: dict[str, Running], load: Callable[[float], subprocess.Popen[str]]
) -> None:
    endpoints = [a_slice(name, NAMESPACE, engine.port) for name, engine in engines.items()]
    objects: list[Manifest] = [*(a_service(name, NAMESPACE) for name in engines), *endpoints]

    def weigh(stable: int, canary: int) -> None:
        rule = a_rule(("stable", stable), ("canary", canary), prefix="/chat")
        gateway.serve(a_route("chat", NAMESPACE, rule), *objects)

    weigh(*PROMOTION[0])
    sender = load(8)
    for weights in PROMOTION[1:]:
        weigh(*weights)
    for weights in reversed(PROMOTION[:-1]):
        weigh(*weights)
    report = outcome(sender)
    assert report["lost"] == {}
    assert report["answered"] == report["sent"] >= 400

    sender = load(4)
    weigh(50, 50)
    engines["stable"].process.kill()
    assert outcome(sender)["lost"]
