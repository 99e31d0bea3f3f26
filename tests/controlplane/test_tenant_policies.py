"""The opt-in policies for tenants: who has the ClusterRole `edit` there writes nothing that fails the audit of all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import wait_for
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import module_namespace
from tests.controlplane.test_tenant_rights import a_tenant
from tests.scenarios import Manifest

POLICIES = Path(__file__).parents[2] / "manifests" / "tenants"
CORE, APPS, BATCH = "/api/v1", "/apis/apps/v1", "/apis/batch/v1"
NETWORKING, DISCOVERY, DEVICES = "/apis/networking.k8s.io/v1", "/apis/discovery.k8s.io/v1", "/apis/resource.k8s.io/v1"
ANNOTATION = "service.beta.kubernetes.io/azure-load-balancer-internal"


@dataclass(frozen=True)
class Tenants:
    """A namespace with the label and one without it, and who may edit both."""

    api: Api
    accounts: dict[str, Api]

    def write(self, namespace: str, group: str, plural: str, manifest: Manifest) -> None:
        path = f"{group}/namespaces/{namespace}/{plural}"
        # of one name, a pod that is still being deleted would take the next one with it
        named = {**manifest["metadata"], "name": f"x-{secrets.token_hex(3)}"}
        created = self.accounts[namespace].create(path, {**manifest, "metadata": named})
        self.api.delete(f"{path}/{created['metadata']['name']}")


@pytest.fixture(scope="module")
def tenants(api: Api, cluster: Path, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    kubectl("apply", "-k", str(POLICIES))
    with (
        module_namespace(api, "labelled", **{"hermetic.dev/tenant": "true"}) as labelled,
        module_namespace(api, "plain") as plain,
    ):
        folder = tmp_path_factory.mktemp("tenants")
        tenants = Tenants(api, {name: a_tenant(api, cluster, name, folder / name) for name in (labelled, plain)})
        for name in (labelled, plain):
            wait_for("the rights of a tenant", lambda name=name: _admits(tenants, name, CORE, "services", a_service()))
        for group, plural, manifest in (
            (CORE, "services", a_service(type="NodePort")),
            (CORE, "pods", a_pod(hostNetwork=True)),
            (NETWORKING, "networkpolicies", a_policy({})),
            (NETWORKING, "ingresses", an_ingress("azure-alb-external")),
            (CORE, "configmaps", {"metadata": {}, "data": {"HTTP_PROXY": "x"}}),
        ):
            wait_for("the policies", lambda g=group, p=plural, m=manifest: not _admits(tenants, labelled, g, p, m))
        yield tenants
    kubectl("delete", "-k", str(POLICIES))


def _admits(tenants: Tenants, namespace: str, group: str, plural: str, manifest: Manifest) -> bool:
    try:
        tenants.write(namespace, group, plural, manifest)
    except ApiError:
        return False
    return True


def a_service(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return {"metadata": {"annotations": annotations or {}}, "spec": {"ports": [{"port": 80}], **spec}}


def a_pod(annotations: dict[str, str] | None = None, container: Manifest | None = None, **spec: Any) -> Manifest:
    engine = {"name": "a", "image": "contoso.azurecr.io/a:1", **(container or {})}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [engine], **spec}}


def labelled_pod(name: str) -> Manifest:
    return {**a_pod(), "metadata": {"labels": {name: "x"}}}


def environment(name: str, value: str) -> Manifest:
    return {"env": [{"name": name, "value": value}]}


def secured(**context: Any) -> Manifest:
    return a_pod(container={"securityContext": context})


def an_ingress(name: str, annotations: dict[str, str] | None = None) -> Manifest:
    backend = {"service": {"name": "x", "port": {"number": 80}}}
    spec = {"defaultBackend": backend} | ({"ingressClassName": name} if name else {})
    return {"metadata": {"annotations": annotations or {}}, "spec": spec}


def a_policy(*rules: Manifest) -> Manifest:
    return {"metadata": {}, "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": list(rules)}}


def to(cidr: str) -> Manifest:
    return {"to": [{"ipBlock": {"cidr": cidr}}]}


PROXY = {"env": [{"name": "https_proxy", "value": "http://proxy.contoso.internal:3128"}]}
FROM_FIELD = {"env": [{"name": "HTTP_PROXY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
GATEWAY = {"kubernetes.azure.com/static-gateway-configuration": "out"}
CLASS = "kubernetes.io/ingress.class"
NGINX = "nginx.ingress.kubernetes.io"
PRIVATE = {"appgw.ingress.kubernetes.io/use-private-ip": "true"}
REFUSED_INGRESSES = {
    "of the Application Gateway": an_ingress("azure-application-gateway"),
    "of the gateway for containers": an_ingress("azure-alb-external"),
    "of the gateway for containers, which does not read the annotation": an_ingress("azure-alb-external", PRIVATE),
    "of a class by annotation": an_ingress("", {CLASS: "azure/application-gateway"}),
    "with a snippet": an_ingress("internal", {f"{NGINX}/configuration-snippet": "proxy_pass http://a.example.com;"}),
    "with a snippet of the server": an_ingress("internal", {f"{NGINX}/server-snippet": "return 200;"}),
    "that asks outside who may pass": an_ingress("internal", {f"{NGINX}/auth-url": "https://a.example.com/auth"}),
    "that copies requests outside": an_ingress("internal", {f"{NGINX}/mirror-target": "https://a.example.com/"}),
    "said to be private": an_ingress(
        "azure-application-gateway", {"appgw.ingress.kubernetes.io/use-private-ip": "True"}
    ),
}
REFUSED_SERVICES = {
    "public": a_service(type="LoadBalancer"),
    "said to be internal": a_service({ANNOTATION: "True"}, type="LoadBalancer"),
    "of another controller": a_service({ANNOTATION: "true"}, type="LoadBalancer", loadBalancerClass="example.com/x"),
    "node port": a_service(type="NodePort"),
    "outer name": {"metadata": {"annotations": {}}, "spec": {"type": "ExternalName", "externalName": "example.com"}},
    "external address": a_service(externalIPs=["203.0.113.9"]),
    "with a public range that it lets in": a_service(
        {ANNOTATION: "true", "service.beta.kubernetes.io/azure-allowed-ip-ranges": "203.0.113.0/24"},
        type="LoadBalancer",
    ),
    "public address by name": a_service(
        {ANNOTATION: "true", "service.beta.kubernetes.io/azure-pip-name": "x"}, type="LoadBalancer"
    ),
}
REFUSED_PODS = {
    "of the machine's network": a_pod(hostNetwork=True),
    "with a port of the machine": a_pod(container={"ports": [{"containerPort": 80, "hostPort": 8080}]}),
    "behind a proxy": a_pod(container=PROXY),
    "behind a proxy named elsewhere": a_pod(container=FROM_FIELD),
    "that starts behind a proxy": a_pod(initContainers=[{"name": "b", "image": "contoso.azurecr.io/a:1", **PROXY}]),
    "behind a proxy of another name": a_pod(container=environment("GLOBAL_AGENT_HTTP_PROXY", "http://p.example")),
    "behind a proxy without a scheme": a_pod(container=environment("npm_config_proxy", "p.example:3128")),
    "behind a gateway": a_pod(GATEWAY),
    "behind the service gateway": labelled_pod("kubernetes.azure.com/service-egress-gateway"),
    "behind a proxy made of a prefix": a_pod(
        container={"envFrom": [{"prefix": "HTTPS_Pro", "configMapRef": {"name": "x", "optional": True}}]}
    ),
    "privileged": secured(privileged=True),
    "with a right over the network": secured(capabilities={"add": ["NET_ADMIN"]}),
    "with a right by its old name": secured(capabilities={"add": ["CAP_SYS_ADMIN"]}),
    "that starts privileged": a_pod(
        initContainers=[{"name": "b", "image": "contoso.azurecr.io/a:1", "securityContext": {"privileged": True}}]
    ),
    "of the machine's processes": a_pod(hostPID=True),
    "of the machine's memory": a_pod(hostIPC=True),
    "with a mesh proxy of its own settings": a_pod(
        {"proxy.istio.io/config": "tracing: {zipkin: {address: 'a.example.com:9411'}}"}
    ),
    "with a share of CephFS outside": a_pod(
        volumes=[{"name": "x", "cephfs": {"monitors": ["10.0.0.1:6789", "203.0.113.9:6789"]}}]
    ),
    "with a disk of RBD outside": a_pod(
        volumes=[{"name": "x", "rbd": {"monitors": ["ceph.example.com:6789"], "image": "x"}}]
    ),
    "probed at a host": a_pod(container={"readinessProbe": {"httpGet": {"port": 80, "host": "a.example.com"}}}),
    "probed at a socket of a host": a_pod(
        container={"startupProbe": {"tcpSocket": {"port": 80, "host": "203.0.113.9"}}}
    ),
    "with a hook that calls a host": a_pod(
        container={"lifecycle": {"preStop": {"httpGet": {"port": 80, "host": "a.example.com"}}}}
    ),
    "with a sidecar probed at a host": a_pod(
        initContainers=[
            {
                "name": "b",
                "image": "contoso.azurecr.io/a:1",
                "restartPolicy": "Always",
                "livenessProbe": {"httpGet": {"port": 80, "host": "a.example.com"}},
            }
        ]
    ),
    "with a folder of the machine": a_pod(volumes=[{"name": "x", "hostPath": {"path": "/var/lib"}}]),
}
REFUSED_POLICIES = {
    "to everywhere": a_policy({}),
    "to everywhere by a port": a_policy({"ports": [{"port": 443}]}),
    "to all addresses": a_policy(to("0.0.0.0/0")),
    "to a public address": a_policy(to("10.0.0.0/8"), to("203.0.113.9/32")),
    "to more than the private ranges": a_policy(to("172.0.0.0/11")),
    "to all addresses of IPv6": a_policy(to("::/0")),
}


def an_endpoint(address: str) -> Manifest:
    return {"metadata": {}, "subsets": [{"addresses": [{"ip": address}], "ports": [{"port": 80}]}]}


def a_request(name: str) -> Manifest:
    return {"name": "r", "exactly": {"deviceClassName": name}}


def a_slice(address: str, kind: str = "IPv4") -> Manifest:
    return {"metadata": {}, "addressType": kind, "endpoints": [{"addresses": [address]}], "ports": [{"port": 80}]}


def device_claims(request: Manifest) -> Iterator[tuple[str, Manifest]]:
    spec = {"devices": {"requests": [request]}}
    yield "resourceclaims", {"metadata": {}, "spec": spec}
    yield "resourceclaimtemplates", {"metadata": {}, "spec": {"spec": spec}}


def template_of(pod: Manifest) -> Manifest:
    return {
        "metadata": {**pod["metadata"], "labels": {**pod["metadata"].get("labels", {}), "app": "x"}},
        "spec": pod["spec"],
    }


def workloads(pod: Manifest) -> Iterator[tuple[str, str, Manifest]]:
    """Everything that makes such a pod."""
    selector = {"matchLabels": {"app": "x"}}
    once = {**template_of(pod), "spec": {**pod["spec"], "restartPolicy": "Never"}}
    yield CORE, "pods", pod
    for plural in ("deployments", "replicasets", "daemonsets"):
        yield APPS, plural, {"metadata": {}, "spec": {"selector": selector, "template": template_of(pod)}}
    stateful = {"selector": selector, "serviceName": "x", "template": template_of(pod)}
    yield APPS, "statefulsets", {"metadata": {}, "spec": stateful}
    yield CORE, "replicationcontrollers", {"metadata": {}, "spec": {"replicas": 0, "template": template_of(pod)}}
    yield BATCH, "jobs", {"metadata": {}, "spec": {"template": once, "suspend": True}}
    yield (
        BATCH,
        "cronjobs",
        {"metadata": {}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": once}}}},
    )


def attempts() -> Iterator[tuple[str, str, str, Manifest]]:
    for name, service in REFUSED_SERVICES.items():
        yield f"Service: {name}", CORE, "services", service
    for name, pod in REFUSED_PODS.items():
        for group, plural, manifest in workloads(pod):
            yield f"{plural}: {name}", group, plural, manifest
    for name, policy in REFUSED_POLICIES.items():
        yield f"NetworkPolicy: {name}", NETWORKING, "networkpolicies", policy
    for name, ingress in REFUSED_INGRESSES.items():
        yield f"Ingress: {name}", NETWORKING, "ingresses", ingress
    for key in ("HTTP_PROXY", "https_proxy", "All_Proxy", "PROXY", "npm_config_proxy"):
        yield f"ConfigMap: {key}", CORE, "configmaps", {"metadata": {}, "data": {key: "http://proxy.example"}}


ATTEMPTS = {name: attempt for name, *attempt in attempts()}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_closes_the_gate_of_all_is_refused_where_the_label_is_and_nowhere_else(tenants, attempt):
    group, plural, manifest = ATTEMPTS[attempt]
    labelled, plain = tenants.accounts
    with pytest.raises(ApiError) as refused:
        tenants.write(labelled, group, plural, manifest)
    assert refused.value.status == 422
    assert "hermetic-tenant-" in str(refused.value)
    tenants.write(plain, group, plural, manifest)


def with_further_rights() -> Iterator[tuple[str, str, str, Manifest]]:
    """What `edit` may not cover, and another role of a tenant can."""
    yield "public endpoint", CORE, "endpoints", an_endpoint("203.0.113.9")
    yield "public slice", DISCOVERY, "endpointslices", a_slice("203.0.113.9")
    yield "slice of names", DISCOVERY, "endpointslices", a_slice("a.example.com", "FQDN")
    first = {"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "dranet"}]}
    for request in (a_request("dranet"), a_request("sriovnetwork.k8snetworkplumbingwg.io"), first):
        for plural, manifest in device_claims(request):
            yield f"{plural}: {request}", DEVICES, plural, manifest


FURTHER = {name: attempt for name, *attempt in with_further_rights()}


def written_by_anybody(tenants: Tenants, namespace: str, group: str, plural: str, manifest: Manifest) -> None:
    """Write it with every right: only a policy can refuse it."""
    path, name = f"{group}/namespaces/{namespace}/{plural}", f"x-{secrets.token_hex(3)}"
    tenants.api.create(path, {**manifest, "metadata": {"name": name}})
    tenants.api.delete(f"{path}/{name}")


@pytest.mark.parametrize("attempt", FURTHER)
def test_what_needs_more_than_edit_is_refused_by_a_policy_too(tenants, attempt):
    group, plural, manifest = FURTHER[attempt]
    labelled, plain = tenants.accounts
    with pytest.raises(ApiError, match="hermetic-tenant-") as refused:
        written_by_anybody(tenants, labelled, group, plural, manifest)
    assert refused.value.status == 422
    written_by_anybody(tenants, plain, group, plural, manifest)


def test_endpoints_inside_and_claims_of_gpus_are_admitted(tenants):
    labelled, _ = tenants.accounts
    written_by_anybody(tenants, labelled, CORE, "endpoints", an_endpoint("10.0.0.9"))
    written_by_anybody(tenants, labelled, DISCOVERY, "endpointslices", a_slice("10.0.0.9"))
    for name in ("gpu.nvidia.com", "gpu.amd.com", "compute-domain-default-channel.nvidia.com"):
        for plural, manifest in device_claims(a_request(name)):
            written_by_anybody(tenants, labelled, DEVICES, plural, manifest)


def test_what_tenants_need_is_admitted(tenants):
    labelled, _ = tenants.accounts
    for service in (a_service(), a_service(clusterIP="None"), a_service({ANNOTATION: "true"}, type="LoadBalancer")):
        tenants.write(labelled, CORE, "services", service)
    port = {"ports": [{"containerPort": 80}], "env": [{"name": "NO_PROXY", "value": "*"}, {"name": "HTTP_PROXY"}]}
    for group, plural, manifest in workloads(a_pod(container=port)):
        tenants.write(labelled, group, plural, manifest)
    inside = {"to": [{"namespaceSelector": {}}], "ports": [{"port": 53}]}
    for policy in (a_policy(), a_policy(to("10.0.0.0/8"), to("fd00::/8")), a_policy(inside)):
        policy["spec"]["podSelector"] = {"matchLabels": {"app": "x"}}  # one of every pod could not be deleted again
        tenants.write(labelled, NETWORKING, "networkpolicies", policy)
    for ingress in (an_ingress("internal"), an_ingress("azure-application-gateway", PRIVATE)):
        tenants.write(labelled, NETWORKING, "ingresses", ingress)
    tenants.write(labelled, CORE, "configmaps", {"metadata": {}, "data": {"NO_PROXY": "*", "HTTP_PROXY": ""}})
    tenants.write(labelled, CORE, "configmaps", {"metadata": {}, "data": {"USE_PROXY": "true", "proxy.conf": "a:1"}})
    tenants.write(labelled, CORE, "pods", a_pod(container=environment("USE_PROXY", "true")))
    probes = {"livenessProbe": {"httpGet": {"port": 80}}, "readinessProbe": {"grpc": {"port": 80}}}
    tenants.write(labelled, CORE, "pods", a_pod(container=probes))
    prefixed = {"envFrom": [{"prefix": "APP_", "configMapRef": {"name": "x", "optional": True}}]}
    tenants.write(labelled, CORE, "pods", a_pod(container=prefixed))
    tenants.write(labelled, CORE, "pods", secured(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}))


EPHEMERAL: dict[str, Manifest] = {
    "privileged": {"securityContext": {"privileged": True}},
    "with a right over the network": {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}},
    "behind a proxy": PROXY,
}
DEBUGGER = {"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["patch", "update"]}
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces"


def test_a_container_that_a_tenant_adds_to_a_pod_that_runs_is_held_by_the_same_rule(tenants):
    """With `edit` and a role for `kubectl debug`, which `edit` does not hold."""
    for namespace in tenants.accounts:
        tenants.api.create(f"{ROLES}/{namespace}/roles", {"metadata": {"name": "debugger"}, "rules": [DEBUGGER]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "debugger"}
        subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}
        binding = {"metadata": {"name": "debugger"}, "roleRef": role, "subjects": [subject]}
        tenants.api.create(f"{ROLES}/{namespace}/rolebindings", binding)
        for number, edit_name in enumerate(EPHEMERAL):
            created = {**a_pod(), "metadata": {"name": f"debugged-{number}"}}
            tenants.accounts[namespace].create(f"{CORE}/namespaces/{namespace}/pods", created)
            wait_for("the right to debug", lambda n=namespace, p=number: _debugs(tenants, n, p, {}) != 403)
            labelled = namespace == next(iter(tenants.accounts))
            assert _debugs(tenants, namespace, number, EPHEMERAL[edit_name]) == (422 if labelled else 200), edit_name
            tenants.accounts[namespace].delete(f"{CORE}/namespaces/{namespace}/pods/debugged-{number}")


def _debugs(tenants: Tenants, namespace: str, number: int, fields: Manifest) -> int:
    """Adds a container with these fields, as `kubectl debug` does; the status of the answer."""
    path = f"{CORE}/namespaces/{namespace}/pods/debugged-{number}"
    present = tenants.api.get(path)["spec"].get("ephemeralContainers") or []
    more = {"name": f"debug-{len(present)}", "image": "contoso.azurecr.io/a:1", **fields}
    try:
        change = {"spec": {"ephemeralContainers": [*present, more]}}
        tenants.accounts[namespace].merge(f"{path}/ephemeralcontainers", change)
    except ApiError as error:
        return error.status
    return 200


OPENED: dict[str, Manifest] = {
    "of fewer pods": {"spec": {"podSelector": {"matchLabels": {"app": "x"}}}},
    "of other pods": {"spec": {"podSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}},
    "of what comes in": {"spec": {"policyTypes": ["Ingress"]}},
}


def test_what_closes_a_namespace_stays(tenants):
    labelled, plain = tenants.accounts
    for namespace in (labelled, plain):
        path = f"{NETWORKING}/namespaces/{namespace}/networkpolicies"
        tenants.api.create(path, {**a_policy(), "metadata": {"name": "deny"}})
    closed = f"{NETWORKING}/namespaces/{labelled}/networkpolicies/deny"
    tenant = tenants.accounts[labelled]
    for change in OPENED.values():
        with pytest.raises(ApiError, match="hermetic-tenant-default-deny"):
            tenant.merge(closed, change)
    with pytest.raises(ApiError, match="hermetic-tenant-default-deny"):
        tenant.delete(closed)
    tenant.merge(closed, {"spec": {"egress": [to("10.0.0.0/8")]}})
    tenants.accounts[plain].delete(f"{NETWORKING}/namespaces/{plain}/networkpolicies/deny")
    tenants.api.merge(f"{CORE}/namespaces/{labelled}", {"metadata": {"labels": {"hermetic.dev/tenant": None}}})
    wait_for("the label gone", lambda: _deletes(tenant, closed))
    tenants.api.merge(f"{CORE}/namespaces/{labelled}", {"metadata": {"labels": {"hermetic.dev/tenant": "true"}}})


def _deletes(tenant: Api, path: str) -> bool:
    try:
        tenant.delete(path)
    except ApiError:
        return False
    return True
