"""OpenAI requests and answers: the same words for the same request, saying that no model computed them."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import NAME
from .engine import Refused
from .settings import Settings
from .tool_calls import tool_calls_of

COMPLETION_DEFAULT_TOKENS = 16
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Asked:
    """One request as far as the stand-in reads it."""

    chat: bool
    model: str
    prompt_tokens: int
    words: tuple[str, ...]
    finish_reason: str
    stream: bool
    usage_in_stream: bool
    identity: str
    created: int
    tool_calls: tuple[dict[str, Any], ...] = ()
    reasoning: str | None = None

    @property
    def usage(self) -> dict[str, int]:
        completion = len(self.words)
        return {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + completion,
            "completion_tokens": completion,
        }


def read_request(body: bytes, settings: Settings, *, chat: bool, limit: int) -> Asked:
    """The request in `body`. Raises Refused with vLLM's status: 400 what is malformed, 404 a model not served here."""
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Refused(400, "BadRequestError", f"JSON decode error: {error}") from error
    if not isinstance(document, dict):
        raise Refused(400, "BadRequestError", "Input should be a valid dictionary")
    served, flags = settings.served_names, settings.parsed
    model = document.get("model") or served[0]
    if model not in served:
        raise Refused(404, "NotFoundError", f"The model `{model}` does not exist.")
    prompt = _prompt(document, chat=chat)
    words, reason = _reply(document, model, prompt, chat=chat, limit=limit)
    calls = tool_calls_of(document, flags) if chat else ()
    if calls:
        words, reason = (), "tool_calls"
    kind = "chatcmpl" if chat else "cmpl"
    return Asked(
        chat=chat,
        model=model,
        prompt_tokens=max(1, len(prompt.split())),
        words=words,
        finish_reason=reason,
        stream=bool(document.get("stream")),
        usage_in_stream=bool((document.get("stream_options") or {}).get("include_usage")),
        identity=f"{kind}-{next(_numbers):08d}",
        created=int(time.time()),
        tool_calls=calls,
        reasoning=f"The {NAME} does not reason." if chat and flags.get("reasoning-parser") else None,
    )


def _prompt(given: dict[str, Any], *, chat: bool) -> str:
    field = "messages" if chat else "prompt"
    value = given.get(field)
    if not value:
        raise Refused(400, "BadRequestError", f"1 validation error: field required: {field}")
    if not chat:
        return value if isinstance(value, str) else json.dumps(value)
    if not (isinstance(value, list) and all(isinstance(message, dict) for message in value)):
        raise Refused(400, "BadRequestError", "1 validation error: messages: Input should be a valid list")
    return " ".join(str(message.get("content", "")) for message in value)


def _reply(given: dict[str, Any], model: str, prompt: str, *, chat: bool, limit: int) -> tuple[tuple[str, ...], str]:
    """The words of the answer, a token each, and why it ends there."""
    digest = hashlib.sha256(prompt.encode()).hexdigest()[:8]
    sentence = f"This is the {NAME}, not a language model: it serves {model} and was asked {digest}."
    first, *rest = sentence.split()
    words = [first, *(f" {word}" for word in rest)]
    tokens = len(prompt.split())
    wanted = (
        given.get("max_completion_tokens") or given.get("max_tokens") or (None if chat else COMPLETION_DEFAULT_TOKENS)
    )
    if wanted is not None and wanted < 1:
        raise Refused(400, "BadRequestError", f"max_tokens must be at least 1, got {wanted}.")
    if tokens + (wanted or 0) > limit:
        raise Refused(
            400,
            "BadRequestError",
            f"This model's maximum context length is {limit} tokens. However, you requested {wanted or 0} output "
            f"tokens and your prompt contains {tokens} input tokens.",
        )
    if wanted is None or (wanted >= len(words) and not given.get("ignore_eos")):
        return tuple(words), "stop"
    return tuple(itertools.islice(itertools.cycle(words), wanted)), "length"


def whole_answer(asked: Asked) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    text = "".join(asked.words)
    choice: dict[str, Any] = {"text": text}
    if asked.chat:
        calls = {"tool_calls": list(asked.tool_calls)} if asked.tool_calls else {}
        content = None if asked.tool_calls else text
        choice = {"message": {"role": "assistant", "content": content, **calls, "reasoning": asked.reasoning}}
    return {
        "id": asked.identity,
        "object": "chat.completion" if asked.chat else "text_completion",
        "created": asked.created,
        "model": asked.model,
        "system_fingerprint": NAME,
        "choices": [{"index": 0, **choice, "logprobs": None, "finish_reason": asked.finish_reason}],
        "usage": asked.usage,
    }


def first_event(asked: Asked) -> Iterator[bytes]:
    """A chat stream opens with the role alone."""
    if asked.chat:
        yield _event(asked, {"delta": {"role": "assistant", "content": ""}}, None)
    if asked.reasoning is not None:
        yield _event(asked, {"delta": {"reasoning": asked.reasoning}}, None)


def word_event(asked: Asked, word: str) -> bytes:
    return _event(asked, {"delta": {"content": word}} if asked.chat else {"text": word}, None)


def tool_call_events(asked: Asked) -> Iterator[bytes]:
    for index, call in enumerate(asked.tool_calls):
        yield _event(asked, {"delta": {"tool_calls": [{"index": index, **call}]}}, None)


def last_events(asked: Asked) -> Iterator[bytes]:
    yield _event(asked, {"delta": {}} if asked.chat else {"text": ""}, asked.finish_reason)
    if asked.usage_in_stream:
        yield _line({**_chunk(asked), "choices": [], "usage": asked.usage})
    yield b"data: [DONE]\n\n"


def _event(asked: Asked, part: dict[str, Any], reason: str | None) -> bytes:
    return _line({**_chunk(asked), "choices": [{"index": 0, **part, "logprobs": None, "finish_reason": reason}]})


def _chunk(asked: Asked) -> dict[str, Any]:
    return {
        "id": asked.identity,
        "object": "chat.completion.chunk" if asked.chat else "text_completion",
        "created": asked.created,
        "model": asked.model,
    }


def _line(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
