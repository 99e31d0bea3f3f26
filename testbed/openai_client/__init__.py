"""The real client of OpenAI for Python, in an environment of its own: what most programs ask a model with."""

from __future__ import annotations

from pathlib import Path

from testbed.locked_environment import LockedEnvironment

ENVIRONMENT = LockedEnvironment(
    "openai-client", Path(__file__).resolve().parent / "requirements.lock", "10 MB to fetch, seconds"
)
# One base URL for all models: the header says to a gateway which of them a request is for.
ASK_BY_HEADER = """
import sys
from openai import OpenAI

base_url, *models = sys.argv[1:]
for model in models:
    client = OpenAI(base_url=base_url, api_key="none", default_headers={"x-gateway-model-name": model}, max_retries=0)
    question = [{"role": "user", "content": "Who are you?"}]
    answer = client.chat.completions.create(model=model, messages=question)
    stream = client.chat.completions.create(model=model, messages=question, stream=True)
    words = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    print(answer.model, [card.id for card in client.models.list()], words == answer.choices[0].message.content)
"""


def python() -> Path:
    """The interpreter that has the client; installs it when it is not there yet."""
    return ENVIRONMENT.installed() / "bin" / "python"
