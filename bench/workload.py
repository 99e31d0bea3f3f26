"""What is deployed: the main case of the product, and the fleet that it runs on."""

from __future__ import annotations

import re
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kinds import BY_KIND
from hermetic.objects.children import render
from hermetic.objects.names import Owner
from testbed.api import Api
from testbed.fleet import Pool, add_nodes

Manifest = dict[str, Any]

API = "/apis/hermetic.dev/v1alpha1"
POOL = Pool("gpu", "Standard_ND96isr_H100_v5")
# Eight GPUs, but scratch space for six models of 20 GiB on the 128 GiB of the node.
MODELS_PER_NODE = 6

_NUMBERED = re.compile(r"\bmodel-\d{4}\b")


def model(number: int) -> Manifest:
    """The ModelDeployment that bears this number; it starts without evidence of isolation."""
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": f"model-{number:04d}"},
        "spec": {
            "model": {"name": "meta/llama-3.1-8b-instruct"},
            "engine": {
                "vllm": {"image": f"contoso.azurecr.io/vllm/vllm-openai@sha256:{'3f1c' * 16}", "version": "0.32.0"}
            },
            "weights": {
                "azureFiles": {"account": "contosomodels", "share": "models", "folder": f"models/{number:04d}"}
            },
            "accelerator": {"tolerations": [{"key": "sku", "operator": "Exists", "effect": "NoSchedule"}]},
            "endpoint": {"internalLoadBalancer": {}},
            "isolation": {"enforcement": "Report"},
        },
    }


CHILDREN = frozenset(
    BY_KIND[child["kind"]].plural
    for child in render(Owner("bench", "model-0000", ""), ModelDeploymentSpec.model_validate(model(0)["spec"]))
)
"""What such a model is made of."""


def owner_of(name: str) -> str:
    """The ModelDeployment that an object of this name belongs to; "" when it belongs to none of ours."""
    match = _NUMBERED.search(name)
    return match[0] if match else ""


def is_settled(live: Manifest) -> bool:
    """Whether the status says that the model serves, and where."""
    status = live.get("status") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    return ready and "address" in (status.get("endpoint") or {})


def make_room(api: Api, models: int) -> None:
    """Enough fake GPU nodes for this many models of one GPU each."""
    add_nodes(api, POOL, -(-models // MODELS_PER_NODE))
