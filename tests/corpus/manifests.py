"""ModelDeployments to start from, and a way to say what is different in a copy."""

from __future__ import annotations

import copy
import re
from typing import Any

Manifest = dict[str, Any]

DIGEST = "sha256:" + "3f1c" * 16
VLLM_IMAGE = f"contoso.azurecr.io/vllm/vllm-openai@{DIGEST}"
SGLANG_IMAGE = f"contoso.azurecr.io/lmsysorg/sglang@{DIGEST}"
NIM_IMAGE = f"contoso.azurecr.io/nim/meta/llama-3.1-8b-instruct@{DIGEST}"
ABSENT: Any = object()


def vllm_on_azure_files() -> Manifest:
    """The shortest deployment that serves outside the cluster."""
    return _deployment(
        "llama-3-1-8b",
        {
            "model": {"name": "meta/llama-3.1-8b-instruct"},
            "engine": {"vllm": {"image": VLLM_IMAGE, "version": "0.32.0"}},
            "weights": {"azureFiles": {"account": "contosomodels", "share": "models", "folder": "llama-3-1-8b/fp8"}},
            "endpoint": {"internalLoadBalancer": {}},
        },
    )


def vllm_with_everything_said() -> Manifest:
    """Every field of a vLLM deployment on Azure Files."""
    return _deployment(
        "llama-3-3-70b",
        {
            "model": {"name": "meta/llama-3.3-70b-instruct", "aliases": ["llama-70b"]},
            "engine": {
                "vllm": {
                    "image": VLLM_IMAGE,
                    "version": "0.32.0",
                    "maxModelLength": 32768,
                    "gpuMemoryUtilizationPercent": 92,
                    "kvCacheDtype": "fp8",
                    "tensorParallelSize": 2,
                    "pipelineParallelSize": 2,
                    "extraArgs": ["--enable-prefix-caching", "--reasoning-parser=deepseek_r1"],
                    "extraEnv": [{"name": "VLLM_LOGGING_LEVEL", "value": "INFO"}],
                }
            },
            "weights": {
                "azureFiles": {
                    "account": "contosomodels",
                    "server": "contosomodels.privatelink.file.core.windows.net",
                    "share": "models",
                    "folder": "llama-3-3-70b/bf16",
                    "resourceGroup": "rg-models",
                    "encryptInTransit": False,
                    "mountOptions": ["nconnect=8", "hard"],
                }
            },
            "accelerator": {
                "resource": "nvidia.com/gpu",
                "count": 4,
                "instanceTypes": ["Standard_NC96ads_A100_v4"],
                "tolerations": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"operator": "Exists"}],
            },
            "resources": {"cpu": 8, "memory": "400Gi", "sharedMemory": "16Gi", "scratch": "50Gi"},
            "replicas": 2,
            "startupBudgetSeconds": 1800,
            "drainSeconds": 120,
            "rollout": "Surge",
            "endpoint": {
                "port": 8443,
                "internalLoadBalancer": {
                    "subnet": "ilb",
                    "address": "10.13.76.40",
                    "allowedSourceRanges": ["10.0.0.0/8", "fd00:10::/32"],
                    "idleTimeoutMinutes": 10,
                },
                "allowedClients": [
                    {
                        "namespaceSelector": {"matchLabels": {"hermetic.dev/client": "true"}},
                        "podSelector": {"matchLabels": {"app": "chat"}},
                    }
                ],
                "tls": {"secretName": "llama-tls"},
                "apiKey": {"secretName": "llama-key", "key": "token"},
            },
            "isolation": {"enforcement": "Report", "maxEvidenceAgeSeconds": 3600},
        },
    )


def nim_on_azure_files() -> Manifest:
    """A NIM that reads a staged model folder."""
    return _deployment(
        "nim-llama",
        {
            "model": {"name": "meta/llama-3.1-8b-instruct"},
            "engine": {
                "nim": {"image": NIM_IMAGE, "line": "2.1", "modelPath": "/weights/llama", "extraArgs": ["--x=1"]}
            },
            "weights": {"azureFiles": {"server": "models.z13.file.storage.azure.net", "share": "nim"}},
        },
    )


def nim_with_profile() -> Manifest:
    """A NIM of line 1 that reads a staged cache from a claim."""
    return _deployment(
        "nim-cache",
        {
            "model": {"name": "mistral"},
            "engine": {"nim": {"image": NIM_IMAGE, "line": "1.15", "profile": "vllm-bf16-tp1"}},
            "weights": {"persistentVolumeClaim": {"claimName": "nim.cache", "folder": "mistral"}},
        },
    )


def sglang_with_everything_said() -> Manifest:
    return changed(
        vllm_on_azure_files(),
        {
            "spec.engine": {
                "sglang": {
                    "image": SGLANG_IMAGE,
                    "version": "0.5.23.post1",
                    "maxModelLength": 8192,
                    "memFractionStaticPercent": 85,
                    "kvCacheDtype": "fp8_e4m3",
                    "tensorParallelSize": 1,
                    "pipelineParallelSize": 1,
                    "extraArgs": ["--log-requests", "--ep=1", "--stream-interval", "4"],
                    "extraEnv": [{"name": "SGLANG_LOG_MS", "value": "1"}],
                }
            },
            "spec.endpoint.apiKey": {"secretName": "key"},
        },
    )


def vllm_on_nfs() -> Manifest:
    return changed(
        vllm_on_azure_files(),
        {
            "spec.weights": {"nfs": {"server": "10.13.80.4", "path": "/export/models", "folder": "llama"}},
            "spec.endpoint": ABSENT,
        },
    )


def baked_image() -> Manifest:
    return changed(vllm_on_azure_files(), {"spec.weights": {"bakedImage": {"path": "/models/phi-4"}}})


def image_volume() -> Manifest:
    reference = f"contoso.azurecr.io/models/phi-4:v1@{DIGEST}"
    return changed(vllm_on_azure_files(), {"spec.weights": {"imageVolume": {"reference": reference, "path": "phi-4"}}})


BASES = (
    vllm_on_azure_files,
    vllm_with_everything_said,
    nim_on_azure_files,
    nim_with_profile,
    sglang_with_everything_said,
    vllm_on_nfs,
    baked_image,
    image_volume,
)


def changed(manifest: Manifest, changes: dict[str, Any]) -> Manifest:
    """A copy with the value at each path ('spec.engine.vllm.extraArgs[0]') set, or taken away where it is ABSENT."""
    copied = copy.deepcopy(manifest)
    for path, value in changes.items():
        *parents, last = _steps(path)
        branch: Any = copied
        for step in parents:
            branch = branch.setdefault(step, {}) if isinstance(branch, dict) else branch[step]
        if value is ABSENT:
            del branch[last]
        else:
            branch[last] = copy.deepcopy(value)
    return copied


def _steps(path: str) -> list[int | str]:
    return [int(index) if index else name for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)]


def _deployment(name: str, spec: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name},
        "spec": spec,
    }
