"""What is published to fit GPUs, and what is not, against the answers; and how many public configurations are sized.

Sources: recipes of https://github.com/vllm-project/recipes (2026-08-21) by their file, cards of models
(https://huggingface.co/ and the name), and KAITO's catalogue. Tight is right for a model that is published to fit. A
published statement without a context means one that a person would choose, so those rows name one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from hermetic.sizing.catalogue import sizes
from hermetic.sizing.memory import Fit, FitAnswer, fit
from hermetic.sizing.serving import Serving
from tests.public_models import PublicModel, aiconfigurator_models, kaito_models, rows

A10, T4 = "Standard_NV36ads_A10_v5", "Standard_NC16as_T4_v3"
A100, H100, NVL = "Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5", "Standard_NC40ads_H100_v5"
H200, MI300X, GB300 = "Standard_ND96isr_H200_v5", "Standard_ND96isr_MI300X_v5", "Standard_ND128isr_GB300_v6"
GB = 10**9
FIT = (FitAnswer.FITS, FitAnswer.TIGHT)
UNSIZED_AICONFIGURATOR, UNSIZED_KAITO = 10, 0
# Their encoders for sound, or for images, have dimensions that no public source was found for: Unknown until the inputs
# are switched off, as by --language-model-only.
OF_TEXT_ONLY = frozenset(
    {
        "google/gemma-4-12B-it",
        "google/gemma-4-E2B-it",
        "google/gemma-4-E4B-it",
        "nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16",
    }
)
REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+, \S.*")


@dataclass(frozen=True)
class Published:
    """A model with weights of so many GB on so many GPUs of a size; `fits` is what the source says."""

    model: str
    gigabytes: float | None
    size: str
    gpus: int
    fits: bool
    source: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def answer(self) -> Fit:
        by_name = kaito_models() | aiconfigurator_models() if self.gigabytes else kaito_models()
        model: PublicModel = by_name[self.model]
        facts = model.facts(int(self.gigabytes * GB) if self.gigabytes else None)
        settings = {"tensor_parallel": self.gpus} | self.settings
        return fit(facts, Serving(**settings), sizes()[self.size].gpu)


def long(tokens: int, **others: Any) -> dict[str, Any]:
    return {"max_model_length": tokens} | others


PUBLISHED = (
    Published("openai/gpt-oss-20b", 13.8, A10, 1, True, "OpenAI/gpt-oss-20b.yaml: 16 GB", long(32_768)),
    Published("openai/gpt-oss-120b", 65.2, H100, 2, True, "OpenAI/gpt-oss-120b.yaml"),
    Published("openai/gpt-oss-120b", 65.2, A100, 1, True, "card: one GPU of 80 GB", long(32_768)),
    Published(
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        217.3,
        H100,
        8,
        True,
        "https://blog.vllm.ai/2025/04/05/llama4.html",
        long(10**6),
    ),
    Published("meta-llama/Llama-4-Scout-17B-16E-Instruct", 217.3, H200, 8, True, "the same", long(3_600_000)),
    Published("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 402, H100, 8, True, "the same, fp8", long(430_000)),
    Published("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 402, H200, 8, True, "the same, fp8", long(10**6)),
    Published("MiniMaxAI/MiniMax-M2.5", 220, H100, 4, True, "MiniMaxAI/MiniMax-M2.5.yaml: 4x H100 for weights"),
    Published("Qwen/Qwen3-235B-A22B-FP8", 236.4, H100, 4, True, "Qwen/Qwen3-235B-A22B.yaml: 240 GB"),
    Published("Qwen/Qwen3-32B", 65.5, A100, 1, True, "Qwen/Qwen3-32B.yaml: 77 GB"),
    Published("Qwen/Qwen3-32B-FP8", 34.3, A100, 1, True, "Qwen/Qwen3-32B.yaml: 39 GB"),
    Published("nvidia/DeepSeek-V3.1-NVFP4", 403, H200, 4, True, "deepseek-ai/DeepSeek-V3.1.yaml: 403 GB"),
    Published("deepseek-ai/DeepSeek-V3", 688.6, H200, 8, True, "README of DeepSeek-V3: 8 x 141 GB"),
    Published("deepseek-ai/DeepSeek-V3", 688.6, H100, 8, False, "README of DeepSeek-V3: not 8 x 80 GB"),
    Published("deepseek-ai/DeepSeek-V3.2", 689.5, H200, 8, True, "deepseek-ai/DeepSeek-V3.2-Exp.yaml: 8x H200"),
    Published("deepseek-ai/DeepSeek-V3.2", 689.5, MI300X, 8, True, "the same: 8x MI300X"),
    Published("deepseek-ai/DeepSeek-V3.2", 689.5, H100, 8, False, "the same: 805 GB, more than 8 x 80 GB"),
    Published("nvidia/DeepSeek-V3.2-NVFP4", 403, GB300, 4, True, "deepseek-ai/DeepSeek-V3.2.yaml: 403 GB"),
    Published("deepseek-ai/DeepSeek-V4-Flash", 166.9, H200, 4, True, "deepseek-ai/DeepSeek-V4-Flash.yaml: 170 GB"),
    Published("deepseek-ai/DeepSeek-V4-Flash", 166.9, H100, 2, False, "the same: 170 GB, more than 2 x 80 GB"),
    Published("moonshotai/Kimi-K2.5", 595.2, H200, 8, True, "moonshotai/Kimi-K2.5.yaml: fits 8x H200"),
    Published("moonshotai/Kimi-K2.5", 595.2, H100, 8, False, "the same: 714 GB, more than 8 x 80 GB"),
    Published("meta-llama/Meta-Llama-3.1-405B", 811.7, MI300X, 8, True, "card: 810 GB in 16 bits"),
    Published("meta-llama/Meta-Llama-3.1-405B", 811.7, H100, 8, False, "card: 810 GB, more than 8 x 80 GB"),
    Published("mistralai/Mixtral-8x7B-v0.1", 93.4, A100, 2, True, "card: 100 GB"),
    Published("mistralai/Mixtral-8x7B-v0.1", 93.4, A100, 1, False, "card: 100 GB, more than 80 GB"),
    Published("mistralai/Mixtral-8x22B-v0.1", 281.2, A100, 4, True, "card: 300 GB"),
    Published("microsoft/phi-4", None, A100, 1, True, "KAITO's catalogue"),
    Published("microsoft/phi-4", None, A10, 1, False, "KAITO's catalogue: 27.3 GiB on 24 GB"),
    # vLLM takes the fp8 cache that the checkpoint names.
    Published("nvidia/Llama-3.1-70B-Instruct-FP8", 70.6, NVL, 1, True, "vLLM: kv_cache_quant_algo", long(98_304)),
    Published("google/gemma-3-27b-it", None, A100, 1, True, "Google's card: one GPU of 80 GB"),
    Published("google/gemma-3-27b-it", None, A10, 1, False, "51.1 GiB on 24 GB"),
    Published("google/gemma-4-31B-it", None, A100, 1, True, "Google/gemma-4-31B-it.yaml: one 80 GB GPU", long(32_768)),
    Published("google/gemma-4-26B-A4B-it", None, A100, 1, True, "Google/gemma-4-26B-A4B-it.yaml", long(32_768)),
    Published("Qwen/Qwen3-VL-8B-Instruct", 17.5, A100, 1, True, "Qwen/Qwen3-VL-8B-Instruct.yaml"),
    Published("Qwen/Qwen3.6-27B", None, H200, 1, True, "Qwen/Qwen3.5-27B.yaml: 1x H200"),
    Published("Qwen/Qwen3.6-27B", None, H100, 2, True, "Qwen/Qwen3.5-27B.yaml: 2x H100"),
    Published("Qwen/Qwen3.6-27B", None, A10, 1, False, "the same: 65 GB"),
    Published("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", None, A100, 1, True, "NVIDIA-Nemotron-3-Nano: 72 GB"),
    Published("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", None, H100, 1, True, "the same: 1x H100"),
    # NVIDIA's report (arXiv 2508.14444): 128k tokens on one A10G of 22 GiB.
    Published("nvidia/NVIDIA-Nemotron-Nano-9B-v2", None, A10, 1, True, "arXiv 2508.14444", {"sequences": 32}),
    Published("mistralai/Mistral-Large-3-675B-Instruct-2512", None, H200, 8, True, "card: 8x H200", long(131_072)),
    Published("mistralai/Mistral-Large-3-675B-Instruct-2512", None, H100, 8, False, "634.7 GiB on 8 x 80 GB"),
    Published("mistralai/Mistral-Medium-3.5-128B", None, H200, 8, True, "Mistral-Medium-3.5-128B.yaml: 8xH200"),
    Published("zai-org/GLM-5-FP8", 755.6, H200, 8, True, "zai-org/GLM-5.yaml: 8x H200"),
    Published("meta-llama/Llama-3.1-8B-Instruct", None, T4, 1, False, "card: 16 GB of weights on 16 GB", long(8192)),
)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row.model} on {row.gpus} of {row.size}")
def test_a_published_statement_gets_the_right_answer(row, record_property):
    answer = row.answer
    right = answer.answer in FIT if row.fits else answer.answer is FitAnswer.DOES_NOT_FIT
    record_property("published fits", 1)
    record_property("published fits right", int(right))
    record_property("false fits", int(not row.fits and answer.answer in FIT))
    assert right, (answer.answer, answer.unknown, row.source)


SOURCES = (
    ("configurations of aiconfigurator", aiconfigurator_models(), UNSIZED_AICONFIGURATOR, 86),
    ("models of KAITO's catalogue", kaito_models(), UNSIZED_KAITO, 60),
)


@pytest.mark.parametrize(("source", "models", "most", "count"), SOURCES, ids=[source for source, *_ in SOURCES])
def test_nearly_all_public_configurations_are_sized(source, models, most, count, record_property):
    unsized = {name: model.facts().not_computed for name, model in models.items()}
    reasons = {name: clauses for name, clauses in unsized.items() if clauses}
    record_property(source, count)
    of_text_only = OF_TEXT_ONLY & models.keys()
    record_property(f"{source}: sized", count - len(reasons))
    record_property(f"{source}: sized without images and sound only", len(of_text_only))
    assert len(models) == count
    assert len(reasons) <= most, reasons


@pytest.mark.parametrize("name", [name for _, models, *_ in SOURCES for name in models])
def test_a_public_configuration_is_sized_or_says_why_not(name):
    """On a GPU that is large enough for any of them, what is computed fits, and what is not has a clause and no number.

    The context is short, for the model's own may be millions of tokens.
    """
    model = (kaito_models() | aiconfigurator_models())[name]
    facts = model.facts(2**30)
    result = fit(facts, Serving(max_model_length=4096, sequences=8), sizes()[GB300].gpu)
    kinds = frozenset(kind for encoder in facts.encoders for kind in encoder.inputs)
    if facts.not_computed:
        assert (result.answer, result.cache, result.needed) == (FitAnswer.UNKNOWN, None, None)
        assert set(facts.not_computed) <= set(result.unknown)
    elif name in OF_TEXT_ONLY:
        assert result.answer is FitAnswer.UNKNOWN
        assert all(clause.endswith("in requests is not computed") for clause in result.unknown)
        of_text = Serving(max_model_length=4096, sequences=8, inputs_off=kinds)
        assert fit(facts, of_text, sizes()[GB300].gpu).answer is FitAnswer.FITS
    else:
        assert result.answer is FitAnswer.FITS


@pytest.mark.parametrize("row", rows("kaito_models.jsonl"), ids=lambda row: row["model"])
def test_every_model_of_the_catalogue_names_the_files_that_say_its_facts(row):
    sources = row["source"].split("; ")
    assert all(REPOSITORY.fullmatch(source) for source in sources), sources
    assert sources[0].startswith("kaito-project/kaito, ")
    assert len(sources) > 1 or "shape_of" not in row
