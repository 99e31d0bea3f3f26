"""Data parallel ranks: each holds all weights but the experts, which are divided over all GPUs.

`FusedMoEParallelConfig.make` in vllm/model_executor/layers/fused_moe/config.py: experts are divided by tensor parallel
times data parallel, with `--enable-expert-parallel` by number, without by width. DeepSeek-V3: 671e9 parameters in fp8,
of which 58 layers x 256 experts x 3 matrices of 7168 x 2048 are experts.
"""

from __future__ import annotations

import pytest
import yaml

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import GIB, Gpu, Value
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.facts_file import as_json
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.parallelism import broken_rules
from hermetic.sizing.serving import Serving
from hermetic.sizing.weights import WeightBytes, weights_per_gpu
from tests.commandline import hermetic
from tests.corpus.manifests import changed
from tests.model_configs import DEEPSEEK_V3, DEEPSEEK_V3_BYTES, LLAMA_8B, LLAMA_8B_BYTES, facts
from tests.scenarios import a_share_model

EXPERTS = 58 * 256 * 3 * 7168 * 2048
RANKS = Serving(data_parallel=8, expert_parallel=True)
H200 = "Standard_ND96isr_H200_v5"


def gpu(gib: float) -> Gpu:
    return Gpu("", f"{gib} GiB", "nvidia", Value(int(gib * GIB), "test", True), 9.0)


def deepseek(experts: int = EXPERTS) -> ModelFacts:
    sums = TensorSums({"F8_E4M3": DEEPSEEK_V3_BYTES}, 163, DEEPSEEK_V3_BYTES // 163, {"experts": experts})
    return facts_of(DEEPSEEK_V3, sums)


def test_experts_are_divided_over_the_ranks_and_the_rest_is_not():
    share = round(1.02 * (DEEPSEEK_V3_BYTES - EXPERTS + EXPERTS / 8))
    assert weights_per_gpu(deepseek(), RANKS) == WeightBytes(share, share)
    # vLLM's recipe for DeepSeek-V3 has eight ranks on eight H200.
    assert fit(deepseek(), RANKS, gpu(139.72)).answer is FitAnswer.TIGHT
    assert fit(deepseek(), RANKS, gpu(79.1)).answer is FitAnswer.DOES_NOT_FIT


def test_a_dense_model_is_whole_on_every_rank():
    model = facts(LLAMA_8B, LLAMA_8B_BYTES)
    alone, ranks = weights_per_gpu(model, Serving()), weights_per_gpu(model, Serving(data_parallel=8))
    assert ranks == alone


def test_experts_of_which_the_bytes_are_not_known_are_judged_by_both_bounds():
    unknown = deepseek(0)
    bounds = weights_per_gpu(unknown, RANKS)
    assert bounds.least < weights_per_gpu(deepseek(), RANKS).most < bounds.most
    between = fit(unknown, RANKS, gpu(139.72))
    assert between.answer is FitAnswer.UNKNOWN
    assert "bytes of the weights are experts" in " ".join(between.unknown)
    assert fit(unknown, RANKS, gpu(60)).answer is FitAnswer.DOES_NOT_FIT
    assert fit(unknown, RANKS, gpu(1000)).answer is FitAnswer.FITS


def test_latent_attention_is_on_every_rank_and_heads_are_divided_by_tensor_parallel_only():
    eight, single = fit(deepseek(), RANKS, gpu(200)), fit(deepseek(), Serving(), gpu(2000))
    assert eight.cache.token_bytes == single.cache.token_bytes == 70_272
    two = fit(facts(LLAMA_8B, LLAMA_8B_BYTES), Serving(tensor_parallel=2, data_parallel=4), gpu(80))
    assert two.cache.token_bytes == 65_536
    assert two.serving.gpus == 8


@pytest.mark.parametrize(
    ("ranks", "together", "works"), [(8, False, True), (16, False, True), (32, False, False), (32, True, True)]
)
def test_the_width_of_an_expert_is_divided_over_all_ranks(ranks, together, works):
    """2048 values in blocks of 128; `--enable-expert-parallel` keeps experts whole."""
    broken = list(broken_rules(deepseek(), 1, data_parallel=ranks, expert_parallel=together))
    assert (not broken) is works


@pytest.mark.parametrize(
    ("count", "arguments", "tensor_parallel", "answer"),
    [
        (8, ["--data-parallel-size", "8", "--enable-expert-parallel"], None, "Tight"),
        (8, ["-dp", "8", "--enable-expert-parallel"], 1, "Tight"),
        (8, ["--data-parallel-size=2", "--enable-expert-parallel"], 4, "Fits"),
    ],
)
def test_a_deployment_with_ranks_is_sized(count, arguments, tensor_parallel, answer):
    parallel = {} if tensor_parallel is None else {"spec.engine.vllm.tensorParallelSize": tensor_parallel}
    manifest = changed(
        a_share_model(),
        {
            "spec.weights.facts": as_json(deepseek()),
            "spec.accelerator": {"count": count, "instanceTypes": [H200]},
            "spec.engine.vllm.extraArgs": arguments,
            "spec.engine.vllm.maxModelLength": 65_536,
            **parallel,
        },
    )
    ran = hermetic("plan", "-f", "-", "-o", "json", stdin=yaml.safe_dump(manifest))
    assert ran.code == 0, ran.err
    (deployment,) = yaml.safe_load(ran.out)["deployments"]
    assert deployment["answer"] == answer
    (written,) = deployment["asWritten"]
    assert written["dataParallelSize"] * written["tensorParallelSize"] == count
    assert written["notComputed"] == []
