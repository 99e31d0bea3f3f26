"""How many GPUs the parallel sizes of an engine use, and that they are those of the pod.

vLLM starts tensor x pipeline x prefill context workers for each data parallel rank (docs.vllm.ai, "Data Parallel
Deployment" and `ParallelConfig`). SGLang's --dp-size multiplies the GPUs; with --enable-dp-attention it
divides those of tensor parallelism (docs.sglang.ai, "Server Arguments").
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.api.engine_reasons import EngineReason
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.registry import engine_of, launch
from hermetic.plan.gates import first_block
from tests.corpus.manifests import changed
from tests.renderings import RENDERINGS
from tests.snapshots import a_snapshot, spec_of

FLAG = {"vllm": "--tensor-parallel-size", "sglang": "--tp-size"}


def deployment(engine: str, gpus: int, arguments: list[str], **sizes: int) -> Any:
    base = RENDERINGS["share" if engine == "vllm" else "sglang"]
    fields = {f"spec.engine.{engine}.{name}": size for name, size in sizes.items()}
    return changed(base, {"spec.accelerator.count": gpus, f"spec.engine.{engine}.extraArgs": arguments, **fields})


USED = [
    ("vllm", 8, ["--data-parallel-size", "8", "--enable-expert-parallel"], {}, "1"),
    ("vllm", 8, ["-dp", "8"], {}, "1"),
    ("vllm", 8, ["--data-parallel-size=8"], {"tensorParallelSize": 1}, "1"),
    ("vllm", 8, ["--data_parallel_size=2"], {"tensorParallelSize": 4}, "4"),
    ("vllm", 8, ["--data-parallel-size", "2"], {}, "4"),
    ("vllm", 8, ["--data-parallel-size", "2"], {"pipelineParallelSize": 2}, "2"),
    ("vllm", 8, ["--prefill-context-parallel-size", "2", "-dp=2"], {}, "2"),
    ("vllm", 8, ["--decode-context-parallel-size", "2"], {}, "8"),
    ("vllm", 8, [], {}, "8"),
    ("sglang", 8, ["--dp-size", "2"], {"tensorParallelSize": 4}, "4"),
    ("sglang", 8, ["--data-parallel-size", "2"], {}, "4"),
    ("sglang", 8, ["--dp-size", "8", "--enable-dp-attention"], {}, "8"),
    ("sglang", 8, ["--dp", "4"], {}, "2"),
]


@pytest.mark.parametrize(("engine", "gpus", "arguments", "sizes", "tensor"), USED)
def test_parallel_sizes_that_use_all_gpus_are_accepted_and_what_is_left_out_is_derived(
    engine, gpus, arguments, sizes, tensor
):
    spec = spec_of(deployment(engine, gpus, arguments, **sizes))
    assert engine_of(spec).objection(spec) is None
    launch_arguments = launch(spec).args
    assert launch_arguments[launch_arguments.index(FLAG[engine]) + 1] == tensor


MISMATCHES = [
    ("vllm", 8, ["--data-parallel-size", "2"], {"tensorParallelSize": 8}),
    ("vllm", 8, ["--data-parallel-size", "3"], {}),
    ("vllm", 4, ["-dp", "8"], {}),
    ("vllm", 8, ["--data-parallel-rpc-port", "1", "--data-parallel-size", "1"], {"tensorParallelSize": 4}),
    ("sglang", 8, ["--dp-size", "2", "--enable-dp-attention"], {"tensorParallelSize": 4}),
    ("sglang", 8, ["--dp-size", "4"], {"tensorParallelSize": 4}),
]


@pytest.mark.parametrize(("engine", "gpus", "arguments", "sizes"), MISMATCHES)
def test_parallel_sizes_that_use_other_gpus_block_with_both_numbers(engine, gpus, arguments, sizes):
    spec = spec_of(deployment(engine, gpus, [*arguments], **sizes))
    objection = engine_of(spec).objection(spec)
    assert objection is not None
    assert objection.reason in (EngineReason.GPU_COUNT_MISMATCH, SpecReason.ENGINE_FLAG_RESERVED)
    if objection.reason is EngineReason.GPU_COUNT_MISMATCH:
        assert f"`accelerator.count` is {gpus}" in objection.message
        assert objection.field == "spec.accelerator.count"


@pytest.mark.parametrize(("gpus", "tensor"), [(3, 2), (8, 4), (2, 4)])
def test_schema_is_exact_without_a_flag_that_multiplies(gpus, tensor):
    with pytest.raises(ValidationError, match="must equal"):
        spec_of(deployment("vllm", gpus, ["--max-num-seqs", "8"], tensorParallelSize=tensor))


def test_fix_of_the_message_can_be_followed():
    spec = spec_of(deployment("vllm", 16, ["--data-parallel-size", "2"], tensorParallelSize=4))
    block = first_block(spec, a_snapshot())
    assert block is not None
    assert "set `accelerator.count` to 8" in block.message
    fixed = spec_of(deployment("vllm", 8, ["--data-parallel-size", "2"], tensorParallelSize=4))
    assert engine_of(fixed).objection(fixed) is None


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("name", "value", "gpus", "refused"),
    [
        ("CUDA_VISIBLE_DEVICES", "0", 8, True),
        ("CUDA_VISIBLE_DEVICES", "0,1,2,3", 8, True),
        ("ROCR_VISIBLE_DEVICES", "0,1", 1, True),
        ("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7", 8, False),
        ("HIP_VISIBLE_DEVICES", "0", 1, False),
        ("CUDA_VISIBLE_DEVICES", "", 1, False),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 8, False),
    ],
)
def test_a_choice_of_other_gpus_than_the_pod_has_is_refused(
    engine: str, name: str, value: str, gpus: int, refused: bool
) -> None:
    manifest = changed(
        deployment(engine, gpus, []), {f"spec.engine.{engine}.extraEnv": [{"name": name, "value": value}]}
    )
    spec = spec_of(manifest)
    objection = engine_of(spec).objection(spec)
    if not refused:
        assert objection is None
        return
    assert objection is not None
    assert objection.reason is EngineReason.GPU_COUNT_MISMATCH
    assert f"in '{name}', and `accelerator.count` is {gpus}: leave it out" in objection.message
