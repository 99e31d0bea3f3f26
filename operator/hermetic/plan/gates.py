"""What must hold before a pod may be created: a chain of gates, in the order in which they are reported."""

from __future__ import annotations

from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec, Toleration
from hermetic.api.quantities import parse_quantity
from hermetic.api.reasons import Reason
from hermetic.engines.registry import engine_of
from hermetic.objects.volumes import shared_memory_limit
from hermetic.plan.allowed_sources import registry_is_allowed, share_is_allowed
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS, Blocks, Gate, Verdict
from hermetic.plan.model_fit import ModelPlacement, gpus_suit_the_engine, model_fits_the_gpus
from hermetic.plan.scheduling import eligible_nodes
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.weights_integrity import integrity_is_pinned, integrity_key_is_usable


def engine_flags_are_known(spec: ModelDeploymentSpec, _: ClusterSnapshot) -> Verdict:
    """The engine's release and every extra argument are known, and no argument matches a reserved flag."""
    found = engine_of(spec).objection(spec)
    return Blocks(found.reason, found.message, field=found.field) if found is not None else HOLDS


def image_volumes_are_supported(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """API server and nodes are new enough to mount an OCI image."""
    if spec.weights.image_volume is None:
        return HOLDS
    fallback = "bake the weights into the serving image (`weights.bakedImage`) or stage them on a share"
    if snapshot.server_version < (1, 35):
        found = ".".join(map(str, snapshot.server_version))
        return Blocks(
            Reason.IMAGE_VOLUME_UNSUPPORTED,
            f"`weights.imageVolume` needs Kubernetes 1.35 or later, this API server is {found}; {fallback}",
            ConditionType.WEIGHTS_VERIFIED,
        )
    runtimes = {node.runtime_version for node in eligible_nodes(spec, snapshot.nodes)}
    if runtimes and not any(_mounts_images(runtime) for runtime in runtimes):
        return Blocks(
            Reason.IMAGE_VOLUME_UNSUPPORTED,
            "`weights.imageVolume` needs containerd 2.1 or later, the GPU nodes run "
            f"{', '.join(sorted(runtimes))}; {fallback}",
            ConditionType.WEIGHTS_VERIFIED,
        )
    return HOLDS


def _mounts_images(runtime: str) -> bool:
    name, _, version = runtime.partition("://")
    numbers = version.split(".")
    if name != "containerd" or len(numbers) < 2 or not (numbers[0].isdigit() and numbers[1].isdigit()):
        return name == "cri-o"
    return (int(numbers[0]), int(numbers[1])) >= (2, 1)


def memory_holds_shared_memory(spec: ModelDeploymentSpec, _: ClusterSnapshot) -> Verdict:
    """The memory limit is larger than /dev/shm, which counts against it."""
    memory, shared = spec.resources.memory, shared_memory_limit(spec)
    if memory is None or parse_quantity(memory) > parse_quantity(shared):
        return HOLDS
    return Blocks(
        Reason.MEMORY_TOO_SMALL,
        f"`resources.memory` '{memory}' must exceed `resources.sharedMemory` '{shared}', which counts against it",
    )


def address_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The load balancer address is one that this namespace may ask for."""
    balancer = spec.endpoint.internal_load_balancer
    namespace = snapshot.owner.namespace
    if balancer is None or balancer.address is None or snapshot.policy.allows_address(balancer.address, namespace):
        return HOLDS
    return Blocks(
        Reason.ADDRESS_NOT_ALLOWED,
        f"`endpoint.internalLoadBalancer.address` '{balancer.address}' may not be asked for in namespace "
        f"'{namespace}'; leave it out, or the operator's configuration would need, under `addresses`: "
        f"- {{ranges: [{balancer.address}/32], namespaces: [{namespace}]}}",
        ConditionType.ENDPOINT_PRIVATE,
    )


def tolerations_are_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Every taint that the pods accept is one that this namespace may accept."""
    namespace = snapshot.owner.namespace
    for index, one in enumerate(spec.accelerator.tolerations):
        if not snapshot.policy.allows_toleration(one, namespace):
            return Blocks(
                Reason.TOLERATION_NOT_ALLOWED,
                f"`accelerator.tolerations[{index}]` accepts {_taint_in_words(one)}, which may not be accepted in "
                f"namespace '{namespace}'; accept the taint of your own nodes alone{_line_for_taint(one, namespace)}",
            )
    return HOLDS


def _taint_in_words(one: Toleration) -> str:
    if one.key is None:
        return "every taint"
    return f"taint '{one.key}' of every value" if one.operator == "Exists" else f"taint '{one.key}={one.value or ''}'"


def _line_for_taint(one: Toleration, namespace: str) -> str:
    if one.key is None:
        return ""  # no line allows every taint
    values = f", values: ['{one.value or ''}']" if one.operator == "Equal" else ""
    line = f"- {{key: {one.key}{values}, namespaces: [{namespace}]}}"
    return f", or the operator's configuration would need, under `tolerations`: {line}"


def address_is_free(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The load balancer address belongs to no other ModelDeployment."""
    balancer = spec.endpoint.internal_load_balancer
    if balancer is None or balancer.address is None or not snapshot.address_holder:
        return HOLDS
    return Blocks(
        Reason.ENDPOINT_CONFLICT,
        f"`endpoint.internalLoadBalancer.address` '{balancer.address}' belongs to the ModelDeployment "
        f"'{snapshot.address_holder}', which holds it or was accepted with it first; choose another or leave it out",
        ConditionType.ENDPOINT_PRIVATE,
    )


# Gates about the spec itself; then, apart, the isolation gate.
GATES: tuple[Gate, ...] = (
    registry_is_allowed,
    share_is_allowed,
    integrity_key_is_usable,
    integrity_is_pinned,
    engine_flags_are_known,
    engine_settings_are_allowed,
    image_volumes_are_supported,
    memory_holds_shared_memory,
    gpus_suit_the_engine,
    model_fits_the_gpus,
    tolerations_are_allowed,
    address_is_allowed,
    address_is_free,
)


def first_block(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, placement: ModelPlacement | None = None
) -> Blocks | None:
    """The first gate that does not hold, or None. `placement`: of the model on the nodes, if it is computed already."""
    for gate in GATES:
        if gate is model_fits_the_gpus and placement is not None:
            verdict: Verdict = placement.block or HOLDS
        else:
            verdict = gate(spec, snapshot)
        if isinstance(verdict, Blocks):
            return verdict
    return None
