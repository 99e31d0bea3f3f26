"""The clock of the operator: nothing else in `controller/`, `kube/` and the pure packages reads one. Commands do."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall time, and a monotonic reading that includes the time for which the machine is suspended."""

    def now(self) -> datetime:
        """Now, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since boot, suspended time included: a Lease must not seem younger after a VM was frozen."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)
