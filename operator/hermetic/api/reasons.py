"""Why a model is as it is: one word for programs, its meaning, and what to do about it.

A subject of its own has a file of its own: `spec_reasons.py`, `pod_reasons.py`, `engine_reasons.py`,
`accelerator_reasons.py`, `audit_reasons.py`, `gateway_reasons.py` and `weights_reasons.py`. `condition_updates.py`
gathers them.
"""

from __future__ import annotations

from hermetic.api.accelerator_reasons import AcceleratorReason
from hermetic.api.audit_reasons import RUNNING_OUT, AuditReason
from hermetic.api.spec_reasons import SpecReason
from hermetic.signing.explained import ExplainedReason


class Reason(ExplainedReason):
    """Whether the model serves, is private and is isolated, and what becomes of Hermetic's writes."""

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
        "Wait up to spec.startupBudgetSeconds. Watch with 'hermetic status NAME --watch'.",
    )
    ROLLING_OUT = (
        "RollingOut",
        "A rollout is in progress. The previous pods serve until the new pods serve.",
        "Wait. Watch with 'hermetic status NAME --watch'.",
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
    SPEC_INVALID = (
        "SpecInvalid",
        "The stored object does not satisfy the rules of this version of Hermetic.",
        "Run 'hermetic validate -f FILE' and correct the fields it names.",
        True,
    )

    # images and weights
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

    # isolation
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
    ISOLATION_BROKEN = (
        "IsolationBroken",
        "The audit found an egress path of the node subnets.",
        "Follow the remedies that 'kubectl describe egressaudit cluster' lists under Findings, then audit again.",
        True,
    )

    # the endpoint
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

    # the autoscaler
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

    # responses of the API server, and other writers
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
    CHILD_NOT_OWNED = (
        "ChildNotOwned",
        "An object with the name that Hermetic needs already exists and has another owner.",
        "Rename the ModelDeployment or remove the object. Hermetic never overwrites it.",
        True,
    )


# True for now; the platform team should know it.
WARNED_OF = RUNNING_OUT | {
    Reason.SERVING_NOT_ENFORCED,
    AuditReason.AUDIT_FAULT,
    SpecReason.GPU_MEMORY_TIGHT,
    Reason.CACHES_IGNORED,
    Reason.QUEUE_METRIC_UNAVAILABLE,
    AuditReason.POOL_CHANGED,
    AcceleratorReason.ACCELERATORS_CHECKED_WITH_WARNINGS,
}
