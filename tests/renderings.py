"""One deployment per shape that can be rendered: what unit, property and golden tests and a real API server all see."""

from __future__ import annotations

from testbed.installation import CONFIGURATION
from tests.scenarios import (
    NIM_IMAGE,
    SGLANG_IMAGE,
    VLLM_IMAGE,
    Manifest,
    a_baked_model,
    a_nim_model,
    a_share_model,
    an_image_volume_model,
    an_sglang_model,
    changed,
)

# A share that is mounted from a host name of its own must be listed with it.
SHARES = [
    *CONFIGURATION["shares"],
    {
        "account": "contosomodels",
        "share": "models",
        "server": "contosomodels.privatelink.file.core.windows.net",
        "namespaces": ["*"],
    },
]
OWNER_UID = "7d3f9c52-0f5e-4c0f-9d0a-6f1f3f8f2b11"


def everything_said() -> Manifest:
    """Every optional part of a vLLM deployment, as a careful user would write it."""
    return a_share_model(
        "llama-3-3-70b",
        model={"name": "meta/llama-3.3-70b-instruct", "aliases": ["llama-70b"]},
        engine={
            "vllm": {
                "image": VLLM_IMAGE,
                "version": "0.32.0",
                "maxModelLength": 32768,
                "gpuMemoryUtilizationPercent": 92,
                "kvCacheDtype": "fp8",
                "tensorParallelSize": 2,
                "pipelineParallelSize": 2,
                "extraArgs": ["--enable-prefix-caching"],
                "extraEnv": [{"name": "VLLM_LOGGING_LEVEL", "value": "INFO"}],
            }
        },
        weights={
            "azureFiles": {
                "account": "contosomodels",
                "server": "contosomodels.privatelink.file.core.windows.net",
                "share": "models",
                "folder": "llama-3-3-70b/bf16",
                "resourceGroup": "rg-models",
                "encryptInTransit": True,
                "mountOptions": ["nconnect=4", "noresvport", "actimeo=30", "nocto"],
            }
        },
        accelerator={
            "resource": "nvidia.com/gpu",
            "count": 4,
            "instanceTypes": ["Standard_NC96ads_A100_v4"],
            "tolerations": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
        },
        resources={"cpu": "16", "memory": "400Gi", "sharedMemory": "16Gi", "scratch": "50Gi"},
        replicas=2,
        startupBudgetSeconds=1800,
        drainSeconds=120,
        rollout="Surge",
        endpoint={
            "port": 8443,
            "internalLoadBalancer": {
                "subnet": "ilb",
                "address": "10.13.76.40",
                "allowedSourceRanges": ["10.0.0.0/8"],
                "idleTimeoutMinutes": 30,
            },
            "allowedClients": [{"namespaceSelector": {"matchLabels": {"hermetic.dev/client": "true"}}}],
            "tls": {"secretName": "llama-tls"},
            "apiKey": {"secretName": "llama-key", "key": "token"},
        },
        isolation={"enforcement": "Enforce", "maxEvidenceAgeSeconds": 86400},
    )


def with_tls_and_api_key() -> Manifest:
    """The short form, served over HTTPS to holders of a key."""
    return a_share_model(
        "guarded",
        endpoint={
            "internalLoadBalancer": {},
            "tls": {"secretName": "guarded-tls"},
            "apiKey": {"secretName": "guarded-key"},
        },
    )


def on_a_slice() -> Manifest:
    """A small model on a MIG slice, reachable inside the cluster only."""
    return a_baked_model(
        "slice",
        accelerator={"resource": "nvidia.com/mig-1g.10gb"},
        endpoint={"allowedClients": [{"podSelector": {"matchLabels": {"app": "chat"}}}]},
    )


def with_checked_gpus() -> Manifest:
    """Eight GPUs of one node, which must be healthy before the engine starts."""
    return a_share_model("checked", accelerator={"count": 8, "preflight": {"policy": "Require"}})


def on_amd() -> Manifest:
    """Eight MI300X of one node."""
    return a_share_model("rocm", accelerator={"resource": "amd.com/gpu", "count": 8}, resources={"memory": "1500Gi"})


def from_a_nim_cache() -> Manifest:
    """A NIM of line 1 with a pinned profile of a staged cache."""
    nim = _nim(line="1.15", profile="vllm-bf16-tp2")
    return changed(a_nim_model("nim-profile"), engine={"nim": nim}, accelerator={"count": 2})


def a_guarded_nim() -> Manifest:
    """A NIM of line 2 over HTTPS, with everything a NIM can be told."""
    nim = _nim(
        line="2.1",
        modelPath="/weights/llama-3-1-8b",
        maxModelLength=8192,
        extraArgs=["--enable-prefix-caching"],
        extraEnv=[{"name": "NIM_JSONL_LOGGING", "value": "1"}],
    )
    endpoint = {"internalLoadBalancer": {}, "tls": {"secretName": "nim-tls"}}
    return changed(a_nim_model("nim-guarded"), engine={"nim": nim}, endpoint=endpoint)


def a_guarded_sglang() -> Manifest:
    """Every optional part of an SGLang deployment, over HTTPS to holders of a key."""
    sglang = {
        "image": SGLANG_IMAGE,
        "version": "0.5.23",
        "maxModelLength": 32768,
        "memFractionStaticPercent": 85,
        "kvCacheDtype": "fp8_e4m3",
        "tensorParallelSize": 2,
        "pipelineParallelSize": 2,
        "extraArgs": ["--chunked-prefill-size", "4096", "--log-requests"],
        "extraEnv": [{"name": "SGLANG_LOG_MS", "value": "1"}],
    }
    endpoint = {
        "port": 8443,
        "internalLoadBalancer": {},
        "tls": {"secretName": "sglang-tls"},
        "apiKey": {"secretName": "sglang-key", "key": "token"},
    }
    return an_sglang_model(
        "sglang-guarded", engine={"sglang": sglang}, accelerator={"count": 4}, drainSeconds=60, endpoint=endpoint
    )


