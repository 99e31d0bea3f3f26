"""Leader election: one Lease in the operator's namespace, held by one process at a time.

A candidate considers the Lease of another holder expired when it has observed no change of it for the granted duration,
by the candidate's own monotonic clock: no two clocks are ever compared. The holder stops writing 20 s after the start
of its last renewal; no other process may take over before 40 s have passed since that renewal reached the server.

    lease = LeaderLease(api, namespace=..., identity=..., clock=clock)
    await lease.acquire()
    keeper = asyncio.create_task(lease.keep())      # returns, and sets `lost`, when another process may lead
    ...                                             # write only while `lease.held`
    keeper.cancel(); await lease.release()          # after the last write
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import structlog

from hermetic.errors import ApiRefused, Conflict, HermeticError, NotFound, NotLeading, Unreachable
from hermetic.kinds import LEASE
from hermetic.ports import Clock, Manifest

LEASE_NAME = "hermetic"
RELEASE = "hermetic.dev/release"
"""Annotation of the Lease: the release of the operator that holds it."""

T = TypeVar("T")
log = structlog.get_logger(__name__)


class LeaseApi(Protocol):
    """What a Lease needs of an API server. Every write has a resourceVersion; on Conflict, read the Lease again."""

    async def get_lease(self, namespace: str, name: str) -> Manifest:
        """The Lease, or NotFound."""
        ...

    async def create_lease(self, lease: Manifest) -> Manifest:
        """POST; Conflict when there is one already."""
        ...

    async def replace_lease(self, lease: Manifest) -> Manifest:
        """PUT; Conflict when the resourceVersion is not the latest, NotFound when it was deleted."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds. `deadline` < `duration`: the difference must exceed the time of a write in flight (`Timeouts.write`)."""

    duration: float = 40.0
    renew_every: float = 10.0
    deadline: float = 20.0
    poll_every: float = 2.0
    release_within: float = 5.0


