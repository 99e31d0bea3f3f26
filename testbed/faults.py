"""What a fault proxy may do to a request, and to which one: plain data, no I/O.

A fault is an action and a description of the requests that it applies to:

    Fault(Answer(429, retry_after=1), methods=("PATCH",), path=r"/deployments/", times=3)
    Fault(DropAfter(), path=r"/services", probability=0.2)

Chance is drawn from the seed, the request and how often it came, not from the order of arrival: two runs with one
seed apply to the same requests however threads interleave.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qs, urlsplit

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# they carry a verb that writes and store nothing
REVIEWS = re.compile(r"/(authorization|authentication)\.k8s\.io/")
REASONS = {
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True)
class Request:
    """One request as it arrives. `target` is the path with its query."""

    method: str
    target: str
    user_agent: str = ""

    @cached_property
    def path(self) -> str:
        return urlsplit(self.target).path

    @cached_property
    def is_watch(self) -> bool:
        return parse_qs(urlsplit(self.target).query).get("watch", ["false"])[-1] in {"true", "1"}

    @property
    def is_write(self) -> bool:
        return self.method in WRITES and not REVIEWS.search(self.path)

    @property
    def kind(self) -> str:
        """GET, WATCH, POST, PUT, PATCH or DELETE."""
        return "WATCH" if self.is_watch else self.method

    @cached_property
    def resource(self) -> str:
        """`pods`, `pods/status`, `deployments` ...; the path itself when it is not a resource's."""
        match [part for part in self.path.split("/") if part]:
            case ["api", _, *rest] | ["apis", _, _, *rest] if rest:
                pass
            case _:
                return self.path
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
            rest = rest[2:]
        return "/".join((rest[0], *rest[2:]))


@dataclass(frozen=True)
class Delay:
    """The request waits before it goes on to the API server. math.inf is a server that never answers."""

    seconds: float


@dataclass(frozen=True)
class Answer:
    """The proxy answers in the API server's stead and form; the request goes no further."""

    status: int
    message: str = "injected by the fault proxy"
    retry_after: int | None = None

    def body(self) -> bytes:
        details = {} if self.retry_after is None else {"details": {"retryAfterSeconds": self.retry_after}}
        return json.dumps({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": REASONS.get(self.status, "Unknown"),
            "code": self.status,
            **details,
        }).encode()  # fmt: skip


@dataclass(frozen=True)
class DropBefore:
    """The connection breaks and the API server has seen nothing."""


@dataclass(frozen=True)
class DropAfter:
    """The connection breaks after the API server did what was asked: the client cannot know."""


@dataclass(frozen=True)
class CutWatch:
    """A watch breaks `seconds` after it began; with `error`, it ends after an ERROR event of this HTTP status."""

    seconds: float = 0.0
    error: int = 0


def error_event(status: int) -> bytes:
    """The line in which an API server ends a watch: 410 for one that is too old, 5xx for its own errors."""
    return b'{"type":"ERROR","object":' + Answer(status).body() + b"}\n"


Action = Delay | Answer | DropBefore | DropAfter | CutWatch


@dataclass
class Fault:
    """An action and the requests that it applies to.

    methods: of Request.kind, all when empty; WATCH is one of its own. path: regular expression, found anywhere in the
    path with its query. times: how often at most, for ever when None. hits: how often so far.
    """

    action: Action
    methods: tuple[str, ...] = ()
    path: str = ""
    times: int | None = None
    probability: float = 1.0
    hits: int = 0
    _drawn: Counter[tuple[str, str]] = field(default_factory=Counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def applies_to(self, request: Request, seed: str) -> bool:
        """Decides, and counts, for one request."""
        if self.methods and request.kind not in self.methods:
            return False
        if isinstance(self.action, CutWatch) and not request.is_watch:
            return False
        if not re.search(self.path, request.target):
            return False
        with self._lock:
            if self.times is not None and self.hits >= self.times:
                return False
            if self._chance(request, seed) >= self.probability:
                return False
            self.hits += 1
            return True

    def _chance(self, request: Request, seed: str) -> float:
        self._drawn[request.method, request.path] += 1
        occurrence = self._drawn[request.method, request.path]
        return random.Random(f"{seed} {request.method} {request.path} {occurrence}").random()


@dataclass
class WriteMark:
    """A callback at the n-th write, counted from one over the writes whose path matches."""

    number: int
    path: str
    after: bool
    seen: int = 0

    def reached(self, request: Request) -> bool:
        """Counts; true exactly once, for the n-th."""
        if not request.is_write or not re.search(self.path, request.target):
            return False
        self.seen += 1
        return self.seen == self.number
