"""Results about private endpoints that are not known to be ours."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import Path
from hermetic.audit.scope.private_links import OtherConnections


def results_of(  # noqa: PLR0913 - passed by keyword
    other_connections: OtherConnections,
    resource: str,
    *observations: Observation,
    about: str = "",
    paths: tuple[Path, ...],
    of_approved: Severity | None = None,
    of_waiting: Severity | None = None,
    remedy: str = "",
) -> Iterator[CheckResult]:
    """What is not known to be ours, of one resource; nothing where everything is ours.

    `about`: how each message begins. `paths`: those of an approved connection of a stranger. The severities are those
    of approved and of waiting connections; None is that of the check.
    """
    for other in other_connections.strangers:
        reason, open_paths = ("StrangerWaits", ()) if other.waits else ("Stranger", paths)
        message = f"{about}a private endpoint that is not ours {other.state}: {other.description}"
        severity, fill = (of_waiting if other.waits else of_approved), {"LINK_ID": other.link}
        yield fails(
            resource, reason, message, *observations, paths=open_paths, severity=severity, remedy=remedy, fill=fill
        )
    for connection in other_connections.undecided:
        message = (
            f"{about}a private endpoint {connection.other.state}, and it is not known whose it is: "
            f"{connection.other.description}"
        )
        severity, fill = (of_waiting if connection.other.waits else of_approved), {"LINK_ID": connection.other.link}
        because = (*connection.observations, *observations)
        yield unknown(resource, connection.reason, message, *because, severity=severity, remedy=remedy, fill=fill)
    if other_connections.unclear:
        yield unknown(resource, "StateUnknown", about + "; ".join(other_connections.unclear), *observations)
    for damage in other_connections.damage:
        yield unknown(resource, "Unreadable", damage.problem.detail, damage)
