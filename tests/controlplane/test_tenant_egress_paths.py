"""Every egress path that the audit finds in a cluster's objects, tried as a tenant: no field opens it.

The fixtures are those of the checks themselves. The tenant has the ClusterRole `edit` in a namespace with the label
hermetic.dev/tenant. For each fixture the API server refuses one of its objects: by a policy of manifests/tenants, or
because `edit` covers no such object. The page of the check says which (`tenant_policies`, `administrator`).
"""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermetic.audit.checks.registry import CHECKS
from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import wait_for
from testbed.kubectl import Kubectl
from testbed.kubernetes_plants import PLANTS, KubernetesPlant
from testbed.kubernetes_plants.pieces import NAMESPACE
from tests.controlplane.deployments import module_namespace
from tests.controlplane.test_tenant_rights import a_tenant
from tests.kubernetes_estates import sealed_cluster
from tests.scenarios import Manifest

POLICIES = Path(__file__).parents[2] / "manifests" / "tenants"
PAGES = {check.page.id: check.page for check in CHECKS}
DECIDING = {"critical", "high"}
CLOSING = sorted(name for name, plant in PLANTS.items() if plant.severity in DECIDING)
IMAGE = "contoso.azurecr.io/app@sha256:" + "0" * 64
# Their status holds the addresses that a controller gave them.
GIVEN_ADDRESSES = {"Service", "Ingress", "Gateway"}
# From Kubernetes 1.36 on; earlier ones leave it to the policy.
BY_THE_API_SERVER = "must not have an IPv4-mapped IPv6 address"
TRIED, CLOSED = "gates that a tenant tried to close", "gates that a tenant closed"
# Without the policy that closes its namespace a tenant's pod fails the audit: the platform team writes it first.
OF_THE_NAMESPACE = "k8s-default-deny-egress"


@dataclass(frozen=True)
class Refusal:
    """`policy` is "" where the rights of the account did not cover the object."""

    policy: str
    kind: str


@dataclass(frozen=True)
class Tenancy:
    api: Api
    tenant: Api
    namespace: str

    def refusal_of(self, plant: KubernetesPlant) -> Refusal | None:
        """The first refusal of what the plant adds; None where the API server admits all of it."""
        for manifest in added_by(plant):
            if (refusal := self.refusal_of_object(manifest)) is not None:
                return refusal
        return None

    def refusal_of_object(self, planted: Manifest) -> Refusal | None:
        """The refusal of one object, its status included; None where the API server admits it."""
        manifest = self._adapted(planted)
        kind = manifest["kind"]
        try:
            if "status" in manifest:
                status = f"{self._collection(manifest)}/{manifest['metadata']['name']}/status"
                self.tenant.merge(f"{status}?dryRun=All", {"status": manifest.pop("status")})
            self.tenant.create(f"{self._collection(manifest)}?dryRun=All", manifest)
        except ApiError as error:
            if error.status in {403, 404} and "hermetic-tenant" not in str(error):
                return Refusal("", kind)
            policy = re.search(r"hermetic-tenant-[a-z-]+", str(error))
            if policy is None and BY_THE_API_SERVER in str(error):
                return Refusal("", kind)
            if policy is None:  # a fixture that the API server does not take shows nothing
                raise
            return Refusal(policy[0], kind)
        return None

    def _collection(self, manifest: Manifest) -> str:
        version, plural = manifest["apiVersion"], plural_of(manifest["kind"])
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        namespace = manifest["metadata"].get("namespace")
        return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"

    def _adapted(self, manifest: Manifest) -> Manifest:
        """The object as the API server takes it: whole, under a name of its own, in the tenant's namespace."""
        adapted = copy.deepcopy(manifest)
        if adapted["kind"] not in GIVEN_ADDRESSES:
            adapted.pop("status", None)
        name = adapted["metadata"]["name"]
        if adapted["metadata"].get("namespace") == NAMESPACE:
            adapted["metadata"]["namespace"] = self.namespace
        if adapted["kind"] not in {"ConfigMap", "CustomResourceDefinition", "APIService", "Node"}:
            adapted["metadata"]["name"] = f"{name}-{secrets.token_hex(3)}".replace("_", "-")
        adapted["metadata"].pop("ownerReferences", None)
        completed(adapted)
        return adapted


def added_by(plant: KubernetesPlant) -> list[Manifest]:
    """The objects that a plant adds or changes, beside the closed namespace itself."""
    before = sealed_cluster()
    after = copy.deepcopy(before)
    plant.into(after)
    return [path for path in after if path not in before and not is_the_closed_namespace(path)]


