"""Kinds that decide where packets go: those that are read, and those that are served and are not."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.checks.kube_policies.unread_kinds import EGRESS_GROUPS, HARMLESS_GROUPS, HARMLESS_KINDS
from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes import alternative_paths, mesh
from hermetic.audit.estate.kubernetes.all_kinds import KINDS
from hermetic.audit.estate.kubernetes.calls import ApiService, ConfigMap
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import (
    AdminNetworkPolicy,
    BaselineAdminNetworkPolicy,
    ClusterNetworkPolicy,
)
from hermetic.audit.estate.kubernetes.served import ALWAYS_SERVED, SERVED
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.questions import Answer, Body
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Evidence, Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.kubernetes_estates import (
    CLUSTER,
    POLICY,
    REGISTRY,
    Manifest,
    findings,
    manifest,
    owned,
    pod,
    sealed_cluster,
    served_group,
    verdicts,
    with_one,
)

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


def verdict(check: str, changed: Manifest) -> Verdict:
    """The verdict about what was added, or about the cluster where nothing is said against it."""
    (only,) = verdicts(check, with_one(changed)).values()
    return only


# ------------------------------------------------------------------ policies of administrators


@pytest.mark.parametrize("kind", [AdminNetworkPolicy, BaselineAdminNetworkPolicy, ClusterNetworkPolicy])
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"action": "Allow", "to": [{"networks": ["0.0.0.0/0"]}]}, OPEN),
        ({"action": "Accept", "to": [{"networks": ["10.0.0.0/8", "2000::/3"]}]}, OPEN),
        ({"action": "Allow", "to": [{"namespaces": {}}, {"networks": ["20.1.2.3/32"]}]}, OPEN),
        ({"action": "Allow", "to": [{"domainNames": ["*.example.com"]}]}, OPEN),
        ({"action": "Allow", "to": [{"networks": ["anything"]}]}, UNSEEN),
        ({"action": "Allow", "to": [{"somethingNew": {}}]}, UNSEEN),
        ({"action": "Tunnel", "to": [{"networks": ["0.0.0.0/0"]}]}, UNSEEN),
        ({"action": "Deny", "to": [{"networks": ["0.0.0.0/0"]}]}, FINE),
        ({"action": "Pass", "to": [{"networks": ["0.0.0.0/0"]}]}, FINE),
        ({"action": "Allow", "to": [{"networks": ["10.0.0.0/8"]}]}, FINE),
        ({"action": "Allow", "to": [{"pods": {"namespaceSelector": {}}}, {"nodes": {}}]}, FINE),
    ],
)
def test_an_administrators_policy_is_open_where_it_allows_what_is_public(
    kind: Any, rule: Any, expected: Verdict
) -> None:
    spec = {"subject": {"namespaces": {}}, "priority": 10, "egress": [rule]}
    assert verdict("k8s-policy-allow-all", manifest(kind, "default", spec=spec)) is expected


@pytest.mark.parametrize(("action", "expected"), [("Deny", UNSEEN), ("Pass", OPEN)])
def test_a_pod_that_only_an_administrators_policy_closes_is_unknown(action: str, expected: Verdict) -> None:
    rule = {"action": action, "to": [{"networks": ["0.0.0.0/0"]}]}
    baseline = manifest(BaselineAdminNetworkPolicy, "default", spec={"subject": {"namespaces": {}}, "egress": [rule]})
    verdict_of = verdicts("k8s-default-deny-egress", [*with_one(baseline), pod("web", "team")])
    assert verdict_of == {"v1/Namespace team": expected}


def test_an_administrators_policy_that_may_not_be_read_leaves_an_open_namespace_unknown() -> None:
    verdict_of = verdicts("k8s-default-deny-egress", with_one(pod("web", "team")), forbidden=[AdminNetworkPolicy])
    assert verdict_of == {"v1/Namespace team": UNSEEN}


# ------------------------------------------------------------------ objects that are ways of their own


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (alternative_paths.CiliumEgressGatewayPolicy, OPEN),
        (alternative_paths.CiliumExternalWorkload, OPEN),
        (alternative_paths.CalicoEgressGatewayPolicy, OPEN),
        (alternative_paths.CalicoExternalNetwork, OPEN),
        (alternative_paths.TigeraEgressGateway, OPEN),
        (alternative_paths.PodNetwork, OPEN),
        (alternative_paths.CalicoBgpPeer, UNSEEN),
        (alternative_paths.NetworkAttachmentDefinition, UNSEEN),
        (alternative_paths.CiliumEnvoyConfig, UNSEEN),
        (alternative_paths.CiliumClusterwideEnvoyConfig, UNSEEN),
        (alternative_paths.CiliumLocalRedirectPolicy, UNSEEN),
        (alternative_paths.EnvoyFilter, UNSEEN),
    ],
)
def test_one_object_of_such_a_kind_is_enough_and_no_owner_excuses_it(kind: Any, expected: Verdict) -> None:
    for owners in ([], owned("Gateway", "shop", "example.com/v1"), owned("Service", "shop", "v1")):
        gateway = manifest(kind, "out", *(("team",) if kind.NAMESPACED else ()), ownerReferences=owners)
        is_made = kind is alternative_paths.CiliumEnvoyConfig and owners[-1:] == owned("Service", "shop", "v1")
        assert verdict("k8s-other-ways", gateway) is (FINE if is_made else expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"labels": {"type": "virtual-kubelet"}}, OPEN),
        ({"spec": {"providerID": "aws:///eu-north-1a/i-0a1b2c3d"}}, UNSEEN),
        ({"spec": {"providerID": "azure://"}}, UNSEEN),
        ({"spec": {"providerID": f"azure://{CLUSTER}/virtualMachines/0"}}, FINE),
    ],
)
def test_a_node_has_a_machine_of_azure(fields: Any, expected: Verdict) -> None:
    assert verdict("k8s-other-ways", manifest(Node, "joined", **fields)) is expected


def test_what_was_made_for_a_gateway_is_judged_there() -> None:
    owners = owned("Gateway", "shop", "gateway.networking.k8s.io/v1")
    assert (
        verdict("k8s-other-ways", manifest(alternative_paths.CiliumEnvoyConfig, "x", "team", ownerReferences=owners))
        is FINE
    )


# ------------------------------------------------------------------ Istio


def of_the_mesh(kind: Any, **spec: Any) -> Manifest:
    """team/out of a kind of Istio."""
    return manifest(kind, "out", "team", spec=spec)


def tunnel(host: str) -> Manifest:
    return {"tunnel": {"protocol": "CONNECT", "targetHost": host, "targetPort": 443}}


def tokens_of(**rule: str) -> Manifest:
    return of_the_mesh(mesh.RequestAuthentication, jwtRules=[rule])


REGISTRY_ONLY = {"mesh": "outboundTrafficPolicy: {mode: REGISTRY_ONLY}"}
OF_THE_MESH = manifest(ConfigMap, "istio", "istio-system", data=REGISTRY_ONLY)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (of_the_mesh(mesh.ServiceEntry, hosts=["api.example.com"]), OPEN),
        (of_the_mesh(mesh.ServiceEntry, hosts=["*.example.com"], location="MESH_INTERNAL"), OPEN),
        (of_the_mesh(mesh.ServiceEntry, hosts=["*.com"]), OPEN),
        (of_the_mesh(mesh.ServiceEntry, hosts=["*-com"]), OPEN),
        (of_the_mesh(mesh.ServiceEntry, hosts=["*.team.svc", "*.local"]), FINE),
        (of_the_mesh(mesh.ServiceEntry, hosts=["db.team.svc"], endpoints=[{"address": "20.1.2.3"}]), OPEN),
        (of_the_mesh(mesh.ServiceEntry, hosts=["db"], addresses=["20.0.0.0/8"]), OPEN),
        (of_the_mesh(mesh.ServiceEntry), UNSEEN),
        (of_the_mesh(mesh.ServiceEntry, hosts=["db"], resolution="DNS", ports=[], exportTo=["."]), FINE),
        (of_the_mesh(mesh.ServiceEntry, hosts=["db"], planets=["mars"]), UNSEEN),
        (of_the_mesh(mesh.ServiceEntry, hosts=["db"], endpoints=[{"address": "10.1.2.3", "planet": "mars"}]), UNSEEN),
        (of_the_mesh(mesh.DestinationRule, trafficPolicy=tunnel("api.example.com")), OPEN),
        (of_the_mesh(mesh.DestinationRule, trafficPolicy=tunnel("134744072")), OPEN),
        (of_the_mesh(mesh.DestinationRule, subsets=[{"name": "a"}, {"trafficPolicy": tunnel("20.1.2.3")}]), OPEN),
        (of_the_mesh(mesh.DestinationRule, trafficPolicy={"portLevelSettings": [tunnel("api.example.com")]}), OPEN),
        (
            of_the_mesh(
                mesh.DestinationRule,
                subsets=[
                    {"trafficPolicy": {"portLevelSettings": [{"port": {"number": 1}}, tunnel("api.example.com")]}}
                ],
            ),
            OPEN,
        ),
        (of_the_mesh(mesh.DestinationRule, trafficPolicy={"tunnel": "x"}), UNSEEN),
        (of_the_mesh(mesh.DestinationRule, trafficPolicy=tunnel("db.team.svc.cluster.local")), FINE),
        (of_the_mesh(mesh.DestinationRule, host="api.example.com", trafficPolicy={"tls": {"mode": "SIMPLE"}}), FINE),
        (of_the_mesh(mesh.ProxyConfig, environmentVariables={"CA_ADDR": "ca.example.com:443"}), OPEN),
        (of_the_mesh(mesh.ProxyConfig, environmentVariables={"ANY": "https://ca.example.com/x"}), OPEN),
        (of_the_mesh(mesh.ProxyConfig, environmentVariables={"CA_ADDR": "istiod.istio-system.svc:15012"}), FINE),
        (of_the_mesh(mesh.ProxyConfig, concurrency=2, image={"imageType": "distroless"}), FINE),
        (of_the_mesh(mesh.ServiceEntry, hosts=["api.example.com"], endpoints=[{"address": "10.1.2.3"}]), FINE),
        (of_the_mesh(mesh.ServiceEntry, hosts=["db.team.svc.cluster.local"], addresses=["10.9.0.0/16"]), FINE),
        (of_the_mesh(mesh.ServiceEntry, hosts=["db"], endpoints=[{"address": "unix:///var/run/db.sock"}]), FINE),
        (of_the_mesh(mesh.WorkloadEntry, address="20.1.2.3"), OPEN),
        (of_the_mesh(mesh.WorkloadEntry, address="vm.example.com"), OPEN),
        (of_the_mesh(mesh.WorkloadEntry, address="10.1.2.3"), FINE),
        (of_the_mesh(mesh.MeshGateway, selector={"istio": "egressgateway"}), OPEN),
        (of_the_mesh(mesh.MeshGateway, selector={"app": "team-egress"}), OPEN),
        (of_the_mesh(mesh.MeshGateway, selector={"istio": "aks-istio-ingressgateway-internal"}), FINE),
        (of_the_mesh(mesh.Sidecar, outboundTrafficPolicy={"mode": "ALLOW_ANY"}), OPEN),
        (of_the_mesh(mesh.Sidecar, outboundTrafficPolicy={"egressProxy": {"host": "out.team.svc"}}), OPEN),
        (of_the_mesh(mesh.Sidecar, outboundTrafficPolicy={"mode": "REGISTRY_ONLY"}), FINE),
        (of_the_mesh(mesh.Sidecar, outboundTrafficPolicy={"mode": "REGISTRY_ONLY", "but": {}}), UNSEEN),
        (of_the_mesh(mesh.Sidecar, workloadSelector={}, egress=[{"hosts": ["./*"]}]), FINE),
        (of_the_mesh(mesh.VirtualService, hosts=["db"], http=[{"match": [], "timeout": "1s"}]), FINE),
        (of_the_mesh(mesh.VirtualService, hosts=["db"], http=[{"fallback": {"host": "api.example.com"}}]), UNSEEN),
        (of_the_mesh(mesh.Sidecar), FINE),
        (of_the_mesh(mesh.VirtualService, http=[{"route": [{"destination": {"host": "api.example.com"}}]}]), OPEN),
        (of_the_mesh(mesh.VirtualService, tls=[{"route": [{"destination": {"host": "20.1.2.3"}}]}]), OPEN),
        (of_the_mesh(mesh.VirtualService, http=[{"mirror": {"host": "tap.example.com"}}]), OPEN),
        (of_the_mesh(mesh.VirtualService, http=[{"mirrors": [{"destination": {"host": "tap.example.com"}}]}]), OPEN),
        (of_the_mesh(mesh.VirtualService, tcp=[{"route": [{"destination": {"host": "db.team.svc"}}]}]), FINE),
        (of_the_mesh(mesh.VirtualService, http=[{"route": [{"destination": {"host": "reviews"}}]}]), FINE),
        (tokens_of(jwksUri="https://login.example.com/keys"), OPEN),
        (tokens_of(issuer="https://login.example.com"), OPEN),
        (tokens_of(issuer="https://login.example.com", jwks='{"keys": []}'), FINE),
        (tokens_of(issuer="https://login.example.com", jwksUri="http://keys.team.svc:8080/jwks"), FINE),
        (of_the_mesh(mesh.RequestAuthentication), FINE),
        (of_the_mesh(mesh.WasmPlugin, url="https://code.example.com/filter.wasm"), OPEN),
        (of_the_mesh(mesh.WasmPlugin, url="oci://ghcr.io/team/filter:v1"), OPEN),
        (of_the_mesh(mesh.WasmPlugin, url="team/filter:v1"), OPEN),  # of docker.io, where none is named
        (of_the_mesh(mesh.WasmPlugin, url="oci://stranger.azurecr.io/filter:v1"), OPEN),
        (of_the_mesh(mesh.WasmPlugin, url=f"oci://{REGISTRY}/filter@sha256:{'0' * 64}"), FINE),
        (of_the_mesh(mesh.WasmPlugin, url="http://files.team.svc.cluster.local/filter.wasm"), FINE),
        (of_the_mesh(mesh.WasmPlugin, url="file:///opt/filter.wasm"), FINE),
    ],
)
def test_the_mesh_is_open_where_it_names_what_is_outside(changed: Manifest, expected: Verdict) -> None:
    (only,) = verdicts("k8s-mesh-egress", [*with_one(changed), OF_THE_MESH]).values()
    assert only is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("tracing: {zipkin: {address: 'spans.example.com:9411'}}", OPEN),
        ('{"envoyAccessLogService": {"address": "20.1.2.3:15000"}}', OPEN),
        ("proxyMetadata: {CA_ADDR: 'ca.example.com:443'}", OPEN),
        ("tracing: {zipkin: {address: '$(HOST_IP):9411'}}", FINE),
        ("tracing: {zipkin: {address: 'web.team:9411'}}\ndiscoveryAddress: istiod.istio-system.svc:15012", FINE),
        ("concurrency: 2\nholdApplicationUntilProxyStarts: true", FINE),
        ("- no mapping", UNSEEN),
    ],
)
def test_a_pods_own_settings_of_its_proxy_are_read(settings: str, expected: Verdict) -> None:
    annotated = pod("app-2", annotations={"proxy.istio.io/config": settings})
    web = manifest(Service, "web", "team", spec={"selector": {"app": "web"}})
    of_istio = served_group("networking.istio.io", "Sidecar")
    verdict_of = verdicts("k8s-mesh-egress", [*sealed_cluster(), annotated, web, of_istio, OF_THE_MESH])
    assert verdict_of == {(CLUSTER if expected is FINE else "v1/Pod inference/app-2"): expected}
    without_istio = verdicts("k8s-mesh-egress", [*sealed_cluster(), annotated])
    assert without_istio == {CLUSTER: FINE}


def test_pods_of_a_mesh_that_may_not_be_listed_are_unknown() -> None:
    of_istio = served_group("networking.istio.io", "Sidecar")
    verdict_of = verdicts("k8s-mesh-egress", [*sealed_cluster(), of_istio, OF_THE_MESH], forbidden=[Pod])
    assert verdict_of == {CLUSTER: UNSEEN}


def test_allowing_any_destination_is_medium_for_policies_still_decide() -> None:
    sidecar = of_the_mesh(mesh.Sidecar, outboundTrafficPolicy={"mode": "ALLOW_ANY"})
    (finding,) = findings("k8s-mesh-egress", [*with_one(sidecar), OF_THE_MESH])
    assert finding.severity is Severity.MEDIUM


# ------------------------------------------------------------------ kinds that are served and not read


def of_a_cluster_that_serves(
    groups: dict[str, list[str]], policy: Policy = POLICY, stale: tuple[str, ...] = ()
) -> dict[str, tuple[Verdict, Severity]]:
    """What the check says of a cluster with these kinds."""
    evidence = (Evidence("GET /apis", 200, "0" * 64),)
    bodies = tuple(
        Body(
            {
                "id": name,
                "kinds": [{"plural": kind.lower() + "s", "kind": kind, "versions": ["v1"]} for kind in kinds],
                "stale": ["v1"] if name in stale else [],
            },
            evidence,
        )
        for name, kinds in groups.items()
    )
    check = next(check for check in CHECKS if check.page.id == "k8s-unread-kinds")
    unread_findings = findings_of(check, Estate(CLUSTER, ("kube",), {SERVED: Answer(bodies, evidence)}), policy)
    return {finding.resource: (finding.verdict, finding.severity) for finding in unread_findings}


UNREAD_HIGH, UNREAD_MEDIUM, READ = (UNSEEN, Severity.HIGH), (UNSEEN, Severity.MEDIUM), {CLUSTER: (FINE, Severity.HIGH)}
DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("cilium.io", "CiliumTunnel"),
        ("networking.k8s.io", "EgressPolicy"),
        ("projectcalico.org", "NetworkPolicy"),
        ("k8s.ovn.org", "EgressIP"),
        ("tailscale.com", "Connector"),
        ("multicluster.x-k8s.io", "ServiceImport"),
        ("gateway.networking.k8s.io", "EgressRoute"),
        ("policy.networking.k8s.io", "AnotherPolicy"),
    ],
)
def test_a_kind_of_a_group_that_decides_about_packets_is_unknown_at_high(group: str, kind: str) -> None:
    verdict_of = of_a_cluster_that_serves({"apps": ["Deployment"], group: [kind]})
    assert verdict_of == {f"{DEFINITION} {kind.lower()}s.{group}": UNREAD_HIGH}


def test_kinds_of_runners_and_of_a_fleet_are_settled_by_the_policy() -> None:
    """docs.github.com, Actions Runner Controller; learn.microsoft.com/azure/kubernetes-fleet: exported Services."""
    runners, fleet = ("actions.github.com", "AutoscalingRunnerSet"), ("networking.fleet.azure.com", "ServiceExport")
    groups = {group: [kind] for group, kind in (("apps", "Deployment"), runners, fleet)}
    verdict_of = of_a_cluster_that_serves(groups)
    assert {verdict for verdict, _ in verdict_of.values()} == {UNSEEN}
    assert len(verdict_of) == 2
    harmless = Policy(harmlessKinds=("/".join(runners), "/".join(fleet)))
    assert of_a_cluster_that_serves(groups, harmless) == READ


def test_unknown_groups_are_one_finding_each_at_medium() -> None:
    verdict_of = of_a_cluster_that_serves({"apps": ["Deployment"], "x.example.com": ["A", "B"], "y.example.com": ["C"]})
    assert verdict_of == {"API group x.example.com": UNREAD_MEDIUM, "API group y.example.com": UNREAD_MEDIUM}


def test_what_aks_serves_on_a_cluster_with_cilium_is_all_read() -> None:
    """The groups of Kubernetes and of AKS's own components; Cilium registers all of its kinds, used or not."""
    groups = {
        "apps": ["Deployment", "DaemonSet"],
        "metrics.k8s.io": ["PodMetrics"],
        "snapshot.storage.k8s.io": ["VolumeSnapshotClass", "VolumeSnapshot"],
        "cilium.io": [
            "CiliumEndpoint", "CiliumIdentity", "CiliumNode", "CiliumNodeConfig", "CiliumNetworkPolicy",
            "CiliumClusterwideNetworkPolicy", "CiliumEgressGatewayPolicy", "CiliumLocalRedirectPolicy",
            "CiliumExternalWorkload", "CiliumCIDRGroup", "CiliumLoadBalancerIPPool", "CiliumEnvoyConfig",
            "CiliumClusterwideEnvoyConfig", "CiliumL2AnnouncementPolicy", "CiliumPodIPPool", "CiliumBGPPeeringPolicy",
        ],
        "acn.azure.com": ["NodeNetworkConfig", "ClusterSubnetState"],
        "constraints.gatekeeper.sh": ["K8sAzureV1AnythingAtAll"],
        "egressgateway.kubernetes.azure.com": ["StaticGatewayConfiguration", "GatewayLBConfiguration"],
        "eraser.sh": ["ImageJob", "ImageList"],
        "karpenter.azure.com": ["AKSNodeClass"],
        "networking.istio.io": ["ServiceEntry", "DestinationRule", "EnvoyFilter", "Gateway", "VirtualService"],
        "gateway.networking.k8s.io": ["Gateway", "GatewayClass", "HTTPRoute"],
        "nvidia.com": ["ClusterPolicy", "NVIDIADriver"],
        "source.toolkit.fluxcd.io": ["GitRepository"],
    }  # fmt: skip
    assert of_a_cluster_that_serves(groups) == READ


