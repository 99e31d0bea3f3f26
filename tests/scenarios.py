"""The deployments and the evidence that tests talk about, by telling names: plain manifests, as a user types them."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

Manifest = dict[str, Any]

DIGEST = "3f1c" * 16
VLLM_IMAGE = f"contoso.azurecr.io/vllm/vllm-openai@sha256:{DIGEST}"
BAKED_IMAGE = f"contoso.azurecr.io/models/phi-4-vllm@sha256:{DIGEST}"
SGLANG_IMAGE = f"contoso.azurecr.io/lmsysorg/sglang@sha256:{DIGEST}"
NIM_IMAGE = f"contoso.azurecr.io/nim/meta/llama-3.1-8b-instruct@sha256:{DIGEST}"
CLUSTER = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg-gpu"
    "/providers/Microsoft.ContainerService/managedClusters/aks-gpu"
)


def a_share_model(name: str = "llama", **spec: Any) -> Manifest:
    """vLLM on an Azure Files share behind an internal load balancer; `spec` replaces top-level fields."""
    return _deployment(
        name,
        {
            "model": {"name": "meta/llama-3.1-8b-instruct"},
            "engine": {"vllm": {"image": VLLM_IMAGE, "version": "0.32.0"}},
            "weights": {"azureFiles": {"account": "contosomodels", "share": "models", "folder": "llama-3-1-8b/fp8"}},
            "endpoint": {"internalLoadBalancer": {}},
            **spec,
        },
    )


def a_nim_model(name: str = "nim", **spec: Any) -> Manifest:
    """A NIM of line 2 that serves a model folder of a share."""
    return a_share_model(
        name,
        engine={"nim": {"image": NIM_IMAGE, "line": "2.1"}},
        weights={"azureFiles": {"account": "contosomodels", "share": "nim", "folder": "store/llama-3-1-8b"}},
        **spec,
    )


def an_sglang_model(name: str = "sglang", **spec: Any) -> Manifest:
    """SGLang on a folder of a share."""
    return a_share_model(name, **{"engine": {"sglang": {"image": SGLANG_IMAGE, "version": "0.5.23"}}, **spec})


def a_baked_model(name: str = "phi", **spec: Any) -> Manifest:
    """vLLM with the weights inside the serving image: the fewest children."""
    engine = {"vllm": {"image": BAKED_IMAGE, "version": "0.32.0"}}
    return a_share_model(name, **{"engine": engine, "weights": {"bakedImage": {"path": "/models/phi-4"}}, **spec})


def an_image_volume_model(name: str = "phi-volume", **spec: Any) -> Manifest:
    """vLLM with the weights as an OCI image of their own."""
    reference = f"contoso.azurecr.io/models/phi-4@sha256:{DIGEST}"
    return a_share_model(name, weights={"imageVolume": {"reference": reference, "path": "phi-4"}}, **spec)


def reporting(manifest: Manifest) -> Manifest:
    """The same deployment, started without waiting for evidence of isolation."""
    return changed(manifest, isolation={"enforcement": "Report"})


def changed(manifest: Manifest, **spec: Any) -> Manifest:
    """The same deployment with other top-level fields in its spec."""
    copied = copy.deepcopy(manifest)
    copied["spec"].update(spec)
    return copied


def an_egress_audit(**spec: Any) -> Manifest:
    """The one EgressAudit of the cluster."""
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "EgressAudit",
        "metadata": {"name": "cluster"},
        "spec": {"cluster": CLUSTER, **spec},
    }


def a_verdict(verdict: str, generation: int = 1, *, age: timedelta = timedelta(), **status: Any) -> Manifest:
    """The status of an EgressAudit that was judged at `generation`, on evidence observed `age` ago, good for a day."""
    observed = datetime.now(UTC) - age
    return {
        "observedGeneration": generation,
        "verdict": verdict,
        "evidence": {
            "azure": {
                "digest": f"sha256:{DIGEST}",
                "observedAt": _stamp(observed),
                "expiresAt": _stamp(observed + timedelta(days=1)),
                "signedBy": "platform-2026",
            },
            "kubernetes": {"observedAt": _stamp(observed)},
            "probe": {"observedAt": _stamp(observed), "nodes": 1},
        },
        **status,
    }


def _deployment(name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name},
        "spec": spec,
    }


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
