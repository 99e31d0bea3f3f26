"""What may go wrong between a stand-in and its caller, and with which request: plain data.

    Fault(Status(503, retry_after=1), path=r"/subnets/", times=2)
    Fault(Edit("value.*.properties.addressPrefix", 7), path=r"/subnets\\?")
    Fault(Truncate(), path=r"ResourceGraph", skip=1)

Statuses, resets and delays come before the estate is asked; edits, truncation and page faults apply to its answer.
"""

from __future__ import annotations

import copy
import re
import threading
from dataclasses import dataclass, field
from typing import Any

Body = Any


@dataclass(frozen=True)
class Status:
    """An error status in ARM's form, with Retry-After when it says so."""

    status: int
    retry_after: int | None = None
    code: str = "InternalServerError"


@dataclass(frozen=True)
class Slow:
    """The answer comes `seconds` later."""

    seconds: float


@dataclass(frozen=True)
class Reset:
    """The connection is reset in the middle of the body."""


@dataclass(frozen=True)
class Truncate:
    """A whole HTTP answer whose JSON breaks off: `keep` is the share of its bytes that is sent."""

    keep: float = 0.5


@dataclass(frozen=True)
class NotJson:
    """Status 200 with the page of some proxy in between."""

    text: str = "<html><body>Sign in to continue</body></html>"


@dataclass(frozen=True)
class EndlessPages:
    """The nextLink of every page leads to the page itself."""


@dataclass(frozen=True)
class ForeignNextLink:
    """The nextLink leads to another host."""

    host: str = "https://management.invalid"


@dataclass(frozen=True)
class DuplicateRows:
    """Every row of the list comes twice."""


@dataclass(frozen=True)
class Edit:
    """Puts `value` at a dotted path of the body: a wrong type, a null for a list, an unknown word, an empty list.

    `*` stands for each of a list; a number for one of it. Where the path does not exist, its last step is created.
    """

    path: str
    value: Any


@dataclass(frozen=True)
class Remove:
    """Takes what is at a dotted path of the body away, such as `value` of a list."""

    path: str


@dataclass(frozen=True)
class NeverEnds:
    """The long-running action that the request starts stays in progress for ever."""


@dataclass(frozen=True)
class EndsFailed:
    """The long-running action that the request starts ends as failed."""

    code: str = "InternalServerError"


Action = (
    Status | Slow | Reset | Truncate | NotJson | EndlessPages | ForeignNextLink | DuplicateRows | Edit | Remove
    | NeverEnds | EndsFailed
)  # fmt: skip


@dataclass
class Fault:
    """An action and the requests that it applies to.

    path: regular expression, letter case apart, found anywhere in the path with its query. methods: all when empty.
    skip: how many matching requests go unharmed first. times: how often at most, for ever when None. hits: so far.
    """

    action: Action
    path: str = ""
    methods: tuple[str, ...] = ()
    times: int | None = None
    skip: int = 0
    hits: int = 0
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def applies_to(self, method: str, target: str) -> bool:
        """Decides, and counts, for one request."""
        if self.methods and method not in self.methods:
            return False
        if not re.search(self.path, target, re.IGNORECASE):
            return False
        with self._lock:
            self._seen += 1
            if self._seen <= self.skip or (self.times is not None and self.hits >= self.times):
                return False
            self.hits += 1
            return True


def spoil(body: Body, action: Action, self_link: str) -> Body:
    """The body after an edit or a page fault; other actions leave it alone."""
    match action:
        case Edit(path, value):
            return _edited(copy.deepcopy(body), path.split("."), value)
        case Remove(path):
            return _removed(copy.deepcopy(body), path.split("."))
        case EndlessPages():
            return {**body, "nextLink": self_link}
        case ForeignNextLink(host):
            return {**body, "nextLink": f"{host}/next?%24skiptoken=1"}
        case DuplicateRows():
            rows = "data" if "data" in body else "value"
            return {**body, rows: [row for row in body[rows] for _ in range(2)]}
    return body


def _edited(node: Body, steps: list[str], value: Any) -> Body:
    if not steps:
        return copy.deepcopy(value)
    step, remaining_steps = steps[0], steps[1:]
    if isinstance(node, list):
        chosen = range(len(node)) if step == "*" else [int(step)]
        for number in chosen:
            if number < len(node):
                node[number] = _edited(node[number], remaining_steps, value)
    elif isinstance(node, dict) and (step in node or not remaining_steps):
        node[step] = _edited(node.get(step), remaining_steps, value)
    return node


def _removed(node: Body, steps: list[str]) -> Body:
    step, remaining_steps = steps[0], steps[1:]
    if isinstance(node, list):
        for number, item in enumerate(node):
            if step in {"*", str(number)}:
                _removed(item, remaining_steps)
    elif isinstance(node, dict) and step in node:
        if remaining_steps:
            _removed(node[step], remaining_steps)
        else:
            del node[step]
    return node
