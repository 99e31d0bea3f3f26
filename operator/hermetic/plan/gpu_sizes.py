"""The VM sizes that the pods of a deployment may get, and whether their GPUs are those that its engine needs."""

from __future__ import annotations

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.engines.registry import engine_of
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.scheduling import eligible_nodes
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.sizing.catalogue import Size, sizes


def sizes_for(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> tuple[list[Size], list[str]]:
    """(sizes, names not in the catalogue) that the spec names, or else those of the nodes that offer the GPUs."""
    seen = {node.instance_type for node in eligible_nodes(spec, snapshot.nodes)}
    wanted = sorted(set(spec.accelerator.instance_types) or seen)
    known = sizes()
    return [known[name] for name in wanted if name in known], [name for name in wanted if name not in known]


def gpus_are_the_engine_s(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """At least one size has GPUs that the configured engine runs on. Unknown sizes and GPUs pass."""
    models = engine_of(spec).gpu_models(spec)
    if models is None:
        return HOLDS
    listed, unlisted = sizes_for(spec, snapshot)
    if unlisted or not listed or any(size.gpu.key in models for size in listed):
        return HOLDS
    found = ", ".join(sorted({f"{size.name} ({size.gpu.name})" for size in listed}))
    names = sorted({size.gpu.name for size in sizes().values() if size.gpu.key in models})
    built = f"is built for {' or '.join(names)}" if names else "is built for a GPU that no VM size of Azure has"
    staged = engine_of(spec).alternatives(spec, frozenset(size.gpu.key for size in listed))
    return Blocks(
        Reason.NIM_PROFILE_MISMATCH,
        f"`engine.nim.profile` {built}, and the pods would run on {found}; choose a profile for that GPU or one that "
        "runs on any (its name begins with 'vllm'), or other `accelerator.instanceTypes`"
        + (f"; {staged}" if staged else ""),
        field="spec.engine.nim.profile",
    )
