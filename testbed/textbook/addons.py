"""What AKS add-ons, and what every second enterprise enforces by policy, run in a cluster."""

from __future__ import annotations

from collections.abc import Callable

from testbed.textbook.aks import OSS, Plane, aggregated
from testbed.textbook.kinds import ERASER, GATEKEEPER, MONITOR, NETWORK_SECURITY, SCALERS, SECRETS_STORE, definitions
from testbed.textbook.objects import (
    MICROSOFT,
    Manifest,
    Part,
    a_pod,
    agent,
    an_object,
    controller,
    namespace,
    owner,
    service,
    webhook,
)

Added = Callable[[Plane], list[Manifest]]
KUBE = "kube-system"


def azure_monitor(plane: Plane) -> list[Manifest]:
    """Container Insights and managed Prometheus.

    learn.microsoft.com/azure/azure-monitor/containers/kubernetes-monitoring-enable names ama-logs, ama-logs-rs,
    ama-metrics, ama-metrics-ksm, ama-metrics-node and ama-metrics-operator-targets; the chart is public in
    microsoft/Docker-Provider and Azure/prometheus-collector.
    """
    collector = f"{MICROSOFT}/azuremonitor/containerinsights/ciprod:3.1.31"
    prometheus = f"{MICROSOFT}/azuremonitor/containerinsights/ciprod/prometheus-collector/images"
    folders = ("/", "/var/log", "/etc/kubernetes", "/run/containerd")
    logs = Part(collector, "ama-logs", {"component": "ama-logs-agent"}, privileged=True, folders=folders)
    metrics = Part(f"{prometheus}:6.24.0-main", "ama-metrics-serviceaccount", {"rsName": "ama-metrics"})
    node = Part(
        f"{prometheus}:6.24.0-main",
        "ama-metrics-serviceaccount",
        {"dsName": "ama-metrics-node"},
        capabilities=("DAC_OVERRIDE",),
        privileged=True,
        folders=("/etc/kubernetes", "/var/log/containers", "/var/log/pods"),
    )
    ksm = Part(f"{prometheus}:6.24.0-main-ksm", "ama-metrics-ksm", {"app.kubernetes.io/name": "ama-metrics-ksm"})
    return [
        *agent("ama-logs", KUBE, logs, plane.machines),
        *controller("ama-logs-rs", KUBE, Part(collector, "ama-logs", {"rsName": "ama-logs-rs"}), plane.system[:1]),
        *controller("ama-metrics", KUBE, metrics, plane.system),
        *controller("ama-metrics-ksm", KUBE, ksm, plane.system[:1]),
        *controller("ama-metrics-operator-targets", KUBE, metrics, plane.system[:1]),
        *agent("ama-metrics-node", KUBE, node, plane.machines),
        *definitions(MONITOR),
    ]


def defender(plane: Plane) -> list[Manifest]:
    """Microsoft Defender for Containers.

    learn.microsoft.com/azure/defender-for-cloud/defender-for-containers-architecture lists the DaemonSets
    microsoft-defender-collector-ds (hostPID, capabilities of the kernel) and microsoft-defender-publisher-ds and the
    Deployment microsoft-defender-collector-misc.
    """
    images = f"{MICROSOFT}/azuredefender/stable"
    collector = Part(
        f"{images}/low-level-collector:2.0.205",
        "microsoft-defender-collector-sa",
        {"dsName": "microsoft-defender-collector-ds"},
        host_pid=True,
        capabilities=("SYS_ADMIN", "SYS_RESOURCE", "SYS_PTRACE", "NET_ADMIN", "DAC_OVERRIDE"),
        folders=("/sys/kernel/debug", "/sys", "/proc", "/run/containerd"),
        first=(f"{images}/low-level-init:1.3.81",),
        beside=(f"{images}/pod-collector:1.0.177",),
    )
    publisher = Part(
        f"{images}/security-publisher:1.0.211",
        "microsoft-defender-publisher-sa",
        {"dsName": "microsoft-defender-publisher-ds"},
        folders=("/var/microsoft/microsoft-defender-for-cloud",),
    )
    misc = Part(f"{images}/pod-collector:1.0.177", "microsoft-defender-collector-sa", {"app": "collector-misc"})
    return [
        *agent("microsoft-defender-collector-ds", KUBE, collector, plane.machines),
        *agent("microsoft-defender-publisher-ds", KUBE, publisher, plane.machines),
        *controller("microsoft-defender-collector-misc", KUBE, misc, plane.system[:1]),
    ]


