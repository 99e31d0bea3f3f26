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
        return [_word(request) for request in self._ours() if request.resource not in HOUSEKEEPING]

    def events(self) -> int:
        return sum(request.resource == "events" for request in self._ours())

    def _ours(self) -> Iterator[audit.Audited]:
        volume = f"hermetic-{self.namespace}-"
        for request in audit.requests(self.log, self.offset):
            if (
                request.user == ACCOUNT
                and request.is_write
                and (request.namespace == self.namespace or request.name.startswith(volume))
            ):
                yield request


def _word(one: audit.Audited) -> str:
    return f"-{one.resource}" if one.verb == "delete" else one.resource


def by_the_api_server(log: Path, offset: int) -> Counter[tuple[str, str, int]]:
    """Every write of the operator by (verb, resource, status), the Lease and events included."""
    requests = (request for request in audit.requests(log, offset) if request.user == ACCOUNT and request.is_write)
    return Counter((request.verb, request.resource, request.status) for request in requests)


def by_the_operator(operator: OperatorProcess) -> Counter[tuple[str, str, int]]:
    """The same, by the metric `hermetic_api_requests_total`."""
    write_counter: Counter[tuple[str, str, int]] = Counter()
    for code, resource, verb, count in COUNTED.findall(operator.metrics()):
        if verb in audit.WRITES:
            write_counter[verb, resource, int(code)] += int(float(count))
    return write_counter


def metric(operator: OperatorProcess, name: str) -> float:
    """The value of a metric without labels."""
    match = re.search(rf"^{name} ([\d.e+]+)$", operator.metrics(), re.M)
    return float(match[1]) if match else 0.0
