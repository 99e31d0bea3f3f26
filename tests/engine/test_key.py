"""What vLLM's own check of the key lets through below a --root-path, against what the gate refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from hermetic.engines.allowed_values import objection

ASKING = """
import json, sys
from fastapi import FastAPI
from starlette.testclient import TestClient
from vllm.entrypoints.serve.middleware.authenticate import AuthenticationMiddleware

def status(prefix, path):
    app = FastAPI()
    app.post(path)(lambda: {})
    app.root_path = prefix
    app.add_middleware(AuthenticationMiddleware, tokens=["secret"])
    return TestClient(app).post(path).status_code

prefixes, paths = json.load(sys.stdin)
print(json.dumps({prefix: [status(prefix, path) for path in paths] for prefix in prefixes}))
"""
PATHS = ("/v1/chat/completions", "/v1/completions", "/v2/embed", "/inference/v1/generate", "/cohere/v2/chat")
PREFIXES = (
    "", "/", "/v", "/v1", "/v1/", "/v1/c", "/v1/chat", "/v2", "/i", "/inference", "/inference/v", "/c", "/cohere/",
    "/models", "/models/llama", "/vllm", "v1", "/V1", "/v1x",
)  # fmt: skip


def test_no_root_path_that_is_accepted_answers_without_the_key(environment: Path) -> None:
    ran = subprocess.run(
        [environment / "bin" / "python", "-c", ASKING],
        input=json.dumps([PREFIXES, PATHS]),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    answers = json.loads(ran.stdout.splitlines()[-1])
    opened = {prefix for prefix, codes in answers.items() if 200 in codes}
    assert "/v" in opened, "vLLM has changed: the rule may be needless"
    assert {prefix for prefix in opened if not objection(prefix, "prefix", ())} == set()