def azure_policy(plane: Plane) -> list[Manifest]:
    """learn.microsoft.com/azure/governance/policy/concepts/policy-for-kubernetes: the add-on, and Gatekeeper."""
    policy = Part(
        f"{MICROSOFT}/azure-policy/policy-kubernetes-addon-prod:1.15.1", "azure-policy", {"app": "azure-policy"}
    )
    hook = Part(
        f"{MICROSOFT}/azure-policy/policy-kubernetes-webhook-prod:1.15.1",
        "azure-policy-webhook-account",
        {"app": "azure-policy-webhook"},
    )
    keeper = Part(f"{OSS}/open-policy-agent/gatekeeper:v3.18.2-1", "gatekeeper-admin", {"gatekeeper.sh/system": "yes"})
    return [
        namespace("gatekeeper-system", **{"admission.gatekeeper.sh/ignore": "no-self-managing"}),
        *definitions(GATEKEEPER),
        *controller("azure-policy", KUBE, policy, plane.system[:1]),
        *controller("azure-policy-webhook", KUBE, hook, plane.system[:1]),
        *controller("gatekeeper-audit", "gatekeeper-system", keeper, plane.system[:1]),
        *controller("gatekeeper-controller", "gatekeeper-system", keeper, plane.system),
        an_object("templates.gatekeeper.sh/v1", "ConstraintTemplate", "k8sazurev2blockdefault", spec={}),
        service("gatekeeper-webhook-service", "gatekeeper-system", {"gatekeeper.sh/system": "yes"}, 443),
        service("azure-policy-webhook-service", KUBE, {"app": "azure-policy-webhook"}, 443),
        webhook(
            "ValidatingWebhookConfiguration",
            "gatekeeper-validating-webhook-configuration",
            "gatekeeper-system",
            "gatekeeper-webhook-service",
        ),
        webhook(
            "MutatingWebhookConfiguration", "azure-policy-webhook-configuration", KUBE, "azure-policy-webhook-service"
        ),
    ]


def image_cleaner(plane: Plane) -> list[Manifest]:
    """learn.microsoft.com/azure/aks/image-cleaner: a controller, and while it cleans a worker pod on every node.

    A worker belongs to the ImageJob that the controller made (eraser-dev/eraser), and mounts the containerd socket.
    """
    images = f"{OSS}/eraser"
    keeper = Part(
        f"{images}/eraser-manager:v1.3.1", "eraser-controller-manager", {"control-plane": "controller-manager"}
    )
    worker = Part(
        f"{images}/collector:v1.3.1",
        "eraser-imagejob-pods",
        {"name": "collector", "eraser.sh/type": "collector"},
        folders=("/run/containerd/containerd.sock",),
        beside=(f"{images}/eraser-trivy-scanner:v1.3.1", f"{images}/remover:v1.3.1"),
    )
    job = owner("eraser.sh/v1", "ImageJob", "imagejob-8xkz2")
    return [
        *controller("eraser-controller-manager", KUBE, keeper, plane.system[:1]),
        *definitions(ERASER),
        *(a_pod(f"eraser-aks-{machine.name[4:]}-x7k2p", KUBE, worker, machine, job) for machine in plane.machines),
    ]


def workload_identity(plane: Plane) -> list[Manifest]:
    """learn.microsoft.com/azure/aks/workload-identity-overview: the webhook in kube-system."""
    hook = Part(f"{OSS}/azure/workload-identity/webhook:v1.5.0", "azure-wi-webhook-admin", {"app": "azure-wi-webhook"})
    name = "azure-wi-webhook-controller-manager"
    return [
        *controller(name, KUBE, hook, plane.system),
        service("azure-wi-webhook-webhook-service", KUBE, {"app": "azure-wi-webhook"}, 443),
        webhook(
            "MutatingWebhookConfiguration",
            "azure-wi-webhook-mutating-webhook-configuration",
            KUBE,
            "azure-wi-webhook-webhook-service",
        ),
    ]


