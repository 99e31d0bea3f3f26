"""The engine stand-in with the API of vLLM: a real process, over real HTTP on loopback."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from testbed.engine import vllm_environment
from testbed.engine.local import Running, running, unpack
from testbed.images.model import stage_model
from tests.sampled_groups import ENGINE_STAND_IN

pytestmark = ENGINE_STAND_IN

NAME = "hermetic engine stand-in"
MODEL = "meta/llama-3.1-8b-instruct"
Serve = Callable[..., Running]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("image"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    stage_model(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def serve(root: Path, model: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts `vllm serve` on the model with the given flags; behaviour go into the model folder."""
    with ExitStack() as stack:

        def start(*flags: str, behaviour: dict[str, Any] | None = None, **environment: str) -> Running:
            if behaviour:
                (model / "stand-in.json").write_text(json.dumps(behaviour))
            variables = {**vllm_environment("0.32.0"), "HOME": str(tmp_path), "USER": "hermetic", **environment}
            arguments = ["serve", str(model), "--port", "0", "--served-model-name", MODEL, "llama", *flags]
            return stack.enter_context(running(root, "usr/local/bin/vllm", arguments, variables))

        yield start


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=20) as opened:
        yield opened


def at(engine: Running, path: str) -> str:
    return f"http://127.0.0.1:{engine.port}{path}"


def asking(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "How are you?"}], **more}


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


class InFlight:
    """A request that is under way in a thread; `wait` gives its answer, or raises what ended it."""

    def __init__(self, engine: Running, **more: Any) -> None:
        self._address = ("127.0.0.1", engine.port)
        self._body = json.dumps(asking(max_tokens=100, ignore_eos=True, **more))
        self.outcome: tuple[int, str] | Exception | None = None
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=30)
        try:
            connection.request("POST", "/v1/chat/completions", self._body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            self.outcome = (answer.status, answer.read().decode())
        except (OSError, http.client.HTTPException) as error:
            self.outcome = error
        finally:
            connection.close()

    def wait(self) -> tuple[int, str] | Exception:
        self._thread.join(30)
        assert self.outcome is not None
        return self.outcome


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the state never came"
        time.sleep(0.01)


def load(client: httpx.Client, engine: Running) -> int:
    return int(client.get(at(engine, "/load")).json()["server_load"])


def test_it_answers_where_vllm_answers(serve: Serve, client: httpx.Client):
    engine = serve()
    for path in ("/health", "/ping"):
        assert client.get(at(engine, path)).status_code == 200
    assert client.post(at(engine, "/ping")).status_code == 200
    assert client.get(at(engine, "/version")).json() == {"version": "0.32.0"}
    assert client.get(at(engine, "/load")).json() == {"server_load": 0}
    assert client.get(at(engine, "/")).status_code == 404
    assert client.get(at(engine, "/v1/chat/completions")).status_code == 405
    cards = client.get(at(engine, "/v1/models")).json()["data"]
    assert [card["id"] for card in cards] == [MODEL, "llama"]


def test_every_answer_and_the_log_say_that_it_is_a_stand_in(serve: Serve, client: httpx.Client):
    engine = serve()
    for path in ("/health", "/v1/models", "/metrics", "/nowhere"):
        assert client.get(at(engine, path)).headers["server"] == NAME
    answer = client.post(at(engine, "/v1/chat/completions"), json=asking())
    assert NAME in answer.json()["choices"][0]["message"]["content"]
    assert NAME in engine.output[0]


def test_the_port_is_closed_until_the_engine_is_ready(serve: Serve):
    with httpx.Client() as early:
        probe = socket.socket()
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        engine = serve("--port", str(port), behaviour={"load_seconds": 1.5})
        engine.wait_for_line("Loading weights")
        with pytest.raises(httpx.ConnectError):
            early.get(f"http://127.0.0.1:{port}/health")
        assert engine.port == port
        assert early.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_the_same_question_gets_the_same_answer(serve: Serve, client: httpx.Client):
    engine = serve()
    first, second = (client.post(at(engine, "/v1/chat/completions"), json=asking()).json() for _ in range(2))
    assert first["choices"] == second["choices"]
    assert first["choices"][0]["finish_reason"] == "stop"
    usage = first["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_a_completion_ends_at_the_tokens_asked_for(serve: Serve, client: httpx.Client):
    engine = serve()
    body = {"model": "llama", "prompt": "Once upon a time", "max_tokens": 4}
    answer = client.post(at(engine, "/v1/completions"), json=body).json()
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 4


def test_a_stream_carries_the_same_words_as_the_whole_answer(serve: Serve, client: httpx.Client):
    engine = serve()
    complete = client.post(at(engine, "/v1/chat/completions"), json=asking()).json()
    body = asking(stream=True, stream_options={"include_usage": True})
    answer = client.post(at(engine, "/v1/chat/completions"), json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, usage = events(answer.text)
    pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(pieces) == complete["choices"][0]["message"]["content"]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert usage["usage"] == complete["usage"]


def test_a_stream_arrives_word_by_word(serve: Serve):
    engine = serve(behaviour={"seconds_per_token": 0.05})
    with httpx.stream("POST", at(engine, "/v1/chat/completions"), json=asking(stream=True)) as answer:
        times = [time.monotonic() for line in answer.iter_lines() if line]
    assert times[-1] - times[0] > 0.3


def test_an_idle_stream_is_kept_alive_when_asked_for(serve: Serve, client: httpx.Client):
    engine = serve("--sse-keep-alive-interval", "1", behaviour={"seconds_per_token": 1.3})
    body = asking(stream=True, max_tokens=1)
    assert client.post(at(engine, "/v1/chat/completions"), json=body).text.count(": keep-alive\n") == 1


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"model": "other", "messages": [{"role": "user", "content": "x"}]}, 404, "The model `other` does not exist."),
        ({"model": MODEL}, 400, "messages"),
        ({"model": MODEL, "messages": "x"}, 400, "messages"),
        ({"model": MODEL, "messages": [{"content": "x"}], "max_tokens": 10**7}, 400, "maximum context length"),
        ({"model": MODEL, "messages": [{"content": "x"}], "max_tokens": -1}, 400, "max_tokens must be at least 1"),
    ],
)
def test_a_bad_request_is_refused_in_openai_form(serve: Serve, client: httpx.Client, body, status, message):
    engine = serve()
    answer = client.post(at(engine, "/v1/chat/completions"), json=body)
    assert answer.status_code == answer.json()["error"]["code"] == status
    assert message in answer.json()["error"]["message"]
    assert client.post(at(engine, "/v1/chat/completions"), content=b"{").status_code == 400


