"""What a stolen token of the operator's account can do: each attack is refused, what is rendered is admitted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermetic.collect.probe.job import ProbedNode, ProbePods, probe_job
from hermetic.kinds import BY_KIND, THE_EGRESS_AUDIT
from hermetic.objects.accelerator_checks import AcceleratorChecks
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.names import Owner
from hermetic.objects.weights_verifier import Signers, Verifier
from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import operator_kubeconfig, wait_for
from tests.controlplane.deployments import module_namespace
from tests.renderings import RENDERINGS, with_tls_and_api_key
from tests.scenarios import DIGEST, Manifest, an_egress_audit, changed
from tests.snapshots import spec_of

AUDITS = "/apis/hermetic.dev/v1alpha1/egressaudits"
IMAGE = f"evil.example/x@sha256:{DIGEST}"
PROBES = ProbePods(namespace="hermetic-probe", image=IMAGE, audit=THE_EGRESS_AUDIT)
Spoil = Callable[[Manifest], object]


@pytest.fixture(scope="module")
def stolen(
    installed: None,  # noqa: ARG001
    api: Api,
    cluster: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    """The API server by the operator's token, once the policies are in force."""
    account = Api(operator_kubeconfig(api, cluster, tmp_path_factory.mktemp("stolen") / "kubeconfig"))
    for policy in ("hermetic-operator-owned", "hermetic-operator-jobs"):
        api.get(f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{policy}")
    job = {"metadata": {"name": "nothing"}, "spec": {"template": {"spec": {"restartPolicy": "Never"}}}}
    job["spec"]["template"]["spec"]["containers"] = [{"name": "x", "image": "x"}]  # type: ignore[index]
    wait_for("policies in force", lambda: refusal(account, job, "hermetic-probe", "Job"))
    api.create(AUDITS, an_egress_audit(probe={"image": IMAGE}))
    wait_for("the image of the probe known", lambda: not refusal(account, a_probe(), "hermetic-probe"))
    yield account
    api.delete(f"{AUDITS}/{THE_EGRESS_AUDIT}")


@pytest.fixture(scope="module")
def home(installed: None, api: Api) -> Iterator[str]:  # noqa: ARG001
    """One namespace for everything that is only tried: a dry run leaves nothing in it."""
    with module_namespace(api, "operator-account") as namespace:
        yield namespace


def refusal(account: Api, manifest: Manifest, namespace: str, kind: str = "") -> str:
    """Why the API server does not create this, or "" when it would."""
    try:
        account.create(BY_KIND[kind or manifest["kind"]].path(namespace) + "?dryRun=All", manifest)
    except ApiError as error:
        if error.status not in {403, 422}:
            raise
        return str(error)
    return ""


def rendered(namespace: str, manifest: Manifest, verifier: Verifier | None = None) -> dict[str, Manifest]:
    """The children of a deployment whose uid nobody has, by kind."""
    owner = Owner(namespace, manifest["metadata"]["name"], "7d3f9c52-0f5e-4c0f-9d0a-6f1f3f8f2b11")
    checks = AcceleratorChecks("Require")
    children = render(owner, spec_of(manifest), PlatformSettings(verifier, accelerator_checks=checks))
    return {child["kind"]: copy.deepcopy(child) for child in children}


# ---------------------------------------------------------------------- what the operator writes


@pytest.mark.parametrize("shape", RENDERINGS)
def test_every_child_that_is_rendered_is_admitted(stolen: Api, home: str, shape: str) -> None:
    for child in rendered(home, RENDERINGS[shape]).values():
        assert refusal(stolen, child, home) == "", child["kind"]


@pytest.mark.parametrize("shape", ["share", "nim-profile"])
def test_the_verification_of_weights_is_admitted(stolen: Api, home: str, shape: str) -> None:
    verifier = Verifier(IMAGE, "Warn", Signers(("-----BEGIN PUBLIC KEY-----",)))
    deployment = rendered(home, RENDERINGS[shape], verifier)["Deployment"]
    names = [container["name"] for container in pod(deployment)["initContainers"]]
    assert names[:2] == ["check-accelerators", "verify-weights"]
    assert refusal(stolen, deployment, home) == ""


def test_a_network_policy_without_the_ranges_of_pods_is_admitted(stolen: Api, home: str) -> None:
    """The API server itself refuses an exception that is not within its range."""
    manifest = RENDERINGS["share"]
    owner = Owner(home, manifest["metadata"]["name"], "7d3f9c52-0f5e-4c0f-9d0a-6f1f3f8f2b11")
    platform = PlatformSettings(pod_ranges=("10.244.0.0/16", "10.0.0.0/8", "192.168.7.0/24", "fd00:10::/64"))
    children = render(owner, spec_of(changed(manifest, endpoint={"internalLoadBalancer": {}})), platform)
    policy = next(child for child in children if child["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"][0]["from"][0]["ipBlock"]["cidr"] == "172.16.0.0/12"
    assert refusal(stolen, policy, home) == ""


@pytest.mark.parametrize("host_network", [False, True], ids=["pod", "host"])
def test_the_probe_is_admitted(stolen: Api, host_network: bool) -> None:
    assert refusal(stolen, a_probe(host_network=host_network), "hermetic-probe") == ""


def a_probe(*, host_network: bool = True) -> Manifest:
    return probe_job(PROBES, ProbedNode("gpu", "nodes", "node-1"), "round1", host_network=host_network)


# ---------------------------------------------------------------------- pods


def pod(deployment: Manifest) -> Manifest:
    pod_spec: Manifest = deployment["spec"]["template"]["spec"]
    return pod_spec


def engine(deployment: Manifest) -> Manifest:
    container: Manifest = pod(deployment)["containers"][0]
    return container


def volume(**source: object) -> Spoil:
    def add(deployment: Manifest) -> None:
        pod(deployment)["volumes"].append({"name": "more", **source})

    return add


def variable(**source: object) -> Spoil:
    return lambda manifest: engine(manifest)["env"].append({"name": "P", "valueFrom": source})


def in_pod(**fields: object) -> Spoil:
    return lambda manifest: pod(manifest).update(fields)


def in_engine(**fields: object) -> Spoil:
    return lambda manifest: engine(manifest).update(fields)


def secured(**fields: object) -> Spoil:
    return lambda manifest: engine(manifest)["securityContext"].update(fields)


def named(name: str) -> Spoil:
    return lambda manifest: manifest["metadata"].update(name=name)


def before_it(**fields: object) -> Spoil:
    """An init container that verifies weights, with these fields of its own."""
    verifying = {**A_CONTAINER, "name": "verify-weights", "args": ["verify", "/weights", "--timeout", "1200"]}
    return in_pod(initContainers=[{**verifying, **fields}])


def checking(**fields: object) -> Spoil:
    """The init container that checks the GPUs, with these fields of its own."""
    return lambda manifest: pod(manifest)["initContainers"][0].update(fields)


def in_check(place: int, word: str, field: str = "command") -> Spoil:
    """The same with another word in its command, or in its arguments."""
    return lambda manifest: pod(manifest)["initContainers"][0][field].__setitem__(place, word)


def labelled(**labels: str) -> Spoil:
    return lambda manifest: manifest["metadata"].update(labels=labels)


def other_owner(deployment: Manifest) -> None:
    deployment["metadata"]["ownerReferences"][0].update(kind="ConfigMap", apiVersion="v1")


def no_owner(deployment: Manifest) -> None:
    del deployment["metadata"]["ownerReferences"]


def identity(deployment: Manifest) -> None:
    deployment["spec"]["template"]["metadata"]["labels"]["azure.workload.identity/use"] = "true"


A_CONTAINER = {"name": "more", "image": IMAGE}
TOKEN = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
PODS: dict[str, tuple[Spoil, str]] = {
    "host network": (in_pod(hostNetwork=True), "spec.template.spec.hostNetwork"),
    "host pid": (in_pod(hostPID=True), "spec.template.spec.hostPID"),
    "host ipc": (in_pod(hostIPC=True), "spec.template.spec.hostIPC"),
    "one process namespace": (in_pod(shareProcessNamespace=True), "shareProcessNamespace"),
    "host aliases": (in_pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a"]}]), "hostAliases"),
    "a resolver": (in_pod(dnsPolicy="None", dnsConfig={"nameservers": ["203.0.113.53"]}), "dnsConfig"),
    "the machine's resolver": (in_pod(dnsPolicy="Default"), "dnsPolicy"),
    "a fixed node": (in_pod(nodeName="node-1"), "nodeName"),
    "a privileged account": (in_pod(serviceAccountName="clusterrole-aggregation-controller"), "serviceAccountName"),
    "a token": (in_pod(automountServiceAccountToken=True), "automountServiceAccountToken"),
    "a token by default": (
        lambda manifest: pod(manifest).pop("automountServiceAccountToken"), "automountServiceAccountToken",
    ),
    "root": (in_pod(securityContext={"runAsUser": 0}), "securityContext"),
    "sysctls": (
        lambda manifest: pod(manifest)["securityContext"].update(
            sysctls=[{"name": "net.core.somaxconn", "value": "1"}]
        ),
        "securityContext",
    ),
    "the group of root": (
        lambda manifest: pod(manifest)["securityContext"].update(supplementalGroups=[2000, 0]), "securityContext",
    ),
    "a group for the files of every volume": (
        lambda manifest: pod(manifest)["securityContext"].update(fsGroup=2000), "securityContext",
    ),
    "no seccomp": (
        lambda manifest: pod(manifest)["securityContext"].update(seccompProfile={"type": "Unconfined"}),
        "securityContext",
    ),
    "a second container": (lambda manifest: pod(manifest)["containers"].append(A_CONTAINER), "containers"),
    "another container": (in_engine(name="more"), "containers"),
    "an init container": (in_pod(initContainers=[A_CONTAINER]), "containers"),
    "a sidecar": (
        in_pod(initContainers=[{**A_CONTAINER, "name": "link-cache", "restartPolicy": "Always"}]), "containers",
    ),
    "another copy": (
        in_pod(initContainers=[{**A_CONTAINER, "name": "copy-cache", "command": ["cp", "-Rsf", "/a", "/b"]}]),
        "containers",
    ),
    "checks of GPUs by another program": (in_check(4, "import torch"), "containers"),
    "checks of GPUs by another shell": (in_check(2, "id"), "containers"),
    "checks of GPUs with a word more": (checking(command=["sh", "-c", "id", "check-accelerators"]), "containers"),
    "checks of GPUs with another option": (in_check(4, "--termination-log", "args"), "containers"),
    "checks of GPUs in another image": (checking(image=IMAGE), "containers"),
    "checks of GPUs with variables": (checking(env=[{"name": "LD_PRELOAD", "value": "/tmp/x"}]), "containers"),
    "checks of GPUs that read the weights": (
        checking(volumeMounts=[{"name": "weights", "mountPath": "/weights"}]), "containers",
    ),
    "a verification that runs another program": (before_it(command=["sh"]), "containers"),
    "a verification of another folder": (before_it(args=["verify", "/tmp", "--timeout", "1"]), "containers"),
    "another command of Hermetic": (before_it(args=["run", "/weights", "--config"]), "containers"),
    "a verification with variables": (before_it(env=[{"name": "PYTHONPATH", "value": "/weights"}]), "containers"),
    "a verification that writes": (
        before_it(volumeMounts=[{"name": "tmp", "mountPath": "/tmp"}]), "containers",
    ),
    "a shell": (in_engine(command=["sh", "-c", "echo $P > /dev/termination-log"]), "containers"),
    "another program before the engine": (
        lambda manifest: engine(manifest)["command"].__setitem__(5, "import os"), "containers",
    ),
    "an image by tag": (in_engine(image="evil.example/x:latest"), "containers.image"),
    "privileged": (secured(privileged=True, allowPrivilegeEscalation=True), "containers.securityContext"),
    "escalation": (secured(allowPrivilegeEscalation=True), "containers.securityContext"),
    "capabilities kept": (secured(capabilities={}), "containers.securityContext"),
    "a capability": (secured(capabilities={"drop": ["ALL"], "add": ["NET_ADMIN"]}), "containers.securityContext"),
    "a container as root": (secured(runAsUser=0), "containers.securityContext"),
    "the whole of proc": (secured(procMount="Default"), "containers.securityContext"),
    "no restrictions": (lambda manifest: engine(manifest).pop("securityContext"), "containers.securityContext"),
    "a Secret in a variable": (variable(secretKeyRef={"name": "db", "key": "p"}), "containers.env"),
    "a ConfigMap in a variable": (variable(configMapKeyRef={"name": "db", "key": "p"}), "containers.env"),
    "a Secret as variables": (in_engine(envFrom=[{"secretRef": {"name": "db"}}]), "envFrom"),
    "a port of the node": (in_engine(ports=[{"containerPort": 8000, "hostPort": 8000}]), "ports of the node"),
    "a hook": (in_engine(lifecycle={"postStart": {"exec": {"command": ["sh"]}}}), "hooks"),
    "another hook": (in_engine(lifecycle={"preStop": {"exec": {"command": ["sh"]}}}), "hooks"),
    "a probe that runs": (in_engine(livenessProbe={"exec": {"command": ["sh"]}}), "probes"),
    "a probe of another host": (
        in_engine(readinessProbe={"httpGet": {"host": "10.0.0.1", "port": 80}}), "probes",
    ),
    "a terminal": (in_engine(stdin=True), "stdin"),
    "the machine's disk": (volume(hostPath={"path": "/"}), "volumes"),
    "a projected token": (volume(projected=TOKEN), "volumes"),
    "a ConfigMap": (volume(configMap={"name": "db"}), "volumes"),
    "a Secret": (volume(secret={"secretName": "db"}), "volumes"),
    "an inline driver": (volume(csi={"driver": "secrets-store.csi.k8s.io"}), "volumes"),
    "an NFS server": (volume(nfs={"server": "10.0.0.1", "path": "/"}), "volumes"),
    "a claim to write": (volume(persistentVolumeClaim={"claimName": "db"}), "volumes"),
    "a new claim": (
        volume(ephemeral={"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}), "volumes",
    ),
    "an image by tag as a volume": (volume(image={"reference": "evil.example/x:latest"}), "digest"),
    "no label": (labelled(), "app.kubernetes.io/managed-by=hermetic"),
    "the label of another tool": (labelled(**{"app.kubernetes.io/managed-by": "Helm"}), "managed-by=hermetic"),
    "no owner": (no_owner, "ownerReferences"),
    "another owner": (other_owner, "ownerReferences"),
    "another name": (named("steal"), "ModelDeployment"),
    "a workload identity": (identity, "workload identity"),
}  # fmt: skip


@pytest.mark.parametrize("attack", PODS)
def test_the_operator_s_account_runs_no_other_pod(stolen: Api, home: str, attack: str) -> None:
    spoil, why = PODS[attack]
    deployment = rendered(home, with_tls_and_api_key())["Deployment"]
    spoil(deployment)
    assert why in (message := refusal(stolen, deployment, home))
    assert "account" in message or "ModelDeployment" in message, "what to do is missing"


def in_template(part: str, key: str) -> Spoil:
    """A label or annotation of the pods that Hermetic does not render."""
    return lambda manifest: manifest["spec"]["template"]["metadata"].setdefault(part, {}).update({key: "x"})


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize(
    "key",
    [
        "sidecar.istio.io/inject",
        "linkerd.io/inject",
        "admission.hooks.example.com/sidecar-inject",
        "k8s.v1.cni.cncf.io/networks",
        "app.kubernetes.io/part-of",
        "prometheus.io/scrape",
        "aadpodidbinding",
        "app",
        "Egress-Allowed",
    ],
)
def test_the_operator_s_account_gives_pods_no_label_that_changes_what_they_do(
    stolen: Api, home: str, part: str, key: str
) -> None:
    deployment = rendered(home, with_tls_and_api_key())["Deployment"]
    in_template(part, key)(deployment)
    assert "attaches networks, identities and sidecars" in refusal(stolen, deployment, home)


@pytest.mark.parametrize("key", ["cost-centre", "example.com/owner"])
def test_the_operator_s_account_gives_pods_labels_that_describe(stolen: Api, home: str, key: str) -> None:
    """Which of them the configuration names is known only with the ConfigMap 'hermetic-allowed'."""
    deployment = rendered(home, with_tls_and_api_key())["Deployment"]
    in_template("labels", key)(deployment)
    in_template("annotations", key)(deployment)
    assert refusal(stolen, deployment, home) == ""


@pytest.mark.parametrize("space", ["kube-system", "kube-public", "hermetic-system", "hermetic-probe"])
def test_the_operator_s_account_writes_no_model_into_a_namespace_of_the_system(stolen: Api, space: str) -> None:
    for child in rendered(space, with_tls_and_api_key()).values():
        assert "of the system" in refusal(stolen, child, space), child["kind"]


# ---------------------------------------------------------------------- the other children


def scaling(**target: str) -> Spoil:
    return lambda autoscaler: autoscaler["spec"]["scaleTargetRef"].update(target)


def in_spec(**fields: object) -> Spoil:
    return lambda manifest: manifest["spec"].update(fields)


EVERY = {"matchLabels": {}}
A_NAMESPACE = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "clients"}}}]
OTHERS: dict[str, tuple[str, Spoil, str]] = {
    "a Service of other pods": ("Service", in_spec(selector={"app": "db"}), "spec.selector"),
    "a Service of more than the model's pods": (
        "Service", in_spec(selector={"app.kubernetes.io/managed-by": "hermetic"}), "spec.selector",
    ),
    "a Service without a selector": ("Service", lambda manifest: manifest["spec"].pop("selector"), "spec.selector"),
    "an address of others": ("Service", in_spec(externalIPs=["10.96.0.10"]), "spec.externalIPs"),
    "a public Service": ("Service", lambda manifest: manifest["metadata"].pop("annotations"), "spec.type"),
    "a port of the nodes": ("Service", in_spec(type="NodePort", loadBalancerSourceRanges=[]), "spec.type"),
    "a Service of another name": ("Service", named("db"), "ModelDeployment"),
    "an alias of a host": (
        "Service", lambda manifest: manifest.update(spec={"type": "ExternalName", "externalName": "evil.example"}),
        "spec.",
    ),
    "another load balancer": ("Service", in_spec(loadBalancerClass="tailscale"), "spec.loadBalancerClass"),
    "an unlabelled Service": ("Service", labelled(), "managed-by=hermetic"),
    "a Service without an owner": ("Service", no_owner, "ownerReferences"),
    "a policy of every pod": ("NetworkPolicy", in_spec(podSelector={}), "spec.podSelector"),
    "a policy of other pods": ("NetworkPolicy", in_spec(podSelector={"matchLabels": {"app": "db"}}), "podSelector"),
    "egress to everywhere": ("NetworkPolicy", in_spec(egress=[{}]), "spec.egress"),
    "no rule for egress": ("NetworkPolicy", in_spec(policyTypes=["Ingress"]), "spec.egress"),
    "ingress from everywhere": ("NetworkPolicy", in_spec(ingress=[{}]), "spec.ingress"),
    "ingress from every address": (
        "NetworkPolicy",
        in_spec(ingress=[{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 8000}]}]),
        "ipBlock",
    ),
    "ingress from half of all addresses": (
        "NetworkPolicy",
        in_spec(ingress=[{"from": [{"ipBlock": {"cidr": "128.0.0.0/1"}}], "ports": [{"port": 8000}]}]),
        "ipBlock",
    ),
    "ingress to every port": ("NetworkPolicy", in_spec(ingress=[{"from": A_NAMESPACE}]), "spec.ingress"),
    "ingress to a range of ports": (
        "NetworkPolicy",
        in_spec(ingress=[{"from": A_NAMESPACE, "ports": [{"protocol": "TCP", "port": 1024, "endPort": 65535}]}]),
        "spec.ingress",
    ),
    "ingress to two ports": (
        "NetworkPolicy",
        in_spec(ingress=[{"from": A_NAMESPACE, "ports": [{"port": 8000}, {"port": 29500}]}]),
        "spec.ingress",
    ),
    "a second rule for ingress": (
        "NetworkPolicy",
        in_spec(ingress=[{"from": A_NAMESPACE, "ports": [{"port": port}]} for port in (8000, 29500)]),
        "spec.ingress",
    ),
    "a policy without an owner": ("NetworkPolicy", no_owner, "ownerReferences"),
    "a budget of other pods": ("PodDisruptionBudget", in_spec(selector=EVERY), "spec.selector"),
    "a budget without an owner": ("PodDisruptionBudget", no_owner, "ownerReferences"),
    "an autoscaler of another kind": (
        "HorizontalPodAutoscaler", scaling(kind="Deployment", apiVersion="apps/v1"), "spec.scaleTargetRef",
    ),
    "an autoscaler of another model": ("HorizontalPodAutoscaler", scaling(name="theirs"), "spec.scaleTargetRef"),
    "an autoscaler by a metric of others": (
        "HorizontalPodAutoscaler",
        in_spec(metrics=[{
            "type": "External",
            "external": {"metric": {"name": "theirs"}, "target": {"type": "Value", "value": "1"}},
        }]),
        "spec.metrics",
    ),
    "an autoscaler without an owner": ("HorizontalPodAutoscaler", no_owner, "ownerReferences"),
    "a claim of any volume": ("PersistentVolumeClaim", in_spec(volumeName="pvc-db"), "volumeName"),
    "a new disk": (
        "PersistentVolumeClaim",
        lambda manifest: [manifest["spec"].pop("volumeName"), manifest["spec"].pop("storageClassName")],
        "volumeName",
    ),
    "a claim to write": ("PersistentVolumeClaim", in_spec(accessModes=["ReadWriteMany"]), "to read"),
    "a copy of a claim": (
        "PersistentVolumeClaim",
        in_spec(dataSource={"kind": "PersistentVolumeClaim", "name": "db"}), "data source",
    ),
    "a claim without an owner": ("PersistentVolumeClaim", no_owner, "ownerReferences"),
    "an account with a token": (
        "ServiceAccount", lambda manifest: manifest.update(automountServiceAccountToken=True),
        "automountServiceAccountToken",
    ),
    "an account without an owner": ("ServiceAccount", no_owner, "ownerReferences"),
}  # fmt: skip


