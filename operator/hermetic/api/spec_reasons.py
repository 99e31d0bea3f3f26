"""What a spec may not ask for, or cannot have: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedReason


class SpecReason(ExplainedReason):
    """What the operator's configuration does not allow, what the engine does not take, and whether the model fits."""

    # images and weights
    REGISTRY_NOT_ALLOWED = (
        "RegistryNotAllowed",
        "The image's registry is not on the operator's allow list for this namespace.",
        "Use an allowed registry: correct the name, or copy the image into one with 'az acr import'. Or ask the "
        "platform team to allow it under `registries` of the operator's configuration.",
        True,
    )
    SHARE_NOT_ALLOWED = (
        "ShareNotAllowed",
        "The share is not on the operator's allow list for this namespace.",
        "Use an allowed share: correct the name, or stage the weights there. Or ask the platform team to allow it "
        "under `shares` of the operator's configuration.",
        True,
    )
    VOLUME_CREATION_OFF = (
        "VolumeCreationOff",
        "The operator is configured not to create PersistentVolumes.",
        "Print the volumes with 'hermetic render --volumes', ask an administrator to create them, and set "
        "weights.persistentVolumeClaim.",
        True,
    )
    IMAGE_VOLUME_UNSUPPORTED = (
        "ImageVolumeUnsupported",
        "The cluster cannot mount OCI images as volumes: the API server and every kubelet of the pools must be "
        "Kubernetes 1.35 or later, and containerd 2.1 or later.",
        "Upgrade the node pool, or bake the weights into the image, or stage them on a share.",
        True,
    )
    INTEGRITY_NOT_PINNED = (
        "IntegrityNotPinned",
        "The weights must be verified, and the spec has no digest and no trusted key for them.",
        "Set weights.integrity.digest to what 'hermetic stage' printed, or weights.integrity.publicKey; or list keys "
        "in the operator's configuration, under integrity.publicKeys.",
        True,
    )
    INTEGRITY_KEY_REFUSED = (
        "IntegrityKeyRefused",
        "spec.weights.integrity.publicKey is unusable, or the operator's configuration does not list it.",
        "Sign the weights with a listed key and remove publicKey. Or ask the platform team to list the key under "
        "integrity.publicKeys.",
        True,
    )
    VERIFIER_NOT_CONFIGURED = (
        "VerifierNotConfigured",
        "Weights on shares, NFS and claims must be verified before an engine starts, and the operator's configuration "
        "names no image for the verification.",
        "Have the platform team name the operator's image by digest under integrity.verifiers; or have it set "
        'integrity.minimumPolicy to "Off" (integrity.overrides: for the namespace), leave weights.integrity out, and '
        "accept weights that are not verified.",
        True,
    )

    # the engine and its settings
    ENGINE_VERSION_UNSUPPORTED = (
        "EngineVersionUnsupported",
        "Hermetic has no table of flags for this release of the engine.",
        "Use a release that the message lists.",
        True,
    )
    ENGINE_FLAG_UNKNOWN = (
        "EngineFlagUnknown",
        "This version of the engine does not have the flag and would exit with code 2.",
        "Correct or remove the argument in extraArgs, or change the engine's version.",
        True,
    )
    ENGINE_FLAG_RESERVED = (
        "EngineFlagReserved",
        "This version of the engine reads an argument as a flag that Hermetic sets or that opens an egress path.",
        "Remove the argument; 'hermetic explain HRM-API-001' lists the reserved flags with their reasons.",
        True,
    )
    ENGINE_SETTING_NOT_ALLOWED = (
        "EngineSettingNotAllowed",
        "An argument or variable is not on the reviewed list of this engine, or its value names an address or a file "
        "that it must not read.",
        "Remove or correct it as the message describes. A platform team can allow further names with `engineSettings` "
        "in the operator's configuration.",
        True,
    )

    # sizes
    INSUFFICIENT_GPU_MEMORY = (
        "InsufficientGpuMemory",
        "According to spec.weights.facts, the model does not fit the memory of its GPUs.",
        "Compare sizes with 'hermetic plan -f FILE'; use more GPUs, a larger VM size, a shorter maxModelLength, fp8 in "
        "kvCacheDtype, or weights of fewer bits.",
        True,
    )
    TENSOR_PARALLEL_IMPOSSIBLE = (
        "TensorParallelImpossible",
        "According to spec.weights.facts, the model cannot be divided over this number of GPUs. The engine would exit.",
        "Use a number of GPUs that 'hermetic plan -f FILE' lists. With --enable-expert-parallel, experts are not "
        "divided.",
        True,
    )
    NIM_PROFILE_MISMATCH = (
        "NimProfileMismatch",
        "The name of the NIM profile shows another number of GPUs or another GPU than the pod has. Or weights.facts "
        "does not list the profile as staged.",
        "Set engine.nim.profile to one that the message lists, or accelerator.count to the profile's tensor parallel "
        "times pipeline stages, or stage a profile for these GPUs: 'list-model-profiles' of the image shows them.",
        True,
    )
    VM_SIZE_UNSUITABLE = (
        "VmSizeUnsuitable",
        "No VM size of accelerator.instanceTypes has the GPUs, CPUs and memory that a pod requests. Or the name "
        "differs from the spelling of node labels.",
        "Name a size that has them, or request less. 'hermetic plan' lists the sizes.",
        True,
    )
    GPU_MEMORY_SUFFICIENT = (
        "GpuMemorySufficient",
        "According to its facts, the model fits the memory of its GPUs, with a tenth to spare.",
        "Nothing to do.",
    )
    GPU_MEMORY_TIGHT = (
        "GpuMemoryTight",
        "According to its facts, the model barely fits its GPUs, or fits on some of the VM sizes only. The engine may "
        "refuse to start.",
        "Read 'hermetic plan -f FILE'. Lower maxModelLength, or remove the VM size that the message names.",
    )
    GPU_MEMORY_UNKNOWN = (
        "GpuMemoryUnknown",
        "Hermetic cannot compute whether the model fits its GPUs, or the result depends on an unconfirmed value.",
        "Read the message. If the VM size is unknown, name one in accelerator.instanceTypes. The pods start anyway.",
    )
    MEMORY_TOO_SMALL = (
        "MemoryTooSmall",
        "The memory limit cannot hold /dev/shm and a working engine.",
        "Raise spec.resources.memory or lower spec.resources.sharedMemory.",
        True,
    )
    CPU_LIMIT_TOO_LOW = (
        "CpuLimitTooLow",
        "The limit `resources.cpuLimit` is less than the request `resources.cpu`.",
        "Raise `cpuLimit`, or lower `cpu`.",
        True,
    )
    EPHEMERAL_STORAGE_LIMIT_TOO_LOW = (
        "EphemeralStorageLimitTooLow",
        "The limit `resources.ephemeralStorageLimit` is too small for the folders that the pod may fill.",
        "Raise `ephemeralStorageLimit` to `scratch` plus 3Gi or more, or lower `scratch`.",
        True,
    )

    # addresses, nodes and annotations
    ANNOTATION_TOO_LONG = (
        "AnnotationTooLong",
        "An annotation that the operator's configuration copies to the pods has more than 512 characters.",
        "Shorten the annotation of the ModelDeployment, for example to a link.",
        True,
    )
    ENDPOINT_CONFLICT = (
        "EndpointConflict",
        "Another ModelDeployment uses the load balancer address with this port, or was accepted with it first.",
        "Choose another address, or leave `address` out. Or share it: another `servicePort`, and no "
        "`allowedSourceRanges` in either.",
        True,
    )
    ADDRESS_NOT_ALLOWED = (
        "AddressNotAllowed",
        "The operator's configuration does not allow the load balancer address for this namespace.",
        "Remove `address`, choose another one, or ask the platform team to change `addresses` in the operator's "
        "configuration.",
        True,
    )
    TOLERATION_NOT_ALLOWED = (
        "TolerationNotAllowed",
        "The operator's configuration does not allow this namespace to tolerate a taint that the spec names.",
        "Choose the taint of your own nodes, or ask the platform team to change `tolerations` in the operator's "
        "configuration.",
        True,
    )
    SCHEDULING_NOT_ALLOWED = (
        "SchedulingNotAllowed",
        "A priority class or a node label of `scheduling` is not on the operator's allow list for this namespace.",
        "Choose one that the message names, or remove it. Or ask the platform team to list it under `priorityClasses` "
        "or `nodeLabels` of the operator's configuration.",
        True,
    )
