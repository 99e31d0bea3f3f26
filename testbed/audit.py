"""The API server's audit log: who asked for what, counted by the API server itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Audited:
    """One finished request. `resource` is `pods`, `pods/status`, ...; `namespace` and `name` may be empty."""

    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    status: int
    user_agent: str

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES


def write_policy(path: Path, users: tuple[str, ...]) -> Path:
    """A policy that records who, what and the answer's status for these users only; for every user when empty."""
    recorded = {"level": "Metadata", "omitStages": ["RequestReceived", "ResponseStarted"]}
    rules = [recorded | {"users": list(users)}, {"level": "None"}] if users else [recorded]
    path.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}, indent=1))
    return path


def requests(log: Path, offset: int = 0) -> Iterator[Audited]:
    """The requests recorded from byte `offset` on; take `log.stat().st_size` before an act to see only its traces.

    A watch is recorded when it ends. An unfinished last line is left for the next reader.
    """
    with log.open("rb") as lines:
        if offset:
            # the size may have been taken in the middle of a line: that request was there before the act
            lines.seek(offset - 1)
            lines.readline()
        for line in lines:
            if line.endswith(b"\n"):
                yield _audited(json.loads(line))


def _audited(event: dict[str, object]) -> Audited:
    target, user, status = (
        value if isinstance(value := event.get(field), dict) else {}
        for field in ("objectRef", "user", "responseStatus")
    )
    resource = "/".join(filter(None, (target.get("resource"), target.get("subresource")))) or str(event["requestURI"])
    return Audited(
        user=user.get("username", ""),
        verb=str(event["verb"]),
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        status=status.get("code", 0),
        user_agent=str(event.get("userAgent", "")),
    )
