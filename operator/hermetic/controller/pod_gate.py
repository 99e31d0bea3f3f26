"""Computes the annotations of the Lease by which the pod gate admits pods; written with every renewal and on change."""

from __future__ import annotations

from collections.abc import Callable

from hermetic.api.configuration import Configuration
from hermetic.kinds import EGRESS_AUDIT, MODEL_DEPLOYMENT
from hermetic.kube.store import Store
from hermetic.plan.pod_gate import ENFORCED, PODS_UNTIL, UNPROVEN, enforced_models, pods_until, unproven_namespaces
from hermetic.ports import Clock


class PodGate:
    """State of the pod gate. `renew` requests an immediate renewal of the Lease."""

    def __init__(self, policy: Configuration, store: Store, clock: Clock) -> None:
        self._policy = policy
        self._store = store
        self._clock = clock
        self._was_open: bool | None = None
        self.renew: Callable[[], None] = lambda: None

    def annotations(self) -> dict[str, str]:
        """The annotations for now. PODS_UNTIL of an earlier process stays until this one has evaluated the evidence."""
        always = {UNPROVEN: unproven_namespaces(self._policy)}
        if self._store.listed_everywhere(MODEL_DEPLOYMENT):
            always[ENFORCED] = enforced_models(self._policy, self._store.enforcements())
        if not self._knows:
            return always
        until = pods_until(self._policy, self._store.evidence, self._clock.now())
        self._was_open = bool(until)
        return {**always, PODS_UNTIL: until}

    def refresh(self) -> None:
        """Request a renewal if a change of the evidence opens or closes the gate."""
        if self._knows:
            until = pods_until(self._policy, self._store.evidence, self._clock.now())
            if bool(until) != self._was_open:
                self.renew()

    @property
    def _knows(self) -> bool:
        return bool(self._store.listed_at(EGRESS_AUDIT, None)) and not self._store.awaits_evaluation