@pytest.mark.parametrize("attack", OTHERS)
def test_the_operator_s_account_writes_no_other_child(stolen: Api, home: str, attack: str) -> None:
    kind, spoil, why = OTHERS[attack]
    shape = "autoscaled" if kind == "HorizontalPodAutoscaler" else "everything-said"
    child = rendered(home, RENDERINGS[shape])[kind]
    spoil(child)
    assert why in refusal(stolen, child, home)


@pytest.fixture
def theirs(api: Api, namespace: str) -> Iterator[dict[str, Manifest]]:
    """Objects of others, with the names of the children of a model."""
    children = rendered(namespace, RENDERINGS["everything-said"])
    del children["PersistentVolume"]
    for child in children.values():
        del child["metadata"]["ownerReferences"]
        if child["kind"] == "Deployment":
            child["spec"]["replicas"] = 0
        api.create(BY_KIND[child["kind"]].path(namespace), child)
    yield children
    for kind, child in children.items():
        api.delete(f"{BY_KIND[kind].path(namespace)}/{child['metadata']['name']}")


def test_the_operator_s_account_takes_over_and_deletes_nothing_of_others(
    stolen: Api, namespace: str, theirs: dict[str, Manifest]
) -> None:
    """Not even an object that has every label of ours: its owner decides."""
    for kind, ours in rendered(namespace, RENDERINGS["everything-said"]).items():
        if kind not in theirs:
            continue
        path = f"{BY_KIND[kind].path(namespace)}/{ours['metadata']['name']}"
        with pytest.raises(ApiError, match="the same ModelDeployment controlled before"):
            stolen.apply(path, ours, "hermetic")
        if kind in ("Service", "PersistentVolumeClaim", "PodDisruptionBudget"):
            with pytest.raises(ApiError, match="the same ModelDeployment controlled before"):
                stolen.delete(path)


