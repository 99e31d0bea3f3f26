"""Network security perimeters: the rules of a perimeter as a storage account shows them, its members and its links."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK, STORAGE
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class PerimeterRule(Part):
    """One access rule of a profile, Inbound or Outbound."""

    name: str = ""
    direction: str | None = None
    address_prefixes: list[str] | None = None
    subscriptions: list[Reference] | None = None
    network_security_perimeters: list[Reference] | None = None
    fully_qualified_domain_names: list[str] | None = None
    email_addresses: list[str] | None = None
    phone_numbers: list[str] | None = None
    service_tags: list[str] | None = None


class PerimeterProfile(Part):
    access_rules: list[PerimeterRule] | None = None


class AccountAssociation(Part):
    """The association of the account: its mode is Enforced, Learning or Audit; open."""

    access_mode: str | None = None


@arm("Microsoft.Storage/storageAccounts/networkSecurityPerimeterConfigurations", STORAGE)
class AccountPerimeter(Resource):
    """A perimeter that the account is in, with the rules of its profile."""

    network_security_perimeter: Reference | None = None
    resource_association: AccountAssociation | None = None
    profile: PerimeterProfile | None = None


@arm("Microsoft.Network/networkSecurityPerimeters/resourceAssociations", NETWORK)
class PerimeterMember(Resource):
    """A resource in a perimeter: it may reach the others."""

    private_link_resource: Reference | None = None


@arm("Microsoft.Network/networkSecurityPerimeters/links", NETWORK)
class PerimeterLink(Resource):
    """A link that the perimeter has made: members of both perimeters reach each other, by profile and direction.

    Source: learn.microsoft.com/azure/templates/microsoft.network/networksecurityperimeters/links. A link that another
    perimeter approves by hand does not show which perimeter that is.
    """

    auto_approved_remote_perimeter_resource_id: str | None = None
    status: str | None = None

    @property
    def remote(self) -> str:
        """The other perimeter; "" where it is not named."""
        return self.auto_approved_remote_perimeter_resource_id or ""


@arm("Microsoft.Network/networkSecurityPerimeters/linkReferences", NETWORK)
class PerimeterLinkReference(Resource):
    """A link that another perimeter has made to this one."""

    remote_perimeter_resource_id: str | None = None
    status: str | None = None

    @property
    def remote(self) -> str:
        """The other perimeter; "" where it is not named."""
        return self.remote_perimeter_resource_id or ""
