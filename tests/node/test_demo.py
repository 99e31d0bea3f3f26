"""`make demo` from its first line to its last: on a real node, with the image that ships, and it ends green."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from testbed.errors import CannotRunError
from testbed.node.preflight import reasons
from testbed.programs import NODE_FAMILIES, programs


@pytest.mark.timeout(1800)
def test_the_demo_ends_green() -> None:
    try:
        programs(*NODE_FAMILIES)
    except CannotRunError as reason:
        pytest.skip(str(reason))
    if missing := reasons():
        pytest.skip("; ".join(missing))
    environment = {**os.environ, "DEMO_EXIT": "1", "KUBECONFIG": "/no/such/kubeconfig"}
    command = [sys.executable, "-m", "testbed", "demo"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no real node" not in done.stdout
    assert re.search(r"hermetic check --installed: Pass: \d+ Pass$", done.stdout, re.MULTILINE)
    chapters = re.findall(r"^== (.*)$", done.stdout, re.MULTILINE)
    last = [
        next(chapter for chapter in chapters if chapter.startswith(begins))
        for begins in ("A NAT gateway", "The NAT gateway")
    ]
    assert chapters.index(last[0]) < chapters.index(last[1])
    green = done.stdout.split(f"== {last[1]}")[1]
    last_seen = dict(re.findall(r"^ {10}(\S+) +(?:True|False|Unknown) +(\S+)", green, re.MULTILINE))
    assert last_seen.pop("registry-not-allowed") == "RegistryNotAllowed"
    assert set(last_seen.values()) == {"Serving"}
    assert len(last_seen) >= 4
    assert "WeightsVerified of llama-3-1-8b: verified before each engine started" in done.stdout
    weights = done.stdout.split("== A model is staged and signed")[1].split("\n== ")[0]
    assert weights.index("DigestMismatch") < weights.index("'model.safetensors'") < weights.index("root digest sha256:")
    gpus = done.stdout.split("== A GPU has a row remap")[1].split("\n== ")[0]
    fault, repair = gpus.split("resets the GPU")
    assert re.search(r"AcceleratorsHealthy: .* on node .* GPU GPU-\d.* kubectl cordon ", fault)
    assert "RowRemapPending" in fault
    assert "Serving" in repair
    answer = re.search(r"answer: (\S.*)", done.stdout)
    assert answer
    assert re.search(r"lost 0\b", done.stdout)
    promotion = done.stdout.split("== Two deployments share one address")[1].split("\n== ")[0]
    assert "chat-canary has the weight 100, chat-stable 0" in promotion
    assert re.search(r"sent \d{3,}, lost 0\b", promotion)
