"""What must hold before a pod may be created: a chain of gates, in the order in which they are reported."""

from __future__ import annotations

from hermetic.api.conditions import ConditionType
from hermetic.api.configuration import AllowedShare
from hermetic.api.modeldeployment import ModelDeploymentSpec, Toleration
from hermetic.api.quantities import parse_quantity
from hermetic.api.reasons import Reason
from hermetic.api.strictness import covers
from hermetic.api.weights import AzureFiles
from hermetic.engines.registry import engine_of
from hermetic.objects.volumes import shared_memory_limit
from hermetic.objects.weights_volume import share_of, storage_account
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS, Blocks, Gate, Verdict
from hermetic.plan.model_fit import ModelPlacement, gpus_suit_the_engine, model_fits_the_gpus
from hermetic.plan.scheduling import eligible_nodes
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.weights_integrity import integrity_is_pinned, integrity_key_is_usable


def registry_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Every image comes from a registry that this namespace may use."""
    references = [spec.engine.chosen.image]
    if spec.weights.image_volume is not None:
        references.append(spec.weights.image_volume.reference)
    for reference in references:
        host, _, repository = reference.partition("/")
        if not _registry_allowed(snapshot, host, repository):
            line = f"- {{host: {host}, namespaces: [{snapshot.owner.namespace}]}}"
            return Blocks(
                Reason.REGISTRY_NOT_ALLOWED,
                f"registry '{host}' of image '{reference}' may not be used in namespace '{snapshot.owner.namespace}'; "
                f"the operator's configuration would need, under `registries`: {line}",
                ConditionType.IMAGES_PINNED,
            )
    return HOLDS


def image_is_allowed(snapshot: ClusterSnapshot, reference: str) -> bool:
    """Whether an image comes from a registry that this namespace may use."""
    host, _, repository = reference.partition("/")
    return _registry_allowed(snapshot, host, repository)


def _registry_allowed(snapshot: ClusterSnapshot, host: str, repository: str) -> bool:
    return any(
        allowed.host == host
        and covers(allowed.namespaces, snapshot.owner.namespace)
        and (not allowed.repositories or any(_is_below(repository, one, "/:@") for one in allowed.repositories))
        for allowed in snapshot.policy.registries
    )


def _is_below(text: str, prefix: str, boundaries: str) -> bool:
    """Whether the text is the prefix, or continues it with one of the characters: 'team-b' is not below 'team'."""
    if not text.startswith(prefix):
        return False
    rest = text[len(prefix) :]
    return not rest or prefix.endswith("/") or rest[0] in boundaries


def share_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The share is one that this namespace may read, and the operator may create volumes at all."""
    if share_of(spec.weights) is None:
        return HOLDS
    if not snapshot.policy.volumes.create:
        return Blocks(
            Reason.VOLUME_CREATION_OFF,
            "`volumes.create` is off in the operator's configuration: use `weights.persistentVolumeClaim`; "
            "'hermetic render --volumes' prints what the platform team should create",
            ConditionType.WEIGHTS_VERIFIED,
        )
    named = [one for one in snapshot.policy.shares if _share_allowed(spec, one, snapshot.owner.namespace)]
    if any(_folder_allowed(spec, one) for one in named):
        return HOLDS
    if named:
        return _folder_not_allowed(spec, snapshot.owner.namespace, named)
    return Blocks(
        Reason.SHARE_NOT_ALLOWED,
        f"{_share_in_words(spec)} may not be read in namespace '{snapshot.owner.namespace}'; the operator's "
        f"configuration would need, under `shares`: {_line_for_share(spec, snapshot.owner.namespace)}",
        ConditionType.WEIGHTS_VERIFIED,
    )


def _share_allowed(spec: ModelDeploymentSpec, allowed: AllowedShare, namespace: str) -> bool:
    if not covers(allowed.namespaces, namespace):
        return False
    files, nfs = spec.weights.azure_files, spec.weights.nfs
    if files is not None:
        # The account's name restricts nothing if the spec may name any host to mount from.
        named = allowed.account == storage_account(files) and allowed.share == files.share
        return named and (files.server is None or files.server == allowed.server)
    return nfs is not None and allowed.server == nfs.server and allowed.path == nfs.path


def _folder_of(spec: ModelDeploymentSpec) -> str:
    share = spec.weights.azure_files or spec.weights.nfs
    return (share.folder or "") if share is not None else ""


def _folder_allowed(spec: ModelDeploymentSpec, allowed: AllowedShare) -> bool:
    return not allowed.folders or any(_is_below(_folder_of(spec), one, "/") for one in allowed.folders)


def _folder_not_allowed(spec: ModelDeploymentSpec, namespace: str, named: list[AllowedShare]) -> Blocks:
    asked = f"folder '{_folder_of(spec)}'" if _folder_of(spec) else "the whole"
    folders = sorted({folder for one in named for folder in one.folders})
    return Blocks(
        Reason.SHARE_NOT_ALLOWED,
        f"{asked} of {_share_in_words(spec)} may not be read in namespace '{namespace}', only below: "
        f"{', '.join(folders)}; set `folder` to one of these or below, or have the operator's configuration changed, "
        "under `shares`, `folders`",
        ConditionType.WEIGHTS_VERIFIED,
    )


def _share_in_words(spec: ModelDeploymentSpec) -> str:
    files, nfs = spec.weights.azure_files, spec.weights.nfs
    if files is not None:
        return f"share '{files.share}' of '{storage_account(files)}'" + (
            f" at '{files.server}'" if files.server else ""
        )
    return f"share '{nfs.server}:{nfs.path}'" if nfs is not None else "the share"


def _line_for_share(spec: ModelDeploymentSpec, namespace: str) -> str:
    files, nfs = spec.weights.azure_files, spec.weights.nfs
    if files is not None:
        return f"- {{{_azure_line(files)}, namespaces: [{namespace}]}}"
    return f"- {{server: {nfs.server}, path: {nfs.path}, namespaces: [{namespace}]}}" if nfs is not None else ""


def _azure_line(files: AzureFiles) -> str:
    server = f", server: {files.server}" if files.server else ""
    return f"account: {storage_account(files)}, share: {files.share}{server}"


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
