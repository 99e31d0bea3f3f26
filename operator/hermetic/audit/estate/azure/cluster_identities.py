"""The identities that the AKS cluster names anywhere in its body, since AKS adds fields for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from hermetic.audit.estate.arm_fields import FreeMap, spelling
from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE, MANAGED_IDENTITY
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Part, Resource, arm

OBJECT_IDS = frozenset({"objectid", "principalid"})
HOLDERS = frozenset(
    {
        "addonprofiles",
        "identity",
        "identityprofile",
        "ingressprofile",
        "podidentityprofile",
        "userassignedidentities",
        "webapprouting",
    }
)
"""Fields that contain identities: when one is not an object, identities in it may be unreadable."""
WRITTEN_BY_PEOPLE = frozenset({"config", "nodelabels", "podlabels", "tags"})


@arm("Microsoft.ContainerService/managedClusters", CONTAINER_SERVICE)
class ClusterIdentities(Resource):
    """The cluster, read for its identities alone."""

    everything: FreeMap[Any] = {}

    @classmethod
    def read(cls, body: Body) -> Self:
        """Keep the whole body: no model has a field that is new."""
        wrapped = {"id": body.value.get("id"), "properties": {"everything": body.value}}
        return super().read(Body(wrapped, body.evidence))

    def named(self) -> Iterator[tuple[str, str | None]]:
        """The path of each identity, and its object id; None where the value has another form."""
        yield from _named(self.everything, ())


def _named(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _named(item, (*path, str(number)))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _below(key, inner, path)


def _below(key: str, inner: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    name = spelling(key)
    if inner is None or name in WRITTEN_BY_PEOPLE:
        return
    if name in OBJECT_IDS:
        yield ".".join(path), inner if isinstance(inner, str) else None
    elif name in HOLDERS and not isinstance(inner, Mapping | list):
        yield ".".join((*path, key)), None
    else:
        yield from _named(inner, path if name == "properties" else (*path, key))


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
