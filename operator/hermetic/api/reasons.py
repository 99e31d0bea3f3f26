"""Every reason of a condition or event, and its meaning: the text behind `hermetic explain`.

One table, longer than other files: a reason is looked up by its word, and what it concerns is no folder of its own.
"""

from __future__ import annotations

from hermetic.signing.explained import ExplainedWord


class Reason(ExplainedWord):
    """A reason and its page: what it means, what to do, and whether only a person can fix it (`needs_human`)."""

    needs_human: bool

    def __init__(self, value: str, meaning: str, remedy: str, needs_human: bool = False) -> None:
        super().__init__(value, meaning, remedy)
        self.needs_human = needs_human

    # Ready and progress
    SERVING = "Serving", "Every replica serves and the endpoint is private.", "Nothing to do."
    SERVING_NOT_ENFORCED = (
        "ServingNotEnforced",
        "Every replica serves and the endpoint is private, but pods start without proof that no egress path exists.",
        "Set spec.isolation.enforcement to Enforce, and isolation.minimumEnforcement of the operator's configuration.",
    )
    SCALED_TO_ZERO = "ScaledToZero", "spec.replicas is 0, so the model has no pods.", "Raise spec.replicas to serve."
    STARTING = (
        "Starting",
        "Pods are starting: images are pulled, weights are loaded, kernels are compiled.",
        "Wait up to spec.startupBudgetSeconds. Watch with 'kubectl logs deployment/NAME --follow'.",
    )
    ROLLING_OUT = (
        "RollingOut",
        "A rollout is in progress. The previous pods serve until the new pods serve.",
        "Wait. Watch with 'kubectl rollout status deployment/NAME'.",
    )
    UNAVAILABLE = (
        "Unavailable",
        "Replicas that served before do not serve now.",
        "The message names the first problem. Read the events and logs of the pods.",
    )
    WORKLOAD_NOT_CREATED = (
        "WorkloadNotCreated",
        "The object that runs the pods (a Deployment, or a StatefulSet for each group of several nodes) does not exist "
        "yet, because a condition for the first pod is not met.",
        "Read the message of Ready.",
    )
    PROGRESSING_WITH_RETRY = (
        "ProgressingWithRetry",
        "A problem that may clear by itself blocks the deployment. Hermetic tries again with growing pauses.",
        "Read the message of Ready. If the problem stays, fix what the message names.",
    )

    # Spec and policy: only a change by a person helps
    SPEC_INVALID = (
        "SpecInvalid",
        "The stored object does not satisfy the rules of this version of Hermetic.",
        "Run 'hermetic validate -f FILE' and correct the fields it names.",
        True,
    )
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
    IMAGE_VOLUME_UNSUPPORTED = (
        "ImageVolumeUnsupported",
        "The cluster cannot mount OCI images as volumes: the API server and every kubelet of the pools must be "
        "Kubernetes 1.35 or later, and containerd 2.1 or later.",
        "Upgrade the node pool, or bake the weights into the image, or stage them on a share.",
        True,
    )
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
    CHILD_NOT_OWNED = (
        "ChildNotOwned",
        "An object with the name that Hermetic needs already exists and has another owner.",
        "Rename the ModelDeployment or remove the object. Hermetic never overwrites it.",
        True,
    )

    # Images and weights
    PINNED_BY_DIGEST = "PinnedByDigest", "Every image is named by its digest.", "Nothing to do."
    INTEGRITY_NOT_CHECKED = (
        "IntegrityNotChecked",
        "The engine reads the weights without a check of their digest or signature.",
        "Name the operator's image by digest in the operator's configuration, under integrity.verifiers, and set "
        "weights.integrity.digest; or use a baked image or an image volume, which are pinned by digest.",
    )
    INTEGRITY_VERIFIED = (
        "IntegrityVerified",
        "In every pod, the weights on the served mount were verified before the engine started.",
        "Nothing to do.",
    )
    INTEGRITY_PENDING = (
        "IntegrityPending",
        "The weights are verified before the engine starts. No pod has finished the verification yet.",
        "Wait. 'kubectl logs POD -c verify-weights' shows the progress.",
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

    CACHES_MATCH = (
        "CachesMatch",
        "The engine gets the staged compile caches. Engine, version, GPU model and parallelism match the key of the "
        "caches.",
        "Nothing to do.",
    )
    CACHES_IGNORED = (
        "CachesIgnored",
        "No staged compile cache in spec.weights.caches matches this engine, version, GPU model and parallelism, or "
        "the weights are not verified. The engine starts without caches, more slowly.",
        "Read the message. Make the caches with a pod of this spec and stage them with 'hermetic stage --caches', or "
        "name VM sizes of one GPU model in accelerator.instanceTypes.",
    )

    # Isolation
    ISOLATION_PROVEN = (
        "IsolationProven",
        "Fresh evidence shows that the node subnets have no egress path.",
        "Nothing to do.",
    )
    ISOLATION_NOT_ENFORCED = (
        "IsolationNotEnforced",
        "spec.isolation.enforcement is Off, so Hermetic does not read the evidence of isolation.",
        "Set enforcement to Report or Enforce.",
    )
    ENFORCEMENT_RAISED = (
        "EnforcementRaised",
        "spec.isolation.enforcement is below the minimum of the operator's configuration, and isolation is not proven.",
        "Provide the evidence that the message requests. Or ask the platform team to lower "
        "isolation.minimumEnforcement for this namespace.",
        True,
    )
    ISOLATION_EVIDENCE_MISSING = (
        "IsolationEvidenceMissing",
        "The cluster has no evidence that its node subnets have no egress path.",
        "Apply an EgressAudit named 'cluster', audit from the jump box with "
        "'hermetic audit --azure CLUSTER --sign KEY --attestation FILE', and apply the attestation.",
        True,
    )
    ISOLATION_EVIDENCE_PENDING = (
        "IsolationEvidencePending",
        "The EgressAudit has not been evaluated yet.",
        "Wait for its verdict: 'kubectl get egressaudit cluster'.",
    )
    ISOLATION_EVIDENCE_STALE = (
        "IsolationEvidenceStale",
        "The evidence is older than allowed.",
        "Audit again from the jump box and apply the new attestation.",
        True,
    )
    ISOLATION_UNKNOWN = (
        "IsolationUnknown",
        "The audit could not read enough to rule out an egress path.",
        "Read Findings in 'kubectl describe egressaudit cluster'. It lists each Unknown with cause and remedy.",
        True,
    )
    ATTESTATION_COUNTS = (
        "AttestationCounts",
        "The newest attestation is signed by a trusted key, is about this cluster, and is valid now.",
        "Nothing to do.",
    )
    ATTESTATION_MISSING = (
        "AttestationMissing",
        "The cluster has no attestation from outside.",
        "Audit from the jump box with 'hermetic audit --azure CLUSTER --sign KEY --attestation FILE', "
        "then 'kubectl apply -f FILE'.",
        True,
    )
    ATTESTATION_REFUSED = (
        "AttestationRefused",
        "The cluster has attestations, and each is refused.",
        "Read the message. It names the refusal, and 'hermetic explain REFUSAL' shows what to do.",
        True,
    )
    ATTESTATION_CONTRADICTED = (
        "AttestationContradicted",
        "A trusted key signed a newer Fail about this cluster. It is refused as evidence, and the earlier Pass is no "
        "longer sufficient alone.",
        "Fix the findings of that audit. Then audit again from a jump box with a kubeconfig and a correct clock, and "
        "apply the new attestation. An accepted newer Pass resolves the contradiction.",
        True,
    )
    PLACES_ATTESTED = (
        "PlacesAttested",
        "Every ready node is in a pool and a subnet that the attestation covers.",
        "Nothing to do.",
    )
    POOL_CHANGED = (
        "PoolChanged",
        "Nodes of an attested pool run another image than the audit saw.",
        "Audit again from the jump box and apply the new attestation. The verdict stays until then.",
    )
    POOL_NOT_ATTESTED = (
        "PoolNotAttested",
        "A ready node is in a pool or a subnet that the attestation does not cover.",
        "Audit again from the jump box with 'hermetic audit --azure CLUSTER --sign KEY --attestation FILE', and apply "
        "the new attestation.",
        True,
    )
    EVIDENCE_YOUNG = "EvidenceYoung", "The attestation is recent.", "Nothing to do."
    EVIDENCE_AGING = (
        "EvidenceAging",
        "Three quarters of the attestation's time are over.",
        "Audit again from the jump box and apply the new attestation before the moment that the message names.",
    )
    EVIDENCE_EXPIRING = (
        "EvidenceExpiring",
        "Nine tenths of the attestation's time are over. When it expires, the gate closes for new pods.",
        "Audit again from the jump box now, and apply the new attestation.",
    )
    EXCEPTIONS_COUNT = (
        "ExceptionsCount",
        "Every exception is in effect, and no exception expires soon.",
        "Nothing to do.",
    )
    EXCEPTION_EXPIRING = (
        "ExceptionExpiring",
        "An exception expires within two weeks. Its finding then counts again.",
        "Fix the finding, or renew the exception with a later last day: in the file of 'hermetic audit --exceptions', "
        "or in spec.exceptions of the EgressAudit.",
    )
    EXCEPTION_EXPIRED = (
        "ExceptionExpired",
        "An exception has expired. Its finding counts again.",
        "Fix the finding, or renew the exception with a later last day: in the file of 'hermetic audit --exceptions', "
        "or in spec.exceptions of the EgressAudit. Remove it where it is no longer needed.",
        True,
    )
    CLUSTER_SEEN = (
        "ClusterSeen",
        "The audit evaluates the cluster's own objects again at every change.",
        "Nothing to do.",
    )
    CLUSTER_NOT_SEEN = (
        "ClusterNotSeen",
        "The audit has not yet listed all of the cluster's own objects.",
        "Wait. If it stays, read the operator's log. It names the kind that the operator may not list.",
    )
    PROBE_RAN = "ProbeRan", "The probe recently tried every known egress path.", "Nothing to do."
    PROBE_NOT_CONFIGURED = (
        "ProbeNotConfigured",
        "spec.probe of the EgressAudit is not set, so the probe has never run.",
        "Set spec.probe.image to an image by digest that has python3, such as the operator's own image.",
        True,
    )
    PROBE_PENDING = (
        "ProbePending",
        "The first round of the probe has not ended yet.",
        "Wait a minute. If it stays, check the Jobs with the label app.kubernetes.io/component=egress-probe.",
    )
    PROBE_STALE = (
        "ProbeStale",
        "The last round of the probe ended more than two intervals ago, or is dated in the future.",
        "Look at the Jobs with the label app.kubernetes.io/component=egress-probe, and at the operator's log.",
        True,
    )
    PROBE_PLACE_NOT_COVERED = (
        "ProbePlaceNotCovered",
        "A pool or subnet has a ready node, and the last round of the probe did not run there.",
        "Wait for the next round. If it stays, check the probe pods on the nodes of that pool.",
    )
    PROBE_INCOMPLETE = (
        "ProbeIncomplete",
        "At least one node pool or subnet returned no probe result. A missing result is not a Pass.",
        "Check the probe pods that the message names: image, admission, scheduling.",
        True,
    )
    AUDIT_FAULT = (
        "AuditFault",
        "A part of the operator's own audit failed with an unexpected error. Running pods continue to serve. If no "
        "verdict is left, the gate closes.",
        "Report the traceback in the operator's log. The operator tries the audit again, with pauses of up to five "
        "minutes.",
    )
    ISOLATION_BROKEN = (
        "IsolationBroken",
        "The audit found an egress path of the node subnets.",
        "Follow the remedies that 'kubectl describe egressaudit cluster' lists under Findings, then audit again.",
        True,
    )

    # Endpoint
    PRIVATE_ADDRESS = "PrivateAddress", "The endpoint has a private address.", "Nothing to do."
    CLUSTER_INTERNAL = (
        "ClusterInternal",
        "The endpoint is reachable inside the cluster only, as the spec requests.",
        "Nothing to do.",
    )
    ENDPOINT_NOT_CREATED = (
        "EndpointNotCreated",
        "The endpoint's Service does not exist yet.",
        "Read the message of Ready.",
    )
    LOAD_BALANCER_PENDING = (
        "LoadBalancerPending",
        "The load balancer has no address yet, or its address differs from the spec.",
        "Wait. If it stays, read the events of the Service: subnet, address and the cluster identity's rights on the "
        "subnet.",
    )
    PUBLIC_ADDRESS = (
        "PublicAddress",
        "The load balancer got a public address, so Hermetic removed the Service.",
        "Find what changed the Service's annotations or the cloud provider, then edit the ModelDeployment to try "
        "again.",
        True,
    )
    ENDPOINT_EXPOSED = (
        "EndpointExposed",
        "A Service, EndpointSlice, Ingress or route that Hermetic did not write leads to the model's pods, and "
        "Hermetic cannot show that it is private.",
        "Remove the object that the message names, or make it private. The message also names the field manager that "
        "wrote it.",
        True,
    )

    # Pods and what blocks them
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
    CACHE_UNWRITABLE = (
        "CacheUnwritable",
        "The engine cannot write its caches.",
        "Report it: this is Hermetic's fault.",
        True,
    )
    SHARED_MEMORY_TOO_SMALL = (
        "SharedMemoryTooSmall",
        "/dev/shm is too small for this many GPUs.",  # noqa: S108 - a name in a sentence
        "Raise spec.resources.sharedMemory.",
        True,
    )
    ENGINE_ARGUMENTS_REFUSED = (
        "EngineArgumentsRefused",
        "The engine does not have an argument, or does not accept its value.",
        "Correct the argument that the message quotes. Check that `version` is the version in the image.",
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
    ADAPTER_MISSING = (
        "AdapterMissing",
        "The folder of an adapter does not exist.",
        "Stage the adapter in the folder that `adapters` names: adapter_config.json must lie directly in it.",
        True,
    )
    # The autoscaler
    QUEUE_OBSERVED = "QueueObserved", "The autoscaler reads the engine's queue.", "Nothing to do."
    AUTOSCALER_PENDING = (
        "AutoscalerPending",
        "The HorizontalPodAutoscaler does not exist yet, its controller has not reported on it, or no pod serves yet.",
        "Wait. The controller reads the queue every 15 seconds, and Ready shows when a pod serves.",
    )
    AUTOSCALER_PAUSED = (
        "AutoscalerPaused",
        "The model is scaled to zero, which pauses its autoscaler.",
        "Start the model again with 'kubectl scale mdep/NAME --replicas=1'.",
    )
    QUEUE_METRIC_UNAVAILABLE = (
        "QueueMetricUnavailable",
        "The autoscaler cannot read the engine's queue, and the number of pods stays as it is. The message quotes the "
        "autoscaler: no adapter serves custom.metrics.k8s.io, or the adapter does not have this metric.",
        "Install a metrics adapter such as prometheus-adapter with the rule of docs/serving.md, let Prometheus scrape "
        "the pods (endpoint.allowedClients), and read the metric with the command of the message.",
    )
    AUTOSCALER_NOT_SCALING = (
        "AutoscalerNotScaling",
        "The autoscaler cannot scale the model. The message quotes the autoscaler.",
        "Read the message. A second autoscaler of the same model is a frequent cause: remove it.",
    )
    GROWTH_HELD = (
        "GrowthHeld",
        "The autoscaler requests more pods, and a closed gate prevents new pods.",
        "Read the message of Ready. Hermetic adds the pods when the gate opens.",
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
    FETCH_ATTEMPTED = (
        "FetchAttempted",
        "The engine tried to read files outside the staged folder.",
        "Stage all parts of the model (tokenizer, draft model, adapters) and set local paths.",
        True,
    )

    # The GPUs of a pod, before its engine starts
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

    # Responses of the API server
    QUOTA_EXCEEDED = "QuotaExceeded", "A ResourceQuota of the namespace is used up.", "Raise the quota or ask for less."
    ADMISSION_DENIED = (
        "AdmissionDenied",
        "An admission policy of the cluster refuses an object that Hermetic needs.",
        "Read the policy's message; exempt the object or change the spec.",
        True,
    )
    POD_SECURITY_VIOLATION = (
        "PodSecurityViolation",
        "The namespace's Pod Security level refuses the pod.",
        "Read the rule that the message quotes.",
        True,
    )
    NAMESPACE_TERMINATING = "NamespaceTerminating", "The namespace is being deleted.", "Nothing to do."
    PERMISSION_LOST = (
        "PermissionLost",
        "The operator's account may not do what it must.",
        "Apply the RBAC of manifests/ again; the message names verb and resource.",
        True,
    )
    OBJECT_REFUSED = "ObjectRefused", "The API server refuses an object as invalid.", "Read the message.", True
    API_SERVER_TROUBLE = "ApiServerTrouble", "The API server fails or is overloaded.", "Wait; writes are retried."
    NOT_AS_RENDERED = (
        "NotAsRendered",
        "A pod or the pod template is not as Hermetic rendered it: a container, image, field, label or owner differs.",
        "Delete the pod that the message names; find the webhook or the person who changes pods, and stop it.",
    )
    DRIFT_CONTESTED = (
        "DriftContested",
        "Another writer changes a field back as often as Hermetic corrects it.",
        "Find the other writer in metadata.managedFields and stop it, or exempt the object from its policy.",
    )


# Holds for now: a person should act soon.
RUNNING_OUT = frozenset({Reason.EVIDENCE_AGING, Reason.EVIDENCE_EXPIRING, Reason.EXCEPTION_EXPIRING})
# True for now; the platform team should know it.
WARNED_OF = RUNNING_OUT | {
    Reason.SERVING_NOT_ENFORCED,
    Reason.AUDIT_FAULT,
    Reason.GPU_MEMORY_TIGHT,
    Reason.CACHES_IGNORED,
    Reason.QUEUE_METRIC_UNAVAILABLE,
    Reason.POOL_CHANGED,
    Reason.ACCELERATORS_CHECKED_WITH_WARNINGS,
}
# What the program that checks the GPUs of a pod reports; a result with another reason is not one of it.
ACCELERATOR_FINDINGS = frozenset(
    {
        Reason.PYTHON_MISSING,
        Reason.NVML_MISSING,
        Reason.TORCH_MISSING,
        Reason.COUNTERS_UNREADABLE,
        Reason.CHECKS_INCOMPLETE,
        Reason.ACCELERATOR_BUSY,
        Reason.GPU_MISSING,
        Reason.GPU_INITIALIZATION_FAILED,
        Reason.GPU_DRIVER_TOO_OLD,
        Reason.ECC_DISABLED,
        Reason.ROW_REMAP_FAILED,
        Reason.ROW_REMAP_PENDING,
        Reason.ROWS_REMAPPED,
        Reason.SRAM_UNCORRECTABLE,
        Reason.MEMORY_ERRORS,
        Reason.NVLINK_INACTIVE,
        Reason.CLOCKS_THROTTLED,
        Reason.PCIE_LINK_REDUCED,
        Reason.COMPUTE_WRONG,
        Reason.COMPUTE_DIFFERS,
        Reason.PEER_COPY_WRONG,
        Reason.COLLECTIVE_WRONG,
        Reason.ACCELERATOR_ERROR,
        Reason.ACCELERATOR_NOT_RESPONDING,
    }
)
REASONS: dict[str, Reason] = {reason.value: reason for reason in Reason}
