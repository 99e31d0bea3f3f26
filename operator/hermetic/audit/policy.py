"""What is allowed at all: the policy file of `hermetic audit --policy`, and the profile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from hermetic.audit.estate.arm_ids import is_arm_id, same_id, subscription_of, type_of

Profile = Literal["sealed", "filtered"]

HERMETIC_NAMESPACES = ("hermetic-system", "hermetic-probe")

NIC = "Microsoft.Network/networkInterfaces"
FIREWALL = "Microsoft.Network/azureFirewalls"
NETWORKS = ("Microsoft.Network/virtualNetworks", "Microsoft.Network/virtualNetworks/virtualNetworkPeerings")
_SUBSCRIPTION = re.compile(r"(/subscriptions/)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/?", re.IGNORECASE)
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Policy(BaseModel):
    """Every key is optional; what is not listed is not allowed. Ids are compared without regard to case."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    profile: Profile = "sealed"
    """Sealed: no way out. Filtered: one declared firewall is allowed, and judged. From --profile, not from the file."""
    own_subscriptions: tuple[str, ...] = ()
    """Subscription ids that are ours, beside those of the cluster and its virtual network."""
    allowed_peerings: tuple[str, ...] = ()
    """ARM ids of remote virtual networks, or of peerings."""
    allowed_dns_servers: tuple[str, ...] = ()
    """IP addresses of DNS servers that a virtual network may name."""
    allowed_private_link_services: tuple[str, ...] = ()
    """ARM ids of resources that a private endpoint may lead to although they are not in our subscriptions."""
    allowed_registries: tuple[str, ...] = ()
    """Host names of the registries that images of workloads may come from, such as contoso.azurecr.io."""
    hermetic_namespaces: tuple[str, ...] = HERMETIC_NAMESPACES
    """Where Hermetic's operator and the pods of its probe run: these may do there what nobody else may."""
    sentinel_nics: tuple[str, ...] = ()
    """ARM ids of network interfaces of virtual machines in the cluster's subnets, asked for effective routes."""
    firewall: str = ""
    """ARM id of the one Azure Firewall that the profile `filtered` allows."""

    @model_validator(mode="after")
    def _filtered_needs_a_firewall(self) -> Policy:
        if self.profile == "filtered" and not self.firewall:
            raise ValueError("--profile filtered needs `firewall`: the ARM id of the Azure Firewall that is allowed")
        for name, ids in (
            ("sentinelNics", self.sentinel_nics),
            ("firewall", (self.firewall,) if self.firewall else ()),
        ):
            for one in ids:
                if not is_arm_id(one):
                    raise ValueError(f"`{name}`: {one!r} is not an ARM id (/subscriptions/…)")
        return self

    def with_hermetic_in(self, namespace: str) -> Policy:
        """The policy that knows this namespace of Hermetic too."""
        known = dict.fromkeys((*self.hermetic_namespaces, namespace))
        return self.model_copy(update={"hermetic_namespaces": tuple(known)})

    def allows_peering(self, *ids: str) -> bool:
        """Whether a peering or its remote network is on the list."""
        return any(same_id(one, allowed) for one in ids for allowed in self.allowed_peerings)

    def owns(self, subscription: str, *of_the_cluster: str) -> bool:
        """Whether a subscription (bare id or /subscriptions/…) is one of ours."""
        ours = {subscription_of(one) or one.lower() for one in (*self.own_subscriptions, *of_the_cluster)}
        return (subscription_of(subscription) or subscription.lower()) in ours


def never_met(policy: Policy) -> Iterator[str]:
    """What stands in a policy and could never match anything, in words: a typing error must not pass for a rule."""
    for field, fits, what in _SHAPES:
        said = getattr(policy, field)
        for one in said if isinstance(said, tuple) else filter(None, (said,)):
            if not fits(one):
                yield f"`{to_camel(field)}`: {one!r} is not {what}"


def _is_of(text: str, *types: str) -> bool:
    return is_arm_id(text) and type_of(text).lower() in {one.lower() for one in types}


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_SHAPES: tuple[tuple[str, Callable[[str], object], str], ...] = (
    ("own_subscriptions", _SUBSCRIPTION.fullmatch, "the id of a subscription"),
    ("allowed_dns_servers", _is_address, "an IP address"),
    ("hermetic_namespaces", _DNS_LABEL.fullmatch, "the name of a namespace"),
    ("allowed_peerings", lambda one: _is_of(one, *NETWORKS), "the ARM id of a virtual network or a peering"),
    (
        "sentinel_nics",
        lambda one: _is_of(one, NIC),
        f"the ARM id of a network interface (…/providers/{NIC}/NAME)",
    ),
    ("firewall", lambda one: _is_of(one, FIREWALL), f"the ARM id of an Azure Firewall (…/providers/{FIREWALL}/NAME)"),
)
