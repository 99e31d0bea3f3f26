"""User-assigned managed identities, and the tokens of other issuers that Microsoft Entra exchanges for theirs."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE, MANAGED_IDENTITY
from hermetic.audit.estate.resource import Part, Resource


class UserAssignedIdentity(Resource):
    """Microsoft.ManagedIdentity/userAssignedIdentities."""

    TYPE: ClassVar[str] = "Microsoft.ManagedIdentity/userAssignedIdentities"
    API_VERSION: ClassVar[str] = MANAGED_IDENTITY

    principal_id: str | None = None


class FederatedCredential(Resource):
    """Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials: whose tokens are exchanged."""

    TYPE: ClassVar[str] = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    API_VERSION: ClassVar[str] = MANAGED_IDENTITY

    issuer: str | None = None
    subject: str | None = None


class OidcIssuer(Part):
    """oidcIssuerProfile of a cluster: who signs the tokens of its service accounts, for readers outside of it."""

    enabled: bool | None = None
    issuer_url: str | None = None


class IssuingCluster(Resource):
    """Microsoft.ContainerService/managedClusters: the same cluster, read for its token issuer alone."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/managedClusters"
    API_VERSION: ClassVar[str] = CONTAINER_SERVICE

    oidc_issuer_profile: OidcIssuer | None = None