def is_the_closed_namespace(manifest: Manifest) -> bool:
    return manifest["kind"] == "Namespace" or manifest["metadata"]["name"] == "default-deny"


def plural_of(kind: str) -> str:
    irregular = {
        "Endpoints": "endpoints",
        "NetworkPolicy": "networkpolicies",
        "Ingress": "ingresses",
        "NetworkAttachmentDefinition": "network-attachment-definitions",
    }
    name = kind.lower()
    ending = {"y": f"{name[:-1]}ies", "s": f"{name}es"}
    is_plain = name.endswith("ay")
    return irregular.get(kind) or (f"{name}s" if is_plain else ending.get(name[-1], f"{name}s"))


def completed(manifest: Manifest) -> None:
    """Fill in what the API server requires and a check does not read."""
    spec: dict[str, Any] = manifest.get("spec") or {}
    kind = manifest["kind"]
    if kind == "Pod":
        complete_pod(spec)
    elif kind == "CronJob":
        complete_template(spec["jobTemplate"]["spec"], job=True)
    elif "template" in spec:
        complete_template(spec, job=kind == "Job")
    if kind == "StatefulSet":
        spec["serviceName"] = "x"
    if kind == "Service" and spec.get("type") != "ExternalName":
        spec.setdefault("ports", [{"port": 80}])
    if kind == "Ingress" and not spec.get("rules"):
        spec.setdefault("defaultBackend", {"service": {"name": "x", "port": {"number": 80}}})


def complete_template(spec: Manifest, *, job: bool) -> None:
    template = spec["template"]
    template.setdefault("metadata", {})
    if job:
        template["spec"]["restartPolicy"] = "Never"
    else:
        template["metadata"]["labels"] = {"app": "x"}
        spec["selector"] = {"matchLabels": {"app": "x"}}
    complete_pod(template["spec"])


def complete_pod(spec: Manifest) -> None:
    spec.pop("serviceAccountName", None)  # a pod of another account needs that account
    if any("procMount" in (container.get("securityContext") or {}) for container in spec["containers"]):
        spec["hostUsers"] = False
    added = spec.pop("ephemeralContainers", [])  # these are added to a pod that runs; the same rule holds them
    spec["initContainers"] = [*spec.get("initContainers", []), *added]
    for container in (*spec["containers"], *spec["initContainers"]):
        container.setdefault("image", IMAGE)


@pytest.fixture(scope="module")
def tenancy(api: Api, cluster: Path, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenancy]:
    kubectl("apply", "-k", str(POLICIES))
    with module_namespace(api, "egress", **{"hermetic.dev/tenant": "true"}) as namespace:
        kubeconfig = tmp_path_factory.mktemp("tenant") / "kubeconfig"
        tenancy = Tenancy(api, a_tenant(api, cluster, namespace, kubeconfig), namespace)
        # One fixture of each policy: a policy that is not yet in force admits it.
        for name in ("pod_on_the_host_network", "balancer_without_annotation", "rule_for_every_address",
                     "ingress_by_application_gateway", "share_of_the_pods_own_outside"):  # fmt: skip
            wait_for(f"the policy for {name}", lambda n=name: _is_in_force(tenancy, n))
        yield tenancy
    kubectl("delete", "-k", str(POLICIES))


def _is_in_force(tenancy: Tenancy, name: str) -> bool:
    refusal = tenancy.refusal_of(PLANTS[name])
    return refusal is not None and bool(refusal.policy)


@pytest.mark.parametrize("name", CLOSING)
def test_no_path_of_the_audit_is_opened_by_a_tenant(tenancy: Tenancy, record_property: Any, name: str) -> None:
    plant = PLANTS[name]
    page = PAGES[plant.check]
    refusal = tenancy.refusal_of(plant)
    if plant.check == OF_THE_NAMESPACE:
        assert page.administrator, "the page says that the platform team writes the policy"
        return
    record_property(TRIED, 1)
    record_property(CLOSED, int(refusal is None))
    assert refusal is not None, f"{plant.title} The API server admits it from a tenant, and the audit fails"
    if refusal.policy:
        assert refusal.policy in page.tenant_policies, f"the page of {page.id} names {page.tenant_policies}"
    else:
        assert page.administrator, f"`edit` covers no {refusal.kind}, and the page of {page.id} gives no reason"