# ---------------------------------------------------------------------- Jobs


def probe_container(job: Manifest) -> Manifest:
    container: Manifest = pod(job)["containers"][0]
    return container


def on_the_host(job: Manifest) -> None:
    pod(job)["volumes"] = [{"name": "h", "hostPath": {"path": "/"}}]
    probe_container(job)["volumeMounts"] = [{"name": "h", "mountPath": "/host"}]


JOBS: dict[str, tuple[Spoil, str]] = {
    "root on the machine": (
        lambda manifest: [
            probe_container(manifest).update(securityContext={"privileged": True}), on_the_host(manifest),
        ],
        "volumes",
    ),
    "processes of the machine": (in_pod(hostPID=True), "hostPID"),
    "a volume": (on_the_host, "volumes"),
    "an account": (in_pod(serviceAccountName="default"), "serviceAccountName"),
    "a token": (in_pod(automountServiceAccountToken=True), "token"),
    "a fixed node": (in_pod(nodeName="node-1"), "nodeName"),
    "as root": (in_pod(securityContext={"runAsUser": 0}), "65534"),
    "an init container": (in_pod(initContainers=[A_CONTAINER]), "initContainers"),
    "a second container": (lambda manifest: pod(manifest)["containers"].append(A_CONTAINER), "containers"),
    "another program": (lambda manifest: probe_container(manifest).update(command=["sh", "-c", "id"]), "command"),
    "another loader": (lambda manifest: probe_container(manifest)["command"].insert(4, "import os"), "command"),
    # Two policies refuse it, and the API server tells of one.
    "an image by tag": (lambda manifest: probe_container(manifest).update(image="evil.example/x"), "image"),
    "a Secret in a variable": (
        lambda manifest: probe_container(manifest).update(
            env=[{"name": "HERMETIC_PROBE", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]
        ),
        "command",
    ),
    "a Secret as variables": (
        lambda manifest: probe_container(manifest).update(envFrom=[{"secretRef": {"name": "db"}}]), "containers",
    ),
    "privileged": (
        lambda manifest: probe_container(manifest)["securityContext"].update(privileged=True), "securityContext",
    ),
    "a capability": (
        lambda manifest: probe_container(manifest)["securityContext"].update(
            capabilities={"add": ["NET_RAW"], "drop": ["ALL"]}
        ),
        "securityContext",
    ),
    "no restrictions": (lambda manifest: probe_container(manifest).pop("securityContext"), "securityContext"),
    "for ever": (lambda manifest: manifest["spec"].pop("activeDeadlineSeconds"), "300 seconds"),
    "many": (in_spec(parallelism=50, completions=50), "one pod"),
    "without the label": (labelled(a="b"), "metadata.labels"),
}  # fmt: skip


@pytest.mark.parametrize("attack", JOBS)
def test_the_operator_s_account_runs_no_other_job(stolen: Api, attack: str) -> None:
    spoil, why = JOBS[attack]
    job = a_probe()
    spoil(job)
    assert why in refusal(stolen, job, "hermetic-probe")


# ---------------------------------------------------------------------- without a label


def test_plain_attacks_without_any_label_are_refused(stolen: Api, home: str) -> None:
    """A privileged Deployment in kube-system, one that prints a Secret, a public Service: plain, without a label."""
    root = {
        "hostNetwork": True, "hostPID": True, "serviceAccountName": "clusterrole-aggregation-controller",
        "containers": [{**A_CONTAINER, "securityContext": {"privileged": True}}],
    }  # fmt: skip
    secret = {"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}
    assert "hermetic" in refusal(stolen, a_plain_deployment("evil", root), "kube-system")
    steal = {"containers": [{**A_CONTAINER, "command": ["sh", "-c", "echo $P"], "env": [secret]}]}
    assert "hermetic" in refusal(stolen, a_plain_deployment("steal", steal), home)
    public = {"type": "LoadBalancer", "selector": {"app": "db"}, "ports": [{"port": 5432}]}
    service = {"kind": "Service", "metadata": {"name": "public"}, "spec": public}
    assert "hermetic" in refusal(stolen, service, home)


def a_plain_deployment(name: str, spec: Manifest) -> Manifest:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    return {
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