class LeaderLease:
    """One candidate for the Lease, for one term; a second term takes a second object.

    `identity` must be unique among processes that can run at the same time: a restarted container may share it with
    its predecessor and then takes over at once, a second replica may not.
    `annotations` are put on it with every renewal.
    """

    def __init__(  # noqa: PLR0913 - the composition root passes each part once
        self,
        api: LeaseApi,
        *,
        namespace: str,
        identity: str,
        clock: Clock,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        timing: LeaseTiming | None = None,
        annotations: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.lost = asyncio.Event()
        self._api = api
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._sleep = sleep
        self._timing = timing or LeaseTiming()
        self._annotations = annotations
        self._soon = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._lease: Manifest = {}
        self._observed_at = 0.0
        self._held_until: float | None = None

    @property
    def held(self) -> bool:
        """Whether this process may write now; false once the deadline has passed, even before `keep` returns."""
        return self._held_until is not None and self._clock.monotonic() < self._held_until

    async def acquire(self) -> None:
        """Return once this process holds the Lease; until then try every 2 s, whatever the API server answers."""
        reported = ""
        while True:
            failed: HermeticError | None = None
            try:
                hindrance = await self._within(self._timing.deadline, self._take_if_free())
            except HermeticError as error:
                hindrance, failed = error.message, error
            if not hindrance:
                log.info("lease acquired", identity=self._identity, namespace=self._namespace)
                return
            if hindrance != reported:
                self._report(hindrance, failed)
                reported = hindrance
            await self._sleep(self._timing.poll_every)

    def _report(self, hindrance: str, failed: HermeticError | None) -> None:
        if isinstance(failed, ApiRefused):
            log.warning("lease refused", identity=self._identity, because=hindrance)
        elif failed is not None:
            log.warning("lease not reached", identity=self._identity, because=hindrance)
        else:
            log.info("waiting for the lease", identity=self._identity, because=hindrance)

    async def keep(self) -> None:
        """Renew every 10 s; return with `lost` set when another process holds it or no renewal succeeded in time."""
        while self.held:
            await self._next_renewal()
            await self._renew()
        self._held_until = None
        self.lost.set()
        log.error("lease lost", identity=self._identity, holder=_holder(self._lease))

    def renew_soon(self) -> None:
        """Renew without waiting for the interval: the annotations have changed."""
        self._soon.set()

    async def renewed(self) -> None:
        """Renew without waiting for the interval; return after a renewal that began after this call has succeeded.

        The caller bounds the wait: without `keep`, or when the Lease is lost, it never returns.
        """
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._soon.set()
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def _next_renewal(self) -> None:
        timer, wakeup = (
            asyncio.ensure_future(self._sleep(self._timing.renew_every)),
            asyncio.ensure_future(self._soon.wait()),
        )
        try:
            await asyncio.wait((timer, wakeup), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._soon.clear()
            timer.cancel()
            wakeup.cancel()
            await asyncio.gather(timer, wakeup, return_exceptions=True)

    async def release(self) -> None:
        """Release the Lease, so that the next holder need not wait for its expiry; `held` is false from here on.

        Never raises: the process is shutting down, and a Lease that could not be released expires.
        """
        self._held_until = None
        try:
            if await self._within(self._timing.release_within, self._let_go()):
                log.info("lease released", identity=self._identity)
        except HermeticError as error:
            log.warning("lease not released", identity=self._identity, because=error.message)
        except Exception as error:
            log.exception("lease not released", identity=self._identity, because=repr(error))

    async def _take_if_free(self) -> str:
        """Take the Lease if it is free; returns "" on success, else why not."""
        asked_at = self._clock.monotonic()
        try:
            self._observe(await self._api.get_lease(self._namespace, LEASE_NAME))
        except NotFound:
            self._won(await self._api.create_lease(self._claim({})), asked_at)
            return ""
        rival = _holder(self._lease)
        if rival not in ("", self._identity) and self._clock.monotonic() < self._observed_at + self._granted():
            return f"held by {rival}"
        self._won(await self._api.replace_lease(self._claim(self._lease)), asked_at)
        return ""

    async def _renew(self) -> None:
        """Retry until the deadline unless another holder is seen."""
        while self.held:
            waiters = list(self._waiters)
            try:
                await self._within(self._left(), self._renew_once())
            except HermeticError as error:
                log.warning("lease not renewed", identity=self._identity, because=error.message)
            except Exception as error:
                # A defect that passes must not end the process; one that lasts loses the Lease.
                log.exception("lease not renewed", identity=self._identity, because=repr(error))
            else:
                for waiter in waiters:
                    if not waiter.done():
                        waiter.set_result(None)
                return
            await self._sleep(min(self._timing.poll_every, self._left()))

    async def _renew_once(self) -> None:
        asked_at = self._clock.monotonic()
        try:
            renewed = await self._api.replace_lease(self._claim(self._lease))
        except NotFound:
            renewed = await self._api.create_lease(self._claim({}))
        except Conflict:
            # An annotation, or an earlier renewal of ours whose answer got lost, must not end our term.
            self._observe(await self._api.get_lease(self._namespace, LEASE_NAME))
            if _holder(self._lease) != self._identity:
                self._held_until = None
                return
            renewed = await self._api.replace_lease(self._claim(self._lease))
        self._won(renewed, asked_at)

    async def _let_go(self) -> bool:
        try:
            lease = await self._api.get_lease(self._namespace, LEASE_NAME)
        except NotFound:
            return False
        if _holder(lease) != self._identity:
            return False
        spec = lease["spec"] | {"holderIdentity": "", "renewTime": self._stamp(), "leaseDurationSeconds": 1}
        await self._api.replace_lease(lease | {"spec": spec})
        return True

    def _left(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, (self._held_until or 0.0) - self._clock.monotonic())

    def _won(self, lease: Manifest, asked_at: float) -> None:
        self._observe(lease)
        self._held_until = asked_at + self._timing.deadline

    def _observe(self, lease: Manifest) -> None:
        """Keep the Lease, and when its holder or renewTime was first seen; a change of metadata alone is no renewal."""
        if _sign_of_life(lease) != _sign_of_life(self._lease):
            self._observed_at = self._clock.monotonic()
        self._lease = lease

    def _granted(self) -> float:
        """Seconds granted to the present holder, as its Lease states: replicas may be configured differently."""
        return float((self._lease.get("spec") or {}).get("leaseDurationSeconds") or self._timing.duration)

    def _claim(self, lease: Manifest) -> Manifest:
        """The Lease with this process as its holder from now on; fields of other writers stay."""
        spec, now = dict(lease.get("spec") or {}), self._stamp()
        if spec.get("holderIdentity") != self._identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + (1 if lease else 0)
        spec |= {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._timing.duration)),
            "renewTime": now,
        }
        previous_metadata = lease.get("metadata") or {"namespace": self._namespace, "name": LEASE_NAME}
        annotations = {**(previous_metadata.get("annotations") or {}), **self._annotations()}
        metadata = {**previous_metadata, "annotations": annotations} if annotations else previous_metadata
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, **lease, "metadata": metadata, "spec": spec}

    def _stamp(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _within(self, seconds: float, attempt: Awaitable[T]) -> T:
        """The attempt's result; raises Unreachable when it takes longer by `_sleep`, the injected clock."""
        work, timer = asyncio.ensure_future(attempt), asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait((work, timer), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Unreachable(f"the Lease {self._namespace}/{LEASE_NAME}: no answer within {seconds:.0f} s")
            return work.result()
        finally:
            work.cancel()
            timer.cancel()
            await asyncio.gather(work, timer, return_exceptions=True)


def _sign_of_life(lease: Manifest) -> tuple[str, str]:
    return _holder(lease), str((lease.get("spec") or {}).get("renewTime"))


def _holder(lease: Manifest) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def fence(may_write: Callable[[], bool]) -> Callable[[], None]:
    """Return a check for `KubernetesApi.ask_before_writing`; it raises NotLeading when `may_write` is false."""

    def check() -> None:
        if not may_write():
            raise NotLeading(
                "this process does not hold the Lease, nothing was written",
                fix="look at the Lease 'hermetic' for the holder; this process will end and start again",
            )

    return check
