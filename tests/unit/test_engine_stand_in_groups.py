"""The engine stand-in on several nodes: each member is a process, and they meet over real sockets."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermetic.engines.sglang.tables import TABLES as SGLANG_RELEASES
from hermetic.engines.vllm.tables import TABLES as VLLM_RELEASES
from testbed.engine import SGLANG_TABLES, VLLM_TABLES, sglang_environment, vllm_environment
from testbed.engine.local import Running, running, unpack
from testbed.engine.stand_in.sglang_api import sglang_settings
from testbed.engine.stand_in.tables import table_of
from testbed.engine.stand_in.vllm_api import vllm_settings
from testbed.images.model import stage_model
from testbed.processes import free_port
from tests.sampled_groups import ENGINE_STAND_IN

pytestmark = ENGINE_STAND_IN

SERVED = "meta/llama-3.1-405b"
TIMED_OUT = httpx.Timeout(2.0)
Start = Callable[..., Running]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("image"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    stage_model(tmp_path / "model")
    return tmp_path / "model"


def order(model: Path, **behaviour: Any) -> None:
    (model / "stand-in.json").write_text(json.dumps(behaviour))


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def vllm(root: Path, model: Path, tmp_path: Path, port: int) -> Iterator[Start]:
    """`vllm(rank, *flags)` starts a member of a group, of two unless `nodes` says otherwise."""
    with ExitStack() as stack:

        def start(rank: int, *flags: str, nodes: int = 2, headless: bool = True, **environment: str) -> Running:
            variables = {**vllm_environment("0.32.0"), "HOME": str(tmp_path), "USER": "hermetic", **environment}
            arguments = ["serve", str(model), "--port", "0", "--served-model-name", SERVED]
            arguments += ["--pipeline-parallel-size", str(nodes), "--nnodes", str(nodes), "--node-rank", str(rank)]
            arguments += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
            arguments += ["--headless"] if rank and headless else []
            return stack.enter_context(running(root, "usr/local/bin/vllm", [*arguments, *flags], variables))

        yield start


@pytest.fixture
def sglang(root: Path, model: Path, tmp_path: Path, port: int) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(rank: int, *flags: str) -> Running:
            arguments = ["serve", "--model-path", str(model), "--host", "0.0.0.0", "--port", "0"]
            arguments += ["--tp-size", "2", "--nnodes", "2", "--node-rank", str(rank)]
            arguments += ["--dist-init-addr", f"127.0.0.1:{port}", *flags]
            variables = {**sglang_environment("0.5.23"), "HOME": str(tmp_path)}
            return stack.enter_context(running(root, "usr/local/bin/sglang", arguments, variables))

        yield start


def get(engine: Running, path: str) -> int:
    return httpx.get(f"http://127.0.0.1:{engine.port}{path}", trust_env=False).status_code


def ask(engine: Running) -> str:
    question = {"model": SERVED, "messages": [{"role": "user", "content": "Hello"}]}
    url = f"http://127.0.0.1:{engine.port}/v1/chat/completions"
    answer = httpx.post(url, json=question, timeout=TIMED_OUT, trust_env=False)
    return str(answer.json()["choices"][0]["message"]["content"])


def kill(engine: Running) -> None:
    engine.process.send_signal(signal.SIGKILL)
    engine.process.wait()


def is_alive(engine: Running) -> bool:
    return engine.process.poll() is None


# ---------------------------------------------------------------------- arguments


@pytest.mark.parametrize("minor", VLLM_RELEASES.supported)
def test_every_release_of_vllm_meets_on_port_29501_unless_told_otherwise(minor: str) -> None:
    arguments = ["serve", "/m", "--tensor-parallel-size", "4", "-pp", "2", "--nnodes", "2", "--node-rank", "1"]
    group = vllm_settings(arguments, table_of(f"{minor}.0", VLLM_TABLES)).group
    assert group is not None
    assert (group.nodes, group.rank, group.address, group.port) == (2, 1, "127.0.0.1", 29501)
    assert (group.world_size, group.local_world_size, group.is_headless) == (8, 4, False)


@pytest.mark.parametrize("release", SGLANG_RELEASES.supported)
def test_every_release_of_sglang_meets_where_it_is_told(release: str) -> None:
    arguments = ["serve", "--model-path", "/m", "--tp-size", "16", "--nnodes", "2", "--node-rank", "1"]
    table = table_of(release, SGLANG_TABLES)
    group = sglang_settings([*arguments, "--dist-init-addr", "10.244.0.7:20000"], table).group
    assert group is not None
    assert (group.nodes, group.rank, group.address, group.port) == (2, 1, "10.244.0.7", 20000)
    assert (group.world_size, group.local_world_size) == (16, 8)


def test_a_rank_on_a_single_node_means_nothing() -> None:
    table = table_of(f"{VLLM_RELEASES.supported[-1]}.0", VLLM_TABLES)
    assert vllm_settings(["serve", "/m", "--node-rank", "3"], table).group is None


@pytest.mark.parametrize(
    ("rank", "flags", "environment", "error"),
    [
        (0, ["--nnodes", "3"], {}, "`--nnodes 3` must evenly divide the total world size (2)"),
        (0, ["--node-rank", "2"], {}, "`--node-rank` must be between 0 and 1; got `--node-rank 2`"),
        (0, ["-tp", "8"], {"NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1"}, "CUDA error: invalid device ordinal"),
        (1, [], {"GLOO_SOCKET_IFNAME": "eth77"}, "Unable to find address for: eth77"),
    ],
)
def test_a_member_that_could_not_join_ends_in_the_engine_s_words(
    vllm: Start, rank: int, flags: list[str], environment: dict[str, str], error: str
) -> None:
    member = vllm(rank, *flags, **environment)
    assert member.exit_code() == 1
    assert error in member.text


def test_sglang_refuses_a_world_that_the_nodes_do_not_divide(sglang: Start) -> None:
    member = sglang(0, "--tp-size", "3")
    assert member.exit_code() == 1
    assert "AssertionError: tp_size must be divisible by number of nodes" in member.text


# ---------------------------------------------------------------------- a group that comes up


@pytest.mark.parametrize("first", [0, 1])
def test_only_rank_0_serves_and_only_when_all_members_have_loaded(vllm: Start, first: int) -> None:
    started = {first: vllm(first)}
    started[first].wait_for_line("waiting for members at 127.0.0.1")
    started[1 - first] = vllm(1 - first)
    head, member = started[0], started[1]

    assert "stand-in" in ask(head)
    member.wait_for_line("headless multiproc executor")
    member.wait_for_line("follows the head")
    assert "Application startup complete" not in member.text


def test_three_members_are_connected_to_each_other(vllm: Start) -> None:
    members = [vllm(rank, nodes=3) for rank in (2, 0, 1)]
    for member in members:
        member.wait_for_line("Init COMPLETE")
    assert "stand-in" in ask(members[1])


def test_a_head_without_its_member_gives_up_when_the_time_is_over(vllm: Start, model: Path) -> None:
    order(model, join_seconds=1, traceback="short")
    head = vllm(0)
    assert head.exit_code() == 1
    assert "Timed out after 1 seconds waiting for clients. 1/2 clients joined." in head.text


def test_a_member_without_its_head_gives_up_when_the_time_is_over(vllm: Start, model: Path, port: int) -> None:
    order(model, join_seconds=1)
    member = vllm(1)
    assert member.exit_code() == 1
    assert f"timed out after 1000ms while trying to connect to (127.0.0.1, {port})" in member.text


def test_members_of_different_sizes_never_meet(vllm: Start, model: Path) -> None:
    order(model, join_seconds=2)
    head, member = vllm(0), vllm(1, "-tp", "2")
    assert (head.exit_code(), member.exit_code()) == (1, 1)
    assert "1/2 clients joined" in head.text


def test_a_vllm_member_that_is_not_headless_dies_once_it_has_loaded(vllm: Start) -> None:
    head, member = vllm(0), vllm(1, headless=False)
    assert member.exit_code() == 1
    assert "AssertionError: collective_rpc should not be called on follower node" in member.text
    assert is_alive(head)


def test_an_sglang_member_answers_health_and_nothing_else_and_without_tls(sglang: Start) -> None:
    head, member = sglang(0), sglang(1, "--ssl-certfile", "/no/such", "--ssl-keyfile", "/no/such")
    member.wait_for_line("follows the head")
    port = int(member.wait_for_line(r"health checks on port (\d+)")[1])
    status_codes = {
        path: httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False).status_code
        for path in ("/health", "/health_generate", "/ready", "/v1/models")
    }
    assert status_codes == {"/health": 200, "/health_generate": 200, "/ready": 404, "/v1/models": 404}
    assert get(head, "/ready") == 200


def test_one_rank_can_be_ordered_to_fail(vllm: Start, model: Path) -> None:
    order(model, of_rank={"1": {"fail_with": "out-of-memory", "traceback": "short"}})
    head, member = vllm(0), vllm(1)
    assert member.exit_code() == 1
    assert "CUDA out of memory" in member.text
    head.wait_for_line("Failed to recv, got 0 bytes")
    assert is_alive(head)


# ---------------------------------------------------------------------- what happens when a member dies


@pytest.fixture
def group(vllm: Start, model: Path) -> tuple[Running, Running]:
    """Head and member, serving."""
    order(model, hung_shutdown_seconds=0.2)
    head, member = vllm(0), vllm(1)
    assert "stand-in" in ask(head)
    return head, member


def test_a_member_whose_head_died_neither_exits_nor_joins_the_next_head(
    vllm: Start, model: Path, group: tuple[Running, Running]
) -> None:
    head, member = group
    kill(head)
    member.wait_for_line("Did the remote server shutdown or crash")
    order(model, join_seconds=2)
    second = vllm(0)
    assert second.exit_code() == 1
    assert "1/2 clients joined" in second.text
    assert is_alive(member)
    member.terminate()
    assert member.exit_code() == 0


def test_a_head_whose_member_died_looks_healthy_and_answers_no_request(group: tuple[Running, Running]) -> None:
    head, member = group
    kill(member)
    assert (get(head, "/health"), get(head, "/v1/models")) == (200, 200)
    with pytest.raises(httpx.ReadTimeout):
        ask(head)
    head.wait_for_line(r"waits for members that are gone: \[1\]")
    head.terminate()
    assert head.exit_code() == 0


def test_a_head_waits_for_a_member_that_is_stopped_and_not_gone(group: tuple[Running, Running]) -> None:
    """A node that is lost closes no connection."""
    head, member = group
    os.kill(member.process.pid, signal.SIGSTOP)
    with pytest.raises(httpx.ReadTimeout):
        ask(head)
    assert get(head, "/health") == 200


def test_a_member_that_comes_back_is_not_taken_in(vllm: Start, model: Path, group: tuple[Running, Running]) -> None:
    head, member = group
    kill(member)
    order(model, join_seconds=1)
    again = vllm(1)
    assert again.exit_code() == 1
    assert "wait timeout after 1000ms" in again.text
    assert is_alive(head)


@pytest.mark.parametrize("victim", [0, 1])
def test_whoever_is_left_while_the_group_loads_waits_for_ever(vllm: Start, model: Path, victim: int) -> None:
    order(model, load_seconds=1, of_rank={str(victim): {"load_seconds": 600}}, hung_shutdown_seconds=0.2)
    members = [vllm(0), vllm(1)]
    for member in members:
        member.wait_for_line("Init COMPLETE")
    kill(members[victim])
    other = members[1 - victim]
    other.wait_for_line(f"Failed to recv, got 0 bytes.*node rank {victim}")
    assert is_alive(other)
    assert "Application startup complete" not in other.text


def test_a_head_that_dies_while_members_join_ends_them(vllm: Start, model: Path) -> None:
    """Before all have met, a client of the store fails, and its process with it."""
    order(model, join_seconds=3, traceback="short")
    head, member = vllm(0, nodes=3), vllm(1, nodes=3)
    head.wait_for_line("waiting for members")
    member.wait_for_line("waiting for members")
    kill(head)
    assert member.exit_code() == 1
    assert "torch.distributed.DistNetworkError" in member.text


def test_a_stopped_head_drains_and_leaves_its_member_hanging(group: tuple[Running, Running]) -> None:
    head, member = group
    head.terminate()
    assert head.exit_code() == 0
    member.wait_for_line("Did the remote server shutdown or crash")
    assert is_alive(member)
