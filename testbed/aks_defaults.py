"""What every AKS cluster has and a bare API server has not: a policy engine, a Corefile, the API server's endpoints."""

from __future__ import annotations

from typing import Any

from testbed.api import Api

COREFILE = ".:53 {\n    kubernetes cluster.local in-addr.arpa ip6.arpa\n    forward . /etc/resolv.conf\n}\n"


def create_aks_defaults(api: Api) -> None:
    """Make them. The agents become pods on every simulated node; nothing is enforced."""
    agent: dict[str, Any] = {
        "containers": [
            {"name": "agent", "image": "mcr.microsoft.com/containernetworking/cilium/cilium@sha256:" + "c" * 64}
        ]
    }
    agent |= {"hostNetwork": True, "tolerations": [{"operator": "Exists"}]}
    labels = {"k8s-app": "cilium"}
    template = {"metadata": {"labels": labels}, "spec": agent}
    engine = {"metadata": {"name": "cilium"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    api.create("/apis/apps/v1/namespaces/kube-system/daemonsets", engine)
    corefile = {"metadata": {"name": "coredns"}, "data": {"Corefile": COREFILE}}
    api.create("/api/v1/namespaces/kube-system/configmaps", corefile)
    endpoints: dict[str, Any] = {
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}}
    }
    endpoints |= {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.200"]}]}
    api.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", endpoints)
