"""User-assigned managed identities, and the foreign tokens that Microsoft Entra exchanges for theirs."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE, MANAGED_IDENTITY
from hermetic.audit.estate.resource import Part, Resource, arm


@arm("Microsoft.ManagedIdentity/userAssignedIdentities", MANAGED_IDENTITY)
class UserAssignedIdentity(Resource):
    principal_id: str | None = None


@arm("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials", MANAGED_IDENTITY)
class FederatedCredential(Resource):
    """The issuer that it trusts."""

    issuer: str | None = None
    subject: str | None = None


class OidcIssuer(Part):
    """oidcIssuerProfile of a cluster: the issuer of its service account tokens for verifiers outside of it."""

    enabled: bool | None = None
    issuer_url: str | None = None


@arm("Microsoft.ContainerService/managedClusters", CONTAINER_SERVICE)
class IssuingCluster(Resource):
    """The cluster, read for its token issuer alone."""

    oidc_issuer_profile: OidcIssuer | None = None
