"""Azure Monitor behind a private endpoint: in open mode, data can be sent to any tenant's workspace."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import whole_or_unknown
from hermetic.audit.estate.azure.private_link import AccessModes, MonitorScope
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.hops import NODE_SUBNETS, PRIVATE_ENDPOINT, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import targets_of

PRIVATE, OPEN = "privateonly", "open"


@check("ampls-open")
def ampls_open(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every monitor scope that a private endpoint in reach leads to."""
    targets = targets_of(estate, policy, MonitorScope.TYPE)
    for target in targets:
        seen = estate.one(MonitorScope, target)
        yield from whatever_is_damaged(target, _scope(seen))
    if targets.items:
        yield from whole_or_unknown(estate.cluster, "monitor scopes in reach", targets)
    else:
        words = "no private endpoint in reach leads to Azure Monitor"
        yield does_not_apply(estate.cluster, "NoMonitorScope", words, targets)


def _scope(seen: Seen[MonitorScope]) -> Iterator[CheckResult]:
    settings = seen.value.access_mode_settings if seen.value is not None else None
    if settings is None:
        yield unknown(seen.target, "ModesNotSeen", "the access modes were not seen", seen)
        return
    modes = [(name, mode or "Open by default") for name, mode in _modes(settings)]
    for exclusion in settings.exclusions or ():
        where = exclusion.private_endpoint_connection_name
        modes += [(f"{name} of connection {where}", mode or "not reported") for name, mode in _modes(exclusion)]
    is_open = [f"{name} is {mode}" for name, mode in modes if mode.lower().startswith(OPEN)]
    odd = [f"{name} is {mode}" for name, mode in modes if mode.lower() != PRIVATE]
    if is_open:
        path = path_of(NODE_SUBNETS, PRIVATE_ENDPOINT, "azure monitor", "other tenant")
        yield fails(seen.target, "OpenMode", "; ".join(is_open), seen, paths=(path,))
    elif odd:
        yield unknown(seen.target, "ModeUnknown", "; ".join(odd), seen)
    else:
        yield passes(seen.target, "PrivateOnly", "ingestion and query are private only", seen)


def _modes(modes: AccessModes) -> tuple[tuple[str, str | None], ...]:
    return ("ingestion", modes.ingestion_access_mode), ("query", modes.query_access_mode)