@pytest.mark.parametrize("by_flag", [True, False])
def test_the_key_guards_what_is_under_v1_and_nothing_else(serve: Serve, client: httpx.Client, by_flag):
    engine = serve("--api-key", "right") if by_flag else serve(VLLM_API_KEY="right")
    right, wrong = {"Authorization": "Bearer right"}, {"Authorization": "Bearer wrong"}
    assert client.get(at(engine, "/v1/models")).status_code == 401
    assert client.get(at(engine, "/v1/models"), headers=wrong).json() == {"error": "Unauthorized"}
    assert client.get(at(engine, "/v1/models"), headers=right).status_code == 200
    assert client.post(at(engine, "/v1/chat/completions"), json=asking()).status_code == 401
    assert client.get(at(engine, "/health")).status_code == 200
    assert client.get(at(engine, "/metrics")).status_code == 200
    assert client.post(at(engine, "/invocations"), json=asking()).status_code == 200, "vLLM leaves this open, too"
    assert client.get(at(engine, "/stand-in/environment")).json().get("VLLM_API_KEY", "(set)") == "(set)"


def test_metrics_have_vllm_s_names_and_count_what_was_served(serve: Serve, client: httpx.Client):
    engine = serve()
    client.post(at(engine, "/v1/completions"), json={"prompt": "a b c", "max_tokens": 5})
    page = client.get(at(engine, "/metrics")).text
    labels = f'engine="0",model_name="{MODEL}"'
    for line in (
        f"vllm:num_requests_running{{{labels}}} 0.0",
        f"vllm:num_requests_waiting{{{labels}}} 0.0",
        f"vllm:kv_cache_usage_perc{{{labels}}} 0.0",
        f"vllm:prompt_tokens_total{{{labels}}} 3.0",
        f"vllm:generation_tokens_total{{{labels}}} 5.0",
        f'vllm:request_success_total{{{labels},finished_reason="length"}} 1.0',
        f"vllm:time_to_first_token_seconds_count{{{labels}}} 1.0",
        f"vllm:inter_token_latency_seconds_count{{{labels}}} 4.0",
        f"vllm:e2e_request_latency_seconds_count{{{labels}}} 1.0",
        'http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 1.0',
    ):
        assert line in page.splitlines(), line
    names = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    assert {"vllm:num_preemptions_total", "vllm:prefix_cache_hits_total", "vllm:admission_rejections_total"} <= names


