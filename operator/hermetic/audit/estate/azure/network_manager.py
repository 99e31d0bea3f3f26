"""What Virtual Network Manager applies to a network: connectivity without peerings, rules that precede all NSGs."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Resource, arm


class AppliedConnectivity(Part):
    id: str = ""


@arm("Microsoft.Network/virtualNetworks", NETWORK, "listNetworkManagerEffectiveConnectivityConfigurations")
class EffectiveConnectivity(Resource):
    """One page of the connectivity configurations applied to a network; `skip_token` requests the next."""

    value: list[AppliedConnectivity] | None = None
    skip_token: str | None = None


class AdminAddress(Part):
    """Source or destination of an admin rule; the type is IPPrefix, ServiceTag or NetworkGroup."""

    address_prefix: str | None = None
    address_prefix_type: str | None = None


class SecurityAdminRule(Part):
    """A security admin rule. Allow leaves the decision to security groups, AlwaysAllow bypasses them."""

    id: str = ""
    access: str | None = None
    direction: str | None = None
    priority: int | None = None
    protocol: str | None = None
    destinations: list[AdminAddress] | None = None


@arm("Microsoft.Network/virtualNetworks", NETWORK, "listNetworkManagerEffectiveSecurityAdminRules")
class EffectiveAdminRules(Resource):
    """One page of the security admin rules applied to a network; `skip_token` requests the next."""

    value: list[SecurityAdminRule] | None = None
    skip_token: str | None = None


@arm("Microsoft.Network/networkManagers/securityAdminConfigurations/ruleCollections", NETWORK)
class AdminRuleCollection(Resource):
    """Its content is in its rules."""


@arm("Microsoft.Network/networkManagers/securityAdminConfigurations/ruleCollections/rules", NETWORK)
class HeldAdminRule(Resource, SecurityAdminRule):
    """A rule of a collection, deployed or not."""
