"""What belongs together and what excludes each other."""

from __future__ import annotations

from tests.corpus.cases import ENDPOINT, ONE_ENGINE, ONE_SOURCE, REQUIRED, SHARE, UNKNOWN, VLLM, case
from tests.corpus.manifests import (
    ABSENT,
    VLLM_IMAGE,
    changed,
    nim_on_azure_files,
    nim_with_profile,
    sglang_with_everything_said,
    vllm_on_azure_files,
)

UNIONS = (
    case("no weights", "spec.weights", ABSENT, **REQUIRED, rows=(1,)),
    case("weights null", "spec.weights", None, **REQUIRED, rows=(1, 44)),
    case("weights empty", "spec.weights", {}, ONE_SOURCE, rows=(1,)),
    case("two sources", "spec.weights.bakedImage", {"path": "/m"}, ONE_SOURCE, blames="spec.weights", rows=(2,)),
    case(
        "both engines",
        "spec.engine.nim",
        {"image": VLLM_IMAGE, "line": "2.1"},
        ONE_ENGINE,
        blames="spec.engine",
        rows=(3,),
    ),
    case("NIM field in vLLM", f"{VLLM}.profile", "x", **UNKNOWN, rows=(3,), prints=None),
    case(
        "engine in capitals",
        "spec.engine",
        {"VLLM": {"image": VLLM_IMAGE}},
        **UNKNOWN,
        blames="spec.engine.VLLM",
        rows=(4,),
    ),
    case("no engine", "spec.engine", {}, ONE_ENGINE, rows=(4,)),
    case(
        "aliases with NIM",
        "spec.model.aliases",
        ["x"],
        "`model.aliases` needs engine `vllm`",
        base=nim_on_azure_files(),
        rows=(3,),
    ),
    case(
        "a cache in the memory of the node with NIM",
        "spec.kvCacheOffload",
        {"memory": "64Gi"},
        "`kvCacheOffload` needs engine `vllm` or `sglang`",
        base=nim_on_azure_files(),
    ),
    case(
        "a cache in the memory of the node with vLLM on GPUs of AMD",
        "spec.accelerator",
        {"resource": "amd.com/gpu"},
        "`kvCacheOffload` with engine `vllm` needs GPUs of NVIDIA",
        base=changed(vllm_on_azure_files(), {"spec.kvCacheOffload": {"memory": "64Gi"}}),
        blames="spec.kvCacheOffload",
    ),
    *(
        case(
            f"a cache in the memory of the node with vLLM {version}",
            f"{VLLM}.version",
            version,
            "`kvCacheOffload` needs vLLM 0.29 or later",
            base=changed(vllm_on_azure_files(), {"spec.kvCacheOffload": {"memory": "64Gi"}}),
            blames="spec.kvCacheOffload",
        )
        for version in ("0.24.0", "0.27.1", "0.28.9", "0.9.2")
    ),
    case(
        "less than 1 GiB of cache in the memory of the node for each GPU of SGLang",
        "spec.kvCacheOffload",
        {"memory": "3Gi"},
        "must be at least 1Gi for each GPU of `accelerator.count` with engine `sglang`",
        base=changed(
            sglang_with_everything_said(),
            {"spec.accelerator": {"count": 4}, "spec.engine.sglang.tensorParallelSize": 4},
        ),
        blames="spec.kvCacheOffload.memory",
        prints="3Gi",
    ),
    case(
        "API key with NIM",
        f"{ENDPOINT}.apiKey",
        {"secretName": "k"},
        "`endpoint.apiKey` needs engine `vllm`",
        base=nim_on_azure_files(),
        rows=(3,),
    ),
    case(
        "profile in a baked image",
        "spec.weights",
        {"bakedImage": {"path": "/m"}},
        "`engine.nim.profile` needs staged weights",
        base=nim_with_profile(),
        blames="spec.engine.nim.profile",
        rows=(3,),
    ),
    case(
        "profile and model path",
        "spec.engine.nim.modelPath",
        "/m",
        "must not set both `profile`",
        base=nim_with_profile(),
        blames="spec.engine.nim",
    ),
    case(
        "arguments for line 1",
        "spec.engine.nim.line",
        "1.15",
        "`extraArgs` needs a NIM of line 2",
        base=nim_on_azure_files(),
        blames="spec.engine.nim",
    ),
    case(
        "no such line",
        "spec.engine.nim.line",
        "3.0",
        "must be a NIM release line: '1.0' to '1.15'",
        base=nim_on_azure_files(),
    ),
    case(
        "neither account nor server",
        f"{SHARE}.account",
        ABSENT,
        "must set `account` (storage account) or `server`",
        blames=SHARE,
    ),
    case(
        "address of an unnamed account",
        SHARE,
        {"server": "10.1.2.3", "share": "models"},
        "must be the host name of a Microsoft.FileShares share",
        blames=f"{SHARE}.server",
        prints="10.1.2.3",
    ),
)
