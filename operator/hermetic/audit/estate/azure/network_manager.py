"""What Virtual Network Manager applies to a network: connectivity without peerings, rules that precede all NSGs."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Resource


class AppliedConnectivity(Part):
    """A connectivity configuration that is applied."""

    id: str = ""
    connectivity_topology: str | None = None


class EffectiveConnectivity(Resource):
    """One page of the connectivity configurations applied to a network; `skip_token` requests the next."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks"
    API_VERSION: ClassVar[str] = NETWORK
    ACTION: ClassVar[str] = "listNetworkManagerEffectiveConnectivityConfigurations"
    WRAPPED: ClassVar[bool] = False

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


class EffectiveAdminRules(Resource):
    """One page of the security admin rules applied to a network; `skip_token` requests the next."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks"
    API_VERSION: ClassVar[str] = NETWORK
    ACTION: ClassVar[str] = "listNetworkManagerEffectiveSecurityAdminRules"
    WRAPPED: ClassVar[bool] = False

    value: list[SecurityAdminRule] | None = None
    skip_token: str | None = None


class AdminRuleCollection(Resource):
    """Microsoft.Network/networkManagers/securityAdminConfigurations/ruleCollections; its content is in its rules."""

    TYPE: ClassVar[str] = "Microsoft.Network/networkManagers/securityAdminConfigurations/ruleCollections"
    API_VERSION: ClassVar[str] = NETWORK


class HeldAdminRule(Resource, SecurityAdminRule):
    """A rule of a collection, deployed or not."""

    TYPE: ClassVar[str] = "Microsoft.Network/networkManagers/securityAdminConfigurations/ruleCollections/rules"
    API_VERSION: ClassVar[str] = NETWORK
