"""Attacks with a stolen token of the operator, in both installations: refused, or in docs/rights.md.

No operator runs here. What is refused is refused by the API server; what is admitted has its words in the column "what
remains" of the page, and fails here once it has them no longer.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import pytest

from hermetic.objects.children import render
from hermetic.objects.names import Owner
from testbed.errors import ApiError
from testbed.installation import wait_for
from tests.controlplane.attacker import (
    A_POD,
    A_TEMPLATE,
    A_WORKLOAD,
    ADMIN,
    ATTACKER,
    BY_RIGHTS_OR_POLICY,
    DRY,
    EVIL,
    HERMETIC,
    KINDS,
    OPERATORS,
    Attack,
    Stolen,
    an_event,
    change,
    claimed_by,
    create,
    delete,
    get,
    in_pod,
    live,
    named,
    patch,
    refusal,
    run,
    stolen,
    the_spec,
    volume,
    with_engine,
    with_volume,
)
from tests.controlplane.test_operator_account_policies import a_probe
from tests.scenarios import a_share_model, an_egress_audit
from tools.rights_reference import explained

__all__ = ["stolen"]

MODELS, CLUSTER = "hermetic-operator-models", "hermetic-operator"
CORE_OF, APPS_OF, BATCH_OF = (
    "/api/v1/namespaces/{%s}/%s", "/apis/apps/v1/namespaces/{%s}/%s", "/apis/batch/v1/namespaces/{%s}/%s",
)  # fmt: skip
HOME = "/api/v1/namespaces/{home}"
THEIRS = {kind: f"{path}/theirs" for kind, path in KINDS.items() if "{home}" in path and kind != "Job"}
RBAC, ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces"

REFUSED: dict[str, Attack] = {
    # Secrets and tokens
    "a Secret": get(f"{HOME}/secrets/db"),
    "the Secrets of a namespace": get(f"{HOME}/secrets"),
    "all Secrets": get("/api/v1/secrets"),
    "the Secrets of the system": get("/api/v1/namespaces/kube-system/secrets"),
    "a Secret of its own": create(f"{HOME}/secrets", named("x")),
    "a token of an account of models": create(f"{HOME}/serviceaccounts/default/token", {"spec": {}}),
    "a token of a controller": create(
        "/api/v1/namespaces/kube-system/serviceaccounts/clusterrole-aggregation-controller/token", {"spec": {}}
    ),
    "a longer token of its own": create(
        "/api/v1/namespaces/hermetic-system/serviceaccounts/hermetic-operator/token",
        {"spec": {"expirationSeconds": 31536000}},
    ),
    "a token of a node, by request": create(
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        named("x", spec={"request": "eA==", "signerName": "kubernetes.io/kubelet-serving", "usages": ["client auth"]}),
    ),
    "approval of a request": patch(
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", {"status": {}}
    ),
    "a review of a token": create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
    "a review of the rights of others": create(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "x"}}
    ),
    # Impersonation and bindings
    "being an administrator": run("get", "nodes", "--as=kubernetes-admin"),
    "being a master": run("get", "nodes", "--as=x", "--as-group=system:masters"),
    "being a controller": run("get", "secrets", "--as=system:serviceaccount:kube-system:generic-garbage-collector"),
    # More rights
    "a binding in the cluster": create(
        f"{RBAC}/clusterrolebindings", named("x", roleRef=ADMIN, subjects=[ATTACKER])
    ),
    "a binding in a namespace": create(
        f"{RBAC}/namespaces/{{home}}/rolebindings", named("x", roleRef=ADMIN, subjects=[ATTACKER])
    ),
    "a role": create(
        f"{RBAC}/clusterroles", named("x", rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    ),
    "its own role": patch(
        f"{RBAC}/clusterroles/hermetic-operator",
        {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
    ),
    "a role that others aggregate": patch(f"{RBAC}/clusterroles/hermetic-edit", {"rules": []}),
    # The policies themselves
    "no policy any more": delete(f"{ADMISSION}/validatingadmissionpolicies/hermetic-operator-owned"),
    "no binding any more": delete(f"{ADMISSION}/validatingadmissionpolicybindings/hermetic-operator-owned"),
    "a policy that only warns": patch(
        f"{ADMISSION}/validatingadmissionpolicybindings/hermetic-operator-owned",
        {"spec": {"validationActions": ["Warn"]}},
    ),
    "a webhook that changes": create(f"{ADMISSION}/mutatingwebhookconfigurations", named("x", webhooks=[])),
    "a webhook that refuses": create(f"{ADMISSION}/validatingwebhookconfigurations", named("x", webhooks=[])),
    "a policy that changes": create(f"{ADMISSION}/mutatingadmissionpolicies", named("x", spec={})),
    "what is allowed": patch("/api/v1/namespaces/hermetic-system/configmaps/hermetic-allowed", {"data": {}}),
    "another list of what is allowed": create("/api/v1/namespaces/hermetic-system/configmaps", named("x")),
    "an API of its own": create("/apis/apiregistration.k8s.io/v1/apiservices", named("v1.x", spec={})),
    "another schema": patch(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modeldeployments.hermetic.dev", {"spec": {}}
    ),
    # Into pods that run
    "a shell": create(f"{HOME}/pods/x/exec", {}),
    "its output": create(f"{HOME}/pods/x/attach", {}),
    "its ports": create(f"{HOME}/pods/x/portforward", {}),
    "its log": get(f"{HOME}/pods/x/log"),
    "a request through the API server to a pod": get(f"{HOME}/pods/x/proxy/"),
    "a request through the API server to a Service": get(f"{HOME}/services/x/proxy/"),
    "a request through the API server to a kubelet": get("/api/v1/nodes/x/proxy/pods"),
    "a container beside it": patch(f"{HOME}/pods/x/ephemeralcontainers", {"spec": {"ephemeralContainers": []}}),
    "another image of it": patch(f"{HOME}/pods/x", {"spec": {"containers": [{"name": "engine", "image": EVIL}]}}),
    "its end": delete(f"{HOME}/pods/x"),
    "its eviction": create(f"{HOME}/pods/x/eviction", named("x")),
    "its node": create(f"{HOME}/pods/x/binding", named("x", target={"name": "y"})),
    "its status": patch(f"{HOME}/pods/x/status", {"status": {}}),
    # Pods by other ways
    "a pod": create(CORE_OF % ("home", "pods"), named("x", spec=A_POD)),
    "a pod of the system": create("/api/v1/namespaces/kube-system/pods", named("x", spec=A_POD)),
    "a ReplicaSet": create(APPS_OF % ("home", "replicasets"), named("x", spec=A_WORKLOAD)),
    "a StatefulSet": create(APPS_OF % ("home", "statefulsets"), named("x", spec=A_WORKLOAD)),
    "a DaemonSet": create(APPS_OF % ("home", "daemonsets"), named("x", spec=A_WORKLOAD)),
    "a ReplicationController": create(
        CORE_OF % ("home", "replicationcontrollers"), named("x", spec={"template": A_TEMPLATE})
    ),
    "a CronJob": create(
        BATCH_OF % ("home", "cronjobs"),
        named("x", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": A_TEMPLATE}}}),
    ),
    "a Job": create(BATCH_OF % ("home", "jobs"), named("x", spec={"template": A_TEMPLATE})),
    "a Job among the probes": create(
        "/apis/batch/v1/namespaces/hermetic-probe/jobs",
        named("x", spec={"template": {"spec": {**A_POD, "restartPolicy": "Never"}}}),
    ),
    "a probe without an EgressAudit": create(
        "/apis/batch/v1/namespaces/hermetic-probe/jobs", lambda _: a_probe(host_network=True)
    ),
    "a PodTemplate": create(CORE_OF % ("home", "podtemplates"), named("x", template=A_TEMPLATE)),
    "a Deployment of the system": create(
        "/apis/apps/v1/namespaces/kube-system/deployments", named("x", spec=A_WORKLOAD)
    ),
    "a Deployment beside the operator": create(
        OPERATORS, named("x", spec=A_WORKLOAD)
    ),
    "a Deployment beside the probes": create(
        "/apis/apps/v1/namespaces/hermetic-probe/deployments", named("x", spec=A_WORKLOAD)
    ),
    "a Deployment of another tenant": create(APPS_OF % ("victim", "deployments"), named("x", spec=A_WORKLOAD)),
    "a Deployment without an owner": create(APPS_OF % ("home", "deployments"), named("x", spec=A_WORKLOAD)),
    "the operator's own Deployment": patch(f"{OPERATORS}/hermetic-operator", {"spec": {"replicas": 0}}),
    "the number of pods, past the policies": patch(f"{KINDS['Deployment']}/theirs/scale", {"spec": {"replicas": 0}}),
    # The pods of the model that is there
    "the network of the machine": in_pod(hostNetwork=True),
    "the processes of the machine": in_pod(hostPID=True),
    "the memory of the machine": in_pod(hostIPC=True),
    "the users of the machine": in_pod(hostUsers=True),
    "one machine": in_pod(nodeName="node-1"),
    "another account": in_pod(serviceAccountName="default"),
    "the token of the account": in_pod(automountServiceAccountToken=True),
    "the disk of the machine": with_volume(hostPath={"path": "/"}),
    "a Secret as a volume": with_volume(secret={"secretName": "db"}),
    "a priority of the system": in_pod(priorityClassName="system-node-critical"),
    "a device": in_pod(resourceClaims=[{"name": "x", "resourceClaimName": "x"}]),
    "a scheduling gate": in_pod(schedulingGates=[{"name": "example.com/x"}]),
    "a privileged container": with_engine(securityContext={"privileged": True}),
    "a shell for an engine": with_engine(command=["sh", "-c", "id"]),
    "variables of a Secret": with_engine(envFrom=[{"secretRef": {"name": "db"}}]),
    "a network of another kind": change(
        "Deployment", {"spec": {"template": {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "x"}}}}}
    ),
    "no confinement": change(
        "Deployment",
        {"spec": {"template": {"metadata": {"annotations": {
            "container.apparmor.security.beta.kubernetes.io/engine": "unconfined"}}}}},
    ),
    "an identity of Azure": change(
        "Deployment", {"spec": {"template": {"metadata": {"labels": {"azure.workload.identity/use": "true"}}}}}
    ),
    "an owner that takes it along": change(
        "Deployment",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]}},
    ),
    "a finalizer": change("Deployment", {"metadata": {"finalizers": ["example.com/mine"]}}),
    "a finalizer of others": change("Service", {"metadata": {"finalizers": []}}),
    # Services and exposing objects
    "an alias of a host": change(
        "Service",
        {"spec": {"type": "ExternalName", "externalName": "evil.example", "loadBalancerSourceRanges": None}},
    ),
    "an address of others": change("Service", {"spec": {"externalIPs": ["10.96.0.10"]}}),
    "a public Service": change(
        "Service", {"metadata": {"annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "false"}}}
    ),
    "a port of the machines": change("Service", {"spec": {"type": "NodePort", "loadBalancerSourceRanges": None}}),
    "the pods of others": change("Service", {"spec": {"selector": {"app": "db"}}}),
    "the status of a Service": patch(f"{KINDS['Service']}/theirs/status", {"status": {"loadBalancer": {}}}),
    "an EndpointSlice": create(
        "/apis/discovery.k8s.io/v1/namespaces/{home}/endpointslices", named("x", addressType="IPv4", endpoints=[])
    ),
    "Endpoints": create(CORE_OF % ("home", "endpoints"), named("x")),
    "an Ingress": create("/apis/networking.k8s.io/v1/namespaces/{home}/ingresses", named("x", spec={})),
    "a route": create("/apis/gateway.networking.k8s.io/v1/namespaces/{home}/httproutes", named("x", spec={})),
    # NetworkPolicies
    "no NetworkPolicy any more": delete(THEIRS["NetworkPolicy"]),
    "no NetworkPolicy of the model": lambda stolen: stolen.account.delete(live(stolen, "NetworkPolicy") + DRY),
    "egress": change("NetworkPolicy", {"spec": {"egress": [{}]}}),
    "no egress rules": change("NetworkPolicy", {"spec": {"policyTypes": ["Ingress"]}}),
    "a policy of other pods": change("NetworkPolicy", {"spec": {"podSelector": {"matchLabels": None}}}),
    "a policy of Cilium": create("/apis/cilium.io/v2/namespaces/{home}/ciliumnetworkpolicies", named("x", spec={})),
    # Objects of others
    **{f"a {kind} of others": patch(path, {"metadata": {"annotations": {"a": "b"}}}) for kind, path in THEIRS.items()},
    **{
        f"no {kind} of others": delete(THEIRS[kind])
        for kind in ("Service", "PersistentVolumeClaim", "PodDisruptionBudget") if kind in THEIRS
    },
    "all Services": delete(CORE_OF % ("home", "services")),
    "all volumes": delete("/api/v1/persistentvolumes"),
    "no Deployment": delete(THEIRS["Deployment"]),
    "no ServiceAccount": delete(THEIRS["ServiceAccount"]),
    # Volumes
    "a volume of the machine's disk": volume(lambda _, body: body["spec"].update(csi=None, hostPath={"path": "/"})),
    "a volume with a Secret": volume(
        lambda _, body: body["spec"]["csi"].update(nodeStageSecretRef={"name": "x", "namespace": "kube-system"})
    ),
    "a volume to write": volume(lambda _, body: body["spec"].update(accessModes=["ReadWriteMany"])),
    "a volume of the system": volume(claimed_by("kube-system")),
    "a volume of the operator": volume(claimed_by("hermetic-system")),
    "a volume of another driver": volume(lambda _, body: body["spec"]["csi"].update(driver="disk.csi.azure.com")),
    "a volume with a finalizer": volume(lambda _, body: body["metadata"].update(finalizers=["example.com/x"])),
    "a class of storage": create("/apis/storage.k8s.io/v1/storageclasses", named("x", provisioner="x")),
    "an attachment": create("/apis/storage.k8s.io/v1/volumeattachments", named("x", spec={})),
    # Cluster and namespaces
    "a label of a machine": patch("/api/v1/nodes/x", {"metadata": {"labels": {"a": "b"}}}),
    "the status of a machine": patch("/api/v1/nodes/x/status", {"status": {}}),
    "a namespace": create("/api/v1/namespaces", named("x")),
    "no namespace": delete(HOME),
    "a namespace without Pod Security": patch(
        HOME, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    ),
    "a class of priority": create("/apis/scheduling.k8s.io/v1/priorityclasses", named("x", value=1)),
    "a quota": create(f"{HOME}/resourcequotas", named("x", spec={"hard": {"pods": "0"}})),
    "the resolver of the cluster": patch("/api/v1/namespaces/kube-system/configmaps/coredns", {"data": {}}),
    # Leases and Events of others
    "the Lease of the controllers": patch(
        f"{LEASES}/kube-system/leases/kube-controller-manager", {"spec": {"holderIdentity": "x"}}
    ),
    "the Lease of a machine": patch(f"{LEASES}/kube-node-lease/leases/x", {"spec": {"holderIdentity": "x"}}),
    "a Lease elsewhere": create(f"{LEASES}/kube-system/leases", named("x")),
    "the end of its Lease": delete(f"{LEASES}/hermetic-system/leases/hermetic"),
    "an Event about a pod": create("/apis/events.k8s.io/v1/namespaces/{home}/events", an_event("Pod", "v1")),
    "an Event about another tenant's Secret": create(
        "/apis/events.k8s.io/v1/namespaces/{victim}/events", an_event("Secret", "v1")
    ),
    "an Event of the old kind": create(f"{HOME}/events", named("x", involvedObject={"kind": "Pod"})),
    # What people and auditors say
    "a ModelDeployment": create(f"{HERMETIC}/namespaces/{{home}}/modeldeployments", a_share_model()),
    "another spec": lambda stolen: stolen.account.merge(
        f"{HERMETIC}/namespaces/{stolen.home}/modeldeployments/{stolen.owner.name}", {"spec": {"replicas": 9}}
    ),
    "no ModelDeployment": lambda stolen: stolen.account.delete(
        f"{HERMETIC}/namespaces/{stolen.home}/modeldeployments/{stolen.owner.name}"
    ),
    "an EgressAudit": create(f"{HERMETIC}/egressaudits", named("cluster", spec={})),
    "another key that is trusted": patch(f"{HERMETIC}/egressaudits/cluster", {"spec": {"trustedKeys": []}}),
    "an attestation": create(f"{HERMETIC}/egressattestations", named("x", spec={})),
    "no attestation": delete(f"{HERMETIC}/egressattestations/x"),
    "the status of another EgressAudit": patch(f"{HERMETIC}/egressaudits/other/status", {"status": {}}),
    "the report of another tool": patch("/apis/openreports.io/v1alpha1/clusterreports/theirs", {"results": []}),
}  # fmt: skip


@pytest.mark.parametrize("attack", REFUSED)
def test_it_is_refused(stolen: Stolen, attack: str) -> None:
    """By its rights or by a policy of ours: that a field is invalid would be an attack that was written wrongly."""
    assert BY_RIGHTS_OR_POLICY.search(refusal(stolen, REFUSED[attack]))


# ---------------------------------------------------------------------- what remains


def _the_key(stolen: Stolen, name: str) -> object:
    variable = {"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}}
    return with_engine(env=[variable])(stolen)


def _an_owner_that_is_not_there(stolen: Stolen) -> object:
    ghost = Owner(stolen.home, "ghost", "7d3f9c52-0f5e-4c0f-9d0a-6f1f3f8f2b11")
    child = next(rendering for rendering in render(ghost, the_spec()) if rendering["kind"] == "Deployment")
    return stolen.account.create(stolen.at(KINDS["Deployment"]) + DRY, child)


def _the_gate_of_pods(stolen: Stolen) -> object:
    """The Lease with another annotation, as an operator renews it; one is made where none worked before."""
    path = f"{LEASES}/hermetic-system/leases/hermetic"
    with contextlib.suppress(ApiError):
        stolen.admin.create(path.rpartition("/")[0], named("hermetic"))
    lease = stolen.account.get(path)
    lease["metadata"].setdefault("annotations", {})["hermetic.dev/pods-until"] = "2099-01-01T00:00:00Z"
    return stolen.account.replace(path + DRY, lease)


def _status_of_the_model(stolen: Stolen) -> object:
    path = f"{HERMETIC}/namespaces/{stolen.home}/modeldeployments/{stolen.owner.name}/status{DRY}"
    return stolen.account.merge(path, {"status": {"replicas": 1}})


@dataclass(frozen=True)
class Remains:
    """What is admitted: the right, the words about it, and whether `hermetic rbac --config` refuses it."""

    attack: Attack
    right: tuple[str, str, str]
    words: str
    refused_by_namespace: bool = False


DEPLOYMENTS, VOLUMES = (MODELS, "apps", "deployments"), (CLUSTER, "", "persistentvolumes")
REMAINS: dict[str, Remains] = {
    "any image by digest": Remains(
        with_engine(image=EVIL), DEPLOYMENTS, "without the ConfigMap `hermetic-allowed`, of any registry", True
    ),
    "any Secret of the namespace": Remains(
        lambda stolen: _the_key(stolen, "db"), DEPLOYMENTS, "Read any Secret of the namespace"
    ),
    "arguments": Remains(with_engine(args=["--model", "/x"]), DEPLOYMENTS, "arguments and variables of its choice"),
    "an owner that is not there": Remains(_an_owner_that_is_not_there, DEPLOYMENTS, "The owner need not exist"),
    "no pods": Remains(change("Deployment", {"spec": {"replicas": 0}}), DEPLOYMENTS, "scale it to zero"),
    "a share of others": Remains(
        volume(lambda _, body: body["spec"]["csi"]["volumeAttributes"].update(storageAccount="evil")),
        VOLUMES, "of any server and share", True,
    ),
    "a volume for another tenant": Remains(
        volume(claimed_by("{victim}")), VOLUMES, "for claims of the watched namespaces", True
    ),
    "other clients": Remains(
        change(
            "NetworkPolicy",
            {"spec": {"ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 8001}]}]}},
        ),
        (MODELS, "networking.k8s.io", "networkpolicies"), "Let other clients call a model",
    ),
    "no Service": Remains(
        lambda stolen: stolen.account.delete(live(stolen, "Service") + DRY), (MODELS, "", "services"), "unreachable"
    ),
    "a status of a model": Remains(
        _status_of_the_model, (MODELS, "hermetic.dev", "modeldeployments/status"), "Say Ready, or anything else"
    ),
    "an Event about a model": Remains(
        create("/apis/events.k8s.io/v1/namespaces/{home}/events", an_event("ModelDeployment", "hermetic.dev/v1alpha1")),
        (MODELS, "events.k8s.io", "events"), "false Events about ModelDeployments",
    ),
    "a gate of pods that is open": Remains(
        _the_gate_of_pods, ("hermetic-operator-lease", "coordination.k8s.io", "leases"), "start without a proof"
    ),
    "a Lease beside its own": Remains(
        create(f"{LEASES}/hermetic-system/leases", named("x")),
        ("hermetic-operator-lease", "coordination.k8s.io", "leases"), "make Leases of other names",
    ),
    "the pods of the system": Remains(
        get("/api/v1/namespaces/kube-system/pods"), (CLUSTER, "", "pods"), "of every pod"
    ),
    "the ConfigMaps of others": Remains(
        get("/api/v1/namespaces/{victim}/configmaps"), (CLUSTER, "", "configmaps"), "every ConfigMap"
    ),
    "what the machines are called": Remains(get("/api/v1/nodes"), (CLUSTER, "", "nodes"), "names, addresses"),
}  # fmt: skip


@pytest.mark.parametrize("attack", REMAINS)
def test_what_is_admitted_is_in_the_table_of_rights(stolen: Stolen, attack: str) -> None:
    remains = REMAINS[attack]
    assert remains.words in explained()[remains.right].remains
    message = refusal(stolen, remains.attack)
    if remains.refused_by_namespace and stolen.by_namespace:
        assert "configuration allows" in message or "looks after" in message
    else:
        assert message == ""


# ---------------------------------------------------------------------- without the list of what is allowed

ALLOWED = "/api/v1/namespaces/hermetic-system/configmaps"
BY_THE_LIST: dict[str, tuple[str, Attack]] = {
    "images": (
        "hermetic-operator-images",
        lambda stolen: stolen.account.create(
            stolen.at(KINDS["Deployment"]) + DRY, _under_another_name(stolen, "Deployment")
        ),
    ),
    "shares": ("hermetic-operator-shares", volume(lambda _, __: None)),
    "probe": (
        "hermetic-operator-probe-program",
        create("/apis/batch/v1/namespaces/hermetic-probe/jobs", lambda _: a_probe()),
    ),
}


def _under_another_name(stolen: Stolen, kind: str) -> dict[str, object]:
    other = Owner(stolen.home, "another", stolen.owner.uid)
    return next(rendering for rendering in render(other, the_spec()) if rendering["kind"] == kind)


def test_without_the_list_of_what_is_allowed_nothing_is(stolen: Stolen) -> None:
    """Where `hermetic rbac --config` printed the bindings. Those of `manifests/` apply only once the list is there."""
    image = a_probe()["spec"]["template"]["spec"]["containers"][0]["image"]
    stolen.admin.create(f"{HERMETIC}/egressaudits", an_egress_audit(probe={"image": image}))
    try:
        for title, (_, write) in BY_THE_LIST.items():
            wait_for(f"{title} admitted", lambda write=write: refusal(stolen, write) == "")  # type: ignore[misc]
        if not stolen.by_namespace:
            return
        listed = stolen.admin.get(f"{ALLOWED}/hermetic-allowed")
        stolen.admin.delete(f"{ALLOWED}/hermetic-allowed")
        try:
            for title, (policy, write) in BY_THE_LIST.items():
                wait_for(f"{title} refused", lambda write=write: refusal(stolen, write))  # type: ignore[misc]
                # Several policies read the list: any of them may be the one that is named.
                assert any(name in refusal(stolen, write) for name in (policy, "hermetic-operator-labels"))
                assert "failed to configure binding: no params found" in refusal(stolen, write)
        finally:
            metadata = {key: listed["metadata"][key] for key in ("name", "labels")}
            stolen.admin.create(ALLOWED, {"metadata": metadata, "data": listed["data"]})
    finally:
        stolen.admin.delete(f"{HERMETIC}/egressaudits/cluster")
