"""Every reason of a condition or event, and its meaning: the text behind `hermetic explain`."""

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
    SCALED_TO_ZERO = "ScaledToZero", "spec.replicas is 0: nothing runs, as asked.", "Raise spec.replicas to serve."
    STARTING = (
        "Starting",
        "Pods are starting: images are pulled, weights are loaded, kernels are compiled.",
        "Wait; the startup budget (spec.startupBudgetSeconds) bounds it.",
    )
    ROLLING_OUT = (
        "RollingOut",
        "A change is being rolled out; the previous pods serve until the new ones do.",
        "Wait; watch it with 'kubectl rollout status deployment/NAME'.",
    )
    UNAVAILABLE = (
        "Unavailable",
        "Replicas that served do not serve now.",
        "Look at the pods' events and logs; the message names the first problem that was found.",
    )
    WORKLOAD_NOT_CREATED = (
        "WorkloadNotCreated",
        "The Deployment does not exist yet: a condition of the first pod is not met.",
        "Read the message of Ready.",
    )
    PROGRESSING_WITH_RETRY = (
        "ProgressingWithRetry",
        "A cause that may pass by itself blocks the deployment; it is retried with growing pauses.",
        "Read the message of Ready; if it does not pass, fix what it names.",
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
        "Add the line of the message to `registries` in the operator's configuration, or use an allowed registry.",
        True,
    )
    SHARE_NOT_ALLOWED = (
        "ShareNotAllowed",
        "The share is not on the operator's allow list for this namespace.",
        "Add the line of the message to `shares` in the operator's configuration, or use an allowed share.",
        True,
    )
    VOLUME_CREATION_OFF = (
        "VolumeCreationOff",
        "The operator is configured not to create PersistentVolumes.",
        "Print what to create with 'hermetic render --volumes', have it created, and use "
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
        "The engine of this version does not know the flag and would end with exit code 2.",
        "Correct or remove the argument in extraArgs, or change the engine's version.",
        True,
    )
    ENGINE_FLAG_RESERVED = (
        "EngineFlagReserved",
        "An argument reaches, in this version's own reading, a flag that belongs to Hermetic or opens an egress path.",
        "Remove the argument; 'hermetic explain HRM-API-001' lists the reserved flags with their reasons.",
        True,
    )
    ENGINE_SETTING_NOT_ALLOWED = (
        "EngineSettingNotAllowed",
        "An argument or variable is not on the reviewed list of this engine, or its value names an address or a file "
        "that it must not read.",
        "Remove it or correct it as the message describes; a platform team can allow further names with "
        "`engineSettings` in the operator's configuration.",
        True,
    )
    IMAGE_VOLUME_UNSUPPORTED = (
        "ImageVolumeUnsupported",
        "The cluster cannot mount OCI images as volumes (Kubernetes 1.35 and containerd 2.1 are needed).",
        "Upgrade the node pool, or bake the weights into the image, or stage them on a share.",
        True,
    )
    INSUFFICIENT_GPU_MEMORY = (
        "InsufficientGpuMemory",
        "By the facts of the model in spec.weights.facts it does not fit the memory of its GPUs.",
        "Compare sizes with 'hermetic plan -f FILE'; use more GPUs, a larger VM size, a shorter maxModelLength, fp8 in "
        "kvCacheDtype, or weights of fewer bits.",
        True,
    )
    TENSOR_PARALLEL_IMPOSSIBLE = (
        "TensorParallelImpossible",
        "By the facts of the model in spec.weights.facts it cannot be cut over so many GPUs; the engine would end.",
        "Use a number of GPUs that 'hermetic plan -f FILE' lists; --enable-expert-parallel keeps experts whole.",
        True,
    )
    NIM_PROFILE_MISMATCH = (
        "NimProfileMismatch",
        "The NIM profile is for another number of GPUs than the pod has or for another GPU, as its name shows, or it "
        "is not among the staged profiles that weights.facts lists.",
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
    ENDPOINT_CONFLICT = (
        "EndpointConflict",
        "Another ModelDeployment holds the load balancer address, or was accepted with it first.",
        "Choose another address, or leave `address` out.",
        True,
    )
    ADDRESS_NOT_ALLOWED = (
        "AddressNotAllowed",
        "The load balancer address is not one that the operator's configuration allows for this namespace.",
        "Leave `address` out, choose another, or have `addresses` changed in the operator's configuration.",
        True,
    )
    TOLERATION_NOT_ALLOWED = (
        "TolerationNotAllowed",
        "A taint that the pods would accept is not one that the operator's configuration allows for this namespace.",
        "Choose the taint of your own nodes, or have `tolerations` changed in the operator's configuration.",
        True,
    )
    CHILD_NOT_OWNED = (
        "ChildNotOwned",
        "An object of the name that Hermetic needs exists already and has another owner.",
        "Rename the ModelDeployment or remove the object; it is never overwritten.",
        True,
    )

    # Images and weights
    PINNED_BY_DIGEST = "PinnedByDigest", "Every image is named by its digest.", "Nothing to do."
    INTEGRITY_NOT_CHECKED = (
        "IntegrityNotChecked",
        "The weights are read as they were staged; no digest or signature of them is checked.",
        "Name the operator's image by digest in the operator's configuration, under integrity.verifiers, and set "
        "weights.integrity.digest; or use a baked image or an image volume, which are pinned by digest.",
    )
    INTEGRITY_VERIFIED = (
        "IntegrityVerified",
        "In every pod the weights were verified on the mount that is served, before the engine started.",
        "Nothing to do.",
    )
    INTEGRITY_PENDING = (
        "IntegrityPending",
        "The weights are verified before the engine starts, and no pod has finished that yet.",
        "Wait; 'kubectl logs POD -c verify-weights' shows how far it is.",
    )
    INTEGRITY_NOT_PINNED = (
        "IntegrityNotPinned",
        "The weights must be verified, and neither a digest nor a trusted key defines what they must be.",
        "Set weights.integrity.digest to what 'hermetic stage' printed, or weights.integrity.publicKey; or list keys "
        "in the operator's configuration, under integrity.publicKeys.",
        True,
    )
    INTEGRITY_KEY_REFUSED = (
        "IntegrityKeyRefused",
        "spec.weights.integrity.publicKey is unusable, or none of those that the operator's configuration lists.",
        "Sign the weights with a listed key and leave publicKey out, or have it listed under integrity.publicKeys.",
        True,
    )
    VERIFIER_NOT_CONFIGURED = (
        "VerifierNotConfigured",
        "Weights on shares, NFS and claims must be verified before an engine starts, and the operator's configuration "
        "names no image that does it.",
        "Have the platform team name the operator's image by digest under integrity.verifiers; or have it set "
        'integrity.minimumPolicy to "Off" (integrity.overrides: for the namespace), leave weights.integrity out, and '
        "accept weights that are not verified.",
        True,
    )

    GPU_MEMORY_SUFFICIENT = (
        "GpuMemorySufficient",
        "By the facts of the model it fits the memory of its GPUs, with a tenth to spare.",
        "Nothing to do.",
    )
    GPU_MEMORY_TIGHT = (
        "GpuMemoryTight",
        "By the facts of the model it fits its GPUs barely, or on some of the VM sizes only; the engine may refuse to "
        "start.",
        "Look at 'hermetic plan -f FILE'; lower maxModelLength, or leave out the VM size that the message names.",
    )
    GPU_MEMORY_UNKNOWN = (
        "GpuMemoryUnknown",
        "Whether the model fits its GPUs cannot be computed, or rests on a value that is not confirmed.",
        "Read the message; naming a VM size in accelerator.instanceTypes helps where none is known. The pods start "
        "anyway.",
    )

    CACHES_MATCH = (
        "CachesMatch",
        "The engine gets the staged compile caches: engine, version, GPU model and parallelism are those of its key.",
        "Nothing to do.",
    )
    CACHES_IGNORED = (
        "CachesIgnored",
        "None of the staged compile caches in spec.weights.caches is for this engine, version, GPU model and "
        "parallelism, or the weights are not verified; the engine starts without them, more slowly.",
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
        "spec.isolation.enforcement is Off: the evidence of isolation is not read.",
        "Set enforcement to Report or Enforce.",
    )
    ENFORCEMENT_RAISED = (
        "EnforcementRaised",
        "spec.isolation.enforcement is below the minimum of the operator's configuration, and isolation is not proven.",
        "Bring the evidence that the message asks for; or have the platform team lower isolation.minimumEnforcement "
        "for this namespace.",
        True,
    )
    ISOLATION_EVIDENCE_MISSING = (
        "IsolationEvidenceMissing",
        "There is no evidence that the node subnets have no egress path.",
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
        "See Findings in 'kubectl describe egressaudit cluster': what is unknown is listed with cause and remedy.",
        True,
    )
    ATTESTATION_COUNTS = (
        "AttestationCounts",
        "The newest attestation is signed by a trusted key, is about this cluster, and counts now.",
        "Nothing to do.",
    )
    ATTESTATION_MISSING = (
        "AttestationMissing",
        "No attestation from outside the cluster is there.",
        "Audit from the jump box with 'hermetic audit --azure CLUSTER --sign KEY --attestation FILE', "
        "then 'kubectl apply -f FILE'.",
        True,
    )
    ATTESTATION_REFUSED = (
        "AttestationRefused",
        "Attestations are there, and each is refused.",
        "Read the message: it names the refusal, and 'hermetic explain REFUSAL' what to do about it.",
        True,
    )
    EVIDENCE_YOUNG = "EvidenceYoung", "The attestation is young.", "Nothing to do."
    EVIDENCE_AGING = (
        "EvidenceAging",
        "Three quarters of the attestation's time are over.",
        "Audit again from the jump box and apply the new attestation before the moment that the message names.",
    )
    EVIDENCE_EXPIRING = (
        "EvidenceExpiring",
        "Nine tenths of the attestation's time are over: the gate is about to close for new pods.",
        "Audit again from the jump box now, and apply the new attestation.",
    )
    EXCEPTIONS_COUNT = "ExceptionsCount", "Every exception still counts, and none ends soon.", "Nothing to do."
    EXCEPTION_EXPIRING = (
        "ExceptionExpiring",
        "An exception ends within two weeks; what it accepts will then count again.",
        "Fix the finding, or renew the exception with a later last day: in the file of 'hermetic audit --exceptions', "
        "or in spec.exceptions of the EgressAudit.",
    )
    EXCEPTION_EXPIRED = (
        "ExceptionExpired",
        "The last day of an exception is over; what it accepted counts again.",
        "Fix the finding, or renew the exception with a later last day: in the file of 'hermetic audit --exceptions', "
        "or in spec.exceptions of the EgressAudit. Remove it where it is no longer needed.",
        True,
    )
    CLUSTER_SEEN = ("ClusterSeen", "The cluster's own objects are evaluated again at every change.", "Nothing to do.")
    CLUSTER_NOT_SEEN = (
        "ClusterNotSeen",
        "The cluster's own objects were not all listed yet.",
        "Wait; if it stays, read the operator's log: it names the kind that it may not list.",
    )
    PROBE_RAN = "ProbeRan", "The probe has tried every known egress path, not long ago.", "Nothing to do."
    PROBE_NOT_CONFIGURED = (
        "ProbeNotConfigured",
        "spec.probe of the EgressAudit is not set: no packet was ever tried.",
        "Set spec.probe.image to an image by digest that has python3; the operator's own has.",
        True,
    )
    PROBE_PENDING = (
        "ProbePending",
        "No round of the probe has ended yet.",
        "Wait a minute; if it stays, look at the Jobs with the label app.kubernetes.io/component=egress-probe.",
    )
    PROBE_STALE = (
        "ProbeStale",
        "The last round of the probe ended more than two intervals ago, or is dated in the future.",
        "Look at the Jobs with the label app.kubernetes.io/component=egress-probe, and at the operator's log.",
        True,
    )
    PROBE_INCOMPLETE = (
        "ProbeIncomplete",
        "From some pool or subnet nothing came back: its silence counts for nothing.",
        "Look at the probe pods that the message names: image, admission, scheduling.",
        True,
    )
    AUDIT_FAULT = (
        "AuditFault",
        "A part of the operator's own audit failed with an error that it does not expect. Serving goes on; where no "
        "verdict is left, the gate is closed.",
        "Read the operator's log for the traceback and report it; the audit is tried again by itself, with pauses of "
        "up to five minutes.",
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
        "The endpoint is reachable inside the cluster only, as asked.",
        "Nothing to do.",
    )
    ENDPOINT_NOT_CREATED = (
        "EndpointNotCreated",
        "The endpoint's Service does not exist yet.",
        "Read the message of Ready.",
    )
    LOAD_BALANCER_PENDING = (
        "LoadBalancerPending",
        "The load balancer has no address yet, or not the one that the spec asks for.",
        "Wait; if it stays, look at the events of the Service: subnet, address and the cluster identity's rights on "
        "the subnet.",
    )
    PUBLIC_ADDRESS = (
        "PublicAddress",
        "The load balancer was given a public address; the Service is removed.",
        "Find what changed the Service's annotations or the cloud provider, then edit the ModelDeployment to try "
        "again.",
        True,
    )
    ENDPOINT_EXPOSED = (
        "EndpointExposed",
        "A Service, EndpointSlice, Ingress or route that Hermetic did not write leads to the model's pods, and is not "
        "known to be private.",
        "Remove the object that the message names, or make it private; the message says which field manager wrote it.",
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
        "No node can take the pod now.",
        "The message names the resource, the pool and the shortfall; add nodes or ask for less.",
    )
    VOLUME_NOT_BOUND = (
        "VolumeNotBound",
        "The claim for the weights is not bound.",
        "Look at 'kubectl describe pvc'; the claim and its volume must name each other.",
    )
    REFERENCE_NOT_FOUND = (
        "ReferenceNotFound",
        "A Secret or claim that the spec names does not exist; the pod starts as soon as it does.",
        "Create it in the namespace of the ModelDeployment.",
    )
    MOUNT_FAILED = (
        "MountFailed",
        "The node cannot mount the weights.",
        "Check share, folder, private endpoint and root squash; the pod starts as soon as the mount works.",
    )
    CONTAINER_CONFIG_INVALID = (
        "ContainerConfigInvalid",
        "The kubelet refuses the container's configuration.",
        "Read the message; usually a key is missing in a Secret.",
    )
    OUT_OF_MEMORY = (
        "OutOfMemory",
        "The kernel ended the engine, or a child of it, for using more memory than its limit.",
        "Raise spec.resources.memory; /dev/shm and the page cache of the weights count against it.",
        True,
    )
    CRASH_LOOP = (
        "CrashLoop",
        "The engine ends again and again.",
        "Read 'kubectl logs --previous'; the message holds its last words.",
        True,
    )
    STARTUP_BUDGET_EXCEEDED = (
        "StartupBudgetExceeded",
        "The pod did not serve within spec.startupBudgetSeconds.",
        "Raise the budget if the share is slow, or read the engine's log for what it waits for.",
        True,
    )
    MODEL_PATH_MISSING = "ModelPathMissing", "The model folder is not there.", "Check weights.folder or path.", True
    MODEL_INCOMPLETE = (
        "ModelIncomplete",
        "The model folder lacks files, or a file is cut short.",
        "Stage the model again, whole.",
        True,
    )
    MODEL_UNREADABLE = (
        "ModelUnreadable",
        "The weights are there, but the engine's user may not read them.",
        "Make them world-readable: 'chmod -R a+rX' on the share.",
        True,
    )
    MODEL_UNSUPPORTED = (
        "ModelUnsupported",
        "The engine of this version does not know the model's architecture.",
        "Use an image with a version that lists the architecture, and set that version in the spec.",
        True,
    )
    REMOTE_CODE_REQUIRED = (
        "RemoteCodeRequired",
        "The model needs to run code that comes with its weights.",
        "Put that code into the image, or use a model that the engine supports by itself.",
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
    GPU_MEMORY_TOO_SMALL = (
        "GpuMemoryTooSmall",
        "The model with its key-value cache does not fit the GPU.",
        "Lower maxModelLength, use kvCacheDtype fp8, more GPUs, or a larger GPU.",
        True,
    )
    GPU_BUSY = "GpuBusy", "Another process holds the GPU's memory.", "Find the process on the node.", True
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
        "The engine does not know an argument, or does not accept its value.",
        "Correct the argument that the message quotes, and check that `version` is what the image holds.",
        True,
    )
    DRIVER_TOO_OLD = "DriverTooOld", "The node's GPU driver is too old for the image.", "Upgrade the node image.", True
    FETCH_ATTEMPTED = (
        "FetchAttempted",
        "The engine looked for something outside the staged folder.",
        "Stage everything the model names (tokenizer, draft model, adapters) and give local paths.",
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
}
REASONS: dict[str, Reason] = {reason.value: reason for reason in Reason}
