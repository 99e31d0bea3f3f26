"""Key vaults and managed HSMs: who may reach what a pod stores there."""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import KEY_VAULT
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class VaultRules(Part):
    """Absent: every network is allowed."""

    default_action: str | None = None
    ip_rules: list[dict[str, Any]] | None = None
    virtual_network_rules: list[Reference] | None = None


class Vault(Resource):
    """The common fields of both kinds. An absent field has the permissive default."""

    public_network_access: str | None = None
    network_acls: VaultRules | None = None
    private_endpoint_connections: list[ConsumerConnection] | None = None


@arm("Microsoft.KeyVault/vaults", KEY_VAULT)
class KeyVault(Vault):
    """Secrets, keys and certificates."""


@arm("Microsoft.KeyVault/managedHSMs", KEY_VAULT)
class ManagedHsm(Vault):
    """Keys."""
