"""A model of two nodes: each pod on a kubelet of its own, engines that meet over the network, NetworkPolicies between.

The engine is the stand-in, which meets, hangs and looks healthy as vLLM does (testbed/engine/stand_in/group.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.engine import BEHAVIOUR_FILE
from testbed.images.model import stage_model
from testbed.installation import wait_for
from testbed.node.addresses import FIRST, SECOND
from tests.node.conftest import Pod
from tests.node.serving import Model
from tests.scenarios import a_share_model, an_sglang_model

Deploy = Callable[..., Model]
StartPod = Callable[..., Pod]

ROOM = {"cpu": "100m", "memory": "2560Mi", "sharedMemory": "2Gi", "scratch": "256Mi"}
RESTRICTED = {
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
}
SERVED = "meta/llama-3.1-8b-instruct"
# The engine's process is not the first of its container: that one passes signals on and keeps the first errors.
KILL_ENGINE = """
for process in /proc/[0-9]*; do
  if [ "$(tr '\\0' '\\n' < $process/cmdline 2> /dev/null | sed -n 2p)" = /usr/local/bin/vllm ]; then
    kill -9 ${process#/proc/}
  fi
done
"""


def order(weights: Path, **behaviour: Any) -> None:
    weights.mkdir(parents=True, exist_ok=True)
    (weights / BEHAVIOUR_FILE).write_text(json.dumps(behaviour))


@pytest.fixture
def group(deploy: Deploy, weights: Path) -> Deploy:
    """`group()`: a model of two nodes with four GPUs each, its weights staged."""

    def apply(manifest: dict[str, Any] | None = None, **spec: Any) -> Model:
        stage_model(weights)
        fields = {"accelerator": {"count": 4, "nodes": 2}, "resources": ROOM, **spec}
        return deploy(manifest or a_share_model(), **fields)

    return apply


def members(model: Model) -> dict[str, dict[str, Any]]:
    """Pods that are not on their way out, by rank."""
    pods = model.kubectl.json("get", "pods", f"--selector=hermetic.dev/modeldeployment={model.name}")["items"]
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return {pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"]: pod for pod in staying}


def uids(model: Model) -> dict[str, str]:
    return {rank: pod["metadata"]["uid"] for rank, pod in members(model).items()}


def groups(model: Model) -> list[dict[str, Any]]:
    """What the status says of each replica."""
    return list(model.manifest()["status"].get("groups") or ())


def answer(model: Model) -> str:
    body = json.dumps({"model": SERVED, "messages": [{"role": "user", "content": "Are you private?"}]})
    output = model.ask("/v1/chat/completions", "-H", "Content-Type: application/json", "-d", body)
    return str(output["choices"][0]["message"]["content"])


def kill_engine(model: Model, rank: str) -> None:
    pod = members(model)[rank]["metadata"]["name"]
    model.kubectl("exec", pod, "--container=engine", "--", "sh", "-c", KILL_ENGINE)


def until_line(model: Model, rank: str, line: str) -> None:
    """Wait for a line in the engine's log of this member."""

    def is_there() -> bool:
        pod = members(model).get(rank)
        if pod is None or pod["status"]["phase"] != "Running":
            return False
        return line in model.kubectl("logs", pod["metadata"]["name"], "--container=engine")

    wait_for(f"'{line}' of rank {rank}", is_there, timeout=90)


def until_serving_again(model: Model, before: dict[str, str]) -> None:
    """Wait until other pods than those before serve, all of them."""

    def is_back() -> bool:
        now = uids(model)
        is_new = len(now) == len(before) and not set(now.values()) & set(before.values())
        return is_new and model.condition().get("reason") in {"Serving", "ServingNotEnforced"}

    wait_for("the group serving again", is_back, timeout=240)


def test_a_model_of_two_nodes_serves_from_both_and_answers_through_its_load_balancer(group: Deploy) -> None:
    model = group()
    model.until_reason("Serving")

    assert {pod["spec"]["nodeName"] for pod in members(model).values()} == {FIRST.name, SECOND.name}
    assert "stand-in" in answer(model)
    assert [(entry["state"], entry["pods"]) for entry in groups(model)] == [("Serving", "2/2")]
    arguments = model.ask("/stand-in/arguments")["parsed"]
    assert (arguments["nnodes"], arguments["node-rank"], arguments["master-port"]) == (2, 0, 29501)
    assert (arguments["tensor-parallel-size"], arguments["pipeline-parallel-size"]) == (4, 2)
    assert arguments["master-addr"] == members(model)["0"]["status"]["podIP"]


def test_sglang_serves_from_two_nodes_too(group: Deploy) -> None:
    model = group(an_sglang_model(name="llama"))
    model.until_reason("Serving")
    assert "stand-in" in answer(model)
    assert {pod["spec"]["nodeName"] for pod in members(model).values()} == {FIRST.name, SECOND.name}


@pytest.mark.parametrize("rank", ["0", "1"])
@pytest.mark.parametrize("how", ["engine killed", "pod deleted"])
def test_a_group_that_loses_a_member_serves_again_after_one_restart(group: Deploy, rank: str, how: str) -> None:
    model = group()
    model.until_reason("Serving")
    before = uids(model)
    if how == "engine killed":
        kill_engine(model, rank)
    else:
        model.kubectl("delete", "pod", members(model)[rank]["metadata"]["name"], "--wait=false")

    until_serving_again(model, before)
    assert "stand-in" in answer(model)
    assert [entry["restarts"] for entry in groups(model)] == [1]
    again = [status["restartCount"] for pod in members(model).values() for status in pod["status"]["containerStatuses"]]
    assert again == [0, 0]


@pytest.mark.parametrize("rank", ["0", "1"])
@pytest.mark.parametrize("phase", ["joining", "loading"])
def test_a_group_that_loses_a_member_while_it_starts_serves_in_the_end(
    group: Deploy, weights: Path, rank: str, phase: str
) -> None:
    other = "1" if rank == "0" else "0"
    if phase == "joining":
        order(weights, of_rank={other: {"start_seconds": 600}})
    else:
        order(weights, load_seconds=600)
    model = group()
    until_line(model, rank, "waiting for members" if phase == "joining" else "Loading weights takes")
    before = uids(model)
    order(weights)
    kill_engine(model, rank)

    until_serving_again(model, before)
    assert "stand-in" in answer(model)
    assert [entry["restarts"] for entry in groups(model)] == [1]


def test_nobody_but_the_members_reaches_the_ports_of_a_group(group: Deploy, start_pod: StartPod) -> None:
    model = group()
    model.until_reason("Serving")
    head, member = (members(model)[rank]["status"]["podIP"] for rank in ("0", "1"))
    strangers = [
        start_pod(f"stranger-{node}", RESTRICTED, nodeName=node, securityContext={"runAsUser": 2000}).until("Ready")
        for node in (FIRST.name, SECOND.name)
    ]
    node_of = {rank: pod["spec"]["nodeName"] for rank, pod in members(model).items()}
    # A rule sees what crosses between nodes: each pod is called from the node of the other.
    for stranger, host in zip(strangers, _on_the_other(node_of, head, member), strict=True):
        for port in (29500, 29501):
            assert "open" not in stranger.shell(f"nc -w 1 {host} {port} < /dev/null && echo open"), (host, port)
    body = "import socket; socket.create_connection(('HEAD', 29500), 3).close(); print('open')"
    pod = members(model)["1"]["metadata"]["name"]
    call = ("exec", pod, "--container=engine", "--", "python3", "-c", body.replace("HEAD", head))
    assert "open" in model.kubectl(*call)


def _on_the_other(node_of: dict[str, str], head: str, member: str) -> tuple[str, str]:
    """The pod of the second node, then that of the first."""
    return (member, head) if node_of["0"] == FIRST.name else (head, member)
