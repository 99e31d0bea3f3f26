"""Into how many parts a model can be divided: the rules whose violation ends an engine at the start.

vLLM refuses a number of attention heads that tensor parallelism does not divide, key-value heads that neither divide it
nor are divided by it, a share of a feed-forward layer that is no multiple of the quantization block, and a pipeline of
more stages than layers.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.model_facts import Attention, ModelFacts


def broken_rules(
    facts: ModelFacts,
    tensor_parallel: int,
    pipeline_parallel: int = 1,
    *,
    data_parallel: int = 1,
    expert_parallel: bool = False,
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
    yield from _uneven_states(attention, tensor_parallel)
    parts = tensor_parallel * data_parallel if facts.experts is not None else tensor_parallel
    yield from _cut_blocks(facts, attention, parts, expert_parallel)


def _fit_heads(heads: int, tensor_parallel: int) -> bool:
    return heads % tensor_parallel == 0 or tensor_parallel % heads == 0


def _uneven_states(attention: Attention, parts: int) -> Iterator[str]:
    """`divide` of vLLM ends where heads of a recurrent state, or channels of its convolution, leave a remainder."""
    recurrent = attention.recurrent
    if recurrent is None:
        return
    if recurrent.heads % parts:
        yield f"{recurrent.heads} heads of the recurrent layers cannot be divided by {parts}"
    elif not recurrent.groups and recurrent.channels % parts:
        yield f"{recurrent.channels} channels of the recurrent layers cannot be divided by {parts}"


def _cut_blocks(facts: ModelFacts, attention: Attention, parts: int, expert_parallel: bool) -> Iterator[str]:
    block = facts.quantization.block if facts.quantization is not None else None
    if block is None or parts == 1:
        return
    if facts.experts is not None:
        layer, width = "an expert", None if expert_parallel else facts.experts.intermediate_size
    else:
        layer, width = "a feed-forward layer", attention.intermediate_size
    if width is not None and (width % parts or (width // parts) % block):
        yield f"{width} values of {layer} over {parts} GPUs are not a multiple of the quantization block of {block}"


def possible(facts: ModelFacts, gpus: int) -> tuple[int, ...]:
    """Every tensor parallel size up to this many GPUs that breaks no rule, smallest first."""
    return tuple(size for size in range(1, gpus + 1) if not any(broken_rules(facts, size)))
