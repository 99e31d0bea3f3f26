"""Table C: what the cluster's virtual networks are joined to, and who else is in reach."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.topology import firewall, gateways, hubs, network_manager, networks, peerings, pivots

CHECKS = family(
    __package__ or "",
    {
        "peering-any": peerings.any_peering,
        "peering-remote-gateway": peerings.remote_gateway,
        "peering-forwarded": peerings.forwarded,
        "peering-gateway-transit": peerings.gateway_transit,
        "peering-subnet-scope": peerings.subnet_scope,
        "avnm-connectivity": network_manager.connectivity,
        "avnm-admin-rules": network_manager.admin_rules,
        "vnet-gateway": gateways.present,
        "gateway-forced-tunnel": gateways.forced_tunnel,
        "gateway-p2s": gateways.clients,
        "gateway-connections": gateways.connections,
        "vwan-connection": hubs.connected,
        "firewall-in-path": firewall.in_path,
        "vm-pivot": pivots.pivot,
        "subnet-sharing": networks.sharing,
        "nsg-flowlogs": networks.flow_logs,
    },
)
