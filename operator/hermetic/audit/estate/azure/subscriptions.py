"""The subscription of the cluster, and the tenants of the caller: both are read for their names.

Shapes: Azure/azure-rest-api-specs, Microsoft.Resources (subscriptions 2022-12-01): `Subscription` and
`TenantIdDescription`. Both have their fields at the top, without `properties`.
"""

from __future__ import annotations

from typing import Self

from hermetic.audit.estate.azure.versions import SUBSCRIPTIONS
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Resource, arm

TENANTS_OF_THE_CALLER = "/tenants"
"""Where the list of tenants is: it belongs to no subscription, and every caller may read its own."""


class _Unwrapped(Resource):
    """A resource whose fields are not in `properties`."""

    READS_ITS_FIELDS_ONLY = True

    tenant_id: str | None = None
    display_name: str | None = None

    @classmethod
    def read(cls, body: Body) -> Self:
        """Parse the fact from an answer, as `Resource.read` does for wrapped ones."""
        return super().read(Body({"id": body.value.get("id", ""), "properties": dict(body.value)}, body.evidence))


@arm("Microsoft.Resources/subscriptions", SUBSCRIPTIONS)
class Subscription(_Unwrapped):
    """Its name, and the tenant that it trusts."""


@arm("Microsoft.Resources/tenants", SUBSCRIPTIONS)
class Tenant(_Unwrapped):
    """A tenant that the caller may see. Azure shows its name where the caller may read the directory's."""
