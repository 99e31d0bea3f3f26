"""Into how many parts a model can be divided: the rules whose violation ends an engine at the start.

vLLM refuses a number of attention heads that tensor parallelism does not divide, key-value heads that neither divide it
nor are divided by it, a share of a feed-forward layer that is no multiple of the quantization block, and a pipeline of
more stages than layers.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.model_facts import Attention, ModelFacts


def broken_rules(
    facts: ModelFacts, tensor_parallel: int, pipeline_parallel: int = 1, *, expert_parallel: bool = False
) -> Iterator[str]:
    """One clause for every rule that this parallelism breaks; none where config.json lacks the values."""
    attention = facts.attention
    if attention is None:
        return
    if attention.heads % tensor_parallel:
        yield f"{attention.heads} attention heads cannot be divided by {tensor_parallel}"
    elif attention.latent is None and not _fit_heads(attention.key_value_heads, tensor_parallel):
        yield f"{attention.key_value_heads} key-value heads and {tensor_parallel} GPUs: neither divides the other"
    if attention.layers < pipeline_parallel:
        yield f"{attention.layers} layers are fewer than {pipeline_parallel} pipeline stages"
    yield from _cut_blocks(facts, attention, tensor_parallel, expert_parallel)


def _fit_heads(heads: int, tensor_parallel: int) -> bool:
    return heads % tensor_parallel == 0 or tensor_parallel % heads == 0


def _cut_blocks(facts: ModelFacts, attention: Attention, parts: int, expert_parallel: bool) -> Iterator[str]:
    block = facts.quantization.block if facts.quantization is not None else None
    if block is None or parts == 1:
        return
    if facts.experts is not None:
        what, width = "an expert", None if expert_parallel else facts.experts.intermediate_size
    else:
        what, width = "a feed-forward layer", attention.intermediate_size
    if width is not None and (width % parts or (width // parts) % block):
        yield f"{width} values of {what} over {parts} GPUs are no multiple of the quantization block of {block}"


def possible(facts: ModelFacts, gpus: int) -> tuple[int, ...]:
    """Every tensor parallel size up to this many GPUs that breaks no rule, smallest first."""
    return tuple(size for size in range(1, gpus + 1) if not any(broken_rules(facts, size)))