def test_tests_can_see_how_it_was_started(serve: Serve, client: httpx.Client):
    engine = serve("-tp", "1", "--gpu_memory_utilization=0.9", HF_HUB_OFFLINE="1")
    started = client.get(at(engine, "/stand-in/arguments")).json()
    assert started["argv"][:2] == ["vllm", "serve"]
    assert started["parsed"]["tensor-parallel-size"] == 1
    assert started["parsed"]["gpu-memory-utilization"] == 0.9
    assert client.get(at(engine, "/stand-in/environment")).json()["HF_HUB_OFFLINE"] == "1"


def test_paths_kept_out_of_the_access_log_are_not_in_it(serve: Serve, client: httpx.Client):
    engine = serve("--disable-access-log-for-endpoints", "/health,/metrics")
    for path in ("/health", "/metrics", "/version"):
        client.get(at(engine, path))
    engine.wait_for_line('"GET /version HTTP/1.1" 200 OK')
    assert "GET /health" not in engine.text


def test_a_full_queue_is_answered_with_503_and_counted(serve: Serve, client: httpx.Client):
    engine = serve("--max-num-queued-reqs", "1", behaviour={"seconds_per_token": 0.02})
    first = InFlight(engine)
    wait_until(lambda: load(client, engine) == 1)
    refused = client.post(at(engine, "/v1/chat/completions"), json=asking())
    assert refused.status_code == 503
    assert "currently busy" in refused.json()["error"]["message"]
    assert 'reason="max_num_queued_reqs"} 1.0' in client.get(at(engine, "/metrics")).text
    assert first.wait()[0] == 200  # type: ignore[index]


def test_requests_beyond_those_that_run_at_once_are_counted_as_waiting(serve: Serve, client: httpx.Client):
    engine = serve("--max-num-seqs", "1", behaviour={"seconds_per_token": 0.02})
    open_requests = [InFlight(engine) for _ in range(3)]
    wait_until(lambda: load(client, engine) == 3)
    page = client.get(at(engine, "/metrics")).text
    labels = f'engine="0",model_name="{MODEL}"'
    for gauge in (f"vllm:num_requests_running{{{labels}}} 1.0", f"vllm:num_requests_waiting{{{labels}}} 2.0"):
        assert gauge in page.splitlines()
    assert [request.wait()[0] for request in open_requests] == [200, 200, 200]  # type: ignore[index]


@pytest.mark.parametrize("stream", [True, False])
def test_a_drain_lets_running_requests_finish_and_takes_no_new_ones(serve: Serve, client: httpx.Client, stream):
    engine = serve("--shutdown-timeout", "30", behaviour={"seconds_per_token": 0.02})
    under_way = InFlight(engine, stream=stream)
    wait_until(lambda: load(client, engine) == 1)
    engine.terminate()
    engine.wait_for_line("mode=drain timeout=30s")
    assert client.get(at(engine, "/health")).status_code == 200
    refused = client.post(at(engine, "/v1/chat/completions"), json=asking())
    assert refused.status_code == 500
    assert refused.json()["error"]["message"] == "cannot schedule new futures after shutdown"
    status, body = under_way.wait()  # type: ignore[misc]
    assert status == 200
    assert "[DONE]" in body if stream else json.loads(body)["usage"]["completion_tokens"] == 100
    assert engine.exit_code() == 0


def test_a_drain_ends_when_its_time_is_over(serve: Serve, client: httpx.Client):
    engine = serve("--shutdown-timeout", "1", behaviour={"seconds_per_token": 0.2})
    under_way = InFlight(engine)
    wait_until(lambda: load(client, engine) == 1)
    began = time.monotonic()
    engine.terminate()
    assert engine.exit_code() == 0
    assert 1 <= time.monotonic() - began < 15  # the request takes 20 s
    assert under_way.wait()[0] == 500  # type: ignore[index]


def test_without_a_drain_running_requests_are_lost(serve: Serve, client: httpx.Client):
    engine = serve(behaviour={"seconds_per_token": 0.1})
    answered, streamed = InFlight(engine), InFlight(engine, stream=True)
    wait_until(lambda: load(client, engine) == 2)
    engine.terminate()
    assert engine.exit_code() == 0
    assert answered.wait()[0] == 500  # type: ignore[index]
    cut = streamed.wait()
    assert isinstance(cut, Exception) or "[DONE]" not in cut[1]


