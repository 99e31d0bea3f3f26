"""What keeps a pod from serving: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedReason


class PodReason(ExplainedReason):
    """What the scheduler, the kubelet and the kernel report, and why a group stops.

    What an engine says itself is in `engine_reasons.py`.
    """

    # the scheduler and the kubelet
    IMAGE_PULL_FAILED = (
        "ImagePullFailed",
        "The node cannot pull the image.",
        "Check that the digest exists in the private registry, and that the kubelet identity may pull from it.",
    )
    UNSCHEDULABLE = (
        "Unschedulable",
        "No node has enough free resources for the pod.",
        "Add GPU nodes, or reduce accelerator.count or replicas. The message names the resource, the pool and the "
        "shortfall.",
    )
    VOLUME_NOT_BOUND = (
        "VolumeNotBound",
        "The claim for the weights is not bound.",
        "Read 'kubectl describe pvc'. The claim and its volume must name each other.",
    )
    REFERENCE_NOT_FOUND = (
        "ReferenceNotFound",
        "A Secret or claim that the spec names does not exist. The pod starts as soon as it exists.",
        "Create it in the namespace of the ModelDeployment.",
    )
    MOUNT_FAILED = (
        "MountFailed",
        "The node cannot mount the weights.",
        "Check share, folder, private endpoint and root squash. The pod starts as soon as the mount works.",
    )
    CONTAINER_CONFIG_INVALID = (
        "ContainerConfigInvalid",
        "The kubelet refuses the container's configuration.",
        "Read the message. The usual cause is a missing key in a Secret.",
    )
    OUT_OF_MEMORY = (
        "OutOfMemory",
        "The kernel ended the engine, or a child of it, for using more memory than its limit.",
        "Raise spec.resources.memory. It includes /dev/shm and the page cache of the weights.",
        True,
    )
    CRASH_LOOP = (
        "CrashLoop",
        "The engine keeps crashing.",
        "The message quotes the end of the engine's log. Read all of it with 'kubectl logs --previous'.",
        True,
    )
    STARTUP_BUDGET_EXCEEDED = (
        "StartupBudgetExceeded",
        "The pod did not serve within spec.startupBudgetSeconds.",
        "Raise the budget if the share is slow. Otherwise read the engine's log.",
        True,
    )

    # groups of several pods
    GROUP_MEMBER_FAILED = (
        "GroupMemberFailed",
        "The engine of one pod of a group ended. The others cannot serve without it, so the whole group is stopped and "
        "starts again after a pause.",
        "Wait. The message names the pod, its node and the cause. Mend the cause if the group fails again.",
    )
    GROUP_MEMBER_LOST = (
        "GroupMemberLost",
        "A pod of a group was deleted, evicted or replaced. The others cannot serve without it, so the whole group is "
        "stopped and starts again after a pause.",
        "Wait. Drain the nodes of a model one at a time.",
    )
    GROUP_WAITING = (
        "GroupWaiting",
        "Not every pod of a group gets a node. After ten minutes its pods give back their GPUs, and the group tries "
        "again after a pause.",
        "Add nodes of the size that the message names, or lower spec.replicas or spec.accelerator.nodes.",
    )