def from_another_nfs_server() -> Manifest:
    """Any NFS server, through its own CSI driver."""
    nfs = {"server": "nfs.contoso.internal", "path": "/export/models", "folder": "phi-4"}
    return a_share_model("nas", weights={"nfs": nfs})


def from_a_claim() -> Manifest:
    """A claim that the platform team made."""
    claim = {"claimName": "staged-weights", "folder": "llama/fp8"}
    return a_share_model("claimed", weights={"persistentVolumeClaim": claim})


def from_a_claim_for_a_group() -> Manifest:
    """A NIM cache on a claim whose files only a group may read."""
    nim = _nim(line="2.1", profile="vllm-bf16-tp1-pp1")
    weights = {"persistentVolumeClaim": {"claimName": "staged-weights"}, "supplementalGroups": [2000, 2147483647]}
    return changed(a_nim_model("nim-of-a-group"), engine={"nim": nim}, weights=weights)


def scheduled() -> Manifest:
    """A CPU limit, a priority class and a node pool, as policies of a platform want; and a well-known port.

    Not in RENDERINGS: it needs lists of the configuration and a PriorityClass in the cluster.
    """
    scheduling = {"priorityClassName": "models", "nodeSelector": {"kubernetes.azure.com/agentpool": "gpu"}}
    endpoint = {"port": 8443, "servicePort": 443, "tls": {"secretName": "served-tls"}, "internalLoadBalancer": {}}
    return a_share_model("scheduled", resources={"cpuLimit": "16"}, scheduling=scheduling, endpoint=endpoint)


def with_compile_caches() -> Manifest:
    """Compile caches of two GPU models in the image of the weights, of which one is the deployment's."""
    key = {"engine": "vllm", "version": "0.32.0", "tensorParallelSize": 2}
    model = an_image_volume_model("warm", accelerator={"count": 2, "instanceTypes": ["Standard_NC80adis_H100_v5"]})
    caches = [{**key, "gpu": "A100-80GB"}, {**key, "gpu": "H100-NVL"}]
    return changed(model, weights={**model["spec"]["weights"], "caches": caches})


def autoscaled() -> Manifest:
    """SGLang, whose metrics need a flag, between two and four pods by its queue."""
    autoscaling = {"minReplicas": 2, "maxReplicas": 4, "queuedRequests": 8}
    return an_sglang_model("autoscaled", autoscaling=autoscaling)


def with_adapters() -> Manifest:
    """An adapter beside the model, mounted and verified on its own, and one that is part of the model."""
    return a_share_model(
        "adapted",
        adapters=[
            {"name": "support-de", "folder": "adapters/support-de", "rank": 16},
            {"name": "sql", "folder": "llama-3-1-8b/fp8/adapters/sql", "rank": 64},
        ],
    )


def behind_a_gateway() -> Manifest:
    """A model that shares a gateway with others, under a host name.

    Not in RENDERINGS: it needs `gateways` of the configuration, and the Gateway API in the cluster.
    """
    gateway = {"name": "models", "namespace": "gateways", "hostname": "models.contoso.internal"}
    return a_baked_model("routed", endpoint={"gateway": gateway})


def with_offloaded_cache() -> Manifest:
    """Prompts that left the GPUs stay in the memory of the node, which the pod asks for in addition."""
    return a_share_model(
        "offloaded", accelerator={"count": 2}, resources={"memory": "96Gi"}, kvCacheOffload={"memory": "64Gi"}
    )


def _nim(**fields: object) -> Manifest:
    return {"image": NIM_IMAGE, **fields}


RENDERINGS: dict[str, Manifest] = {
    "share": a_share_model(),
    "everything-said": everything_said(),
    "tls-and-api-key": with_tls_and_api_key(),
    "nim-model-store": a_nim_model(),
    "nim-profile": from_a_nim_cache(),
    "nim-guarded": a_guarded_nim(),
    "sglang": an_sglang_model(),
    "sglang-guarded": a_guarded_sglang(),
    "baked-image": a_baked_model(),
    "image-volume": an_image_volume_model(),
    "mig-slice": on_a_slice(),
    "amd": on_amd(),
    "nfs": from_another_nfs_server(),
    "claim": from_a_claim(),
    "compile-caches": with_compile_caches(),
    "autoscaled": autoscaled(),
    "adapters": with_adapters(),
    "checked-gpus": with_checked_gpus(),
    "offloaded-cache": with_offloaded_cache(),
    "nim-of-a-group": from_a_claim_for_a_group(),
}


def of_groups() -> Manifest:
    """Two replicas of two nodes each, with the InfiniBand devices of the nodes."""
    interconnect = {"type": "InfiniBand", "resource": "rdma/ib", "count": 8}
    accelerator = {"count": 8, "nodes": 2, "instanceTypes": ["Standard_ND96isr_H100_v5"], "interconnect": interconnect}
    return a_share_model("wide", accelerator=accelerator, replicas=2)


def of_an_sglang_group() -> Manifest:
    """One replica of four nodes, reachable inside the cluster only."""
    return an_sglang_model("sglang-wide", accelerator={"count": 8, "nodes": 4}, endpoint={})


# Apart from the others: they have several objects of one kind.
GROUP_RENDERINGS: dict[str, Manifest] = {"group": of_groups(), "sglang-group": of_an_sglang_group()}