def test_the_policy_names_kinds_as_harmless() -> None:
    groups = {"apps": ["Deployment"], "x.example.com": ["A", "B"], "tailscale.com": ["Connector"]}
    lenient_policy = Policy(harmlessKinds=("x.example.com/A", "tailscale.com/Connector"))
    assert of_a_cluster_that_serves(groups, lenient_policy) == {"API group x.example.com": UNREAD_MEDIUM}
    all_of_them = Policy(harmlessKinds=("x.example.com/*", "tailscale.com/connector"))
    assert of_a_cluster_that_serves(groups, all_of_them) == READ


def of_calico(*services: Manifest, serves: tuple[str, ...] = ("crd.projectcalico.org", "projectcalico.org")) -> Any:
    """The verdict by resource where Calico's policies are served in these groups, with these APIServices."""
    definitions = [served_group(group, kind) for group in serves for kind in ("NetworkPolicy", "Tier")]
    return verdicts("k8s-unread-kinds", [*sealed_cluster(), *definitions, *services])


def of_group(group: str, service: bool) -> Manifest:
    spec = {"service": {"name": "calico-api", "namespace": "calico-system"}} if service else {}
    return manifest(ApiService, f"v3.{group}", spec=spec)


UNREAD_POLICY = {f"{DEFINITION} networkpolicys.projectcalico.org": UNSEEN}


