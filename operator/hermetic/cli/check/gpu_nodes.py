"""GPU machines that offer no GPU, and why, as far as nodes, device plug-ins and their pods show. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermetic.api.condition_updates import is_true
from hermetic.api.resources import Accelerator
from hermetic.cli.check.facts import Manifest, PreflightFacts, Read
from hermetic.cli.check.rows import CheckRow, RowVerdict, passes, unread
from hermetic.plan.node_faults import gpu_faults
from hermetic.sizing.catalogue import GIB, MIB, sizes
from hermetic.sizing.placement import Listing, offer_of
from hermetic.sizing.slices import MEMORY, PARTITION_MODE, PRODUCT, Offer, is_shared, memory_label, sliced_profile

CHECK, ARCHITECTURE_CHECK = "gpu-nodes", "engine-architecture"
SIZE_LABEL, POOL_LABEL = "node.kubernetes.io/instance-type", "kubernetes.azure.com/agentpool"
MIG_STATE = "nvidia.com/mig.config.state"
_GPU_SIZE = re.compile(r"Standard_N[CDGV][A-Za-z]*[0-9]", re.IGNORECASE)  # NP has FPGAs
_AMD_SIZE = re.compile(r"MI300|Standard_NG|Standard_NV[0-9]+as_v4", re.IGNORECASE)
_RESOURCE = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)|amd\.com/(gpu|[sdqc]px_nps[0-9])")
_PLUG_IN = re.compile(r"device-?plugin", re.IGNORECASE)
_WHY = "a pod of a model asks for GPUs by that name, and stays Pending with the reason Unschedulable"
_ACCEPTED = tuple(toleration.model_dump() for toleration in Accelerator().tolerations)


@dataclass(frozen=True, slots=True)
class Pool:
    """The GPU machines of one node pool and size."""

    name: str
    size: str
    nodes: tuple[Manifest, ...]

    @property
    def resource(self) -> str:
        """The extended resource that its device plug-in is expected to offer."""
        return "amd.com/gpu" if _AMD_SIZE.search(self.size) else "nvidia.com/gpu"

    def __str__(self) -> str:
        number = f"{len(self.nodes)} node" + ("" if len(self.nodes) == 1 else "s")
        return f"pool {self.name} ({number} {self.size})"


def pools(nodes: Sequence[Manifest]) -> tuple[Pool, ...]:
    """The pools of GPU machines, by name."""
    nodes_by_pool: dict[tuple[str, str], list[Manifest]] = {}
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        size = labels.get(SIZE_LABEL, "")
        if _GPU_SIZE.match(size):
            nodes_by_pool.setdefault((labels.get(POOL_LABEL, "-"), size), []).append(node)
    return tuple(Pool(name, size, tuple(members)) for (name, size), members in sorted(nodes_by_pool.items()))


def without_gpus(pool: Pool) -> tuple[Manifest, ...]:
    """Its nodes that offer no device of any kind."""
    return tuple(node for node in pool.nodes if not _offered(node, "allocatable"))


def gpu_nodes(facts: PreflightFacts) -> Iterator[CheckRow]:
    """One or more rows for each pool."""
    if facts.nodes.problem:
        yield unread(CHECK, "nodes", facts.nodes.problem)
        return
    gpu_pools = pools(facts.nodes.items)
    if not gpu_pools:
        yield CheckRow(
            CHECK,
            RowVerdict.WARNING,
            f"none of {len(facts.nodes.items)} nodes is a GPU machine of Azure (Standard_NC, ND, NG or NV)",
            "models start on such nodes alone; a pool that is scaled to zero shows none",
            "add a pool, or scale one up",
            ("az aks nodepool list --resource-group GROUP --cluster-name CLUSTER --output table",),
        )
    for pool in gpu_pools:
        yield from _pool(pool, facts)


def _pool(pool: Pool, facts: PreflightFacts) -> Iterator[CheckRow]:
    bare = without_gpus(pool)
    if bare:
        yield _no_gpus(pool, bare[0], len(bare), facts)
    else:
        yield from _slices(pool)
    yield from _faults(pool)
    yield from _taints(pool)
    yield from _architecture(pool)


def _architecture(pool: Pool) -> Iterator[CheckRow]:
    """A row where the nodes are not amd64. Source: Node API reference, status.nodeInfo.architecture."""
    reported = {(node["status"].get("nodeInfo") or {}).get("architecture", "") for node in pool.nodes}
    for architecture in sorted(reported - {"", "amd64"}):
        yield CheckRow(
            ARCHITECTURE_CHECK,
            RowVerdict.NOT_CHECKED,
            f"{pool}: the nodes are {architecture}; no object shows for which platforms the engine images are",
            "an image that is for linux/amd64 alone cannot be pulled there, and the model stays at ImagePullFailed",
            f"import images that are for linux/{architecture} too; the command lists the platforms of an image",
            ("az acr manifest show --registry REGISTRY --name REPOSITORY@sha256:DIGEST",),
        )


def _faults(pool: Pool) -> Iterator[CheckRow]:
    """Nodes whose node problem detector reports a fault of a GPU; a condition that is absent says nothing."""
    for node in pool.nodes:
        name = node["metadata"]["name"]
        if faults := gpu_faults(node):
            yield CheckRow(
                CHECK,
                RowVerdict.WARNING,
                f"{pool}: node {name} has the condition {' and '.join(faults)}",
                "the node problem detector of AKS reports a fault of its GPUs",
                "read what it reports; keep pods off the node, drain it and replace it",
                (f"kubectl describe node {name}", f"kubectl cordon {name}"),
            )


def _slices(pool: Pool) -> Iterator[CheckRow]:
    """The name of whole GPUs passes. Parts have names of their own, which a deployment must request, or labels."""
    offered = sorted({name for node in pool.nodes for name in _offered(node, "allocatable")})
    if pool.resource in offered:
        counts = sorted({_offered(node, "allocatable").get(pool.resource, 0) for node in pool.nodes})
        numbers = " or ".join(map(str, counts))
        yield passes(CHECK, f"{pool}: {numbers} {pool.resource} each")
        yield from _parts(pool)
        return
    yield CheckRow(
        CHECK,
        RowVerdict.WARNING,
        f"{pool}: GPUs are offered as {', '.join(offered)}, and none as {pool.resource}",
        _WHY,
        f"set spec.accelerator.resource of the models to {offered[0]}, or have the pool's GPUs whole",
    )


def _parts(pool: Pool) -> Iterator[CheckRow]:
    """Nodes on which the resource of whole GPUs is a slice of one (single strategy of MIG), or is shared by time."""
    label_sets = [node["metadata"].get("labels") or {} for node in pool.nodes]
    if any(is_shared(labels) for labels in label_sets):
        yield CheckRow(
            CHECK,
            RowVerdict.WARNING,
            f"{pool}: GPUs are shared by time, and offered as {pool.resource}",
            "no pod is guaranteed memory, and ModelFits of a model there is Unknown",
            "give models a pool that does not share its GPUs",
        )
    memory_of = {(sliced_profile(labels), memory_label(labels) or 0) for labels in label_sets}
    for profile, mebibytes in sorted((name, memory) for name, memory in memory_of if name is not None):
        yield _single_strategy(pool, profile, mebibytes)
    yield from _partitions(pool)


def _single_strategy(pool: Pool, profile: str, mebibytes: int) -> CheckRow:
    slices = f"{pool}: {pool.resource} is a slice {profile} of a GPU (MIG, single strategy)"
    if mebibytes:
        size = f"{mebibytes * MIB / GIB:.1f} GiB"
        return passes(CHECK, f"{slices} of {size}, which ModelFits counts; engines do not divide a model over slices")
    return CheckRow(
        CHECK,
        RowVerdict.WARNING,
        f"{slices}, and no label {MEMORY} states its memory",
        "ModelFits of a model there is Unknown",
        "have GPU feature discovery label the nodes",
        (f"kubectl get nodes --selector {SIZE_LABEL}={pool.size} --label-columns {PRODUCT},{MEMORY}",),
    )


def _partitions(pool: Pool) -> Iterator[CheckRow]:
    """Nodes on which it is a partition of an AMD GPU, or that list more of it than the VM has GPUs."""
    size = sizes().get(pool.size)
    if size is None:
        return
    listings = [
        Listing(node["metadata"].get("labels") or {}, _offered(node, "allocatable").get(pool.resource, 0))
        for node in pool.nodes
    ]
    offers = {
        offer_of(size, pool.resource, listing)
        for listing in listings
        if not is_shared(listing.labels) and sliced_profile(listing.labels) is None
    }
    yield from (
        _part(pool, offer)
        for offer in sorted(offers, key=lambda offer: offer.gpu.name)
        if offer.unknown or offer.undivided
    )


def _part(pool: Pool, offer: Offer) -> CheckRow:
    part = f"{pool.resource} is a {offer.gpu.name} (single strategy)"
    if not offer.unknown and offer.gpu.memory.confirmed:
        return passes(CHECK, f"{pool}: {part} of {offer.gpu.memory.value / GIB:.1f} GiB, which ModelFits counts")
    return CheckRow(
        CHECK,
        RowVerdict.WARNING,
        f"{pool}: {next(iter(offer.unknown), f'{part}, and its memory is not confirmed')}",
        "ModelFits of a model there is Unknown",
        "have the device plug-in offer parts of GPUs by names of their own (mixed strategy), or label the nodes with "
        "GPU feature discovery (NVIDIA) or the node labeller with -compute-memory-partition (AMD)",
        (f"kubectl get nodes --selector {SIZE_LABEL}={pool.size} --label-columns {PRODUCT},{PARTITION_MODE}",),
    )


def _no_gpus(pool: Pool, node: Manifest, number: int, facts: PreflightFacts) -> CheckRow:
    cause, fix, commands = _cause(pool, node, facts)
    name = node["metadata"]["name"]
    return CheckRow(
        CHECK,
        RowVerdict.FAIL,
        f"{pool}: {number} of them without {pool.resource}: {cause} (seen at {name})",
        _WHY,
        fix,
        (f"kubectl describe node {name}", *commands),
    )


_Cause = tuple[str, str, tuple[str, ...]]


def _cause(pool: Pool, node: Manifest, facts: PreflightFacts) -> _Cause:
    """Cause, remedy and command for details; the first that applies, from the machine up to the plug-in."""
    labels = node["metadata"].get("labels") or {}
    if not is_true(node, "Ready"):
        return "the node is not Ready", "get the node Ready first", ()
    if labels.get(MIG_STATE, "success") != "success":
        state = labels[MIG_STATE]
        return (
            f"MIG: {MIG_STATE} is {state}",
            "wait where it is pending; where it failed, read the log of the MIG manager, and restart the node",
            (),
        )
    if _offered(node, "capacity", zero=True):
        return (
            "the device plug-in calls every GPU unhealthy",
            "read its log for the Xid of the driver, and replace the node",
            (),
        )
    if facts.daemon_sets.problem:
        return f"and DaemonSets cannot be read: {facts.daemon_sets.problem}", "check with an account that may", ()
    plug_ins = [daemon_set for daemon_set in facts.daemon_sets.items if _is_plug_in(daemon_set, pool)]
    if not plug_ins:
        return (
            f"no DaemonSet is a device plug-in for {pool.resource}",
            "install the device plug-in of the vendor, from an image in your registry",
            ("kubectl get daemonsets --all-namespaces",),
        )
    return _of_plug_in(plug_ins[0], node, facts.beside.get(node["metadata"]["name"], Read()))


def _of_plug_in(plug_in: Manifest, node: Manifest, beside: Read) -> _Cause:
    namespace, name = plug_in["metadata"]["namespace"], plug_in["metadata"]["name"]
    commands = (f"kubectl describe daemonset {name} --namespace {namespace}",)
    if beside.problem:
        return f"and its pods cannot be read: {beside.problem}", "check with an account that may", commands
    pods = [pod for pod in beside.items if _is_of(pod, plug_in)]
    if not pods:
        return _not_placed(plug_in, node, commands)
    pod = pods[0]
    logs = (f"kubectl logs {pod['metadata']['name']} --namespace {namespace}",)
    waiting = next((state["reason"] for state in _waiting(pod) if state.get("reason")), "")
    if "Image" in waiting or waiting == "ErrImagePull":
        return (
            f"the image of the device plug-in {name} cannot be pulled ({waiting})",
            "put the image into your registry, name it there, and let the nodes pull it",
            (f"kubectl describe pod {pod['metadata']['name']} --namespace {namespace}",),
        )
    driver = "pools made with --gpu-driver none have no driver; make the pool anew without it, or install one"
    if waiting or not is_true(pod, "Ready"):
        return f"the device plug-in {name} does not run there ({waiting or 'not Ready'}): often no driver", driver, logs
    return f"the device plug-in {name} runs there and finds no GPU: the driver is not loaded", driver, logs


def _not_placed(plug_in: Manifest, node: Manifest, commands: tuple[str, ...]) -> _Cause:
    name, spec = plug_in["metadata"]["name"], plug_in["spec"]["template"]["spec"]
    for taint in node.get("spec", {}).get("taints") or ():
        if _is_of_the_platform(taint) or taint.get("effect") == "PreferNoSchedule":
            continue
        if not _tolerates(spec.get("tolerations") or (), taint):
            described = _taint(taint)
            return (
                f"the device plug-in {name} does not tolerate the taint {described}",
                f"add a toleration for {described} to the DaemonSet",
                commands,
            )
    labels = node["metadata"].get("labels") or {}
    missing = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if labels.get(key) != value}
    if missing:
        described = ", ".join(f"{key}={value}" for key, value in missing.items())
        return (
            f"the device plug-in {name} selects nodes with {described}",
            "label the pool, or change the nodeSelector",
            commands,
        )
    return f"the device plug-in {name} has no pod there", "read why: its affinity may leave the node out", commands


def _taints(pool: Pool) -> Iterator[CheckRow]:
    """Taints that models do not tolerate unless their spec says so."""
    check = "gpu-taints"
    taints = {
        _taint(taint): taint
        for node in pool.nodes
        for taint in node.get("spec", {}).get("taints") or ()
        if taint.get("effect") != "PreferNoSchedule" and not _is_of_the_platform(taint)
    }
    refused = [described for described, taint in taints.items() if not _tolerates(_ACCEPTED, taint)]
    if refused:
        yield CheckRow(
            check,
            RowVerdict.WARNING,
            f"{pool}: has the taint {', '.join(refused)}, which models do not accept by default",
            "a pod of a model stays Pending with the reason Unschedulable",
            "name it in spec.accelerator.tolerations of the models, or taint the pool sku=gpu:NoSchedule",
        )
    elif not taints:
        yield CheckRow(
            check,
            RowVerdict.WARNING,
            f"{pool}: has no taint, so pods without a GPU take its CPUs and memory too",
            "a model may then not fit on a node with a free GPU",
            "taint the pool",
            (
                f"az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name {pool.name} "
                "--node-taints sku=gpu:NoSchedule",
            ),
        )


def _offered(node: Manifest, which: str, *, zero: bool = False) -> dict[str, int]:
    """GPU resources by name; those with a count of 0 only with `zero`."""
    amounts = (node.get("status") or {}).get(which) or {}
    counts = {name: int(number) for name, number in amounts.items() if _RESOURCE.fullmatch(name)}
    return {name: number for name, number in counts.items() if number or zero}


def _waiting(pod: Manifest) -> Iterator[Mapping[str, Any]]:
    status = pod.get("status") or {}
    for container_status in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if waiting := (container_status.get("state") or {}).get("waiting"):
            yield waiting


def _is_plug_in(manifest: Manifest, pool: Pool) -> bool:
    """Whether it is a device plug-in by its name or image; of the pool's vendor, if name or image contains one."""
    images = [container.get("image", "") for container in manifest["spec"]["template"]["spec"]["containers"]]
    text = " ".join((manifest["metadata"]["name"], *images)).lower()
    vendor, other = ("amd", "nvidia") if pool.resource.startswith("amd") else ("nvidia", "amd")
    tokens = set(re.split(r"[^a-z0-9]+", text))
    return _PLUG_IN.search(text) is not None and (vendor in tokens or other not in tokens)


def _is_of(pod: Manifest, daemon_set: Manifest) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] == "DaemonSet" and owner["name"] == daemon_set["metadata"]["name"] for owner in owners)


def _is_of_the_platform(taint: Mapping[str, Any]) -> bool:
    """Taints that Kubernetes sets on a node in trouble, and that every DaemonSet tolerates."""
    return str(taint["key"]).startswith("node.kubernetes.io/")


def _taint(taint: Mapping[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect', '')}"


def _tolerates(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """By the rules of the scheduler."""
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
            continue
        if toleration.get("operator") == "Exists" and toleration.get("key") in {None, "", taint["key"]}:
            return True
        if toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or ""):
            return True
    return False
