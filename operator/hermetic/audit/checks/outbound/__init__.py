"""Table A: outbound methods of subnets, network interfaces and load balancers."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.outbound import addresses, balancers, interfaces, managed_services, nat, nodes, subnet

CHECKS = family(
    __package__ or "",
    {
        "subnet-default-outbound": subnet.default_outbound,
        "nic-default-outbound": interfaces.default_outbound,
        "subnet-nat-gateway": subnet.nat_gateway,
        "vnet-nat-gateway": nat.of_the_network,
        "natgw-inventory": nat.inventory,
        "subnet-service-gateway": subnet.service_gateway,
        "nodepool-node-public-ip": nodes.pool_addresses,
        "vmss-public-ip-config": nodes.model_addresses,
        "vmss-instance-pip": nodes.instance_addresses,
        "nic-public-ip": interfaces.public_address,
        "pip-and-prefix-inventory": addresses.inventory,
        "lb-outbound-rule": balancers.outbound_rules,
        "lb-rule-snat": balancers.rule_translation,
        "lb-public-frontend": balancers.public_frontend,
        "lb-basic-sku": balancers.basic_sku,
        "lb-gateway-chain": balancers.gateway_chain,
        "lb-ip-based-pool": balancers.ip_based_pools,
        "nic-ip-forwarding": interfaces.forwarding,
        "appgw-bastion-other-pip": managed_services.public_faces,
        "bastion-copy-out": managed_services.copying_out,
    },
)