def test_calicos_own_server_shows_what_its_definitions_hold() -> None:
    assert of_calico(of_group("projectcalico.org", service=True)) == {CLUSTER: FINE}


@pytest.mark.parametrize(
    "services",
    [
        (),
        (of_group("projectcalico.org", service=False),),
        (of_group("crd.projectcalico.org", service=True),),
        (of_group("a.projectcalico.org", service=True),),
    ],
)
def test_definitions_of_calicos_own_group_are_objects_of_their_own(services: tuple[Manifest, ...]) -> None:
    assert of_calico(*services) == UNREAD_POLICY


def test_calicos_server_alone_shows_what_is_not_read() -> None:
    assert of_calico(of_group("projectcalico.org", service=True), serves=("projectcalico.org",)) == UNREAD_POLICY


def test_apiservices_that_may_not_be_read_do_not_show_calicos_server() -> None:
    definitions = [served_group(group, "NetworkPolicy") for group in ("crd.projectcalico.org", "projectcalico.org")]
    verdict_of = verdicts("k8s-unread-kinds", [*sealed_cluster(), *definitions], forbidden=[ApiService])
    assert verdict_of == UNREAD_POLICY


def test_a_group_whose_server_did_not_answer_is_unknown_as_its_kinds_would_be() -> None:
    groups: dict[str, list[str]] = {"apps": ["Deployment"], "kuma.io": [], "metrics.k8s.io": [], "team.example.com": []}
    assert of_a_cluster_that_serves(groups, stale=("kuma.io", "metrics.k8s.io", "team.example.com")) == {
        "API group kuma.io": UNREAD_HIGH,
        "API group team.example.com": (UNSEEN, Severity.MEDIUM),
    }


def test_an_empty_list_of_groups_is_no_evidence() -> None:
    assert of_a_cluster_that_serves({}) == {CLUSTER: (UNSEEN, Severity.HIGH)}


def test_no_group_is_both_harmless_and_not() -> None:
    assert not HARMLESS_GROUPS & EGRESS_GROUPS
    assert HARMLESS_KINDS.keys() <= EGRESS_GROUPS


def test_kinds_of_groups_that_may_not_be_there_are_known_as_such() -> None:
    optional = {kind.TYPE.split("/")[0] for kind in KINDS if kind.TYPE.count("/") == 2} - ALWAYS_SERVED
    assert {"cilium.io", "policy.networking.k8s.io", "networking.istio.io"} <= optional
    assert optional <= EGRESS_GROUPS | {"karpenter.azure.com", "snapshot.storage.k8s.io"}
