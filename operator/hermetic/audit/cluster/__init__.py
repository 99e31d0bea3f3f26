"""What belongs to the cluster: its pools, nodes, subnets, networks, hubs, gateways and workloads."""
