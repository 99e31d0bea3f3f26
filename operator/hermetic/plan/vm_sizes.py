"""The VM sizes that the pods of a deployment may get, and whether one of them can run such a pod at all.

GPUs, vendor, CPUs and memory of a size are in the catalogue; the GPU memory that a model needs is in `model_fit.py`.
"""

from __future__ import annotations

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.quantities import parse_quantity
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.group_members import has_infiniband
from hermetic.engines.registry import engine_of
from hermetic.objects.pod import requested_memory
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.scheduling import eligible_nodes
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.sizing.catalogue import Size, sizes
from hermetic.sizing.placement import Demand, shortcomings

_FIELD = "spec.accelerator.instanceTypes"


def demand_of(spec: ModelDeploymentSpec) -> Demand:
    """What each pod asks of its VM, as its resource requests state it."""
    return Demand(
        resource=spec.accelerator.resource,
        gpus=spec.accelerator.count,
        cpus=parse_quantity(spec.resources.cpu),
        memory=parse_quantity(requested_memory(spec)),
        memory_fields="`resources.memory`"
        if spec.kv_cache_offload is None
        else "`resources.memory` with `kvCacheOffload.memory`",
        infiniband=has_infiniband(spec.accelerator),
    )


def sizes_for(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> tuple[list[Size], list[str]]:
    """(sizes, names not in the catalogue) that the spec names, or else those of the nodes that offer the GPUs."""
    names = set(spec.accelerator.instance_types) or {
        node.instance_type for node in eligible_nodes(spec, snapshot.nodes)
    }
    catalogue = sizes()
    listed = [catalogue[name] for name in sorted(names) if name in catalogue]
    return listed, sorted(names - catalogue.keys())


def vm_size_offers_the_pod(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """One of the sizes that the spec names has the GPUs, CPUs and memory of a pod. Sizes not in the catalogue pass.

    Nodes decide nothing here: the autoscaler may add a larger one.
    """
    labels = {node.instance_type for node in snapshot.nodes}
    catalogue_names = {name.lower(): name for name in sizes()}
    reasons = []
    for name in spec.accelerator.instance_types:
        size = sizes().get(name)
        spelling = catalogue_names.get(name.lower())
        if size is not None:
            clauses = [*shortcomings(size, demand_of(spec))]
            reasons.append(f"{name}: {', '.join(clauses)}" if clauses else "")
        elif spelling is not None and name not in labels:
            reasons.append(f"{name}: node labels are case-sensitive, and Azure writes {spelling}")
        else:
            reasons.append("")
    if not reasons or not all(reasons):
        return HOLDS
    return Blocks(
        SpecReason.VM_SIZE_UNSUITABLE,
        f"no VM size of `accelerator.instanceTypes` can run a pod of this model: {'; '.join(reasons)}",
        field=_FIELD,
    )


def gpus_suit_the_engine(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """At least one size has GPUs that the configured engine runs on. Unknown sizes and GPUs pass."""
    models = engine_of(spec).gpu_models(spec)
    if models is None:
        return HOLDS
    listed, unlisted = sizes_for(spec, snapshot)
    if unlisted or not listed or any(size.gpu.key in models for size in listed):
        return HOLDS
    present = ", ".join(sorted({f"{size.name} ({size.gpu.name})" for size in listed}))
    names = sorted({size.gpu.name for size in sizes().values() if size.gpu.key in models})
    built = f"is built for {' or '.join(names)}" if names else "is built for a GPU that no VM size of Azure has"
    staged = engine_of(spec).alternatives(spec, frozenset(size.gpu.key for size in listed))
    return Blocks(
        SpecReason.NIM_PROFILE_MISMATCH,
        f"`engine.nim.profile` {built}, and the pods would run on {present}; choose a profile for that GPU or one that "
        "runs on any (its name begins with 'vllm'), or other `accelerator.instanceTypes`"
        + (f"; {staged}" if staged else ""),
        field="spec.engine.nim.profile",
    )
