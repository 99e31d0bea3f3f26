"""What is known about the GPUs of a pod: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedReason


class AcceleratorReason(ExplainedReason):
    """What the checks before an engine start find, and what a node reports about its GPUs."""

    # the checks as a whole
    ACCELERATORS_CHECKED = (
        "AcceleratorsChecked",
        "The GPUs of each pod passed every check before the engine started, and no node reports a fault of a GPU.",
        "Nothing to do.",
    )
    ACCELERATORS_CHECKED_WITH_WARNINGS = (
        "AcceleratorsCheckedWithWarnings",
        "The GPUs compute and copy correctly, but a counter or a rate is outside the range of a healthy GPU.",
        "Read the message. Compare a rate with other nodes of the VM size, then set it under preflight.floors of the "
        "operator's configuration.",
    )
    PREFLIGHT_PENDING = (
        "PreflightPending",
        "The GPUs are checked before the engine starts. No pod has finished the check yet.",
        "Wait. 'kubectl logs POD -c check-accelerators' shows the result.",
    )
    PREFLIGHT_NOT_RUN = (
        "PreflightNotRun",
        "The pods do not check their GPUs: the policy is Off, or the pods are older than the check.",
        "Set spec.accelerator.preflight.policy to Warn or Require. The pods restart once. Pods that are older than "
        "the upgrade get the check with the next change of the spec.",
    )
    PREFLIGHT_UNREADABLE = (
        "PreflightUnreadable",
        "The container that checks the GPUs ended, and its result is missing, truncated, or in another form.",
        "Read 'kubectl logs POD -c check-accelerators'. Exit code 137 means that the kernel or the kubelet ended it.",
    )
    BELOW_FLOOR = (
        "BelowFloor",
        "A rate is below the floor that the operator's configuration sets for the VM size of the node.",
        "Compare with other nodes of the size; cordon and replace this one, or lower preflight.floors.",
        True,
    )
    NODE_REPORTS_FAULT = (
        "NodeReportsFault",
        "The node problem detector of AKS reports a fault of the GPUs of a node that runs a pod of the model.",
        "Read 'kubectl describe node' of the node that the message names; cordon it and replace it.",
        True,
    )

    # a finding of the program that checks
    PYTHON_MISSING = (
        "PythonMissing",
        "The engine's image has no python3 on its path, so the GPUs were not checked.",
        "Use an image with python3, or set spec.accelerator.preflight.policy to Off.",
    )
    NVML_MISSING = (
        "NvmlMissing",
        "The container has no libnvidia-ml.so.1, so counters and links of the GPUs were not read.",
        "On an NVIDIA GPU, check the container toolkit of the node and NVIDIA_DRIVER_CAPABILITIES of the image, which "
        "must hold 'utility'. On an AMD GPU this is expected.",
    )
    TORCH_MISSING = (
        "TorchMissing",
        "The engine's image has no torch, so computing, copies and collectives were not checked.",
        "Nothing to do if the image intentionally has no torch, like some NIMs. The counters and links were checked.",
    )
    COUNTERS_UNREADABLE = (
        "CountersUnreadable",
        "The driver does not let the container read a counter of a GPU.",
        "Read the message. In a slice of a GPU (MIG) this is expected.",
    )
    CHECKS_INCOMPLETE = (
        "ChecksIncomplete",
        "An error ended the checks early. The error is not evidence of a GPU fault.",
        "Read 'kubectl logs POD -c check-accelerators'. Delete the pod to repeat the checks.",
    )
    ACCELERATOR_BUSY = (
        "AcceleratorBusy",
        "Another process uses the GPU or its memory, so the GPU could not be checked.",
        "Find the process on the node. Delete the pod to repeat the checks.",
    )
    GPU_MISSING = (
        "GpuMissing",
        "The pod has fewer or other GPUs than it requested.",
        "Cordon the node that the message names, and look at its device plug-in and driver; report a GPU that stays "
        "missing after a restart of the node to Azure. AMD GPUs: the pod may lack the group of /dev/kfd, which "
        "`weights.supplementalGroups` adds.",
        True,
    )
    GPU_INITIALIZATION_FAILED = (
        "GpuInitializationFailed",
        "CUDA cannot be initialized on the node.",
        "Cordon the node that the message names. Error 802: look at its fabric manager. 803: make its driver and the "
        "image agree. 999: restart it.",
        True,
    )
    GPU_DRIVER_TOO_OLD = (
        "GpuDriverTooOld",
        "The node's driver is older than the CUDA release of the engine's image needs, so the compute checks did not "
        "run.",
        "Upgrade the node image, or use an image for the driver that the message names.",
    )
    ECC_DISABLED = (
        "EccDisabled",
        "Memory error correction of a GPU is disabled.",
        "Enable it with 'nvidia-smi --ecc-config=1' on the node, then restart the node.",
    )
    ROW_REMAP_FAILED = (
        "RowRemapFailed",
        "A GPU has no spare memory row left for a broken row.",
        "Cordon the node that the message names, and report the GPU to Azure.",
        True,
    )
    ROW_REMAP_PENDING = (
        "RowRemapPending",
        "A GPU must be reset before it replaces a broken memory row.",
        "Cordon and drain the node that the message names, restart it, then uncordon it.",
        True,
    )
    ROWS_REMAPPED = (
        "RowsRemapped",
        "More rows of a GPU's memory were replaced after uncorrectable errors than a healthy GPU has.",
        "Cordon the node that the message names, and report the GPU to Azure.",
        True,
    )
    SRAM_UNCORRECTABLE = (
        "SramUncorrectable",
        "The SRAM of a GPU had an uncorrectable error.",
        "Cordon the node that the message names, and report the GPU to Azure.",
        True,
    )
    MEMORY_ERRORS = (
        "MemoryErrors",
        "A GPU has corrected more memory errors than a healthy GPU.",
        "Monitor the node that the message names. Replace it if the number grows.",
    )
    NVLINK_INACTIVE = (
        "NvLinkInactive",
        "Fewer NVLinks of a GPU are active than its form factor has.",
        "Cordon the node that the message names, restart it, and report it to Azure if the link stays inactive.",
        True,
    )
    CLOCKS_THROTTLED = (
        "ClocksThrottled",
        "A GPU lowers its clocks for heat, power or a hardware fault.",
        "Monitor the node that the message names. Replace it if this stays.",
    )
    PCIE_LINK_REDUCED = (
        "PcieLinkReduced",
        "A GPU uses fewer PCIe lanes, or an older generation, than it could.",
        "Compare hostGBs in status.accelerators with another node of the same VM size.",
    )
    COMPUTE_WRONG = (
        "ComputeWrong",
        "A GPU computes a wrong product.",
        "Cordon the node that the message names, and report the GPU to Azure.",
        True,
    )
    COMPUTE_DIFFERS = (
        "ComputeDiffers",
        "A GPU computes the same product twice with different results.",
        "Cordon the node that the message names, and report the GPU to Azure.",
        True,
    )
    PEER_COPY_WRONG = (
        "PeerCopyWrong",
        "Data that is copied from a GPU to another one arrives changed.",
        "Cordon the node that the message names, and report the GPU to Azure.",
        True,
    )
    COLLECTIVE_WRONG = (
        "CollectiveWrong",
        "A sum over the GPUs of the pod (NCCL or RCCL) is wrong.",
        "Cordon the node that the message names, and report it to Azure.",
        True,
    )
    ACCELERATOR_ERROR = (
        "AcceleratorError",
        "The driver of a GPU reports an error while the GPU is checked.",
        "Cordon the node that the message names; look for Xid messages in its kernel log, and restart it.",
        True,
    )
    ACCELERATOR_NOT_RESPONDING = (
        "AcceleratorNotResponding",
        "The driver of a GPU did not answer in time.",
        "Cordon the node that the message names and restart it; report it to Azure if it hangs again.",
        True,
    )


# What the program that checks the GPUs of a pod reports; a result with another reason is not one of it.
ACCELERATOR_FINDINGS = frozenset(
    {
        AcceleratorReason.PYTHON_MISSING,
        AcceleratorReason.NVML_MISSING,
        AcceleratorReason.TORCH_MISSING,
        AcceleratorReason.COUNTERS_UNREADABLE,
        AcceleratorReason.CHECKS_INCOMPLETE,
        AcceleratorReason.ACCELERATOR_BUSY,
        AcceleratorReason.GPU_MISSING,
        AcceleratorReason.GPU_INITIALIZATION_FAILED,
        AcceleratorReason.GPU_DRIVER_TOO_OLD,
        AcceleratorReason.ECC_DISABLED,
        AcceleratorReason.ROW_REMAP_FAILED,
        AcceleratorReason.ROW_REMAP_PENDING,
        AcceleratorReason.ROWS_REMAPPED,
        AcceleratorReason.SRAM_UNCORRECTABLE,
        AcceleratorReason.MEMORY_ERRORS,
        AcceleratorReason.NVLINK_INACTIVE,
        AcceleratorReason.CLOCKS_THROTTLED,
        AcceleratorReason.PCIE_LINK_REDUCED,
        AcceleratorReason.COMPUTE_WRONG,
        AcceleratorReason.COMPUTE_DIFFERS,
        AcceleratorReason.PEER_COPY_WRONG,
        AcceleratorReason.COLLECTIVE_WRONG,
        AcceleratorReason.ACCELERATOR_ERROR,
        AcceleratorReason.ACCELERATOR_NOT_RESPONDING,
    }
)
