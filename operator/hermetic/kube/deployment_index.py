"""Index of the ModelDeployments that a change of a node or of a Service may concern.

Updated with each ModelDeployment, so that a change of a node does not parse a thousand of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from hermetic.api.condition_updates import is_true
from hermetic.api.conditions import ConditionType
from hermetic.kube.owners import Key
from hermetic.plan.exposure.address_claims import requested_address


class DeploymentIndex:
    """ModelDeployments by load balancer address, and those that wait for a node."""

    def __init__(self) -> None:
        self._waiting: set[Key] = set()
        self._addresses: dict[Key, str] = {}
        self._asking: dict[str, set[Key]] = defaultdict(set)

    def put(self, key: Key, manifest: Mapping[str, Any]) -> None:
        self.drop(key)
        if not is_true(manifest, ConditionType.READY):
            self._waiting.add(key)
        if address := requested_address(manifest):
            self._addresses[key] = address
            self._asking[address].add(key)

    def drop(self, key: Key) -> None:
        self._waiting.discard(key)
        if (address := self._addresses.pop(key, "")) in self._asking:
            self._asking[address].discard(key)
            if not self._asking[address]:
                del self._asking[address]

    @property
    def waiting(self) -> frozenset[Key]:
        """ModelDeployments whose state a change of a node may alter."""
        return frozenset(self._waiting)

    @property
    def has_addresses(self) -> bool:
        """Whether any ModelDeployment requests a load balancer address."""
        return bool(self._asking)

    def rivals_of(self, key: Key) -> tuple[Key, ...]:
        """Other ModelDeployments that request the load balancer address that this one requests."""
        return tuple(rival for rival in self.asking_for(self._addresses.get(key, "")) if rival != key)

    def asking_for(self, address: str) -> tuple[Key, ...]:
        """ModelDeployments that request this load balancer address."""
        return tuple(sorted(self._asking.get(address, ()))) if address else ()
