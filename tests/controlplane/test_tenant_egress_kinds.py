"""Every egress path by kinds of other projects, tried as a tenant whose `edit` covers them: no field opens it.

Charts of operators add rights for their kinds to `edit` (label rbac.authorization.k8s.io/aggregate-to-edit), such as
those of Flux, the External Secrets Operator and the Secrets Store CSI driver. Here every kind of a namespace that the
audit reads is served, with any field, and added to `edit`: a policy of manifests/tenants has to refuse the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.all_kinds import KINDS
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import ApiError
from testbed.installation import wait_for
from testbed.kubectl import Kubectl
from testbed.kubernetes_plants import PLANTS
from testbed.kubernetes_plants.pieces import NAMESPACE
from testbed.policies_in_force import wait_for_policies
from testbed.programs import programs
from tests.controlplane.deployments import module_namespace
from tests.controlplane.test_tenant_egress_paths import (
    CLOSED,
    DECIDING,
    OF_THE_NAMESPACE,
    PAGES,
    POLICIES,
    TRIED,
    Tenancy,
    added_by,
)
from tests.controlplane.test_tenant_rights import a_tenant
from tests.scenarios import Manifest

# Written by controllers: no tenant has the right.
STATUS = "status"
OF_KUBERNETES = ("networking.k8s.io/", "discovery.k8s.io/", "resource.k8s.io/", "apps/", "batch/")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(kind: type[KubernetesObject], versions: list[str]) -> Manifest:
    """The definition of a kind that takes any field."""
    group, _, plural = kind.TYPE.split("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = [
        {
            "name": version,
            "served": True,
            "storage": version == versions[0],
            "schema": {"openAPIV3Schema": schema},
            "subresources": {STATUS: {}},
        }
        for version in versions
    ]
    names = {"plural": plural, "singular": kind.KIND.lower(), "kind": kind.KIND, "listKind": f"{kind.KIND}List"}
    annotations = {"api-approved.kubernetes.io": "unapproved, of a test"}
    metadata = {"name": f"{plural}.{group}", "annotations": annotations}
    return {"metadata": metadata, "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": served}}


def versions_of(kind: type[KubernetesObject]) -> list[str]:
    """The version that is read, and those that fixtures are written in."""
    read = [kind.TYPE.split("/")[1], *kind.ALSO_SERVED_AS]
    written = [
        manifest["apiVersion"].rpartition("/")[2]
        for plant in PLANTS.values()
        for manifest in added_by(plant)
        if (manifest["apiVersion"].partition("/")[0], manifest["kind"]) == (kind.TYPE.partition("/")[0], kind.KIND)
    ]
    return list(dict.fromkeys([*read, *written]))


def of_other_projects(api: Api) -> list[type[KubernetesObject]]:
    """The kinds of namespaces that the API server does not serve by itself."""
    served = {group["name"] for group in api.get("/apis")["groups"]}
    return [
        kind
        for kind in KINDS
        if kind.NAMESPACED and kind.TYPE.count("/") == 2 and kind.TYPE.split("/")[0] not in served
    ]


def is_of_a_tenant(manifest: Manifest) -> bool:
    """Whether it is an object of the tenant's namespace, and no status that a controller writes."""
    return manifest["metadata"].get("namespace") == NAMESPACE and STATUS not in manifest


def is_of_another_project(manifest: Manifest) -> bool:
    identity = manifest["apiVersion"].partition("/")[0], manifest["kind"]
    kinds = {(kind.TYPE.partition("/")[0], kind.KIND) for kind in KINDS if kind.NAMESPACED}
    return "." in identity[0] and identity in kinds and not manifest["apiVersion"].startswith(OF_KUBERNETES)


OPENED = sorted(
    name
    for name, plant in PLANTS.items()
    if plant.severity in DECIDING
    and plant.check != OF_THE_NAMESPACE
    and any(is_of_a_tenant(manifest) and is_of_another_project(manifest) for manifest in added_by(plant))
)


