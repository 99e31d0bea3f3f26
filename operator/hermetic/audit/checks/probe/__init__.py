"""Tables J and K, and what of D and G only a pod can see: judged from what the probe's pods said.

The probe refutes, it never proves: each of these ids speaks for itself alone, and its silence counts only where a
positive control answered before and after.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.probe import calls, host_plugin, machine, metadata, resolvers

CHECKS = family(
    __package__ or "",
    {
        "probe-internet": calls.internet,
        "probe-storage": calls.storage,
        "probe-proxy": calls.proxy,
        "probe-networks": calls.networks,
        "wireserver": calls.wireserver,
        "host-plugin": host_plugin.host_plugin,
        "dns-recursion": resolvers.dns_recursion,
        "node-resolv": resolvers.node_resolv,
        "node-routes": machine.node_routes,
        "node-v6-default-route": machine.node_v6_default_route,
        "imds-lb": metadata.imds_lb,
        "imds-nic-pip": metadata.imds_nic_pip,
        "imds-identity": metadata.imds_identity,
    },
)
