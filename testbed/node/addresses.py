"""Who has which address. All of them exist only inside the network namespaces of the nodes.

    virtual network   10.13.0.0/16
      node            10.13.64.4      the real node, and the API server
      second node     10.13.64.5      with `--nodes 2`
      load balancers  10.13.76.0/24   what the cloud provider stand-in gives to internal Services
      client          10.13.80.4      a machine in the virtual network, outside the cluster
    pods              10.244.0.0/24, of the second node 10.244.1.0/24
    Services          10.96.0.0/16

A connection to a load balancer address that starts on the node itself has the source 10.13.64.4, one from the client
10.13.80.4, one from a pod the pod's address: these are what `loadBalancerSourceRanges` is held against. The client has
a link to each node: to the second one at 10.13.81.1, over which only packets of load balancers go.
There is no default route: a connection to any other address ends with "Network is unreachable" at once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeIdentity:
    """One real node: its name in Kubernetes, its address, and the network of its pods."""

    name: str
    address: str
    pod_network: str


FIRST = NodeIdentity("real-0", "10.13.64.4", "10.244.0.0/24")
SECOND = NodeIdentity("real-1", "10.13.64.5", "10.244.1.0/24")
NODE, NODE_ADDRESS, POD_NETWORK = FIRST.name, FIRST.address, FIRST.pod_network
POD_NETWORKS = "10.244.0.0/16"
LOAD_BALANCER_NETWORK = "10.13.76.0/24"
CLIENT_ADDRESS = "10.13.80.4"
CLIENT_GATEWAY = "10.13.80.1"
CLIENT_PREFIX = 24
CLIENT_GATEWAY_OF_SECOND = "10.13.81.1"
CLIENT_ON_SECOND = "10.13.81.4"