def secrets_store(plane: Plane) -> list[Manifest]:
    """learn.microsoft.com/azure/aks/csi-secrets-store-driver: the driver and Azure's provider on every node."""
    driver = Part(
        f"{OSS}/kubernetes-csi/secrets-store/driver:v1.4.8",
        "aks-secrets-store-csi-driver",
        {"app": "secrets-store-csi-driver"},
        privileged=True,
        folders=("/var/lib/kubelet/pods", "/var/lib/kubelet/plugins/csi-secrets-store", "/etc/kubernetes"),
    )
    provider = Part(
        f"{OSS}/azure/secrets-store/provider-azure:v1.6.2",
        "aks-secrets-store-provider-azure",
        {"app": "secrets-store-provider-azure"},
        host_network=True,
        folders=("/var/lib/kubelet/pods", "/var/run/secrets-store-csi-providers"),
    )
    return [
        *agent("aks-secrets-store-csi-driver", KUBE, driver, plane.machines),
        *agent("aks-secrets-store-provider-azure", KUBE, provider, plane.machines),
        # github.com/kubernetes/ingress-nginx/issues/13351 lists those for Windows, without a pod.
        *agent("aks-secrets-store-csi-driver-windows", KUBE, driver, ()),
        *agent("aks-secrets-store-provider-azure-windows", KUBE, provider, ()),
        *definitions(SECRETS_STORE),
    ]


def autoscalers(plane: Plane) -> list[Manifest]:
    """KEDA, vertical pod autoscaler, node auto provisioning: learn.microsoft.com/azure/aks/intro-aks-automatic."""
    keda = f"{OSS}/kedacore"
    manifests: list[Manifest] = []
    for name, image in (
        ("keda-operator", "keda:v2.17.2"),
        ("keda-operator-metrics-apiserver", "keda-metrics-apiserver:v2.17.2"),
        ("keda-admission-webhooks", "keda-admission-webhooks:v2.17.2"),
    ):
        manifests += controller(name, KUBE, Part(f"{keda}/{image}", "keda-operator", {"app": name}), plane.system[:1])
    for name in ("vpa-recommender", "vpa-updater", "vpa-admission-controller"):
        part = Part(f"{OSS}/kubernetes/autoscaler/{name}:1.2.1", name, {"app": name})
        manifests += controller(name, KUBE, part, plane.system[:1])
    return [
        *manifests,
        *definitions(SCALERS),
        an_object("karpenter.azure.com/v1beta1", "AKSNodeClass", "default", spec={"imageFamily": "Ubuntu2204"}),
        an_object("karpenter.sh/v1", "NodePool", "default", spec={}),
        service("keda-operator-metrics-apiserver", KUBE, {"app": "keda-operator-metrics-apiserver"}, 443),
        service("keda-admission-webhooks", KUBE, {"app": "keda-admission-webhooks"}, 443),
        service("vpa-webhook", KUBE, {"app": "vpa-admission-controller"}, 443),
        aggregated("v1beta1.external.metrics.k8s.io", "keda-operator-metrics-apiserver"),
        webhook("ValidatingWebhookConfiguration", "keda-admission", KUBE, "keda-admission-webhooks"),
        webhook("MutatingWebhookConfiguration", "vpa-webhook-config", KUBE, "vpa-webhook"),
    ]


def network_security(plane: Plane) -> list[Manifest]:
    """learn.microsoft.com/azure/aks/advanced-container-networking-services-overview: its agent on every node."""
    images = f"{MICROSOFT}/containernetworking"
    security = Part(
        f"{images}/acns-security-agent:v1.1.0",
        "acns-security-agent",
        {"k8s-app": "acns-security-agent"},
        host_network=True,
        capabilities=("NET_ADMIN", "NET_RAW"),
        folders=("/var/run/cilium",),
    )
    return [*agent("acns-security-agent", KUBE, security, plane.machines), *definitions(NETWORK_SECURITY)]
