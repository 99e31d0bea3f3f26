"""How the platform's pods are recognised in this cluster, beside what each pod shows itself."""

from __future__ import annotations

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.platform import KUBE_SYSTEM, SHOWN_BY, PlatformTrust
from hermetic.audit.estate.kubernetes.served import SERVED, ServedGroup
from hermetic.audit.policy import Policy


def trust_of(estate: Estate, policy: Policy) -> PlatformTrust:
    """The trust settings; a namespace that needs an API group counts only where the API server serves that group."""
    return estate.once(("trust", policy), lambda: _trust(estate, policy))


def _trust(estate: Estate, policy: Policy) -> PlatformTrust:
    served = {group.id for group in estate.every(ServedGroup, SERVED.target)}
    shown = (namespace for namespace, group in SHOWN_BY.items() if group in served)
    approved = frozenset(one.lower() for one in policy.allowed_registries)
    return PlatformTrust(approved, frozenset({KUBE_SYSTEM, *shown}))
