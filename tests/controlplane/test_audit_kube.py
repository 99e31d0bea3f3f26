"""The checks of the cluster against a real API server: planted and taken away, refused, absent, listed and watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import question
from hermetic.audit.estate.kubernetes.calico_policies import CalicoNetworkSet
from hermetic.audit.estate.kubernetes.nodes import StaticGatewayConfiguration
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import Evaluation, evaluate
from hermetic.collect.collecting import collected
from hermetic.collect.kube.answering import KubeAnswerer
from hermetic.collect.kube.cache import LIST_REQUESTS, ClusterObservations
from hermetic.collect.kube.cache_watches import CacheWatches
from hermetic.errors import Unreachable
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import from_kubeconfig
from testbed.api import Api
from testbed.errors import ApiError
from testbed.fleet import Pool
from testbed.installation import operator_kubeconfig
from tests.controlplane.planted_egress_paths import CHECKS_PLANTED, planted_in, pod, unique
from tests.fakes.progress import NoProgress

pytestmark = pytest.mark.sampled(16, of="egress paths in a real API server")

Manifest = dict[str, Any]
POLICY = Policy(allowedRegistries=("contoso.azurecr.io",))
INTERNAL = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[KubernetesApi]:
    """A client with these rights, whose connections are all closed when it is done."""
    async with KubernetesApi(await from_kubeconfig(str(kubeconfig))) as kube:
        yield kube
    # Saying goodbye over TLS takes the loop some rounds; pytest takes what is left for a leak.
    transports = asyncio.get_running_loop()._transports  # type: ignore[attr-defined]
    await until(lambda: all(transport.is_closing() for transport in tuple(transports.values())))
    await asyncio.sleep(0)


async def audit(kubeconfig: Path) -> list[Finding]:
    """One audit with these rights."""
    async with connected(kubeconfig) as kube:
        answerers = {"kube": KubeAnswerer(kube)}
        _, findings = await collected("aks", answerers, Evaluation(POLICY).findings, NoProgress())
    return list(findings)


def about(findings: list[Finding], reference: str) -> dict[str, Verdict]:
    """The verdicts about one object, by check."""
    return {finding.check: finding.verdict for finding in findings if finding.resource == reference}


def written_by(findings: list[Finding], reference: str) -> str:
    """The field manager that every finding about one object names; "" where one names none."""
    managers = {finding.message.partition("; written by field manager '")[2].partition("'")[0] for finding in findings
             if finding.resource == reference}  # fmt: skip
    return managers.pop() if len(managers) == 1 else ""


@pytest.fixture
def plant(api: Api) -> Iterator[Callable[[str, Manifest], str]]:
    """`plant(collection, manifest)`: an object that is gone after the test; returns its path."""
    created_paths: list[str] = []

    def planted(collection: str, manifest: Manifest) -> str:
        api.create(collection, manifest)
        created_paths.append(f"{collection}/{manifest['metadata']['name']}")
        return created_paths[-1]

    yield planted
    for path in reversed(created_paths):
        try:
            api.delete(path)
        except ApiError as error:
            if error.status != 404:
                raise


@pytest.mark.parametrize("check", CHECKS_PLANTED)
async def test_a_planted_egress_path_is_found_and_gone_with_its_object(
    check: str, cluster: Path, namespace: str, plant: Callable[[str, Manifest], str], api: Api
) -> None:
    collection, manifest_planted, reference = planted_in(namespace, check)
    path = plant(collection, manifest_planted)
    findings = await audit(cluster)
    assert about(findings, reference)[check] is Verdict.FAIL
    assert written_by(findings, reference) or reference.startswith("v1/Namespace ")  # which lacks something
    api.delete(path + ("?gracePeriodSeconds=0" if collection.endswith("/pods") else ""))
    assert check not in about(await audit(cluster), reference)


async def test_an_address_that_was_given_counts_whatever_the_annotation_says(
    cluster: Path, namespace: str, plant: Callable[[str, Manifest], str], api: Api
) -> None:
    collection = f"/api/v1/namespaces/{namespace}/services"
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "loadBalancerClass": "hermetic.test/none"}
    path = plant(collection, {"metadata": {"name": "out", "annotations": INTERNAL}, "spec": spec})
    reference = f"v1/Service {namespace}/out"
    assert about(await audit(cluster), reference) == {"k8s-public-lb": Verdict.UNKNOWN}  # of another controller
    api.merge(f"{path}/status", {"status": {"loadBalancer": {"ingress": [{"ip": "20.1.2.3", "ipMode": "VIP"}]}}})
    verdict_of = about(await audit(cluster), reference)
    assert verdict_of["k8s-lb-status-ip"] is Verdict.FAIL
    assert verdict_of["k8s-nodeport"] is Verdict.FAIL


async def test_a_node_without_a_policy_engine_and_with_an_external_address(
    cluster: Path, fleet: Callable[..., list[str]], api: Api
) -> None:
    (name,) = fleet(Pool("gpu", "Standard_NC24ads_A100_v4"))
    findings = await audit(cluster)
    assert "k8s-node-externalip" not in about(findings, f"v1/Node {name}")
    assert about(findings, "aks")["k8s-policy-engine-live"] is Verdict.FAIL
    addresses = [
        *api.get(f"/api/v1/nodes/{name}")["status"]["addresses"],
        {"type": "ExternalIP", "address": "20.1.2.3"},
    ]
    api.merge(f"/api/v1/nodes/{name}/status", {"status": {"addresses": addresses}})
    assert about(await audit(cluster), f"v1/Node {name}")["k8s-node-externalip"] is Verdict.FAIL


# ---------------------------------------------------------------------- rights


def rules(*, without: str = "") -> list[Manifest]:
    """The rights to list and watch what the checks ask for, one kind left out where one is named."""
    all_requests = (request for request in LIST_REQUESTS if not request.scope and request.resource != without)
    return [
        {"apiGroups": [request.kind.group], "resources": [request.kind.plural], "verbs": ["list", "watch"]}
        for request in all_requests
    ]


CONFIG_MAPS = [
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["coredns", "coredns-custom", "node-local-dns"],
        "verbs": ["list", "watch"],
    }
]


@pytest.fixture
def auditor(
    api: Api, cluster: Path, namespace: str, plant: Callable[[str, Manifest], str], tmp_path: Path
) -> Callable[..., Path]:
    """`auditor(without="pods")`: the kubeconfig of an account with exactly these rights."""

    def account(*, without: str = "") -> Path:
        name = unique("auditor")
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": name}]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        plant(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules(without=without)})
        plant(f"{rbac}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects})
        role = {**reference, "kind": "Role"}
        inside = f"{rbac}/namespaces/kube-system"
        plant(f"{inside}/roles", {"metadata": {"name": name}, "rules": CONFIG_MAPS})
        plant(f"{inside}/rolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": subjects})
        tokens = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return operator_kubeconfig(api, cluster, tmp_path / f"{name}.kubeconfig", tokens=tokens)

    return account


def refused(findings: list[Finding]) -> dict[str, str]:
    """Checks that are Unknown for want of a right, with what they say."""
    return {
        finding.check: finding.message
        for finding in findings
        if finding.verdict is Verdict.UNKNOWN and finding.reason == "Forbidden"
    }


async def test_the_rights_to_list_what_is_asked_for_are_enough(auditor: Callable[..., Path]) -> None:
    assert refused(await audit(auditor())) == {}


@pytest.mark.parametrize(
    "kind", ["nodes", "services", "storageclasses.storage.k8s.io", "networkpolicies.networking.k8s.io"]
)
async def test_a_right_that_is_missing_makes_exactly_its_checks_unknown_and_is_named(
    kind: str, auditor: Callable[..., Path], namespace: str, fleet: Callable[..., list[str]],
    plant: Callable[[str, Manifest], str],
) -> None:  # fmt: skip
    fleet(Pool("gpu", "Standard_NC24ads_A100_v4"))
    plant(f"/api/v1/namespaces/{namespace}/pods", pod("open"))
    asking = {check.page.id for check in CHECKS if check.needs == {"kube"} and kind in _resources_of(check)}
    refused_messages = refused(await audit(auditor(without=kind)))
    # The engine is found missing by its DaemonSets; a slice is excused by nodes only when it is public, a forwarder by
    # the Service of the cluster's own resolver.
    # Nodes say where the backends of routes are, and Services what a mesh and operators may call: there are none here.
    excused = {"nodes": {"k8s-gateway-routes"}, "services": {"k8s-mesh-egress", "k8s-other-ways"}}
    needless = excused.get(kind, set())
    excused = {"k8s-policy-engine-live", "k8s-endpoints-external", "coredns-custom", *needless}
    assert refused_messages.keys() == asking - excused
    assert all(f"missing permission: list {kind}" in message for message in refused_messages.values())


def _resources_of(check: Any) -> set[str]:
    empty = Estate("aks", ("kube",), {})
    list(findings_of(check, empty, POLICY))
    resources = {request.question.key: request.resource for request in LIST_REQUESTS}
    return {resources[key] for key in empty.wanted if key in resources}


@pytest.fixture
def nowhere(cluster: Path, tmp_path: Path) -> Path:
    """A kubeconfig of an address without a server."""
    config = yaml.safe_load(cluster.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    file = tmp_path / "nowhere.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


async def test_an_api_server_that_is_not_there_is_no_finding(nowhere: Path) -> None:
    with pytest.raises(Unreachable):
        await audit(nowhere)


# ---------------------------------------------------------------------- kinds that may not be there


def definition(group: str, version: str, plural: str, kind: str) -> Manifest:
    """A CRD of any content."""
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def test_a_kind_without_a_definition_is_absent_for_every_account(auditor: Callable[..., Path]) -> None:
    async with connected(auditor()) as kube:
        asked_question = question(StaticGatewayConfiguration, "")
        answer = (await KubeAnswerer(kube).answers([asked_question]))[asked_question]
    assert (answer.bodies, answer.problem) == ((), None)
    assert [(evidence.request, evidence.status) for evidence in answer.evidence] == [
        ("GET /apis", 200)
    ]  # aggregated discovery


async def test_a_kind_that_decides_about_packets_and_is_not_read_is_a_finding(
    cluster: Path, plant: Callable[[str, Manifest], str], api: Api
) -> None:
    plant(CRDS, definition("tailscale.com", "v1alpha1", "connectors", "Connector"))
    await until(lambda: _is_served(api, "/apis/tailscale.com/v1alpha1/connectors"))
    verdict_of = about(
        await audit(cluster), "apiextensions.k8s.io/v1/CustomResourceDefinition connectors.tailscale.com"
    )
    assert verdict_of == {"k8s-unread-kinds": Verdict.UNKNOWN}


async def test_a_kind_that_is_converted_outside_is_found(
    cluster: Path, plant: Callable[[str, Manifest], str], api: Api
) -> None:
    resource_definition = definition("ray.io", "v1", "rayclusters", "RayCluster")
    webhook = {"clientConfig": {"url": "https://convert.example.com/"}, "conversionReviewVersions": ["v1"]}
    resource_definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    path = plant(CRDS, resource_definition)
    reference = "apiextensions.k8s.io/v1/CustomResourceDefinition rayclusters.ray.io"
    assert about(await audit(cluster), reference) == {"k8s-webhook-external": Verdict.FAIL}
    api.merge(path, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})  # as the remedy says
    assert about(await audit(cluster), reference) == {}


async def test_a_kind_that_comes_later_is_seen(
    cluster: Path, namespace: str, plant: Callable[[str, Manifest], str], api: Api
) -> None:
    plant(CRDS, definition("cilium.io", "v2", "ciliumnetworkpolicies", "CiliumNetworkPolicy"))
    collection = f"/apis/cilium.io/v2/namespaces/{namespace}/ciliumnetworkpolicies"
    await until(lambda: _is_served(api, collection))
    spec = {"endpointSelector": {}, "egress": [{"toEntities": ["world"]}]}
    wide = {"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": "wide"}, "spec": spec}
    path = plant(collection, wide)
    reference = f"cilium.io/v2/CiliumNetworkPolicy {namespace}/wide"
    assert about(await audit(cluster), reference) == {"k8s-policy-allow-all": Verdict.FAIL}
    api.delete(path)
    assert about(await audit(cluster), reference) == {}


async def test_a_kind_that_is_served_in_another_version_only_is_unknown(
    cluster: Path, plant: Callable[[str, Manifest], str], api: Api
) -> None:
    group, version = "crd.projectcalico.org", "v9"
    plant(CRDS, definition(group, version, "networksets", "NetworkSet"))
    await until(lambda: _is_served(api, f"/apis/{group}/{version}/networksets"))
    (finding,) = (
        item for item in await audit(cluster) if item.check == "k8s-policy-allow-all" and item.resource == "aks"
    )
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "NotFound")
    assert CalicoNetworkSet.TYPE in finding.message


def _is_served(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:
        return False
    return True


# ---------------------------------------------------------------------- all the time


@asynccontextmanager
async def observed(kubeconfig: Path) -> AsyncIterator[ClusterObservations]:
    """The cluster as the operator would keep seeing it, from when all of it was listed once."""
    observations = ClusterObservations()
    async with connected(kubeconfig) as kube:
        following = asyncio.create_task(CacheWatches(kube, observations).run())
        try:
            await until(lambda: observations.is_complete)
            yield observations
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds, a minute at most."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.05)


def judged(observations: ClusterObservations) -> list[Finding]:
    """What the checks say of what is known now."""
    return list(evaluate(Estate("aks", ("kube",), observations.answers()), POLICY))


async def test_with_rights_to_list_and_watch_the_operator_sees_what_comes_and_goes(
    auditor: Callable[..., Path], namespace: str, plant: Callable[[str, Manifest], str], api: Api
) -> None:
    reference = f"v1/Service {namespace}/out"
    collection, manifest_planted, _ = planted_in(namespace, "k8s-public-lb")
    async with observed(auditor()) as observations:
        assert refused(judged(observations)) == {}
        path = plant(collection, manifest_planted)
        await until(lambda: about(judged(observations), reference).get("k8s-public-lb") is Verdict.FAIL)
        assert written_by(judged(observations), reference) == api.get(path)["metadata"]["managedFields"][0]["manager"]
        api.delete(path)
        await until(lambda: about(judged(observations), reference) == {})


async def test_a_missing_right_is_unknown_and_named_in_the_operator_as_well(auditor: Callable[..., Path]) -> None:
    async with observed(auditor(without="services")) as observations:
        refused_messages = refused(judged(observations))
    assert "list services" in refused_messages["k8s-public-lb"]


async def test_coredns_is_read_and_no_other_configmap(
    auditor: Callable[..., Path], plant: Callable[[str, Manifest], str]
) -> None:
    collection = "/api/v1/namespaces/kube-system/configmaps"
    reference = "v1/ConfigMap kube-system/coredns-custom"
    async with observed(auditor()) as observations:
        plant(collection, {"metadata": {"name": unique("other")}, "data": {"x.server": "forward . 8.8.8.8"}})
        plant(collection, {"metadata": {"name": "coredns-custom"}, "data": {"x.server": "forward . 8.8.8.8"}})
        await until(lambda: about(judged(observations), reference) == {"coredns-custom": Verdict.FAIL})
        assert [finding.resource for finding in judged(observations) if finding.check == "coredns-custom"][
            -1
        ] == reference
