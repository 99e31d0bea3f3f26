"""Table I and the Kubernetes rows of F and G: nodes, storage, names, and whom the API server calls.

Resources are named as in `kube_services`.
"""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.kube_cluster import calls, names, nodes, servers, storage

CHECKS = family(
    __package__ or "",
    {
        "k8s-node-externalip": nodes.external_ip,
        "k8s-webhook-external": calls.webhooks,
        "k8s-apiservice-external": calls.aggregated,
        "csi-nfs-storageclass": storage.nfs_classes,
        "weights-share-writable": storage.writable_shares,
        "k8s-outside-storage": servers.outside_storage,
        "coredns-custom": names.coredns,
    },
)
