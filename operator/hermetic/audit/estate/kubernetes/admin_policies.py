"""Policies of the cluster's administrators, which come before or after every NetworkPolicy (SIG Network policy API)."""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, api_object
from hermetic.audit.estate.resource import Part


class AdminPeer(Part):
    """One destination: pods, namespaces, nodes, ranges of addresses, or names."""

    namespaces: FreeMap[Any] | None = None
    pods: FreeMap[Any] | None = None
    nodes: FreeMap[Any] | None = None
    networks: list[str] | None = None
    domain_names: list[str] | None = None


class AdminRule(Part):
    """`action` is Allow, Accept, Deny or Pass; open. Pass leaves it to the policies that follow."""

    action: str = ""
    to: list[AdminPeer] | None = None


class AdminSpec(Part):
    egress: list[AdminRule] | None = None


class AdminPolicy(KubernetesObject):
    spec: AdminSpec = AdminSpec()

    @property
    def denies_ranges(self) -> bool:
        """Whether a rule of it denies egress to addresses: it isolates pods if the engine implements the kind."""
        return any(rule.action == "Deny" and peer.networks for rule in self.spec.egress or () for peer in rule.to or ())


@api_object("policy.networking.k8s.io/v1alpha1/adminnetworkpolicies", "AdminNetworkPolicy", namespaced=False)
class AdminNetworkPolicy(AdminPolicy):
    """Before every NetworkPolicy."""


@api_object(
    "policy.networking.k8s.io/v1alpha1/baselineadminnetworkpolicies", "BaselineAdminNetworkPolicy", namespaced=False
)
class BaselineAdminNetworkPolicy(AdminPolicy):
    """For pods that no NetworkPolicy selects."""


@api_object("policy.networking.k8s.io/v1alpha2/clusternetworkpolicies", "ClusterNetworkPolicy", namespaced=False)
class ClusterNetworkPolicy(AdminPolicy):
    """The successor of both, with a tier."""


ADMIN_KINDS: tuple[type[AdminPolicy], ...] = (AdminNetworkPolicy, BaselineAdminNetworkPolicy, ClusterNetworkPolicy)