def test_idle_connections_are_closed_and_do_not_hold_the_end_up(serve: Serve):
    engine = serve("--shutdown-timeout", "30", VLLM_HTTP_TIMEOUT_KEEP_ALIVE="1")
    short_lived = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=20)
    short_lived.request("GET", "/health")
    short_lived.getresponse().read()
    assert short_lived.sock.recv(1) == b"", "closed by the server after a second"
    short_lived.close()
    idle = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=20)
    idle.request("GET", "/health")
    idle.getresponse().read()
    engine.terminate()
    assert engine.exit_code(10) == 0
    idle.close()


def test_a_dead_engine_is_unhealthy_and_then_gone(serve: Serve, client: httpx.Client):
    engine = serve(behaviour={"die_after_seconds": 0.5})
    wait_until(lambda: client.get(at(engine, "/health")).status_code == 503)
    assert engine.exit_code(15) == 1


def test_it_is_stopped_while_it_loads(serve: Serve):
    engine = serve(behaviour={"load_seconds": 60})
    engine.wait_for_line("Loading weights")
    engine.terminate()
    assert engine.exit_code(10) == 130


def test_tls_is_spoken_with_the_certificate_it_was_given(serve: Serve, tmp_path: Path):
    key, certificate = self_signed(tmp_path)
    engine = serve("--ssl-keyfile", str(key), "--ssl-certfile", str(certificate))
    trusting = ssl.create_default_context(cafile=str(certificate))
    url = f"https://127.0.0.1:{engine.port}/health"
    with httpx.Client(verify=trusting) as client:
        assert client.get(url).status_code == 200
    with httpx.Client(verify=ssl.create_default_context()) as stranger, pytest.raises(httpx.ConnectError):
        stranger.get(url)


def self_signed(folder: Path) -> tuple[Path, Path]:
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stand-in")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, secret.public_key(), x509.random_serial_number(), now, now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    key_file, certificate_file = folder / "tls.key", folder / "tls.crt"
    key_file.write_bytes(secret.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return key_file, certificate_file


CALLABLE = {"type": "function", "function": {"name": "weather", "parameters": {"properties": {"city": {}}}}}
PARSER = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")


@pytest.mark.parametrize(
    ("flags", "more", "is_called"),
    [
        (PARSER, {"tools": [CALLABLE]}, True),
        (PARSER, {"tools": [CALLABLE], "tool_choice": "none"}, False),
        (PARSER, {}, False),
        ((), {"tools": [CALLABLE]}, False),
        ((), {"tools": [CALLABLE], "tool_choice": "required"}, True),
        ((), {"tools": [CALLABLE], "tool_choice": {"type": "function", "function": {"name": "weather"}}}, True),
    ],
    ids=["auto", "none", "no tools", "auto without its flags", "required", "named"],
)
def test_tool_is_called_as_vllm_decides(
    serve: Serve, client: httpx.Client, flags: tuple[str, ...], more: dict[str, Any], is_called: bool
):
    """Source: `keeps_tool_calls` in vllm/entrypoints/openai/chat_completion/message_assembly.py of 0.33.0."""
    engine = serve(*flags)
    (choice,) = client.post(at(engine, "/v1/chat/completions"), json=asking(**more)).json()["choices"]
    assert (choice["finish_reason"] == "tool_calls", "tool_calls" in choice["message"]) == (is_called, is_called)
    streamed = events(client.post(at(engine, "/v1/chat/completions"), json=asking(stream=True, **more)).text)
    deltas = [choice["delta"] for event in streamed for choice in event["choices"]]
    assert any("tool_calls" in delta for delta in deltas) is is_called


def test_pooling_model_embeds_and_ranks_and_does_not_chat(serve: Serve, client: httpx.Client):
    engine = serve("--runner", "pooling")
    assert client.post(at(engine, "/v1/chat/completions"), json=asking()).status_code == 404
    first, second = client.post(at(engine, "/v1/embeddings"), json={"input": ["a", "b"]}).json()["data"]
    assert first["embedding"] != second["embedding"]
    ranked = client.post(at(engine, "/v1/rerank"), json={"query": "b", "documents": ["a", "b"], "top_n": 1}).json()
    assert [(result["index"], result["relevance_score"]) for result in ranked["results"]] == [(1, 1.0)]
    assert client.post(at(engine, "/v1/rerank"), json={"query": "b"}).status_code == 400
    assert client.post(at(engine, "/v1/embeddings"), json={"input": "a", "model": "x"}).status_code == 404
