"""What must hold before a pod may be created: a chain of gates, in the order in which they are reported."""

from __future__ import annotations

from hermetic.api.conditions import ConditionType
from hermetic.api.model_metadata import LONGEST_ANNOTATION
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.quantities import parse_quantity
from hermetic.api.scheduling import Toleration
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.registry import engine_of
from hermetic.objects.volumes import BESIDE_SCRATCH, shared_memory_limit
from hermetic.plan.allowed_gateways import (
    gateway_api_is_served,
    gateway_is_allowed,
    path_is_free,
    route_is_allowed,
)
from hermetic.plan.allowed_scheduling import scheduling_is_allowed
from hermetic.plan.allowed_sources import registry_is_allowed, share_is_allowed
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS, Blocks, Gate, Verdict
from hermetic.plan.image_volumes import image_volumes_are_supported
from hermetic.plan.model_fit import ModelPlacement, model_fits_the_gpus
from hermetic.plan.route_group import group_is_uniform
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.vm_sizes import gpus_suit_the_engine, vm_size_offers_the_pod
from hermetic.plan.weights_integrity import integrity_is_pinned, integrity_key_is_usable


def engine_flags_are_known(spec: ModelDeploymentSpec, _: ClusterSnapshot) -> Verdict:
    """The engine's release and every extra argument are known, and no argument matches a reserved flag."""
    objection = engine_of(spec).objection(spec)
    return Blocks(objection.reason, objection.message, field=objection.field) if objection is not None else HOLDS


def memory_holds_shared_memory(spec: ModelDeploymentSpec, _: ClusterSnapshot) -> Verdict:
    """The memory limit is larger than /dev/shm, which counts against it."""
    memory, shared = spec.resources.memory, shared_memory_limit(spec)
    if memory is None or parse_quantity(memory) > parse_quantity(shared):
        return HOLDS
    return Blocks(
        SpecReason.MEMORY_TOO_SMALL,
        f"`resources.memory` '{memory}' must exceed `resources.sharedMemory` '{shared}', which counts against it",
    )


def cpu_limit_holds_the_request(spec: ModelDeploymentSpec, _: ClusterSnapshot) -> Verdict:
    """The CPU limit is no less than the CPUs asked for: the API server would refuse the Deployment.

    A rule of the CRD would cost a tenth of what API servers before 1.34 let all rules cost.
    """
    cpu, limit = spec.resources.cpu, spec.resources.cpu_limit
    if limit is None or parse_quantity(limit) >= parse_quantity(cpu):
        return HOLDS
    return Blocks(
        SpecReason.CPU_LIMIT_TOO_LOW,
        f"`resources.cpuLimit` '{limit}' must be at least `resources.cpu` '{cpu}'; raise it, or ask for less",
        field="spec.resources.cpuLimit",
    )


def ephemeral_storage_limit_holds_the_folders(spec: ModelDeploymentSpec, _: ClusterSnapshot) -> Verdict:
    """The limit holds every folder that the pod may fill: beyond it the kubelet evicts the pod.

    Source: https://kubernetes.io/docs/concepts/storage/ephemeral-storage (emptyDirs, logs and writable layers count).
    """
    scratch, limit = spec.resources.scratch, spec.resources.ephemeral_storage_limit
    if limit is None or parse_quantity(limit) >= parse_quantity(scratch) + parse_quantity(BESIDE_SCRATCH):
        return HOLDS
    return Blocks(
        SpecReason.EPHEMERAL_STORAGE_LIMIT_TOO_LOW,
        f"`resources.ephemeralStorageLimit` '{limit}' must be at least `resources.scratch` '{scratch}' plus "
        f"{BESIDE_SCRATCH} for /tmp and logs: the kubelet would evict the pod once it is full; raise it, or ask for "
        "less scratch space",
        field="spec.resources.ephemeralStorageLimit",
    )


def propagated_annotations_are_short(_: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """No annotation that is copied to every child is longer than the configuration's own may be."""
    for key in snapshot.policy.model_metadata.propagated_annotations:
        if len(snapshot.annotations.get(key, "")) > LONGEST_ANNOTATION:
            return Blocks(
                SpecReason.ANNOTATION_TOO_LONG,
                f"the annotation '{key}' of the ModelDeployment is copied to its pods, and must have at most "
                f"{LONGEST_ANNOTATION} characters; shorten it, for example to a link",
                field=f"metadata.annotations[{key}]",
            )
    return HOLDS


def address_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The load balancer address is one that this namespace may ask for."""
    balancer = spec.endpoint.internal_load_balancer
    namespace = snapshot.owner.namespace
    if balancer is None or balancer.address is None or snapshot.policy.allows_address(balancer.address, namespace):
        return HOLDS
    return Blocks(
        SpecReason.ADDRESS_NOT_ALLOWED,
        f"`endpoint.internalLoadBalancer.address` '{balancer.address}' may not be asked for in namespace "
        f"'{namespace}'; leave it out, or the operator's configuration would need, under `addresses`: "
        f"- {{ranges: [{balancer.address}/32], namespaces: [{namespace}]}}",
        ConditionType.ENDPOINT_PRIVATE,
    )


def tolerations_are_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Every taint that the pods accept is one that this namespace may accept."""
    namespace = snapshot.owner.namespace
    for index, toleration in enumerate(spec.accelerator.tolerations):
        if not snapshot.policy.allows_toleration(toleration, namespace):
            return Blocks(
                SpecReason.TOLERATION_NOT_ALLOWED,
                f"`accelerator.tolerations[{index}]` accepts {_taint_in_words(toleration)}, which may not be accepted "
                f"in namespace '{namespace}'; accept the taint of your own nodes alone"
                f"{_line_for_taint(toleration, namespace)}",
            )
    return HOLDS


def _taint_in_words(toleration: Toleration) -> str:
    if toleration.key is None:
        return "every taint"
    return (
        f"taint '{toleration.key}' of every value"
        if toleration.operator == "Exists"
        else f"taint '{toleration.key}={toleration.value or ''}'"
    )


def _line_for_taint(toleration: Toleration, namespace: str) -> str:
    if toleration.key is None:
        return ""  # no line allows every taint
    values = f", values: ['{toleration.value or ''}']" if toleration.operator == "Equal" else ""
    line = f"- {{key: {toleration.key}{values}, namespaces: [{namespace}]}}"
    return f", or the operator's configuration would need, under `tolerations`: {line}"


def address_is_free(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The load balancer address, with this port, belongs to no other ModelDeployment."""
    balancer = spec.endpoint.internal_load_balancer
    if balancer is None or balancer.address is None or not snapshot.address_holder:
        return HOLDS
    return Blocks(
        SpecReason.ENDPOINT_CONFLICT,
        f"`endpoint.internalLoadBalancer.address` '{balancer.address}' with port {spec.endpoint.client_port} belongs "
        f"to the ModelDeployment '{snapshot.address_holder}', which holds it or was accepted with it first; choose "
        "another address or leave it out, or share it: another `servicePort`, and no `allowedSourceRanges` in either",
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
    cpu_limit_holds_the_request,
    ephemeral_storage_limit_holds_the_folders,
    vm_size_offers_the_pod,
    gpus_suit_the_engine,
    model_fits_the_gpus,
    tolerations_are_allowed,
    scheduling_is_allowed,
    propagated_annotations_are_short,
    address_is_allowed,
    address_is_free,
    gateway_is_allowed,
    route_is_allowed,
    gateway_api_is_served,
    path_is_free,
    group_is_uniform,
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
