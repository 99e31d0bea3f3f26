"""The real vLLM with exactly the rendered arguments and environment: it serves, drains, and calls nothing."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from hermetic.engines.vllm import WITHOUT_A_KEY
from testbed.real_engine.network import PodNetwork
from testbed.real_engine.pod import SECRET, Machine, Mounts, pod
from tests.engine.asking import Client, chat, chunks
from tests.scenarios import a_share_model
from tests.snapshots import rendered

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
GUARDED = ("/v1", "/v2", "/inference", "/cohere")


def test_it_serves_over_tls_with_a_key_and_drains_without_a_packet(
    machine: Machine, network: PodNetwork, whole_model: Path, certificate: Path, figures: dict[str, float]
) -> None:
    endpoint = {"tls": {"secretName": "tls"}, "apiKey": {"secretName": "key"}}
    deployment = rendered(a_share_model(endpoint=endpoint))["Deployment"]
    with pod(deployment, machine, Mounts(whole_model, certificate)) as started:
        client, stranger = Client(network, https=True, key=SECRET), Client(network, https=True)
        figures["seconds_to_serve"] = round(client.until_ready(started), 1)

        _answers(client)
        _closed_without_the_key(stranger)
        _fetches_no_media(client)

        # Two streams are under way when the end is asked for: both must end whole.
        began = [network.threads.submit(client.exchange, "/v1/chat/completions", _long(), "POST") for _ in range(2)]
        time.sleep(3)
        started.stop()
        ends = [future.result(timeout=300) for future in began]
        assert [status for status, _ in ends] == [200, 200]
        assert all(chunks(body)[-1]["choices"][0]["finish_reason"] == "length" for _, body in ends)
        asked_at = time.monotonic()
        assert started.ended(within=300) == 0
        figures["seconds_from_last_word_to_end"] = round(time.monotonic() - asked_at, 1)
        assert started.words.read_bytes() == b""
    assert network.packets == []
    figures["packets"] = len(network.packets)


def _long() -> dict:
    return chat(stream=True, ignore_eos=True, max_tokens=1500)


def _answers(client: Client) -> None:
    status, body = client.chat()
    assert (status, json.loads(body)["choices"][0]["message"]["role"]) == (200, "assistant")
    status, body = client.chat(stream=True, max_tokens=4)
    assert status == 200
    assert len(chunks(body)) >= 2
    assert client.ask("/v1/completions", {"model": chat()["model"], "prompt": "hello", "max_tokens": 2})[0] == 200
    assert client.ask("/v1/models")[0] == 200
    assert client.ask("/metrics")[0] == 200
    assert client.chat(model="another")[0] == 404
    assert client.chat(max_tokens=9000)[0] == 400


def _closed_without_the_key(stranger: Client) -> None:
    """The paths that answer are those of the document, and none of those that it says are guarded."""
    described = json.loads(stranger.ask("/openapi.json")[1])["paths"]
    open_paths = set()
    for path, methods in described.items():
        method = next(iter(methods)).upper()
        status, _ = stranger.ask(path.replace("{", "").replace("}", ""), None if method == "GET" else {}, method)
        if status != 401:
            open_paths.add(path)
    assert {path for path in described if path.startswith(GUARDED)}.isdisjoint(open_paths)
    section = DOCUMENT.read_text().partition("## Without the API key")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(/[a-z_.]+)`", "".join(re.findall(r"^\| (.*?) \|", section, re.MULTILINE))))
    assert open_paths <= documented, sorted(open_paths - documented)
    assert stranger.ask("/invocations", chat())[0] == 200
    assert "/invocations" in WITHOUT_A_KEY
    assert stranger.ask("/sleep", {})[0] == 404
    assert stranger.ask("/collective_rpc", {})[0] == 404


def _fetches_no_media(client: Client) -> None:
    for url in ("http://example.com/a.png", "http://NOWHERE.invalid/a.png", "http://media.invalid/a", "file:///tls/x"):
        image = {"type": "image_url", "image_url": {"url": url}}
        status, _ = client.chat(messages=[{"role": "user", "content": [image]}])
        assert status in (400, 422), (url, status)
