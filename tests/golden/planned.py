"""What `hermetic plan` prints, kept as reviewed text: the name of each file, the model and the arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hermetic.sizing.facts_file import as_json
from tests.commandline import hermetic
from tests.corpus.manifests import changed
from tests.model_configs import (
    DEEPSEEK_V3,
    DEEPSEEK_V3_BYTES,
    GPT_OSS_120B,
    GPT_OSS_120B_BYTES,
    LLAMA_8B,
    LLAMA_8B_BYTES,
    LLAMA_70B,
    LLAMA_70B_BYTES,
    LLAMA_405B,
    LLAMA_405B_BYTES,
    facts,
)
from tests.scenarios import a_share_model

FOLDER = Path(__file__).resolve().parent / "plans"
A100, H200, ALL_H100 = "Standard_NC24ads_A100_v4", "Standard_ND96isr_H200_v5", "Standard_ND96isr_H100_v5"

PLANS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "llama-8b-fits.txt": (facts(LLAMA_8B, LLAMA_8B_BYTES, 4), {}, ("--instance-type", A100)),
    "llama-8b-fits.json": (facts(LLAMA_8B, LLAMA_8B_BYTES, 4), {}, ("--instance-type", A100, "-o", "json")),
    "llama-70b-does-not-fit.txt": (
        facts(LLAMA_70B, LLAMA_70B_BYTES, 30),
        {"spec.replicas": 2},
        ("--instance-type", A100, "--share-throughput", "1125"),
    ),
    "gpt-oss-120b-windows.txt": (facts(GPT_OSS_120B, GPT_OSS_120B_BYTES, 15), {}, ("--instance-type", ALL_H100)),
    "deepseek-v3-on-eight.txt": (
        facts(DEEPSEEK_V3, DEEPSEEK_V3_BYTES, 163),
        {"spec.accelerator": {"count": 8, "instanceTypes": [H200, ALL_H100]}},
        (),
    ),
    "llama-8b-offloaded.txt": (
        facts(LLAMA_8B, LLAMA_8B_BYTES, 4),
        {
            "spec.engine.vllm.extraArgs": ["--cpu-offload-gb", "8"],
            "spec.engine.vllm.maxModelLength": 32768,
            "spec.kvCacheOffload": {"memory": "64Gi"},
        },
        ("--instance-type", "Standard_NV36ads_A10_v5"),
    ),
    "llama-405b-on-two-nodes.txt": (
        facts(LLAMA_405B, LLAMA_405B_BYTES, 191),
        {
            "spec.accelerator": {
                "count": 8,
                "nodes": 2,
                "instanceTypes": [ALL_H100],
                "interconnect": {"type": "InfiniBand", "resource": "rdma/ib", "count": 8},
            },
            "spec.engine.vllm.maxModelLength": 32768,
        },
        ("--share-throughput", "1125"),
    ),
    "mamba-unknown.txt": (facts({"model_type": "mamba"}, 10**10), {}, ("--instance-type", A100)),
}


def file_of(name: str) -> Path:
    """The file of one answer."""
    return FOLDER / name


def printed(name: str) -> str:
    """What the command prints for it."""
    model, changes, arguments = PLANS[name]
    manifest = changed(a_share_model(), {"spec.weights.facts": as_json(model), **changes})
    return hermetic("plan", "-f", "-", *arguments, stdin=yaml.safe_dump(manifest)).out
