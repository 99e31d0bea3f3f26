"""Records and posts the Kubernetes Events that `kubectl describe` shows.

The caller decides what is an Event (once per condition change). The recorder brings it into the form that the API
server accepts, drops repetitions, and posts it from a task of its own, so that no reconcile waits or fails for it. An
Event that cannot be posted is logged and counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, NoReturn, Protocol

import structlog

from hermetic.errors import HermeticError, NotLeading
from hermetic.kinds import EVENT
from hermetic.ports import Clock, Manifest

REPORTING_CONTROLLER = "hermetic.dev/operator"
SAME_THING_FOR = 600.0
REMEMBERED = 4096
MOST_WAITING = 512
"""Limit of waiting Events: about 1 MiB of memory, and what a busy API server accepts in ten seconds."""
QUEUE_FULL, CUT_OFF, DEFECT = "QueueFull", "CutOff", "Defect"
"""Why an Event was lost, in addition to the codes of errors."""
NOTE_BYTES = 1024
NAME_LENGTH = 253
INSTANCE_LENGTH = 128
ELLIPSIS = "…"

log = structlog.get_logger(__name__)


class EventApi(Protocol):
    """The one verb of `ports.KubeApi` that the recorder needs."""

    async def create_event(self, event: Manifest) -> None:
        """POST one events.k8s.io/v1 Event."""
        ...


EventKey = tuple[str, str, int]  # (uid, reason, hash of the note)


class EventRecorder:
    """Posts Events with this pod as reporting instance, one at a time; the same (object, reason, note) once in 10 min.

    `record` returns at once, and `run` posts. `on_loss` is called for every Event that was not posted, with the error's
    code ("HRM-KUB-403") or QUEUE_FULL, CUT_OFF or DEFECT.
    """

    def __init__(
        self, api: EventApi, *, instance: str, clock: Clock, on_loss: Callable[[str], None] | None = None
    ) -> None:
        self._api = api
        self._instance = instance[:INSTANCE_LENGTH]
        self._clock = clock
        self._on_loss = on_loss or (lambda _why: None)
        self._recorded: OrderedDict[EventKey, float] = OrderedDict()
        self._waiting: asyncio.Queue[tuple[EventKey, Manifest]] = asyncio.Queue(MOST_WAITING)
        self._unposted = 0

    @property
    def unposted(self) -> int:
        """Number of Events that wait or are being posted."""
        return self._unposted

    def record(
        self, regarding: Manifest, *, severity: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        """Queue an Event with `note` about the live object `regarding` (its metadata must have the uid).

        `reason` is CamelCase, `action` names what was done or tried ("Apply", "Gate"); both at most 128 characters.
        """
        key = (regarding["metadata"]["uid"], reason, hash(note))
        if self._was_recorded(key):
            return
        event = self._event(regarding) | {"type": severity, "reason": reason, "action": action, "note": shortened(note)}
        try:
            self._waiting.put_nowait((key, event))
        except asyncio.QueueFull:
            self._lose(key, event, QUEUE_FULL, f"{MOST_WAITING} Events wait already")
            return
        self._recorded[key] = self._clock.monotonic()
        self._unposted += 1

    async def run(self) -> NoReturn:
        """Post the queued Events until cancelled; Events that wait then are lost."""
        try:
            while True:
                key, event = await self._waiting.get()
                try:
                    await self._post(key, event)
                finally:
                    self._done()
        finally:
            self._drop_waiting()

    async def flushed(self, within: float) -> None:
        """Wait up to so many seconds until all are posted; then drop the waiting ones and await the one in flight."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._waiting.join()
        self._drop_waiting()
        await self._waiting.join()

    async def _post(self, key: EventKey, event: Manifest) -> None:
        # A lost Event has no consequence: no reconcile fails or is repeated for it.
        try:
            await self._api.create_event(event)
        except NotLeading as error:
            self._forget(key, error.code)  # this process is shutting down
        except HermeticError as error:
            self._lose(key, event, error.code, error.message)
        except Exception as error:  # noqa: BLE001 - this task posts all Events, and its end would end the process
            self._lose(key, event, DEFECT, repr(error))

    def _drop_waiting(self) -> None:
        while not self._waiting.empty():
            key, event = self._waiting.get_nowait()
            self._lose(key, event, CUT_OFF, "the operator ends")
            self._done()

    def _done(self) -> None:
        self._unposted -= 1
        self._waiting.task_done()

    def _lose(self, key: EventKey, event: Manifest, why: str, because: str) -> None:
        self._forget(key, why)
        log.warning("event not posted", reason=event["reason"], regarding=event["regarding"]["name"], because=because)

    def _forget(self, key: EventKey, why: str) -> None:
        self._recorded.pop(key, None)  # it was not posted, and may be recorded again
        self._on_loss(why)

    def _was_recorded(self, key: EventKey) -> bool:
        """Whether this was recorded within ten minutes; drops older entries, and the oldest beyond the limit."""
        horizon = self._clock.monotonic() - SAME_THING_FOR
        while self._recorded and (next(iter(self._recorded.values())) <= horizon or len(self._recorded) >= REMEMBERED):
            self._recorded.popitem(last=False)
        return key in self._recorded

    def _event(self, regarding: Manifest) -> Manifest:
        metadata = regarding["metadata"]
        namespace = metadata.get("namespace", "")
        suffix = f".{secrets.token_hex(8)}"
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "name": metadata["name"][: NAME_LENGTH - len(suffix)] + suffix,
                "namespace": namespace or "default",  # the API server requires it for cluster-scoped objects
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
    encoded = note.encode(errors="replace")
    if len(encoded) <= NOTE_BYTES:
        return encoded.decode()
    return encoded[: NOTE_BYTES - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS
