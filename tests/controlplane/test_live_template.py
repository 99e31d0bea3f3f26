"""What a tenant with the ClusterRole `edit` adds to a model's objects where no admission policy of ours is installed.

Drift correction alone takes it out again: each edit is made on a model of its own, whose spec is afterwards as it was.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.test_tenant_rights import a_tenant
from tests.controlplane.write_counts import AuditLog
from tests.scenarios import BAKED_IMAGE, DIGEST, Manifest, a_baked_model, a_share_model, changed, reporting

BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
ADMISSION_POLICIES = ("hermetic-workloads", "hermetic-model-pods", "hermetic-model-templates", "hermetic-services")
IMAGE = f"evil.example/x@sha256:{DIGEST}"
VARIABLE = {"name": "NCCL_DEBUG", "value": "WARN"}
Edit = Callable[[Manifest], object]


@pytest.fixture(scope="module")
def unfenced(installed: None, api: Api) -> Iterator[None]:  # noqa: ARG001
    """The cluster without the policies that keep tenants from our objects."""
    bindings = [api.get(f"{BINDINGS}/{name}") for name in ADMISSION_POLICIES]
    for name in ADMISSION_POLICIES:
        api.delete(f"{BINDINGS}/{name}")
    yield
    for binding in bindings:
        del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
        api.create(BINDINGS, binding)


def pod(live: Manifest) -> Manifest:
    pod_spec: Manifest = live["spec"]["template"]["spec"]
    return pod_spec


def engine(live: Manifest) -> Manifest:
    container: Manifest = pod(live)["containers"][0]
    return container


def with_a_volume(live: Manifest) -> None:
    pod(live).setdefault("volumes", []).append({"name": "more", "emptyDir": {}})
    engine(live).setdefault("volumeMounts", []).append({"name": "more", "mountPath": "/more"})


def with_duplicate(live: Manifest) -> None:
    engine(live)["env"].append({"name": "HF_HUB_OFFLINE", "value": "0"})


def with_many(live: Manifest) -> None:
    """Everything at once, and the book of who wrote what thrown away."""
    with_a_volume(live)
    engine(live)["env"].append({"name": "HTTPS_PROXY", "value": "http://203.0.113.9"})
    pod(live)["containers"].append({"name": "more", "image": IMAGE})
    live["metadata"]["managedFields"] = [{}]


def in_pod(**fields: Any) -> Edit:
    return lambda live: pod(live).update(fields)


def in_engine(**fields: Any) -> Edit:
    return lambda live: engine(live).update(fields)


def in_spec(**fields: Any) -> Edit:
    return lambda live: live["spec"].update(fields)


def labelled(**labels: str) -> Edit:
    return lambda live: live["spec"]["template"]["metadata"]["labels"].update(labels)


def annotated(name: str, value: str) -> Edit:
    return lambda live: live["spec"]["template"]["metadata"].setdefault("annotations", {}).update({name: value})


HOOK = {"exec": {"command": ["sh", "-c", "id"]}}
PREFERRED = {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
PODS: dict[str, Edit] = {
    "sidecar": lambda live: pod(live)["containers"].append({"name": "more", "image": IMAGE}),
    "sidecar before ours": lambda live: pod(live)["containers"].insert(0, {"name": "more", "image": IMAGE}),
    "init container": in_pod(initContainers=[{"name": "more", "image": IMAGE}]),
    "sidecar that starts first": in_pod(initContainers=[{"name": "more", "image": IMAGE, "restartPolicy": "Always"}]),
    "variable": lambda live: engine(live)["env"].append({"name": "HTTPS_PROXY", "value": "http://203.0.113.9"}),
    "variable from a secret": lambda live: engine(live)["env"].append(
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    ),
    "variable twice": with_duplicate,
    "variables in another order": lambda live: engine(live)["env"].reverse(),
    "variables from a map": in_engine(envFrom=[{"configMapRef": {"name": "more"}}]),
    "hook at the start": lambda live: engine(live)["lifecycle"].update(postStart=HOOK),
    "port": lambda live: engine(live)["ports"].append({"containerPort": 2222}),
    "port of UDP": lambda live: engine(live)["ports"].append({"containerPort": 8000, "protocol": "UDP"}),
    "port of the machine": lambda live: engine(live)["ports"][0].update(hostPort=8000),
    "volume": with_a_volume,
    "folder of the machine": lambda live: pod(live)["volumes"].append({"name": "h", "hostPath": {"path": "/"}}),
    "working directory": in_engine(workingDir="/weights"),
    "standard input": in_engine(stdin=True, tty=True),
    "limit of processors": lambda live: engine(live)["resources"]["limits"].update(cpu="100"),
    "header in a probe": lambda live: engine(live)["readinessProbe"]["httpGet"].update(
        httpHeaders=[{"name": "Host", "value": "x"}]
    ),
    "another host in a probe": lambda live: engine(live)["livenessProbe"]["httpGet"].update(host="203.0.113.9"),
    "privileges": lambda live: engine(live)["securityContext"].update(privileged=True, allowPrivilegeEscalation=True),
    "capability": lambda live: engine(live)["securityContext"]["capabilities"].update(add=["NET_RAW"]),
    "user": lambda live: engine(live)["securityContext"].update(runAsUser=4242),
    "group of files": lambda live: pod(live)["securityContext"].update(fsGroup=0, supplementalGroups=[0]),
    "system setting": lambda live: pod(live)["securityContext"].update(
        sysctls=[{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    ),
    "resolver": in_pod(dnsPolicy="None", dnsConfig={"nameservers": ["203.0.113.53"]}),
    "search of names": in_pod(dnsConfig={"searches": ["evil.example"]}),
    "aliases of hosts": in_pod(hostAliases=[{"ip": "203.0.113.9", "hostnames": ["chat"]}]),
    "host network": in_pod(hostNetwork=True),
    "processes of the machine": in_pod(hostPID=True, hostIPC=True),
    "processes of each other": in_pod(shareProcessNamespace=True),
    "toleration": in_pod(tolerations=[{"operator": "Exists"}]),
    "selector of nodes": in_pod(nodeSelector={"kubernetes.io/hostname": "mine"}),
    "node": in_pod(nodeName="mine"),
    "affinity": in_pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}}),
    "scheduler": in_pod(schedulerName="mine"),
    "runtime class": in_pod(runtimeClassName="mine"),
    "priority class": in_pod(priorityClassName="system-cluster-critical"),
    "pull secret": in_pod(imagePullSecrets=[{"name": "mine"}]),
    "account": in_pod(serviceAccountName="default", serviceAccount="default"),
    "host name": in_pod(hostname="mine", subdomain="chat"),
    "readiness gate": in_pod(readinessGates=[{"conditionType": "evil.example/never"}]),
    "gate of scheduling": in_pod(schedulingGates=[{"name": "evil.example/never"}]),
    "label of a mesh": labelled(**{"sidecar.istio.io/inject": "true"}),
    "label of an identity": labelled(**{"azure.workload.identity/use": "true"}),
    "annotation of networks": annotated("k8s.v1.cni.cncf.io/networks", "open"),
    "annotation of a proxy": annotated("sidecar.istio.io/inject", "true"),
    "paused": in_spec(paused=True),
    "never ready": in_spec(minReadySeconds=500),
    "everything at once": with_many,
}
SERVICES: dict[str, Edit] = {
    "external address": in_spec(externalIPs=["203.0.113.9"]),
    "pods that are not ready": in_spec(publishNotReadyAddresses=True),
    "second port": lambda live: live["spec"]["ports"].append({"name": "more", "port": 2222, "targetPort": 22}),
    "sticky": in_spec(sessionAffinity="ClientIP"),
    "near": in_spec(trafficDistribution="PreferClose"),
    "local": in_spec(internalTrafficPolicy="Local"),
    "annotation of a cloud": lambda live: live["metadata"]["annotations"].update(
        {"service.beta.kubernetes.io/azure-load-balancer-internal-subnet": "dmz"}
    ),
    "annotation of a network": lambda live: live["metadata"]["annotations"].update(
        {"service.cilium.io/global": "true"}
    ),
}
BUDGETS: dict[str, Edit] = {
    "eviction": in_spec(unhealthyPodEvictionPolicy="IfHealthyBudget"),
    "expression": lambda live: live["spec"]["selector"].update(matchExpressions=[{"key": "x", "operator": "Exists"}]),
}
ACCOUNTS: dict[str, Edit] = {
    "pull secrets": lambda live: live.update(imagePullSecrets=[{"name": "mine"}]),
    "secrets": lambda live: live.update(secrets=[{"name": "mine"}]),
    "token": lambda live: live.update(automountServiceAccountToken=True),
}
POLICIES: dict[str, Edit] = {
    "egress to everywhere": in_spec(egress=[{}]),
    "ingress from everywhere": lambda live: (
        live["spec"].setdefault("ingress", []).append({"from": [{"podSelector": {}}]})
    ),
    "ingress rules only": in_spec(policyTypes=["Ingress"]),
    "expression": lambda live: live["spec"]["podSelector"].update(
        matchExpressions=[{"key": "x", "operator": "DoesNotExist"}]
    ),
}
KINDS = {
    "apps/v1 deployments": PODS,
    "v1 services": SERVICES,
    "policy/v1 poddisruptionbudgets": BUDGETS,
    "v1 serviceaccounts": ACCOUNTS,
    "networking.k8s.io/v1 networkpolicies": POLICIES,
}
EDITS = {f"{kind}: {title}": (kind, edit) for kind, edits in KINDS.items() for title, edit in edits.items()}


def model(edit_name: str) -> str:
    return f"m{list(EDITS).index(edit_name)}"


@pytest.fixture(scope="module")
def models(
    hermetic: OperatorProcess,
    api: Api,
    cluster: Path,
    kubectl: Kubectl,
    unfenced: None,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Deployments, Api]]:
    """A model for every edit, none with pods, and the tenant."""
    with module_namespace(api, "unfenced") as namespace:
        deployments = Deployments(api, kubectl, namespace, hermetic)
        resting = reporting(a_baked_model("phi", replicas=0, endpoint={}))
        of_two = reporting(a_baked_model("phi", replicas=2, endpoint={}))
        deployments.apply(
            *(
                changed({**(of_two if "budget" in title else resting), "metadata": {"name": model(title)}})
                for title in EDITS
            )
        )
        tenant = a_tenant(api, cluster, namespace, tmp_path_factory.mktemp("tenant") / "kubeconfig")
        deployments.until(model(next(iter(EDITS))), "ScaledToZero")
        yield deployments, tenant


def path(deployments: Deployments, kind: str, name: str) -> str:
    group, plural = kind.split()
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    return f"{root}/namespaces/{deployments.namespace}/{plural}/{name}"


def edited(tenant: Api, where: str, edit: Edit) -> Manifest:
    """`kubectl edit` by the tenant; again where somebody was quicker or the rights are not there yet."""
    for _ in range(200):
        live = tenant.get(where)
        edit(live)
        try:
            return tenant.replace(where, live)
        except ApiError as error:
            if error.status != 409:
                raise
    raise AssertionError("never quick enough")


# Outside CI the fields that a run leaves out are those of tests/unit/test_plan_foreign_fields.py.
@pytest.mark.sampled(6)
@pytest.mark.parametrize("edit_name", EDITS)
def test_what_a_tenant_adds_is_taken_out_again(models: tuple[Deployments, Api], edit_name: str) -> None:
    deployments, tenant = models
    kind, edit = EDITS[edit_name]
    where = path(deployments, kind, model(edit_name))
    right = content(deployments.wait("the object", lambda: _found(tenant, where)))

    assert content(edited(tenant, where, edit)) != right, "the edit was let through"

    deployments.wait("the correction", lambda: content(tenant.get(where)) == right)


def content(live: Manifest) -> Manifest:
    """The object without what changes by itself."""
    live_fields = {name: value for name, value in live.items() if name not in ("metadata", "status")}
    return {**live_fields, "annotations": live["metadata"].get("annotations") if live["kind"] == "Service" else None}


def _found(api: Api, where: str) -> Manifest | None:
    try:
        return api.get(where)
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return None


def test_a_rival_that_adds_is_outwaited_and_named_with_the_field(
    models: tuple[Deployments, Api], controlplane: ControlPlane
) -> None:
    deployments, tenant = models
    deployments.apply(reporting(a_baked_model("rivalled", replicas=0, endpoint={})))
    deployments.until("rivalled", "ScaledToZero")
    where, over = path(deployments, "apps/v1 deployments", "rivalled"), threading.Event()
    log = AuditLog.from_now_on(controlplane.audit_log, deployments.namespace)
    rival = threading.Thread(target=_insisting, args=(tenant, where, over))
    rival.start()
    try:
        condition = deployments.until("rivalled", "DriftContested")
    finally:
        over.set()
        rival.join()

    assert "Deployment 'rivalled' is changed back as often as it is corrected: " in condition["message"]
    assert "spec.template.spec.containers[more], written by '" in condition["message"]
    assert f"'{_manager(tenant.get(where))}' (field manager)" in condition["message"]
    assert Counter(log.writes())["deployments"] == 3


def _insisting(tenant: Api, where: str, over: threading.Event) -> None:
    while not over.is_set():
        live = tenant.get(where)
        if not any(container["name"] == "more" for container in pod(live)["containers"]):
            PODS["sidecar"](live)
            with contextlib.suppress(ApiError):
                tenant.replace(where, live)
        over.wait(0.02)


def _manager(live: Manifest) -> str:
    names = [entry["manager"] for entry in live["metadata"]["managedFields"] if "more" in str(entry["fieldsV1"])]
    return str(names[0])


def test_what_was_corrected_once_is_left_alone_and_a_change_of_the_spec_leaves_nothing_behind(
    models: tuple[Deployments, Api], controlplane: ControlPlane
) -> None:
    """After a correction the operator holds fields by two managers: what it no longer says must still go."""
    deployments, tenant = models
    vllm = {"image": BAKED_IMAGE, "version": "0.32.0"}
    speaking = {"vllm": {**vllm, "extraEnv": [VARIABLE]}}
    deployments.apply(reporting(a_baked_model("once", replicas=0, endpoint={}, engine=speaking)))
    deployments.until("once", "ScaledToZero")
    where = path(deployments, "apps/v1 deployments", "once")
    right = tenant.get(where)["spec"]
    edited(tenant, where, lambda live: engine(live)["env"].clear())
    deployments.wait("the correction", lambda: tenant.get(where)["spec"] == right)
    log = AuditLog.from_now_on(controlplane.audit_log, deployments.namespace)

    deployments.change("once", engine={"vllm": {"extraEnv": []}})
    deployments.until("once", "ScaledToZero")

    assert VARIABLE["name"] not in {variable["name"] for variable in engine(tenant.get(where))["env"]}
    assert Counter(log.writes())["deployments"] == 1


# ---------------------------------------------------------------------- pods that run


@pytest.fixture(scope="module")
def serving(models: tuple[Deployments, Api], gpu_nodes: None) -> Deployments:  # noqa: ARG001
    """A model with one pod."""
    deployments, _ = models
    deployments.apply(reporting(a_baked_model("runs", endpoint={})))
    deployments.until("runs", "Serving")
    return deployments


def the_pod(deployments: Deployments) -> str:
    (live_pod,) = (
        candidate for candidate in deployments.pods("runs") if "deletionTimestamp" not in candidate["metadata"]
    )
    return str(live_pod["metadata"]["name"])


def test_an_ephemeral_container_is_named_with_its_pod_and_image(serving: Deployments) -> None:
    """Put in by a member of system:masters, whom no policy keeps from it."""
    name = the_pod(serving)
    where = f"/api/v1/namespaces/{serving.namespace}/pods/{name}"
    debug = {"name": "debug", "image": "docker.io/evil/x:latest"}
    serving.api.merge(f"{where}/ephemeralcontainers", {"spec": {"ephemeralContainers": [debug]}})

    condition = serving.until("runs", "NotAsRendered", "ImagesPinned")

    assert condition["status"] == "False"
    for word in (f"pod '{name}'", "container 'debug'", "ephemeralContainers", "'docker.io/evil/x:latest'"):
        assert word in condition["message"]
    assert serving.until("runs", "NotAsRendered")["status"] == "False"
    serving.api.delete(where)
    serving.until("runs", "Serving")


def test_another_image_in_a_pod_that_runs_is_named(serving: Deployments) -> None:
    name = the_pod(serving)
    where = f"/api/v1/namespaces/{serving.namespace}/pods/{name}"
    changed = serving.api.get(where)["spec"]["containers"]
    changed[0]["image"] = IMAGE
    serving.api.merge(where, {"spec": {"containers": changed}})

    condition = serving.until("runs", "NotAsRendered", "ImagesPinned")

    assert f"pod '{name}'" in condition["message"]
    assert IMAGE in condition["message"]
    serving.api.delete(where)
    serving.until("runs", "Serving")


def test_a_pod_that_passes_for_the_model_s_is_named(serving: Deployments, models: tuple[Deployments, Api]) -> None:
    """With the labels of a model, made by a tenant where no policy keeps them from it."""
    _, tenant = models
    pods = f"/api/v1/namespaces/{serving.namespace}/pods"
    labels = {"app.kubernetes.io/managed-by": "hermetic", "hermetic.dev/modeldeployment": "runs"}
    theirs = {"metadata": {"name": "theirs", "labels": labels}, "spec": {"containers": [{"name": "x", "image": IMAGE}]}}
    tenant.create(pods, theirs)

    condition = serving.until("runs", "NotAsRendered", "ImagesPinned")

    assert "pod 'theirs' holds container 'x'" in condition["message"]
    tenant.delete(f"{pods}/theirs")
    serving.until("runs", "Serving")


MODEL_LABEL, MANAGED_BY = "hermetic.dev/modeldeployment", "app.kubernetes.io/managed-by"
UNSEEN: dict[str, tuple[Edit, str]] = {
    "label of the model": (lambda pod: pod["metadata"]["labels"].pop(MODEL_LABEL), f"label {MODEL_LABEL}=runs"),
    "label of the watch": (lambda pod: pod["metadata"]["labels"].pop(MANAGED_BY), f"label {MANAGED_BY}=hermetic"),
    "every label and the owner": (
        lambda pod: pod["metadata"].update(labels={}, ownerReferences=[]),
        f"label {MODEL_LABEL}=runs",
    ),
    "label of another model": (
        lambda pod: pod["metadata"]["labels"].update({MODEL_LABEL: "m0"}),
        f"label {MODEL_LABEL}=runs, written by '",
    ),
    "label of its set": (
        lambda pod: pod["metadata"]["labels"].pop("pod-template-hash"),
        "is not controlled by a ReplicaSet of Deployment 'runs'",
    ),
    "labels of another tool, in one edit with the name of an owner": (
        lambda pod: pod["metadata"].update(
            labels={MANAGED_BY: "helm"},
            generateName="x-",
            ownerReferences=[{**pod["metadata"]["ownerReferences"][0], "controller": False}],
        ),
        f"label {MODEL_LABEL}=runs",
    ),
}


@pytest.mark.parametrize("edit_name", UNSEEN)
def test_a_pod_that_a_tenant_takes_out_of_sight_is_named(
    serving: Deployments, models: tuple[Deployments, Api], edit_name: str
) -> None:
    """The ReplicaSet lets go of most of them and replaces them; they run on without NetworkPolicy or Service."""
    _, tenant = models
    edit, message = UNSEEN[edit_name]
    name = the_pod(serving)
    where = f"/api/v1/namespaces/{serving.namespace}/pods/{name}"
    edited(tenant, where, edit)

    condition = serving.until("runs", "NotAsRendered")

    assert f"pod '{name}' " in condition["message"]
    assert message in condition["message"]
    tenant.delete(where)
    serving.until("runs", "Serving")


def test_a_copy_of_a_pod_for_debugging_is_named(serving: Deployments, models: tuple[Deployments, Api]) -> None:
    """As 'kubectl debug --copy-to' makes it: without labels and owner, with another command."""
    _, tenant = models
    pods = f"/api/v1/namespaces/{serving.namespace}/pods"
    spec = tenant.get(f"{pods}/{the_pod(serving)}")["spec"]
    del spec["nodeName"]
    spec["containers"][0]["command"] = ["sleep", "inf"]
    tenant.create(pods, {"metadata": {"name": "copied"}, "spec": spec})

    assert "pod 'copied' does not have the label" in serving.until("runs", "NotAsRendered")["message"]

    tenant.delete(f"{pods}/copied")
    serving.until("runs", "Serving")


def test_what_cannot_be_taken_out_of_volume_and_claim_is_named(models: tuple[Deployments, Api]) -> None:
    """By a tenant the class of the claim's attributes; by an administrator fields of the volume."""
    deployments, tenant = models
    deployments.apply(reporting(changed(a_share_model("kept"), replicas=0, endpoint={})))
    deployments.until("kept", "ScaledToZero")
    claims = f"/api/v1/namespaces/{deployments.namespace}/persistentvolumeclaims"
    claim = next(
        claim_of for claim_of in tenant.get(claims)["items"] if claim_of["metadata"]["name"].startswith("kept-")
    )
    where = f"{claims}/{claim['metadata']['name']}"
    deployments.wait("the claim is bound", lambda: tenant.get(where)["status"]["phase"] == "Bound")
    volume = f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}"
    terms = [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]
    before = deployments.workload("kept")
    for account, path, name, value in (
        (tenant, where, "volumeAttributesClassName", "fast"),
        (deployments.api, volume, "volumeAttributesClassName", "fast"),
        (deployments.api, volume, "nodeAffinity", {"required": {"nodeSelectorTerms": terms}}),
    ):
        edited(account, path, in_spec(**{name: value}))
        drift_message = f"'{path.rpartition('/')[2]}' has spec.{name}, which Hermetic did not render, written by '"
        deployments.wait("it is named", lambda drift=drift_message: drift in deployments.condition("kept")["message"])
        assert deployments.condition("kept")["reason"] == "NotAsRendered"
    deployments.change("kept", drainSeconds=41)
    deployments.wait("a change goes on", lambda: pod(deployments.workload("kept") or {}) != pod(before or {}))
