"""The subscription and the tenant that the cluster belongs to, with the names that people know them by.

Only a reader needs the names: no finding rests on them. An identity that may not read them gets a report without.
"""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.estate.arm_ids import subscription_of
from hermetic.audit.estate.azure.subscriptions import TENANTS_OF_THE_CALLER, Subscription, Tenant
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.errors import FactDamaged


@dataclass(frozen=True, slots=True)
class Ownership:
    """Ids and names of subscription and tenant; "" for what is not known."""

    subscription: str
    subscription_name: str = ""
    tenant: str = ""
    tenant_name: str = ""


def ownership_of(estate: Estate) -> Ownership | None:
    """What Azure answers about them; None where Azure was not asked or the cluster has no ARM id."""
    subscription = subscription_of(estate.cluster)
    if "azure" not in estate.sources or not subscription:
        return None
    name, tenant = _subscription(estate.one(Subscription, f"/subscriptions/{subscription}"))
    return Ownership(subscription, name, tenant, _tenant_name(estate, tenant) if tenant else "")


def _subscription(observation: Lookup[Subscription]) -> tuple[str, str]:
    """Its name and the id of its tenant; "" where unreadable."""
    if observation.value is None:
        return "", ""
    try:
        return observation.value.display_name or "", observation.value.tenant_id or ""
    except FactDamaged:
        return "", ""


def _tenant_name(estate: Estate, tenant: str) -> str:
    """The name of the tenant among those of the caller; "" where Azure shows none."""
    for listed in estate.every(Tenant, TENANTS_OF_THE_CALLER):
        try:
            if (listed.tenant_id or "").lower() == tenant.lower():
                return listed.display_name or ""
        except FactDamaged:
            continue
    return ""
