"""Creates the auditor lazily (about 20 MiB), when an EgressAudit exists."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.reconciler import Outcome
from hermetic.kinds import EGRESS_AUDIT, THE_EGRESS_AUDIT
from hermetic.kube.owners import Key
from hermetic.kube.store import Store

if TYPE_CHECKING:
    from hermetic.controller.audit.auditor import Auditor
    from hermetic.controller.audit.cluster_cache import ClusterCache

EVALUATE: Key = ("", "evaluate the egressaudit")
"""The key by which the EgressAudit is queued: that of no ModelDeployment, since namespaces are never empty."""
EVALUATE_SECONDS = 1.0
"""A rollout changes hundreds of objects: one evaluation serves all that change in this time."""


class LazyAuditor:
    """Evaluates the EgressAudit; `make` creates the auditor and its cluster cache when first needed."""

    def __init__(
        self, store: Store, make: Callable[[], Awaitable[tuple[Auditor, ClusterCache]]], faults: AuditFaults
    ) -> None:
        self._store = store
        self._make = make
        self._faults = faults
        self._parts: tuple[Auditor, ClusterCache] | None = None
        self._needed = asyncio.Event()

    async def evaluate(self) -> Outcome:
        """Evaluate the EgressAudit; does nothing until there is one."""
        if self._parts is None:
            if self._store.object(EGRESS_AUDIT, THE_EGRESS_AUDIT) is None:
                return Outcome()
            try:
                self._parts = await self._make()
            except Exception as error:
                self._faults.met("assembly", error)
                raise
            self._needed.set()
        return await self._parts[0].evaluate()

    async def run(self) -> None:
        """Wait until the auditor exists, then keep its cluster cache current until cancelled."""
        await self._needed.wait()
        if self._parts is None:
            return
        auditor, cluster_cache = self._parts
        try:
            await cluster_cache.run()
        finally:
            await auditor.close()
