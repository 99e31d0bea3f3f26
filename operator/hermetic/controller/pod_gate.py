"""Computes the annotations of the Lease by which the pod gate admits pods; written with every renewal and on change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from hermetic.api.configuration import Configuration
from hermetic.kinds import EGRESS_AUDIT, MODEL_DEPLOYMENT
from hermetic.kube.store import Store
from hermetic.plan.pod_gate import (
    ENFORCED,
    EVERY,
    PODS_UNTIL,
    UNPROVEN,
    enforced_models,
    enforcement_of,
    is_proof_asked,
    pods_until,
    unproven_namespaces,
)
from hermetic.ports import Clock

CLOSING_SECONDS = 2.0
"""The longest wait for the Lease before a status is written that closes the gate."""

log = structlog.get_logger(__name__)


async def _is_not_kept() -> None:
    """No process keeps a Lease here."""


class PodGate:
    """State of the pod gate. `renew` requests an immediate renewal of the Lease; `renewed` also waits for it."""

    def __init__(self, policy: Configuration, store: Store, clock: Clock) -> None:
        self._policy = policy
        self._store = store
        self._clock = clock
        self._until: str | None = None
        self._named: frozenset[str] | None = None
        self._is_closed_in_lease = False
        self.renew: Callable[[], None] = lambda: None
        self.renewed: Callable[[], Awaitable[None]] = _is_not_kept

    def annotations(self) -> dict[str, str]:
        """The annotations for now. PODS_UNTIL of an earlier process stays until this one has evaluated the evidence."""
        always = {UNPROVEN: unproven_namespaces(self._policy)}
        if self._store.listed_everywhere(MODEL_DEPLOYMENT):
            always[ENFORCED] = enforced_models(self._policy, self._store.enforcements())
            self._named = frozenset(always[ENFORCED].split(","))
        if not self._knows:
            return always
        self._until = self._admitted_until()
        self._is_closed_in_lease = self._is_closed_in_lease and not self._until
        return {**always, PODS_UNTIL: self._until}

    def refresh(self) -> None:
        """Request a renewal if a change of the evidence opens the gate, closes it, or ends it earlier than written."""
        if self._knows:
            until = self._admitted_until()
            # Both are of one form, so that the text is ordered as the time is; a later moment waits for the interval.
            if self._until is None or until < self._until or (until and not self._until):
                self.renew()

    async def close(self) -> None:
        """Return when the Lease admits no pod, if the evidence admits none; after CLOSING_SECONDS in any case.

        The status follows: a process that ends between the two writes leaves a Lease that admits nothing.
        """
        if self._is_closed_in_lease or not self._knows or self._admitted_until():
            return
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self.renewed()
        except TimeoutError:
            log.warning("gate closed before its lease", because=f"no renewal within {CLOSING_SECONDS:.0f} s")
            return
        self._is_closed_in_lease = self._until == ""

    def is_unnamed(self, model: Mapping[str, Any]) -> bool:
        """Whether pods of this ModelDeployment wait for a proof, and the Lease does not name it yet."""
        namespace, name = model["metadata"]["namespace"], model["metadata"]["name"]
        if self._named is None or self._named & {f"{namespace}/{name}", f"{namespace}/{EVERY}", EVERY}:
            return False
        return is_proof_asked(self._policy, namespace, enforcement_of(model))

    def _admitted_until(self) -> str:
        return pods_until(self._policy, self._store.evidence, self._clock.now())

    @property
    def _knows(self) -> bool:
        return bool(self._store.listed_at(EGRESS_AUDIT, None)) and not self._store.awaits_evaluation
