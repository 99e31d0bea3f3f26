"""What must be accepted, by `hermetic validate` and by the API server: (name, manifest)."""

from __future__ import annotations

from typing import Any

from tests.attestations import a_p256_key, public_pem_of
from tests.corpus.manifests import (
    ABSENT,
    BASES,
    DIGEST,
    Manifest,
    changed,
    nim_on_azure_files,
    vllm_on_azure_files,
    vllm_with_everything_said,
)
from tests.corpus.refused_adapters import an_adapter
from tests.corpus.refused_groups import VALID_GROUPS

_VLLM = "spec.engine.vllm"
_SHARE = "spec.weights.azureFiles"
_BALANCER = "spec.endpoint.internalLoadBalancer"


def _vllm(name: str, changes: dict[str, Any]) -> tuple[str, Manifest]:
    return name, changed(vllm_on_azure_files(), changes)


VALID: tuple[tuple[str, Manifest], ...] = (
    *((base.__name__, base()) for base in BASES),
    *VALID_GROUPS,
    _vllm("zero replicas", {"spec.replicas": 0}),
    _vllm("most replicas", {"spec.replicas": 256}),
    _vllm("autoscaling with defaults", {"spec.autoscaling": {"maxReplicas": 4}}),
    _vllm(
        "autoscaling at its bounds",
        {"spec.autoscaling": {"minReplicas": 256, "maxReplicas": 256, "queuedRequests": 999}},
    ),
    _vllm("adapter beside the model", {"spec.adapters": [an_adapter(integrity={"digest": DIGEST})]}),
    _vllm("adapter below the model", {"spec.adapters": [an_adapter(folder="llama-3-1-8b/fp8/sql", rank=512)]}),
    _vllm("adapter in a folder that begins as the model's", {"spec.adapters": [an_adapter(folder="llama-3-1-8b/fp")]}),
    _vllm("most adapters", {"spec.adapters": [an_adapter(name=f"a{number}") for number in range(16)]}),
    _vllm(
        "adapter of a whole share",
        {f"{_SHARE}.folder": ABSENT, "spec.adapters": [an_adapter()]},
    ),
    _vllm(
        "adapter of an image",
        {"spec.weights": {"bakedImage": {"path": "/models/phi-4"}}, "spec.adapters": [an_adapter()]},
    ),
    ("no adapters of a NIM", changed(nim_on_azure_files(), {"spec.adapters": []})),
    _vllm("a cache of one GiB in the memory of the node", {"spec.kvCacheOffload": {"memory": "1Gi"}}),
    _vllm("the largest cache in the memory of the node", {"spec.kvCacheOffload": {"memory": "9999Gi"}}),
    _vllm("null is absent", {"spec.replicas": None, "spec.accelerator": None, f"{_VLLM}.kvCacheDtype": None}),
    _vllm(
        "null in labels is absent", {"spec.endpoint.allowedClients": [{"podSelector": {"matchLabels": {"a": None}}}]}
    ),
    _vllm("no endpoint at all", {"spec.endpoint": ABSENT}),
    _vllm("a gateway with its defaults", {"spec.endpoint": {"gateway": {"name": "models"}}}),
    _vllm(
        "a gateway with everything said",
        {
            "spec.endpoint": {
                "gateway": {
                    "name": "models.v1",
                    "namespace": "gateways",
                    "hostname": "models.contoso.internal",
                    "path": "/team-a/chat_v1.2",
                },
                "apiKey": {"secretName": "key"},
                "servicePort": 80,
            }
        },
    ),
    _vllm("a member of a group", {"spec.endpoint": {"gateway": {"name": "models", "group": "chat", "weight": 100}}}),
    _vllm("a gateway with the path of all", {"spec.endpoint": {"gateway": {"name": "models", "path": "/"}}}),
    _vllm("empty lists", {f"{_VLLM}.extraArgs": [], f"{_VLLM}.extraEnv": [], f"{_BALANCER}.allowedSourceRanges": []}),
    _vllm("name of 46 letters", {"metadata.name": "a" * 46}),
    _vllm("name of one letter", {"metadata.name": "a"}),
    _vllm("image with port and tag", {f"{_VLLM}.image": f"registry.local:5000/vllm:v1@{DIGEST}"}),
    _vllm("image with underscores", {f"{_VLLM}.image": f"r.io/a_b/c__d/e-f@{DIGEST}"}),
    _vllm("shell text stays text", {f"{_VLLM}.extraArgs": ["$(HOME)", "`id`", "; rm -rf /", "--seed=$((1))", "a b"]}),
    _vllm(
        "flags that look reserved",
        {f"{_VLLM}.extraArgs": ["--reasoning-parser", "--tokenizer=x", "--no-x", "-q", "-1"]},
    ),
    _vllm(
        "keys that look reserved",
        {f"{_VLLM}.extraArgs": ['--override-generation-config={"a": "plugin"}', "--root-path=/x.plugin", "a.plugin"]},
    ),
    _vllm("values with dashes", {f"{_VLLM}.extraArgs": ["--seed", "1", "--", "--override-generation-config={}"]}),
    _vllm(
        "variables that look reserved", {f"{_VLLM}.extraEnv": [{"name": "HF_TOKENS"}, {"name": "KEY"}, {"name": "cc"}]}
    ),
    _vllm("emoji in a value", {f"{_VLLM}.extraEnv": [{"name": "NOTE", "value": "weights ⚖️ are heavy"}]}),
    _vllm("folder with emoji", {f"{_SHARE}.folder": "modèles/🦙 llama/v1"}),
    _vllm("folder with dots in names", {f"{_SHARE}.folder": "a..b/.c/d"}),
    _vllm("folder of 1024 characters", {f"{_SHARE}.folder": "é" * 1024}),
    _vllm("share of 3 characters", {f"{_SHARE}.share": "a-1"}),
    _vllm("share of 63 characters", {f"{_SHARE}.share": "a" * 63}),
    _vllm("last private address", {f"{_BALANCER}.address": "100.127.255.255"}),
    _vllm("IPv6 source range", {f"{_BALANCER}.allowedSourceRanges": ["fd00::/8", "10.1.2.3/32", "10.0.0.0/9"]}),
    _vllm("source range of one bit", {f"{_BALANCER}.allowedSourceRanges": ["128.0.0.0/1"]}),
    _vllm("pipeline of four stages", {"spec.accelerator.count": 8, f"{_VLLM}.pipelineParallelSize": 4}),
    _vllm("quantities in thousandths", {"spec.resources": {"cpu": "1500m", "memory": "1.125Ti", "scratch": "0.001k"}}),
    _vllm("quantities as numbers", {"spec.resources": {"cpu": 0, "memory": 2**40, "scratch": "0.5Ti"}}),
    _vllm("MIG slices", {"spec.accelerator.resource": "nvidia.com/mig-1g.10gb"}),
    *(
        _vllm(resource, {"spec.accelerator.resource": resource})
        for resource in (
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-1g.10gb.me",
            "nvidia.com/mig-2g.24gb.me.all",
            "amd.com/cpx_nps4",
            "amd.com/spx_nps1",
            "amd.com/dpx_nps2",
            "amd.com/qpx_nps4",
        )
    ),
    _vllm("CPU limit", {"spec.resources": {"cpu": 8, "cpuLimit": 16}}),
    _vllm("disk limit", {"spec.resources": {"scratch": "10Gi", "ephemeralStorageLimit": "13Gi"}}),
    _vllm("lowest port of a Service", {"spec.endpoint.servicePort": 1}),
    _vllm("https port", {"spec.endpoint.servicePort": 443}),
    _vllm("priority class", {"spec.scheduling": {"priorityClassName": "models.high"}}),
    _vllm("node labels", {"spec.scheduling": {"nodeSelector": {"kubernetes.azure.com/agentpool": "gpu", "a": ""}}}),
    _vllm("nothing of scheduling", {"spec.scheduling": {}}),
    *(
        _vllm(f"checks of GPUs: {policy}", {"spec.accelerator.preflight": {"policy": policy}})
        for policy in ("Require", "Warn", "Off")
    ),
    _vllm("checks of GPUs by default", {"spec.accelerator.preflight": {}}),
    _vllm("AMD", {"spec.accelerator.resource": "amd.com/gpu"}),
    _vllm("hidden key of a Secret", {"spec.endpoint.apiKey": {"secretName": "a.b-c", "key": ".key_1"}}),
    _vllm("clients everywhere", {"spec.endpoint.allowedClients": [{"namespaceSelector": {}}]}),
    _vllm("every taint", {"spec.accelerator.tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}),
    _vllm("taint of a domain", {"spec.accelerator.tolerations": [{"key": "nvidia.com/gpu", "value": ""}]}),
    _vllm("no taint", {"spec.accelerator.tolerations": []}),
    _vllm("isolation off", {"spec.isolation": {"enforcement": "Off"}}),
    _vllm("metadata of others", {"metadata.labels": {"team": "a"}, "metadata.annotations": {"x": "y"}}),
    (
        "NIM of line 1 without arguments",
        changed(
            nim_on_azure_files(),
            {"spec.engine.nim": {**nim_on_azure_files()["spec"]["engine"]["nim"], "line": "1.0", "extraArgs": []}},
        ),
    ),
    _vllm(
        "facts of a model",
        {
            "spec.weights.facts": {
                "modelType": "gpt_oss",
                "architecture": "GptOssForCausalLM",
                "parameterBytes": 65_248_815_744,
                "tensorBytes": [{"format": "BF16", "bytes": 0}, {"format": "U8", "bytes": 65_248_815_744}],
                "shards": {"count": 15, "largestBytes": 4_600_000_000},
                "dtype": "bfloat16",
                "maxModelLength": 131_072,
                "attention": {
                    "layers": 36,
                    "heads": 64,
                    "keyValueHeads": 8,
                    "headDimension": 64,
                    "hiddenSize": 2880,
                    "slidingWindow": {"tokens": 128, "layers": 18},
                },
                "experts": {"count": 128, "perToken": 4, "intermediateSize": 2880},
                "quantization": {"method": "mxfp4"},
                "notComputed": ["what requests with images take"],
            }
        },
    ),
    _vllm(
        "weights that are pinned",
        {
            "spec.weights.integrity": {
                "policy": "Warn",
                "digest": f"sha256:{'0a' * 32}",
                "publicKey": public_pem_of(a_p256_key().key),
                "allow": ["modeling_x.py", "code/tokenization x.py"],
            }
        },
    ),
    _vllm("weights that need not be verified", {"spec.weights.integrity": {"policy": "Off"}}),
    _vllm(
        "facts of a NIM cache",
        {
            "spec.weights.facts": {
                "modelType": "nim",
                "parameterBytes": 1,
                "nimProfiles": [
                    {"id": "a" * 64, "name": "tensorrt_llm-h100_nvl-fp8-tp2-pp1-throughput-2321:10de-5e20-4"},
                    {"name": "vllm-bf16-tp2-pp1"},
                ],
            }
        },
    ),
    _vllm("facts that say little", {"spec.weights.facts": {"modelType": "new", "parameterBytes": 1}}),
    _vllm(
        "compile caches of two engines",
        {
            "spec.weights.caches": [
                {"engine": "vllm", "version": "0.32.0", "gpu": "H100-80GB", "tensorParallelSize": 256},
                {
                    "engine": "sglang",
                    "version": "0.5.22.post1",
                    "gpu": "MI300X",
                    "tensorParallelSize": 1,
                    "pipelineParallelSize": 256,
                },
            ]
        },
    ),
    _vllm("groups that may read the weights", {"spec.weights.supplementalGroups": [1, 2000, 2147483647]}),
    _vllm("no compile caches", {"spec.weights.caches": []}),
    (
        "largest numbers",
        changed(vllm_with_everything_said(), {f"{_VLLM}.maxModelLength": 10_000_000, "spec.drainSeconds": 3600}),
    ),
)