@pytest.fixture(scope="module")
def tenancy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenancy]:
    with ControlPlane(Settings()) as plane:
        api, kubectl = Api(plane.kubeconfig), Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        kinds = of_other_projects(api)
        for kind in kinds:
            api.create(DEFINITIONS, definition(kind, versions_of(kind)))
        add_to_edit(api, kinds)
        kubectl("apply", "-k", str(POLICIES))
        wait_for_policies(kubectl)
        with module_namespace(api, "kinds", **{"hermetic.dev/tenant": "true"}) as namespace:
            kubeconfig = tmp_path_factory.mktemp("kinds") / "kubeconfig"
            tenancy = Tenancy(api, a_tenant(api, plane.kubeconfig, namespace, kubeconfig), namespace)
            for name in ("second_interface", "traffic_copied_outside", "route_to_a_backend_of_a_project",
                         "scaler_that_asks_outside", "cilium_rule_for_the_world"):  # fmt: skip
                wait_for(f"the policy for {name}", lambda n=name: is_in_force(tenancy, n))
            yield tenancy


def add_to_edit(api: Api, kinds: list[type[KubernetesObject]]) -> None:
    rules = [
        {"apiGroups": [kind.TYPE.split("/")[0]], "resources": [kind.TYPE.split("/")[2]], "verbs": ["*"]}
        for kind in kinds
    ]
    metadata = {"name": "kinds-edit", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": metadata, "rules": rules})


def is_in_force(tenancy: Tenancy, name: str) -> bool:
    """Not where the kind is not served yet, or the right not given."""
    planted = [manifest for manifest in added_by(PLANTS[name]) if is_of_another_project(manifest)]
    try:
        refusals = [tenancy.refusal_of_object(manifest) for manifest in planted]
    except ApiError:
        return False
    return any(refusal is not None and refusal.policy for refusal in refusals)


@pytest.mark.parametrize("name", OPENED)
def test_a_tenant_opens_no_path_by_a_kind_that_edit_covers(tenancy: Tenancy, record_property: Any, name: str) -> None:
    plant = PLANTS[name]
    # What is of the whole cluster, an administrator may have made before.
    planted = [manifest for manifest in added_by(plant) if is_of_a_tenant(manifest)]
    refusals = [(manifest, refusal) for manifest in planted if (refusal := tenancy.refusal_of_object(manifest))]
    record_property(TRIED, 1)
    record_property(CLOSED, int(not refusals))
    assert refusals, f"{plant.title} The API server admits it from a tenant, and the audit fails"
    policies = PAGES[plant.check].tenant_policies
    is_named = any(refusal.policy in policies or not is_of_another_project(manifest) for manifest, refusal in refusals)
    assert is_named, f"{refusals}, and the page of {plant.check} names {policies}"


def of(version: str, kind: str, **spec: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec}


KEDA, MONITOR, MESH = "keda.sh/v1alpha1", "azmonitoring.coreos.com/v1", "networking.istio.io/v1"
GATEWAYS, CILIUM, SECRETS = "gateway.networking.k8s.io/v1", "cilium.io/v2", "secrets-store.csi.x-k8s.io/v1"


def triggered(kind: str = "metrics-api", **metadata: str) -> Manifest:
    return of(KEDA, "ScaledObject", triggers=[{"type": kind, "metadata": metadata}])


def filtered(**entry: Any) -> list[Manifest]:
    """The filter in a rule, and in a backend of it."""
    backend = {"name": "x", "port": 80}
    return [
        of(GATEWAYS, "HTTPRoute", rules=[{"backendRefs": [backend], "filters": [entry]}]),
        of(GATEWAYS, "HTTPRoute", rules=[{"backendRefs": [{**backend, "filters": [entry]}]}]),
    ]


def routed(**backend: Any) -> Manifest:
    return of(GATEWAYS, "HTTPRoute", rules=[{"backendRefs": [{"name": "x", "port": 80, **backend}]}])


def relabelled(**rule: Any) -> Manifest:
    return of(MONITOR, "PodMonitor", selector={}, podMetricsEndpoints=[{"port": "metrics", "relabelings": [rule]}])


def from_secret(parameter: str) -> Manifest:
    return of(KEDA, "TriggerAuthentication", secretTargetRef=[{"parameter": parameter, "name": "x", "key": "x"}])


REFUSED: list[Manifest] = [
    triggered(host="db.example.com"),
    triggered(url="https://user:x@metrics.team.svc@a.example.com/"),
    triggered(url="https://metrics.team.svc,https://a.example.com"),
    triggered(anything="a.example.com:443"),
    triggered(connection="Server=tcp:a.example.com,1433"),
    triggered(hostFromEnv="RABBITMQ"),
    triggered(url="http://$(HOST)/"),
    triggered("aws-sqs-queue", queueLength="5"),
    from_secret("host"),
    from_secret("connectionString"),
    of(KEDA, "TriggerAuthentication", hashiCorpVault={"address": "http://v.svc", "secrets": [{"parameter": "url"}]}),
    of(KEDA, "TriggerAuthentication", azureKeyVault={"vaultUri": "https://v.vault.azure.net.example.com"}),
    of("eventing.keda.sh/v1alpha1", "CloudEventSource", destination={"azureEventGridTopic": {"endpoint": "x"}}),
    of(MONITOR, "PodMonitor", podMetricsEndpoints=[{"oauth2": {"tokenUrl": "https://a.example.com"}}]),
    relabelled(targetLabel="__address__", sourceLabels=["x"]),
    relabelled(targetLabel="${1}", sourceLabels=["x"], replacement="a.example.com"),
    relabelled(action="LabelMap", regex="__meta_kubernetes_pod_label_x(.+)"),
    of(SECRETS, "SecretProviderClass", provider="azure", parameters={"keyvaultName": "a.example.com/x"}),
    of(SECRETS, "SecretProviderClass", provider="azure", parameters={"cloudEnvFileName": "/var/lib/kubelet/x"}),
    of(SECRETS, "SecretProviderClass", provider="aws", parameters={"objects": "x"}),
    of(MESH, "VirtualService", http=[{"mirrors": [{"destination": {"host": "a.example.com"}}]}]),
    of(MESH, "VirtualService", tcp=[{"route": [{"destination": {"host": "203.0.113.7"}}]}]),
    of(MESH, "DestinationRule", host="x", subsets=[{"trafficPolicy": {"tunnel": {"targetHost": "x"}}}]),
    of(MESH, "DestinationRule", host="x", trafficPolicy={"portLevelSettings": [{"tunnel": {"targetHost": "x"}}]}),
    of(MESH, "Sidecar", outboundTrafficPolicy={"mode": "REGISTRY_ONLY", "egressProxy": {"host": "x"}}),
    of("security.istio.io/v1", "RequestAuthentication", jwtRules=[{"issuer": "https://a.example.com"}]),
    routed(group="networking.istio.io", kind="Hostname"),
    routed(kind="Backend", group="gateway.envoyproxy.io"),
    *filtered(type="ExtensionRef", extensionRef={"group": "x.io", "kind": "X", "name": "x"}),
    *filtered(type="ExternalAuth", externalAuth={"backendRef": {"name": "x"}}),
    *filtered(type="RequestMirror", requestMirror={"backendRef": {"kind": "Hostname", "group": "networking.istio.io"}}),
    of(CILIUM, "CiliumNetworkPolicy", egress=[{}]),
    of(CILIUM, "CiliumNetworkPolicy", egress=[{"toEndpoints": [{"matchLabels": {"reserved:world": ""}}]}]),
    of(CILIUM, "CiliumNetworkPolicy", egress=[{"toEndpoints": [{}], "toCIDR": ["0.0.0.0/0"]}]),
    of(CILIUM, "CiliumNetworkPolicy", egress=[{"toServices": [{"k8sService": {"serviceName": "x"}}]}]),
    of(CILIUM, "CiliumNetworkPolicy", egress=[{"toEndpoints": [{}], "toPorts": [{"listener": {"name": "x"}}]}]),
    {**of(CILIUM, "CiliumNetworkPolicy"), "specs": [{"egress": [{"toEntities": ["all"]}]}]},
    of(CILIUM, "CiliumNodeConfig", defaults={"policy-audit-mode": "true"}),
]  # fmt: skip
ADMITTED: list[Manifest] = [
    triggered(url="http://metrics.team.svc.cluster.local:8080/queue", valueLocation="jobs.count", targetValue="5"),
    triggered("prometheus", serverAddress="http://prometheus.monitoring.svc:9090", query='sum(rate(x{a="b:1"}[2m]))'),
    triggered("kafka", bootstrapServers="a.bus.svc:9092,b.bus.svc:9092", topic="orders.created", lagThreshold="50"),
    triggered("cron", timezone="Europe/Berlin", start="0 8 * * *", end="0 18 * * 1-5", desiredReplicas="10"),
    triggered("cpu", value="60"),
    from_secret("password"),
    of(KEDA, "TriggerAuthentication", podIdentity={"provider": "azure-workload"}),
    of(KEDA, "TriggerAuthentication", azureKeyVault={"vaultUri": "https://contoso.vault.azure.net", "secrets": []}),
    of("eventing.keda.sh/v1alpha1", "CloudEventSource", destination={"http": {"uri": "http://events.team.svc/in"}}),
    of(MONITOR, "PodMonitor", selector={}, podMetricsEndpoints=[{"port": "metrics", "interval": "30s"}]),
    of(MONITOR, "ServiceMonitor", selector={}, endpoints=[{"port": "metrics", "path": "/m"}]),
    relabelled(targetLabel="node", sourceLabels=["__meta_kubernetes_pod_node_name"]),
    relabelled(action="labelmap", regex="__meta_kubernetes_pod_label_(.+)"),
    of(SECRETS, "SecretProviderClass", provider="azure", parameters={
        "keyvaultName": "contoso", "tenantId": "0-0", "cloudName": "", "usePodIdentity": "false",
        "objects": "array:\n  - |\n    objectName: key\n    objectType: secret\n"}),
    of(SECRETS, "SecretProviderClass", provider="vault", parameters={
        "vaultAddress": "http://vault.vault.svc:8200", "roleName": "x", "vaultKubernetesMountPath": "k8s/prod"}),
    of(MESH, "VirtualService", hosts=["x"], http=[{"route": [{"destination": {"host": "reviews"}}]}]),
    of(MESH, "VirtualService", http=[{"route": [{"destination": {"host": "x.team.svc.cluster.local"}}]}]),
    of(MESH, "Gateway", selector={"istio": "aks-istio-ingressgateway-internal"}),
    of(MESH, "Sidecar", outboundTrafficPolicy={"mode": "REGISTRY_ONLY"}),
    of(MESH, "Sidecar", egress=[{"hosts": ["./*"]}]),
    of(MESH, "DestinationRule", host="x", trafficPolicy={"tls": {"mode": "ISTIO_MUTUAL"}}),
    of("security.istio.io/v1", "RequestAuthentication", jwtRules=[
        {"issuer": "team", "jwksUri": "http://keys.team.svc/jwks"}, {"issuer": "https://a.example.com", "jwks": "{}"}]),
    of(GATEWAYS, "Gateway", gatewayClassName="internal", listeners=[], addresses=[{"value": "10.0.0.9"}]),
    routed(),
    routed(group="inference.networking.k8s.io", kind="InferencePool"),
    *filtered(type="RequestRedirect", requestRedirect={"scheme": "https"}),
    *filtered(type="RequestMirror", requestMirror={"backendRef": {"name": "copies", "port": 80}}),
    of(CILIUM, "CiliumNetworkPolicy", endpointSelector={}, ingress=[{}], egressDeny=[{"toEntities": ["world"]}]),
    of(CILIUM, "CiliumNetworkPolicy", egress=[{"toEndpoints": [{"matchLabels": {"app": "x"}}], "toPorts": [
        {"ports": [{"port": "53", "protocol": "ANY"}], "rules": {"dns": [{"matchPattern": "*"}]}}]}]),
]  # fmt: skip


def described(manifests: list[Manifest]) -> list[Any]:
    return [pytest.param(manifest, id=f"{position}-{manifest['kind']}") for position, manifest in enumerate(manifests)]


@pytest.mark.parametrize("manifest", described(REFUSED))
def test_a_variant_that_leads_outside_is_refused(tenancy: Tenancy, manifest: Manifest) -> None:
    refusal = tenancy.refusal_of_object(manifest)
    assert refusal is not None
    assert refusal.policy


@pytest.mark.parametrize("manifest", described(ADMITTED))
def test_what_stays_inside_is_admitted(tenancy: Tenancy, manifest: Manifest) -> None:
    assert tenancy.refusal_of_object(manifest) is None
