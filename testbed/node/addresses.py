"""Who has which address. All of them exist only inside the node's own network namespace.

    virtual network   10.13.0.0/16
      node            10.13.64.4      the real node, and the API server
      load balancers  10.13.76.0/24   what the cloud provider stand-in gives to internal Services
      client          10.13.80.4      a machine in the virtual network, outside the cluster
    pods              10.244.0.0/24
    Services          10.96.0.0/16

A connection to a load balancer address that starts on the node itself has the source 10.13.64.4, one from the client
10.13.80.4, one from a pod the pod's address: these are what `loadBalancerSourceRanges` is held against.
There is no default route: a connection to any other address ends with "Network is unreachable" at once.
"""

NODE = "real-0"
NODE_ADDRESS = "10.13.64.4"
LOAD_BALANCER_NETWORK = "10.13.76.0/24"
CLIENT_ADDRESS = "10.13.80.4"
CLIENT_GATEWAY = "10.13.80.1"
CLIENT_PREFIX = 24
POD_NETWORK = "10.244.0.0/24"
