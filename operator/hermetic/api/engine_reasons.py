"""Why an engine does not start, read from its output: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedReason


class EngineReason(ExplainedReason):
    """`engines/failure_signatures.py` finds it by the text of an error."""

    # the model
    MODEL_PATH_MISSING = "ModelPathMissing", "The model folder does not exist.", "Check weights.folder or path.", True
    MODEL_INCOMPLETE = (
        "ModelIncomplete",
        "The model folder lacks files, or a file is truncated.",
        "Stage the complete model again.",
        True,
    )
    MODEL_UNREADABLE = (
        "ModelUnreadable",
        "The weights exist, but the engine's user may not read them.",
        "Make them world-readable: 'chmod -R a+rX' on the share.",
        True,
    )
    MODEL_UNSUPPORTED = (
        "ModelUnsupported",
        "This version of the engine does not support the model's architecture.",
        "Use an image with a version that lists the architecture, and set that version in the spec.",
        True,
    )
    REMOTE_CODE_REQUIRED = (
        "RemoteCodeRequired",
        "The model needs to run code that comes with its weights.",
        "Use a release that supports the model by itself, or put the model with its code into an image "
        "(weights.bakedImage or weights.imageVolume) and give '--trust-remote-code', which remoteCode of the "
        "operator's configuration must allow.",
        True,
    )
    CONTEXT_TOO_LONG = (
        "ContextTooLong",
        "maxModelLength exceeds what the model supports.",
        "Lower maxModelLength.",
        True,
    )
    ADAPTER_MISSING = (
        "AdapterMissing",
        "The folder of an adapter does not exist.",
        "Stage the adapter in the folder that `adapters` names: adapter_config.json must lie directly in it.",
        True,
    )
    FETCH_ATTEMPTED = (
        "FetchAttempted",
        "The engine tried to read files outside the staged folder.",
        "Stage all parts of the model (tokenizer, draft model, adapters) and set local paths.",
        True,
    )

    # the GPUs
    TENSOR_PARALLEL_INVALID = (
        "TensorParallelInvalid",
        "The model cannot be split over this number of GPUs.",
        "Choose a tensorParallelSize that divides the model's attention heads.",
        True,
    )
    GPU_COUNT_MISMATCH = (
        "GpuCountMismatch",
        "The parallel sizes of the engine need another number of GPUs than the pod has.",
        "Set accelerator.count to tensor times pipeline times data parallel size, or change these sizes.",
        True,
    )
    GPU_MEMORY_TOO_SMALL = (
        "GpuMemoryTooSmall",
        "The model with its key-value cache does not fit the GPU.",
        "Lower maxModelLength, use kvCacheDtype fp8, more GPUs, or a larger GPU.",
        True,
    )
    GPU_BUSY = "GpuBusy", "Another process uses the GPU's memory.", "Find the process on the node.", True
    SHARED_MEMORY_TOO_SMALL = (
        "SharedMemoryTooSmall",
        "/dev/shm is too small for this many GPUs.",  # noqa: S108 - a name in a sentence
        "Raise spec.resources.sharedMemory.",
        True,
    )
    DRIVER_TOO_OLD = "DriverTooOld", "The node's GPU driver is too old for the image.", "Upgrade the node image.", True
    GPU_UNSUPPORTED = (
        "GpuUnsupported",
        "The image has no kernels for this GPU, or the GPU lacks the number format or quantization of the model.",
        "Use an image whose release supports the GPU, or a GPU or a checkpoint that the message asks for; on a GPU "
        "without bfloat16 give '--dtype half' in extraArgs.",
        True,
    )
    GPU_NOT_VISIBLE = (
        "GpuNotVisible",
        "The engine finds no GPU in its pod, or may not open its device.",
        "Check that the image is for the vendor of the GPU, and the device plug-in and driver of the node; of an AMD "
        "GPU, put the group of /dev/kfd into weights.supplementalGroups.",
        True,
    )
    INTERCONNECT_DEGRADED = (
        "InterconnectDegraded",
        "NCCL can use no InfiniBand device of the pod. It may not fall back to TCP, which is many times slower.",
        "Check that the device plug-in of accelerator.interconnect.resource gives the pods devices whose links are up, "
        "and that the nodes share one InfiniBand network; or set accelerator.interconnect.type to Ethernet.",
        True,
    )
    INTERCONNECT_MEMLOCK = (
        "InterconnectMemlock",
        "The limit of locked memory (RLIMIT_MEMLOCK) of the container is finite, and InfiniBand needs to lock memory.",
        "Set LimitMEMLOCK=infinity for containerd on the nodes of the pool. The capability IPC_LOCK, the other way, is "
        "one that Pod Security forbids at its level baseline, and that Hermetic gives no pod.",
        True,
    )
    GPU_COMMUNICATION_FAILED = (
        "GpuCommunicationFailed",
        "The GPUs of the pod cannot exchange data (NCCL or RCCL).",
        "Give NCCL_DEBUG: INFO in extraEnv and read the log; check driver and fabric manager of the node, and "
        "resources.sharedMemory.",
        True,
    )

    # arguments, caches and the disk
    CACHE_UNWRITABLE = (
        "CacheUnwritable",
        "The engine cannot write its caches.",
        "Report it: this is Hermetic's fault.",
        True,
    )
    ENGINE_ARGUMENTS_REFUSED = (
        "EngineArgumentsRefused",
        "The engine does not have an argument, or does not accept its value.",
        "Correct the argument that the message quotes. Check that `version` is the version in the image.",
        True,
    )
    DISK_FULL = (
        "DiskFull",
        "The engine could not write, because the disk of the node is full.",
        "Free space on the node's disk, or use nodes with a larger disk. resources.scratch limits the caches.",
        True,
    )
    IMAGE_NOT_WRITABLE = (
        "ImageNotWritable",
        "The engine writes into a folder of its own image, which pods may not change.",
        "Create the files that the message names when you build the image. Or choose other kernels, for example with "
        "'--moe-backend' in extraArgs.",
        True,
    )
