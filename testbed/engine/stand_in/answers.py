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


def _prompt(document: dict[str, Any], *, chat: bool) -> str:
    field = "messages" if chat else "prompt"
    value = document.get(field)
    if not value:
        raise Refused(400, "BadRequestError", f"1 validation error: field required: {field}")
    if not chat:
        return value if isinstance(value, str) else json.dumps(value)
    if not (isinstance(value, list) and all(isinstance(message, dict) for message in value)):
        raise Refused(400, "BadRequestError", "1 validation error: messages: Input should be a valid list")
    return " ".join(str(message.get("content", "")) for message in value)


def _reply(document: dict[str, Any], model: str, prompt: str, *, chat: bool, limit: int) -> tuple[tuple[str, ...], str]:
    """The words of the answer, a token each, and why it ends there."""
    digest = hashlib.sha256(prompt.encode()).hexdigest()[:8]
    sentence = f"This is the {NAME}, not a language model: it serves {model} and was asked {digest}."
    first, *later_words = sentence.split()
    tokens_of_answer = [first, *(f" {word}" for word in later_words)]
    tokens = len(prompt.split())
    most_tokens = (
        document.get("max_completion_tokens")
        or document.get("max_tokens")
        or (None if chat else COMPLETION_DEFAULT_TOKENS)
    )
    if most_tokens is not None and most_tokens < 1:
        raise Refused(400, "BadRequestError", f"max_tokens must be at least 1, got {most_tokens}.")
    if tokens + (most_tokens or 0) > limit:
        raise Refused(
            400,
            "BadRequestError",
            f"This model's maximum context length is {limit} tokens. However, you requested {most_tokens or 0} output "
            f"tokens and your prompt contains {tokens} input tokens.",
        )
    if most_tokens is None or (most_tokens >= len(tokens_of_answer) and not document.get("ignore_eos")):
        return tuple(tokens_of_answer), "stop"
    return tuple(itertools.islice(itertools.cycle(tokens_of_answer), most_tokens)), "length"


def whole_answer(request: Asked) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    text = "".join(request.words)
    choice: dict[str, Any] = {"text": text}
    if request.chat:
        calls = {"tool_calls": list(request.tool_calls)} if request.tool_calls else {}
        content = None if request.tool_calls else text
        choice = {"message": {"role": "assistant", "content": content, **calls, "reasoning": request.reasoning}}
    return {
        "id": request.identity,
        "object": "chat.completion" if request.chat else "text_completion",
        "created": request.created,
        "model": request.model,
        "system_fingerprint": NAME,
        "choices": [{"index": 0, **choice, "logprobs": None, "finish_reason": request.finish_reason}],
        "usage": request.usage,
    }


def first_event(request: Asked) -> Iterator[bytes]:
    """A chat stream opens with the role alone."""
    if request.chat:
        yield _event(request, {"delta": {"role": "assistant", "content": ""}}, None)
    if request.reasoning is not None:
        yield _event(request, {"delta": {"reasoning": request.reasoning}}, None)


def word_event(request: Asked, word: str) -> bytes:
    return _event(request, {"delta": {"content": word}} if request.chat else {"text": word}, None)


def tool_call_events(request: Asked) -> Iterator[bytes]:
    for index, call in enumerate(request.tool_calls):
        yield _event(request, {"delta": {"tool_calls": [{"index": index, **call}]}}, None)


def last_events(request: Asked) -> Iterator[bytes]:
    yield _event(request, {"delta": {}} if request.chat else {"text": ""}, request.finish_reason)
    if request.usage_in_stream:
        yield _line({**_chunk(request), "choices": [], "usage": request.usage})
    yield b"data: [DONE]\n\n"


def _event(request: Asked, part: dict[str, Any], reason: str | None) -> bytes:
    return _line({**_chunk(request), "choices": [{"index": 0, **part, "logprobs": None, "finish_reason": reason}]})


def _chunk(request: Asked) -> dict[str, Any]:
    return {
        "id": request.identity,
        "object": "chat.completion.chunk" if request.chat else "text_completion",
        "created": request.created,
        "model": request.model,
    }


def _line(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
