"""The routes that the APIs share: models, completions, and what only a stand-in reports about itself."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Iterator

from . import NAME
from .answers import Asked, first_event, last_events, read_request, tool_call_events, whole_answer, word_event
from .engine import Aborted, Engine, Phase, Refused
from .settings import Settings
from .web import Exchange, Route, Routes

GUARDED = ("/v1", "/v2", "/inference", "/cohere")
# Of SGLang, whose other key may be asked for there.
ADMINISTERED = ("/update_weights_from_disk",)
SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def guard_of(settings: Settings) -> Route | None:
    """The engine's key check. vLLM's: paths under /v1, /v2, /inference and /cohere only, all else stays open."""
    if not settings.api_keys:
        return None
    accepted = [hashlib.sha256(key.encode()).digest() for key in settings.api_keys]

    def check(exchange: Exchange) -> None:
        scheme, _, key = exchange.headers.get("Authorization", "").partition(" ")
        key_digest = hashlib.sha256(key.encode()).digest()
        matches = [hmac.compare_digest(key_digest, accepted_digest) for accepted_digest in accepted]
        opened = settings.open_paths
        by_path = exchange.route.startswith(GUARDED) if opened is None else not exchange.route.startswith(opened)
        guarded = by_path and exchange.route not in ADMINISTERED and exchange.command != "OPTIONS"
        if guarded and not (scheme.lower() == "bearer" and any(matches)):
            exchange.send_json(401, {"error": "Unauthorized"})

    return check


class OpenAi:
    """What is served under /v1."""

    def __init__(self, settings: Settings, engine: Engine, max_model_len: int) -> None:
        self._settings = settings
        self._engine = engine
        self._limit = max_model_len
        self._since = int(time.time())

    def routes(self) -> Routes:
        return {
            ("GET", "/v1/models"): self.models,
            ("POST", "/v1/chat/completions"): lambda exchange: self.complete(exchange, chat=True),
            ("POST", "/v1/completions"): lambda exchange: self.complete(exchange, chat=False),
            ("GET", "/stand-in/arguments"): self.arguments,
            ("GET", "/stand-in/environment"): self.environment,
        }

    def metrics(self, exchange: Exchange) -> None:
        """The page of metrics; each engine has it at a path of its own."""
        exchange.send_bytes(200, self._engine.page().encode(), "text/plain; version=0.0.4; charset=utf-8")

    def models(self, exchange: Exchange) -> None:
        if self._engine.phase is Phase.LOADING:
            exchange.send_json(503, Refused(503, "ServiceUnavailableError", "The engine is not ready yet.").body)
            return
        cards = [
            {
                "id": name,
                "object": "model",
                "created": self._since,
                "owned_by": "vllm",
                "root": self._settings.model,
                "parent": None,
                "max_model_len": self._limit,
            }
            for name in self._settings.served_names
        ]
        exchange.send_json(200, {"object": "list", "data": cards})

    def arguments(self, exchange: Exchange) -> None:
        """How the process was started, and as whom."""
        settings = self._settings
        exchange.send_json(
            200,
            {
                "stand_in": NAME,
                "product": settings.product,
                "engine_version": settings.engine_version,
                "argv": list(settings.argv),
                "parsed": dict(settings.parsed),
                "uid": os.getuid(),
                "gid": os.getgid(),
                "groups": os.getgroups(),
            },
        )

    def environment(self, exchange: Exchange) -> None:
        """The environment; of what looks like a secret only that it is there."""
        shown = {
            name: "(set)" if any(word in name.upper() for word in SECRET_WORDS) else value
            for name, value in sorted(os.environ.items())
        }
        exchange.send_json(200, shown)

    def complete(self, exchange: Exchange, *, chat: bool) -> None:
        """One completion, whole or streamed. A stream that the engine leaves is cut off, without [DONE]."""
        try:
            request = read_request(exchange.body, self._settings, chat=chat, limit=self._limit)
            with self._engine.request():
                self._deliver(exchange, request)
        except Refused as refused:
            exchange.send_json(refused.status, refused.body)
        except Aborted:
            self._engine.metrics.add("request_success", label="abort")
            exchange.close_connection = True
            if not exchange.status:
                message = "The server had an error while processing your request."
                exchange.send_json(500, Refused(500, "InternalServerError", message).body)

    def _deliver(self, exchange: Exchange, request: Asked) -> None:
        if request.stream:
            exchange.send_events(self._events(request))
        else:
            for _ in self._words(request):
                continue
            exchange.send_json(200, whole_answer(request))

    def _events(self, request: Asked) -> Iterator[bytes]:
        yield from first_event(request)
        for word in self._words(request, idle=self._settings.keep_alive_comment_seconds):
            yield b": keep-alive\n\n" if word is None else word_event(request, word)
        yield from tool_call_events(request)
        yield from last_events(request)

    def _words(self, request: Asked, idle: float = 0.0) -> Iterator[str | None]:
        """The words at the engine's pace, observed as vLLM observes tokens."""
        metrics, began = self._engine.metrics, time.monotonic()
        last = began
        metrics.add("prompt_tokens", request.prompt_tokens)
        metrics.add("prefix_cache_queries", request.prompt_tokens)
        metrics.observe("request_queue_time_seconds", 0.0)
        for word in self._engine.paced(list(request.words), idle):
            now = time.monotonic()
            if word is not None:
                first = last == began
                metrics.observe("time_to_first_token_seconds" if first else "inter_token_latency_seconds", now - last)
                metrics.add("generation_tokens")
                metrics.observe("iteration_tokens_total", 1)
                last = now
            yield word
        seconds = time.monotonic() - began
        for name in ("e2e_request_latency_seconds", "request_inference_time_seconds", "request_decode_time_seconds"):
            metrics.observe(name, seconds)
        metrics.observe("request_prefill_time_seconds", 0.0)
        metrics.observe("request_time_per_output_token_seconds", seconds / max(1, len(request.words)))
        metrics.add("request_success", label=request.finish_reason)
