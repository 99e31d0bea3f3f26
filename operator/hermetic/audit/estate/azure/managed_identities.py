"""User-assigned managed identities, and the foreign tokens that Microsoft Entra exchanges for theirs."""

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
    """Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials: the issuer that it trusts."""

    TYPE: ClassVar[str] = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    API_VERSION: ClassVar[str] = MANAGED_IDENTITY

    issuer: str | None = None
    subject: str | None = None


class OidcIssuer(Part):
    """oidcIssuerProfile of a cluster: the issuer of its service account tokens for verifiers outside of it."""

    enabled: bool | None = None
    issuer_url: str | None = None


class IssuingCluster(Resource):
    """Microsoft.ContainerService/managedClusters: the cluster, read for its token issuer alone."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/managedClusters"
    API_VERSION: ClassVar[str] = CONTAINER_SERVICE

    oidc_issuer_profile: OidcIssuer | None = None
