"""What `vllm serve --runner pooling` serves in place of completions: embeddings, and scores of documents.

Sources: vllm/entrypoints/pooling/embed/protocol.py and scoring/protocol.py of 0.33.0.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from typing import Any

from .engine import Refused
from .settings import Settings
from .web import Exchange, Routes

DIMENSIONS = 16


class Pooling:
    """The routes of a pooling model."""

    def __init__(self, settings: Settings) -> None:
        self._names = settings.served_names

    def routes(self) -> Routes:
        scores = {("POST", path): self.rerank for path in ("/rerank", "/v1/rerank", "/v2/rerank")}
        return {("POST", "/v1/embeddings"): self.embed, **scores}

    def embed(self, exchange: Exchange) -> None:
        """A vector of length 1 for each input, the same for the same text."""
        try:
            request = self._request(exchange.body, "input")
            vectors = [_vector(text) for text in _texts(request["input"])]
        except Refused as refused:
            exchange.send_json(refused.status, refused.body)
            return
        items = [{"index": i, "object": "embedding", "embedding": vector} for i, vector in enumerate(vectors)]
        usage = {"prompt_tokens": _tokens(request["input"]), "total_tokens": _tokens(request["input"])}
        head = {"id": "embd-stand-in", "object": "list", "created": int(time.time()), "model": self._names[0]}
        exchange.send_json(200, {**head, "data": items, "usage": {**usage, "completion_tokens": 0}})

    def rerank(self, exchange: Exchange) -> None:
        """The documents, the best first: by the words that they share with the query."""
        try:
            request = self._request(exchange.body, "query", "documents")
        except Refused as refused:
            exchange.send_json(refused.status, refused.body)
            return
        query = frozenset(str(request["query"]).lower().split())
        scored = sorted((-_share(query, text), i, text) for i, text in enumerate(_texts(request["documents"])))
        results = [
            {"index": i, "document": {"text": text}, "relevance_score": -score}
            for score, i, text in scored[: request.get("top_n") or None]
        ]
        tokens = _tokens(request["documents"])
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        exchange.send_json(200, {"id": "score-stand-in", "model": self._names[0], "usage": usage, "results": results})

    def _request(self, body: bytes, *fields: str) -> dict[str, Any]:
        try:
            document = json.loads(body)
        except ValueError as error:
            raise Refused(400, "BadRequestError", f"JSON decode error: {error}") from error
        missing = [field for field in fields if not document.get(field)]
        if missing:
            raise Refused(400, "BadRequestError", f"1 validation error: field required: {missing[0]}")
        if (model := document.get("model") or self._names[0]) not in self._names:
            raise Refused(404, "NotFoundError", f"The model `{model}` does not exist.")
        return dict(document)


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(text) for text in value]


def _tokens(value: Any) -> int:
    return sum(max(1, len(text.split())) for text in _texts(value))


def _vector(text: str) -> list[float]:
    numbers = [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


def _share(query: frozenset[str], text: str) -> float:
    return len(query.intersection(text.lower().split())) / max(1, len(query))
