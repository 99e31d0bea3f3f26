"""The engine stand-in with the API of a NIM: configured by NIM_* variables, health where a NIM has it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from testbed.engine import NIM_LINES, nim_entrypoint, nim_environment
from testbed.engine.local import Running, running, unpack
from testbed.images.model import stage_model
from tests.sampled_groups import ENGINE_STAND_IN

pytestmark = ENGINE_STAND_IN

LINES = sorted(NIM_LINES)
Serve = Callable[..., Running]
every_line = pytest.mark.parametrize("line", LINES)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("image"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    stage_model(tmp_path / "store")
    return tmp_path / "store"


def program_of(line: str) -> str:
    return "usr/local/bin/nim-serve" if nim_entrypoint(line) == ("nim-serve",) else nim_entrypoint(line)[0].lstrip("/")


@pytest.fixture
def serve(root: Path, model: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts a NIM of the given line on the model store; a variable given as "" is left out."""
    with ExitStack() as stack:

        def start(line: str, *arguments: str, behaviour: dict[str, Any] | None = None, **variables: str) -> Running:
            if behaviour:
                (model / "stand-in.json").write_text(json.dumps(behaviour))
            named = "NIM_MODEL_PATH" if line.startswith("2.") else "NIM_MODEL_NAME"
            environment = {
                **nim_environment(line),
                "NIM_CACHE_PATH": str(tmp_path / "cache"),
                "NIM_SERVER_PORT": "0",
                "NIM_SERVED_MODEL_NAME": "meta/llama",
                named: str(model),
                **variables,
            }
            set_variables = {name: value for name, value in environment.items() if value}
            return stack.enter_context(running(root, program_of(line), arguments, set_variables))

        yield start


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=20) as opened:
        yield opened


def at(engine: Running, path: str) -> str:
    return f"http://127.0.0.1:{engine.port}{path}"


@every_line
def test_it_answers_where_a_nim_answers(serve: Serve, client: httpx.Client, line):
    engine = serve(line)
    assert client.get(at(engine, "/v1/health/live")).status_code == 200
    assert client.get(at(engine, "/v1/health/ready")).json()["status"] == "ready"
    assert client.get(at(engine, "/v1/version")).json()["release"] == line
    assert client.get(at(engine, "/v1/metadata")).json()["modelInfo"][0]["shortName"] == "meta/llama"
    assert client.get(at(engine, "/v1/models")).json()["data"][0]["id"] == "meta/llama"
    assert client.get(at(engine, "/health")).status_code == 404
    assert client.get(at(engine, "/v1/health/live")).headers["server"] == "hermetic engine stand-in"
    body = {"model": "meta/llama", "messages": [{"role": "user", "content": "Hello"}]}
    assert client.post(at(engine, "/v1/chat/completions"), json=body).status_code == 200


def test_line_2_is_live_at_once_and_ready_later(serve: Serve, client: httpx.Client, free_port: int):
    engine = serve("2.1", behaviour={"load_seconds": 1.5}, NIM_SERVER_PORT=str(free_port))
    engine.wait_for_line("Loading weights")
    url = f"http://127.0.0.1:{free_port}"
    assert client.get(f"{url}/v1/health/live").status_code == 200
    assert client.get(f"{url}/v1/health/ready").status_code == 503
    assert client.get(f"{url}/v1/models").status_code == 503
    assert client.post(f"{url}/v1/completions", json={"prompt": "x"}).status_code == 503
    assert engine.port == free_port
    assert client.get(f"{url}/v1/health/ready").status_code == 200


def test_line_1_answers_nothing_before_it_is_ready(serve: Serve, client: httpx.Client, free_port: int):
    engine = serve("1.15", behaviour={"load_seconds": 1}, NIM_SERVER_PORT=str(free_port))
    engine.wait_for_line("Loading weights")
    with pytest.raises(httpx.ConnectError):
        client.get(f"http://127.0.0.1:{free_port}/v1/health/live")
    assert client.get(at(engine, "/v1/health/live")).status_code == 200


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_other_families_name_the_port_differently(serve: Serve, client: httpx.Client, free_port: int):
    engine = serve("2.1", NIM_SERVER_PORT="", NIM_HTTP_API_PORT=str(free_port))
    assert engine.port == free_port
    assert client.get(at(engine, "/v1/health/ready")).status_code == 200


@pytest.mark.parametrize(("line", "name"), [("1.15", "num_requests_running"), ("2.1", "vllm:num_requests_running")])
def test_metrics_have_the_line_s_names(serve: Serve, client: httpx.Client, line, name):
    engine = serve(line)
    assert f"\n{name}{{" in client.get(at(engine, "/v1/metrics")).text


def test_line_2_passes_its_arguments_to_the_engine_and_refuses_unknown_ones(serve: Serve, client: httpx.Client):
    engine = serve("2.1", "--max-model-len", "4096", "--enable-prefix-caching")
    assert client.get(at(engine, "/v1/models")).json()["data"][0]["max_model_len"] == 4096
    refused = serve("2.1", "--no-such-flag")
    assert refused.exit_code() == 2
    assert "unrecognized arguments: --no-such-flag" in refused.text


@every_line
def test_a_context_length_is_taken_from_the_environment(serve: Serve, client: httpx.Client, line):
    engine = serve(line, NIM_MAX_MODEL_LEN="2048")
    assert client.get(at(engine, "/v1/models")).json()["data"][0]["max_model_len"] == 2048


@every_line
def test_a_profile_is_served_from_the_staged_cache(serve: Serve, client: httpx.Client, tmp_path: Path, model, line):
    snapshot = tmp_path / "cache/ngc/hub/models--nim--meta--llama/snapshots/hf-1"
    snapshot.mkdir(parents=True)
    for file in model.iterdir():
        (snapshot / file.name).symlink_to(file)
    engine = serve(line, NIM_MODEL_PATH="", NIM_MODEL_NAME="", NIM_MODEL_PROFILE="4f904d57")
    assert client.get(at(engine, "/v1/health/ready")).status_code == 200
    engine.wait_for_line("Selected profile: 4f904d57")
    engine.wait_for_line("Model workspace is now ready")


@every_line
def test_a_profile_that_is_not_staged_fails(serve: Serve, line):
    nim_variables = {"NIM_MODEL_PATH": "", "NIM_MODEL_NAME": "", "NIM_MODEL_PROFILE": "4f904d57"}
    engine = serve(line, **nim_variables, NIM_DISABLE_MODEL_DOWNLOAD="1")
    assert engine.exit_code() == 1
    assert "profile 4f904d57 is not in the cache" in engine.text
    assert "downloads are disabled" in engine.text


@every_line
def test_the_cache_must_be_writable(serve: Serve, line):
    engine = serve(line, NIM_CACHE_PATH="/dev/null/cache")
    assert engine.exit_code() == 1
    assert "/dev/null/cache" in engine.text


@every_line
def test_a_broken_model_store_fails_as_the_engine_inside_would(serve: Serve, model: Path, line):
    (model / "config.json").unlink()
    engine = serve(line)
    assert engine.exit_code() == 1
    assert "Invalid repository ID or local directory specified" in engine.text


@every_line
def test_it_stops_at_once_when_told_to(serve: Serve, line):
    engine = serve(line)
    assert engine.port
    engine.terminate()
    assert engine.exit_code(10) == 0


def test_tls_without_its_files_is_refused(serve: Serve):
    engine = serve("2.1", NIM_SSL_MODE="TLS")
    assert engine.exit_code() == 1
    assert "needs NIM_SSL_KEY_PATH" in engine.text
