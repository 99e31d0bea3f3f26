"""Kubernetes Events: what `kubectl describe` shows of what the operator decided.

When something is worth an Event is the caller's decision (once per condition change); here it is given the shape the
API server accepts, said once, and kept away from the reconcile: an Event that cannot be posted is a log line.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, Protocol

import structlog

from hermetic.errors import HermeticError
from hermetic.kinds import EVENT
from hermetic.ports import Clock, Manifest

REPORTING_CONTROLLER = "hermetic.dev/operator"
SAME_THING_FOR = 600.0
REMEMBERED = 4096
NOTE_BYTES = 1024
NAME_LENGTH = 253
INSTANCE_LENGTH = 128
ELLIPSIS = "…"

log = structlog.get_logger(__name__)


class EventApi(Protocol):
    """The one verb of `ports.KubeApi` that is needed here."""

    async def create_event(self, event: Manifest) -> None:
        """POST one events.k8s.io/v1 Event."""
        ...


class EventRecorder:
    """Posts Events in the name of this pod; the same (object, reason, note) once in ten minutes.

    `on_failure` is called with the error's code ("HRM-KUB-403") for every Event that was not posted.
    """

    def __init__(
        self, api: EventApi, *, instance: str, clock: Clock, on_failure: Callable[[str], None] | None = None
    ) -> None:
        self._api = api
        self._instance = instance[:INSTANCE_LENGTH]
        self._clock = clock
        self._on_failure = on_failure or (lambda _code: None)
        self._said: OrderedDict[tuple[str, str, int], float] = OrderedDict()

    async def record(
        self, regarding: Manifest, *, severity: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        """Say `note` about the live object `regarding` (its metadata must hold the uid).

        `reason` is CamelCase, `action` names what was done or tried ("Apply", "Gate"); both at most 128 characters.
        """
        key = (regarding["metadata"]["uid"], reason, hash(note))
        if self._said_lately(key):
            return
        self._said[key] = self._clock.monotonic()
        event = self._event(regarding) | {"type": severity, "reason": reason, "action": action, "note": shortened(note)}
        try:
            await self._api.create_event(event)
        except HermeticError as error:
            # Nothing depends on an Event: a reconcile that did its work must not fail, or be repeated, for one.
            self._said.pop(key, None)
            self._on_failure(error.code)
            log.warning("event not posted", reason=reason, regarding=event["metadata"]["name"], because=error.message)

    def _said_lately(self, key: tuple[str, str, int]) -> bool:
        """Whether this was said within ten minutes; forgets what is older, and the oldest when there is too much."""
        horizon = self._clock.monotonic() - SAME_THING_FOR
        while self._said and (next(iter(self._said.values())) <= horizon or len(self._said) >= REMEMBERED):
            self._said.popitem(last=False)
        return key in self._said

    def _event(self, regarding: Manifest) -> Manifest:
        metadata = regarding["metadata"]
        namespace = metadata.get("namespace", "")
        suffix = f".{secrets.token_hex(8)}"
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "name": metadata["name"][: NAME_LENGTH - len(suffix)] + suffix,
                "namespace": namespace or "default",  # where the API server wants those of cluster-scoped objects
            },
            "eventTime": self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": REPORTING_CONTROLLER,
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": regarding["apiVersion"],
                "kind": regarding["kind"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
            | ({"namespace": namespace} if namespace else {}),
        }


def shortened(note: str) -> str:
    """The note in at most 1024 bytes of UTF-8, no character cut in half."""
    whole = note.encode(errors="replace")
    if len(whole) <= NOTE_BYTES:
        return whole.decode()
    return whole[: NOTE_BYTES - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS
