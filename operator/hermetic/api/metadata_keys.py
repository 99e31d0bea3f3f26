"""Keys of labels and annotations that change what a pod or a Service does, and so are no metadata of a platform team.

A key is one where a known program reads it to act: to add a container, an identity, a network or a secret, to lead
traffic, to scrape, to admit or to delete. Only keys that describe are left: `cost-centre`, `example.com/owner`.
"""

from __future__ import annotations

import re

RESERVED_DOMAINS: tuple[str, ...] = (
    # Kubernetes, its projects, AppArmor and seccomp of earlier releases, cloud providers, external-dns, kubectl.
    "kubernetes.io", "k8s.io", "cncf.io", "multus-cni.io", "helm.sh", "operatorframework.io",
    # Hermetic itself: its selectors, its policies and its audit read them.
    "hermetic.dev",
    # Azure: workload identity, load balancers, policies, application gateways.
    "azure.com", "azure.io", "azure.workload.identity", "windows.com",
    # Service meshes and networks, which inject proxies or select pods.
    "istio.io", "linkerd.io", "openservicemesh.io", "kuma.io", "hashicorp.com", "dapr.io", "cilium.io", "io.cilium",
    "projectcalico.org", "tigera.io", "antrea.io", "ovn.org", "tailscale.com", "submariner.io", "traefik.io",
    "konghq.com", "nginx.org", "getambassador.io", "solo.io", "skupper.io", "voyagermesh.com", "openshift.io",
    # Webhooks that admit, change or restart pods.
    "kyverno.io", "gatekeeper.sh", "openpolicyagent.org", "stakater.com", "banzaicloud.io", "bank-vaults.io",
    "external-secrets.io", "cert-manager.io", "akuity.io", "kubewarden.io", "ratify.deislabs.io", "sigstore.dev",
    # GitOps, autoscalers, and what else owns objects by their metadata.
    "fluxcd.io", "argoproj.io", "carvel.dev", "keda.sh", "knative.dev", "crossplane.io", "velero.io", "karpenter.sh",
    "tekton.dev", "kubeflow.org", "kueue.x-k8s.io", "volcano.sh", "yunikorn.apache.org", "kubevirt.io", "run.ai",
    # Agents that inject code or scrape.
    "prometheus.io", "opentelemetry.io", "datadoghq.com", "dynatrace.com", "newrelic.com", "elastic.co", "splunk.com",
    "grafana.com", "pixie.io", "instana.io", "appdynamics.com", "fluentbit.io", "fluentd.org", "sysdig.com",
    "crowdstrike.com", "aquasec.com", "stackrox.io",
    # Runtimes and devices.
    "io.kubernetes", "katacontainers.io", "io.katacontainers", "containerd.io", "io.containerd", "crio.io", "cri-o",
    "nvidia.com", "amd.com", "intel.com", "gvisor.dev", "dev.gvisor",
)  # fmt: skip
"""DNS names before the '/' of a key: each with every name below it."""

RESERVED_NAMES: tuple[str, ...] = (
    # AAD Pod Identity; labels of controllers of Kubernetes; the system's own Services; Istio; Prometheus' old form.
    "aadpodidbinding", "app", "component", "controller-revision-hash", "controller-uid",
    "istio", "job-name", "k8s-app", "name", "pod-template-generation", "pod-template-hash", "release", "role", "tier",
)  # fmt: skip
"""Keys without a DNS name that selectors of Services, NetworkPolicies and controllers commonly read."""

RESERVED_PARTS: tuple[str, ...] = (
    "apparmor", "cni", "egress", "identity", "ingress", "inject", "injection", "injector", "mesh", "networkpolicy",
    "proxy", "scrape", "seccomp", "sidecar", "webhook",
)  # fmt: skip
"""Words of a key that name a behaviour, in every domain: 'sidecar.example.com/inject'."""

_WORDS = re.compile(r"[./_-]+")


def reserved_because(key: str) -> str:
    """One clause why a key may not be given to models; "" for a key that only describes."""
    prefix, slash, _ = key.rpartition("/")
    for domain in RESERVED_DOMAINS if slash else ():
        if prefix == domain or prefix.endswith(f".{domain}"):
            return f"keys of '{domain}' change what pods, Services or controllers do"
    if not slash and key in RESERVED_NAMES:
        return "selectors of Services, NetworkPolicies and controllers read this key"
    for word in _WORDS.split(key.lower()):
        if word in RESERVED_PARTS:
            return f"'{word}' names a behaviour, and webhooks and agents act on such keys"
    return ""
