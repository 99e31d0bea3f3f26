"""The engine stand-in with SGLang's face, started with exactly what is rendered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermetic.engines.registry import launch
from hermetic.engines.sglang.tables import TABLES
from testbed.engine import SGLANG_TABLES, sglang_environment
from testbed.engine.local import running, unpack
from testbed.engine.stand_in.sglang_api import sglang_settings
from testbed.engine.stand_in.tables import table_of
from testbed.images.model import stage_model
from tests.renderings import RENDERINGS
from tests.sampled_groups import ENGINE_STAND_IN
from tests.scenarios import an_sglang_model, changed
from tests.snapshots import spec_of

pytestmark = ENGINE_STAND_IN


@pytest.mark.parametrize("release", TABLES.supported)
@pytest.mark.parametrize("shape", ["sglang", "sglang-guarded"])
def test_every_release_takes_what_is_rendered(release, shape):
    manifest = RENDERINGS[shape]
    engine = {**manifest["spec"]["engine"]["sglang"], "version": release}
    started = launch(spec_of(changed(manifest, engine={"sglang": engine})))
    arguments = [*(f"{flag}=x" for flag, _ in started.args_from_env), *started.args]
    settings = sglang_settings(["serve", "--model-type", "llm", *arguments], table_of(release, SGLANG_TABLES))
    assert settings.served_names == (manifest["spec"]["model"]["name"],)
    assert settings.host == "0.0.0.0"


@pytest.mark.parametrize("word", ["--no-such-flag", "--max_model_len=1", "--chunked-prefill-size=many"])
def test_what_the_release_refuses_ends_it_with_exit_code_2(word, capsys):
    with pytest.raises(SystemExit) as ended:
        sglang_settings(["serve", "--model-path", "/m", word], table_of("0.5.23", SGLANG_TABLES))
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.fixture
def server(tmp_path: Path) -> Any:
    stage_model(tmp_path / "model")
    arguments = list(launch(spec_of(an_sglang_model())).args)
    arguments[arguments.index("--model-path") + 1] = str(tmp_path / "model")
    arguments[arguments.index("--port") + 1] = "0"
    command_line = ["serve", "--api-key=client", "--admin-api-key=pod", *arguments]
    environment = {**sglang_environment("0.5.23"), "HOME": str(tmp_path)}
    with running(unpack(tmp_path / "root"), "usr/local/bin/sglang", command_line, environment) as started:
        yield started


def test_the_api_key_opens_inference_and_not_what_changes_the_engine(server):
    client = httpx.Client(base_url=f"http://127.0.0.1:{server.port}", trust_env=False)
    question = {"model": "meta/llama-3.1-8b-instruct", "messages": [{"role": "user", "content": "Hello"}]}
    headers = {key: {"Authorization": f"Bearer {key}"} for key in ("client", "pod", "other")}
    with client:
        assert [client.get(path).status_code for path in ("/health", "/ready", "/metrics")] == [200, 200, 200]
        for path in ("/v1/models", "/model_info"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=headers["client"]).status_code == 200
        assert client.post("/invocations", json=question).status_code == 401
        answer = client.post("/v1/chat/completions", json=question, headers=headers["client"])
        assert answer.json()["choices"][0]["message"]["content"]
        status_codes = [client.post("/update_weights_from_disk", headers=headers[key]).status_code for key in headers]
        assert status_codes == [401, 200, 401]
        shown = client.get("/stand-in/arguments", headers=headers["client"]).json()
    assert json.dumps(shown["parsed"]).count("(set)") == 2
