"""Table H: what is switched on in the AKS resource itself."""

from __future__ import annotations

from hermetic.audit.checks.aks import (
    access,
    attached,
    bootstrap,
    ingress,
    memberships,
    outbound,
    telemetry,
    unread,
    upkeep,
    with_kubernetes,
)
from hermetic.audit.checks.family import family

CHECKS = family(
    __package__ or "",
    {
        "aks-outbound-type": outbound.outbound_type,
        "aks-effective-outbound-ips": outbound.effective_addresses,
        "aks-artifact-source": bootstrap.artifact_source,
        "aks-private-api": access.private_api,
        "aks-public-fqdn": access.public_name,
        "aks-authorized-ips": access.authorized_ranges,
        "aks-pna": access.public_network_access,
        "aks-run-command": access.run_command,
        "aks-trusted-access": attached.trusted_access,
        "aks-network-policy": upkeep.network_policy,
        "aks-acns": with_kubernetes.advanced_networking,
        "aks-static-egress": outbound.static_egress,
        "aks-http-proxy": outbound.http_proxy,
        "aks-addons": telemetry.addons,
        "aks-monitoring": telemetry.monitoring,
        "aks-ingress-addon": ingress.app_routing,
        "aks-istio-gateways": ingress.mesh_gateways,
        "aks-virtual-nodes": attached.virtual_nodes,
        "aks-extensions": attached.extensions,
        "aks-arc": attached.arc,
        "aks-nap": with_kubernetes.node_provisioning,
        "aks-os-channel": upkeep.os_channel,
        "aks-node-rg-lockdown": upkeep.node_group_lock,
        "aks-identity-bindings": memberships.identity_bindings,
        "aks-fleet-member": memberships.fleet_member,
        "aks-mesh-member": memberships.mesh_member,
        "aks-unread-features": unread.unread_features,
    },
)
