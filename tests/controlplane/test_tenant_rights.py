"""What a tenant with the ClusterRole `edit` can do to a model that is there: scale, annotate, delete, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.public_services import PUBLIC_SIDE
from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import OperatorProcess, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments, module_namespace
from tests.scenarios import DIGEST, Manifest, a_baked_model, reporting

APPS = "/apis/apps/v1/namespaces/{}"
CORE = "/api/v1/namespaces/{}"
MANAGED_BY = "app.kubernetes.io/managed-by"
MODEL = "hermetic.dev/modeldeployment"
IMAGE = f"evil.example/x@sha256:{DIGEST}"
INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"
RESTARTED = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True)
class Tenancy:
    """A model that serves, and one who may edit its namespace."""

    deployments: Deployments
    tenant: Api

    def path(self, root: str, plural: str, name: str = "phi") -> str:
        return f"{root.format(self.deployments.namespace)}/{plural}/{name}".rstrip("/")

    def first(self, root: str, plural: str) -> str:
        """The path of the first object of the model of a kind whose names are made up."""
        pods = self.deployments.api.get(self.path(root, plural, ""), labelSelector=f"{MODEL}=phi")["items"]
        return self.path(root, plural, pods[0]["metadata"]["name"])

    def refused(self, change: Callable[[], object]) -> str:
        """Why the API server does not let this through; admitted is a failure."""
        with pytest.raises(ApiError) as refused:
            change()
        assert refused.value.status == 422, refused.value
        return str(refused.value)


@pytest.fixture(scope="module")
def tenancy(
    hermetic: OperatorProcess,
    api: Api,
    cluster: Path,
    kubectl: Kubectl,
    gpu_nodes: None,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tenancy]:
    """One model of two replicas that serves inside the cluster, and its tenant."""
    with module_namespace(api, "tenant") as namespace:
        kubeconfig = tmp_path_factory.mktemp("tenant") / "kubeconfig"
        deployments = serving(Deployments(api, kubectl, namespace, hermetic), cluster, kubeconfig, replicas=2)
        wait_for("the rights of a tenant", lambda: _may_edit(deployments))
        yield deployments


def serving(deployments: Deployments, cluster: Path, kubeconfig: Path, *, replicas: int = 1) -> Tenancy:
    """A model that serves inside the cluster, and a tenant of its namespace."""
    deployments.apply(reporting(a_baked_model("phi", replicas=replicas, endpoint={})))
    deployments.until("phi", "Serving")
    return Tenancy(deployments, a_tenant(deployments.api, cluster, deployments.namespace, kubeconfig))


def a_tenant(api: Api, cluster: Path, namespace: str, kubeconfig: Path) -> Api:
    """The API server as an account with the ClusterRole `edit` in one namespace meets it."""
    accounts = f"{CORE.format(namespace)}/serviceaccounts"
    api.create(accounts, {"metadata": {"name": "tenant"}})
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    api.create(bindings, {"metadata": {"name": "tenant"}, "roleRef": role, "subjects": [subject]})
    return Api(operator_kubeconfig(api, cluster, kubeconfig, tokens=f"{accounts}/tenant/token"))


def _may_edit(tenancy: Tenancy) -> bool:
    try:
        tenancy.tenant.merge(tenancy.path(CORE, "services"), {"metadata": {"annotations": {"note": "keep"}}})
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return True


# ---------------------------------------------------------------------- what stays possible


def test_others_may_annotate_scale_and_delete_and_the_controllers_go_on(tenancy: Tenancy) -> None:
    """Scaling is corrected by the operator; deleting is how pods are restarted."""
    deployments, tenant = tenancy.deployments, tenancy.tenant
    tenant.merge(tenancy.path(APPS, "deployments"), {"metadata": {"annotations": {"note": "keep"}}})
    tenant.merge(tenancy.path(APPS, "deployments") + "/scale", {"spec": {"replicas": 1}})
    tenant.delete(tenancy.first(CORE, "pods"))
    tenant.delete(tenancy.path(APPS, "deployments"))

    deployments.wait("another Deployment", lambda: deployments.workload("phi"))
    deployments.until("phi", "Serving")


def test_a_whole_life_goes_on_under_the_policies(tenancy: Tenancy) -> None:
    """Created, changed, scaled and deleted, by the operator and the controllers of the cluster."""
    deployments = tenancy.deployments
    deployments.apply(reporting(a_baked_model("brief", replicas=1, endpoint={})))
    deployments.until("brief", "Serving")
    deployments.change("brief", drainSeconds=44, replicas=2)
    deployments.until("brief", "Serving")
    deployments.change("brief", replicas=1)
    deployments.until("brief", "Serving")
    deployments.api.delete(f"{deployments.collection}/brief")

    deployments.wait("nothing left", lambda: not _objects(deployments, "brief"))


def _objects(deployments: Deployments, name: str) -> list[str]:
    kinds = [
        (CORE, "pods"),
        (CORE, "services"),
        (CORE, "serviceaccounts"),
        (APPS, "deployments"),
        (APPS, "replicasets"),
    ]
    lists = [
        deployments.api.get(f"{root.format(deployments.namespace)}/{plural}", labelSelector=f"{MODEL}={name}")
        for root, plural in kinds
    ]
    return [item["metadata"]["name"] for listing in lists for item in listing["items"]]


# ---------------------------------------------------------------------- pods


def in_template(**spec: Any) -> Manifest:
    return {"spec": {"template": {"spec": spec}}}


TEMPLATES: dict[str, Manifest] = {
    "a sidecar": in_template(containers=[{"name": "engine", "image": IMAGE}, {"name": "more", "image": IMAGE}]),
    "a resolver": in_template(dnsPolicy="None", dnsConfig={"nameservers": ["203.0.113.53"]}),
    "an init container": in_template(initContainers=[{"name": "more", "image": IMAGE}]),
    "an alias": in_template(hostAliases=[{"ip": "203.0.113.9", "hostnames": ["chat"]}]),
    "a toleration": in_template(tolerations=[{"operator": "Exists"}]),
    "an account": in_template(serviceAccountName="default"),
    "a token": in_template(automountServiceAccountToken=True),
    "a label": {"spec": {"template": {"metadata": {"labels": {"sidecar.istio.io/inject": "true"}}}}},
    "no label of ours": {"spec": {"template": {"metadata": {"labels": {MODEL: None}}}}},
    "an annotation": {"spec": {"template": {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "open"}}}}},
    "a rollout restart": {"spec": {"template": {"metadata": {"annotations": {RESTARTED: "now"}}}}},
}


@pytest.mark.parametrize("change", TEMPLATES)
@pytest.mark.parametrize("plural", ["deployments", "replicasets"])
def test_others_change_no_pod_template(tenancy: Tenancy, plural: str, change: str) -> None:
    path = tenancy.first(APPS, plural)
    message = tenancy.refused(lambda: tenancy.tenant.merge(path, TEMPLATES[change]))
    assert "spec.template" in message or "selector" in message
    if change != "no label of ours":
        assert "only the operator changes the pods of a model" in message
        assert "to restart pods delete them" in message


def test_others_put_no_image_and_no_container_into_a_pod_that_runs(tenancy: Tenancy, api: Api) -> None:
    path = tenancy.first(CORE, "pods")
    containers = api.get(path)["spec"]["containers"]
    containers[0]["image"] = IMAGE
    assert "spec.containers.image" in tenancy.refused(
        lambda: tenancy.tenant.merge(path, {"spec": {"containers": containers}})
    )


def test_not_even_an_administrator_of_the_namespaces_debugs_inside_a_model(
    tenancy: Tenancy, api: Api, cluster: Path, tmp_path: Path
) -> None:
    administrator = _administrator(tenancy, api, cluster, tmp_path)
    path = tenancy.first(CORE, "pods")
    more = {"spec": {"ephemeralContainers": [{"name": "debug", "image": IMAGE}]}}
    assert "spec.ephemeralContainers" in tenancy.refused(
        lambda: administrator.merge(f"{path}/ephemeralcontainers", more)
    )


def _administrator(tenancy: Tenancy, api: Api, cluster: Path, tmp_path: Path) -> Api:
    namespace = tenancy.deployments.namespace
    accounts = f"{CORE.format(namespace)}/serviceaccounts"
    api.create(accounts, {"metadata": {"name": "administrator"}})
    subject = {"kind": "ServiceAccount", "name": "administrator", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    api.create(bindings, {"metadata": {"name": "administrator"}, "roleRef": role, "subjects": [subject]})
    kubeconfig = operator_kubeconfig(api, cluster, tmp_path / "kubeconfig", tokens=f"{accounts}/administrator/token")
    tenant_api = Api(kubeconfig)

    def may() -> bool:
        try:
            tenant_api.get(tenancy.path(APPS, "deployments"))
        except ApiError as error:
            if error.status != 403:
                raise
            return False
        return True

    wait_for("the rights of an administrator", may)
    return tenant_api


# ---------------------------------------------------------------------- labels

CHILDREN = {
    "ServiceAccount": (CORE, "serviceaccounts"),
    "Service": (CORE, "services"),
    "Pod": (CORE, "pods"),
    "Deployment": (APPS, "deployments"),
    "ReplicaSet": (APPS, "replicasets"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1/namespaces/{}", "networkpolicies"),
    "PodDisruptionBudget": ("/apis/policy/v1/namespaces/{}", "poddisruptionbudgets"),
}


@pytest.mark.parametrize("label", [MANAGED_BY, MODEL])
@pytest.mark.parametrize("value", [None, "another"], ids=["gone", "another"])
@pytest.mark.parametrize("kind", CHILDREN)
def test_others_take_no_label_of_ours_off(tenancy: Tenancy, kind: str, value: str | None, label: str) -> None:
    """A pod without them would be outside its NetworkPolicy, and a Service without them outside its policies."""
    if kind in ("NetworkPolicy", "PodDisruptionBudget"):
        tenant, path = tenancy.tenant, tenancy.path(*CHILDREN[kind])
    else:
        tenant, path = tenancy.tenant, tenancy.first(*CHILDREN[kind])
    message = tenancy.refused(lambda: tenant.merge(path, {"metadata": {"labels": {label: value}}}))
    assert "metadata.labels" in message


def test_others_put_a_label_of_ours_on_nothing(tenancy: Tenancy) -> None:
    services = tenancy.path(CORE, "services", "")
    theirs = {"metadata": {"name": "theirs"}, "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}}
    tenancy.tenant.create(services, theirs)
    labels = {"metadata": {"labels": {MANAGED_BY: "hermetic"}}}
    assert "metadata.labels" in tenancy.refused(lambda: tenancy.tenant.merge(f"{services}/theirs", labels))
    tenancy.tenant.delete(f"{services}/theirs")


# ---------------------------------------------------------------------- pods that pass for a model's

POD: Manifest = {
    "metadata": {"labels": {MODEL: "phi", "app": "x"}},
    "spec": {"containers": [{"name": "x", "image": IMAGE}]},
}
SELECTED = {"selector": {"matchLabels": {"app": "x"}}, "template": POD}
ONCE = {"template": {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}}
IMPOSTORS: dict[str, tuple[str, str, Manifest]] = {
    "Pod": (CORE, "pods", POD),
    "Deployment": (APPS, "deployments", {"spec": SELECTED}),
    "ReplicaSet": (APPS, "replicasets", {"spec": SELECTED}),
    "StatefulSet": (APPS, "statefulsets", {"spec": {**SELECTED, "serviceName": "x"}}),
    "DaemonSet": (APPS, "daemonsets", {"spec": SELECTED}),
    "Job": ("/apis/batch/v1/namespaces/{}", "jobs", {"spec": ONCE}),
    "CronJob": (
        "/apis/batch/v1/namespaces/{}",
        "cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": ONCE}}},
    ),
    "ReplicationController": (CORE, "replicationcontrollers", {"spec": {"selector": {"app": "x"}, "template": POD}}),
}


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_others_make_no_pod_that_gets_the_requests_of_a_model(tenancy: Tenancy, kind: str) -> None:
    root, plural, manifest = IMPOSTORS[kind]
    named = {**manifest, "metadata": {**manifest.get("metadata", {}), "name": "impostor"}}
    message = tenancy.refused(lambda: tenancy.tenant.create(tenancy.path(root, plural, ""), named))
    assert "get the requests of a model" in message


def test_others_move_no_pod_of_their_own_behind_a_model(tenancy: Tenancy) -> None:
    pods = tenancy.path(CORE, "pods", "")
    own = {"metadata": {"name": "own", "labels": {"app": "x"}}, "spec": POD["spec"]}
    tenancy.tenant.create(pods, own)
    message = tenancy.refused(lambda: tenancy.tenant.merge(f"{pods}/own", {"metadata": {"labels": {MODEL: "phi"}}}))
    assert "get the requests of a model" in message
    tenancy.tenant.delete(f"{pods}/own")


# ---------------------------------------------------------------------- Services


def front(selector: dict[str, str], **spec: Any) -> Manifest:
    ports = [{"port": 443, "targetPort": 8000}]
    return {"metadata": {"name": "front"}, "spec": {"selector": selector, "ports": ports, **spec}}


@pytest.mark.parametrize(
    "selector",
    [{MODEL: "phi"}, {"hermetic.dev/pod-template": "0" * 16}, {MANAGED_BY: "hermetic"}],
    ids=["by model", "by template", "by tool"],
)
@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_others_open_no_public_side_with_a_service_of_their_own(
    tenancy: Tenancy, kind: str, selector: dict[str, str]
) -> None:
    services = tenancy.path(CORE, "services", "")
    message = tenancy.refused(lambda: tenancy.tenant.create(services, front(selector, type=kind)))
    assert "spec.type: the Service of a model must be" in message


def test_others_turn_no_private_service_to_the_pods_of_a_model(tenancy: Tenancy) -> None:
    """First a public Service of nothing, then the selector."""
    services = tenancy.path(CORE, "services", "")
    tenancy.tenant.create(services, front({"app": "x"}, type="NodePort"))
    message = tenancy.refused(lambda: tenancy.tenant.merge(f"{services}/front", {"spec": {"selector": {MODEL: "phi"}}}))
    assert "spec.type" in message
    tenancy.tenant.delete(f"{services}/front")


@pytest.mark.parametrize("name", [*PUBLIC_SIDE, "external-dns.alpha.kubernetes.io/hostname", "tailscale.com/expose"])
def test_others_put_no_annotation_on_that_opens_a_public_side(tenancy: Tenancy, name: str) -> None:
    patch = {"metadata": {"annotations": {name: "x"}}}
    message = tenancy.refused(lambda: tenancy.tenant.merge(tenancy.path(CORE, "services"), patch))
    assert "metadata.annotations" in message


def test_others_give_the_service_of_a_model_to_no_other_load_balancer(tenancy: Tenancy) -> None:
    patch = {
        "metadata": {"annotations": {INTERNAL: "true"}},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": "tailscale"},
    }
    message = tenancy.refused(lambda: tenancy.tenant.merge(tenancy.path(CORE, "services"), patch))
    assert "spec.loadBalancerClass" in message


# ---------------------------------------------------------------------- the operator's own account, on what is there

ANOTHER = {"apiVersion": "hermetic.dev/v1alpha1", "kind": "ModelDeployment", "name": "phi", "controller": True}
CHANGES: dict[str, tuple[Manifest, str]] = {
    "the machine's network": (in_template(hostNetwork=True), "hostNetwork"),
    "a token": (in_template(automountServiceAccountToken=True), "automountServiceAccountToken"),
    "a volume of the machine": (in_template(volumes=[{"name": "h", "hostPath": {"path": "/"}}]), "spec.template.spec"),
    "no owner": ({"metadata": {"ownerReferences": []}}, "metadata.ownerReferences"),
    "another of the name": (
        {"metadata": {"ownerReferences": [{**ANOTHER, "uid": "7d3f9c52-0f5e-4c0f-9d0a-6f1f3f8f2b11"}]}},
        "metadata.ownerReferences",
    ),
    "no label": ({"metadata": {"labels": {MANAGED_BY: None}}}, "metadata.labels"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_operator_s_account_changes_a_live_child_within_the_same_limits(
    tenancy: Tenancy, api: Api, cluster: Path, tmp_path: Path, change: str
) -> None:
    stolen = Api(operator_kubeconfig(api, cluster, tmp_path / "stolen"))
    patch, why = CHANGES[change]
    path = tenancy.path(APPS, "deployments")
    if change == "a volume of the machine":
        more = patch["spec"]["template"]["spec"]["volumes"]
        patch = in_template(volumes=[*api.get(path)["spec"]["template"]["spec"]["volumes"], *more])
    assert why in tenancy.refused(lambda: stolen.merge(path, patch))
