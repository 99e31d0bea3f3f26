"""What the operator wrote, counted twice: by the API server's audit log, and by the operator itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed import audit
from testbed.installation import ACCOUNT, OperatorProcess

STATUS = "modeldeployments/status"
# said to people and to the next leader, not done for a deployment
HOUSEKEEPING = frozenset({"events", "leases"})
COUNTED = re.compile(r'^hermetic_api_requests_total\{code="(\d+)",resource="([^"]+)",verb="(\w+)"\} ([\d.e+]+)$', re.M)


@dataclass(frozen=True)
class AuditLog:
    """The operator's writes that concern one namespace, since this was made. Requests that were refused count too."""

    log: Path
    namespace: str
    offset: int

    @classmethod
    def from_now_on(cls, log: Path, namespace: str) -> AuditLog:
        return cls(log, namespace, log.stat().st_size)

    def writes(self) -> list[str]:
        """In order: `services`, `modeldeployments/status`, `-persistentvolumes` for a delete. No events, no Lease."""
        return [_word(one) for one in self._ours() if one.resource not in HOUSEKEEPING]

    def events(self) -> int:
        return sum(one.resource == "events" for one in self._ours())

    def _ours(self) -> Iterator[audit.Audited]:
        volume = f"hermetic-{self.namespace}-"
        for one in audit.requests(self.log, self.offset):
            if (
                one.user == ACCOUNT
                and one.is_write
                and (one.namespace == self.namespace or one.name.startswith(volume))
            ):
                yield one


def _word(one: audit.Audited) -> str:
    return f"-{one.resource}" if one.verb == "delete" else one.resource


def by_the_api_server(log: Path, offset: int) -> Counter[tuple[str, str, int]]:
    """Every write of the operator by (verb, resource, status), the Lease and events included."""
    requests = (one for one in audit.requests(log, offset) if one.user == ACCOUNT and one.is_write)
    return Counter((one.verb, one.resource, one.status) for one in requests)


def by_the_operator(operator: OperatorProcess) -> Counter[tuple[str, str, int]]:
    """The same, by the metric `hermetic_api_requests_total`."""
    found: Counter[tuple[str, str, int]] = Counter()
    for code, resource, verb, count in COUNTED.findall(operator.metrics()):
        if verb in audit.WRITES:
            found[verb, resource, int(code)] += int(float(count))
    return found


def metric(operator: OperatorProcess, name: str) -> float:
    """The value of a metric without labels."""
    found = re.search(rf"^{name} ([\d.e+]+)$", operator.metrics(), re.M)
    return float(found[1]) if found else 0.0
