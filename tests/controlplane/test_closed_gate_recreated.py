"""What is deleted and created again under its name: nodes, and, behind a closed gate, the EgressAudit and a namespace.

Also the Lease that the policies read, as it is touched by a tenant and with the operator's own token.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError, CannotRunError
from testbed.fleet import Pool, node
from testbed.installation import wait_for
from testbed.programs import programs
from tests.controlplane.deployments import Deployments
from tests.controlplane.sealed_cluster import (
    AUDIT,
    GPU_NODES,
    JOBS,
    SealedCluster,
    a_finding,
    sealed,
    sealed_cluster,
)
from tests.scenarios import Manifest, a_baked_model

__all__ = ["sealed"]

pytestmark = pytest.mark.sampled(2, of="objects that are created again on a real API server")

LEASE = "/apis/coordination.k8s.io/v1/namespaces/hermetic-system/leases/hermetic"
UNTIL, ENFORCED = "hermetic.dev/pods-until", "hermetic.dev/enforced-models"
OPEN = a_finding("Fail", "natgw-inventory", message="a NAT gateway is attached")
RUN = "hermetic.dev/probe-run"


@pytest.fixture(scope="module")
def sealed_module(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[SealedCluster]:
    """A cluster in which every model must be proven, as it is by default."""
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    minimum = {"minimumEnforcement": "Enforce"}
    with sealed_cluster(tmp_path_factory.mktemp("recreated"), component_logs, isolation=minimum) as cluster:
        yield cluster


@pytest.fixture
def home(sealed: SealedCluster) -> Iterator[Deployments]:
    """A namespace behind an open gate."""
    namespace = sealed.namespace()
    sealed.open_gate()
    yield namespace
    sealed.api.delete(f"/api/v1/namespaces/{namespace.namespace}")


def a_model() -> Manifest:
    return a_baked_model("llama", endpoint={}, drainSeconds=5)


def close(sealed: SealedCluster) -> None:
    sealed.attest(OPEN, says={"verdict": "Fail"})
    sealed.until("Fail")
    assert annotations(sealed)[UNTIL] == "", "the Lease is written before the status"


def annotations(sealed: SealedCluster) -> dict[str, str]:
    written: dict[str, str] = sealed.api.get(LEASE)["metadata"].get("annotations") or {}
    return written


def uids(home: Deployments) -> set[str]:
    return {pod["metadata"]["uid"] for pod in home.pods("llama")}


def rounds(sealed: SealedCluster) -> set[str]:
    jobs = sealed.api.get(JOBS.format(sealed.installation.configuration.probe_namespace))["items"]
    return {job["metadata"]["labels"][RUN] for job in jobs}


def is_gone(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError as error:
        return error.status == 404
    return False


def a_machine(name: str, number: int) -> Manifest:
    """The Node of another machine of this name, as the kubelet of a reimaged instance registers it."""
    manifest = copy.deepcopy(node(Pool("gpu"), number))
    assert manifest["metadata"]["name"] == name
    manifest["status"]["nodeInfo"] |= {"machineID": "b" * 32, "bootID": "00000000-0000-0000-0000-00000000000b"}
    manifest["spec"]["providerID"] += "-reimaged"
    return manifest


def test_node_that_is_created_again_under_its_name_is_probed_anew(sealed: SealedCluster, home: Deployments) -> None:
    """One round covers both machines of the name; only the machine's own ids tell them apart."""
    sealed.at_rest()
    before, name = rounds(sealed), sealed.nodes[0]
    sealed.api.delete(f"/api/v1/nodes/{name}")
    sealed.api.create("/api/v1/nodes", a_machine(name, 0))
    home.wait("another round", lambda: rounds(sealed) - before, timeout=120)
    sealed.until("Pass")


def test_node_that_is_reimaged_in_place_is_probed_anew(sealed: SealedCluster, home: Deployments) -> None:
    """The Node stays: its kubelet reports another boot (kubernetes.io/docs/reference/node/node-status, nodeInfo)."""
    sealed.at_rest()
    before, path = rounds(sealed), f"/api/v1/nodes/{sealed.nodes[1]}"
    info = {"bootID": "00000000-0000-0000-0000-00000000000c"}
    sealed.api.merge(f"{path}/status", {"status": {"nodeInfo": info}})
    home.wait("another round", lambda: rounds(sealed) - before, timeout=120)
    sealed.until("Pass")


def test_audit_that_is_created_again_behind_a_closed_gate_starts_nothing(
    sealed: SealedCluster, home: Deployments
) -> None:
    home.apply(a_model())
    home.until("llama", "Serving")
    before = uids(home)
    close(sealed)
    home.change("llama", replicas=2)
    former = sealed.api.get(AUDIT)["metadata"]["uid"]
    sealed.api.delete(AUDIT)
    sealed.apply_audit()
    assert sealed.api.get(AUDIT)["metadata"]["uid"] != former
    sealed.until("Fail")
    home.until("llama", "IsolationBroken")
    assert uids(home) == before
    assert annotations(sealed)[UNTIL] == ""

    sealed.attest()
    home.wait("the second pod", lambda: len(uids(home)) == 2)


def test_namespace_that_is_created_again_behind_a_closed_gate_starts_nothing(
    sealed: SealedCluster, home: Deployments
) -> None:
    home.apply(a_model())
    home.until("llama", "Serving")
    close(sealed)
    path = f"/api/v1/namespaces/{home.namespace}"
    sealed.api.delete(path)
    wait_for("its end", lambda: is_gone(sealed.api, path), timeout=120)
    sealed.api.create("/api/v1/namespaces", {"metadata": {"name": home.namespace}})
    successor = sealed.namespace(home.namespace)
    successor.apply(a_model())
    successor.until("llama", "IsolationBroken")
    assert successor.pods("llama") == []

    sealed.attest()
    successor.until("llama", "Serving", timeout=120)


@pytest.mark.parametrize("verb", ["get", "change", "delete"])
def test_tenant_with_edit_cannot_touch_the_lease(sealed: SealedCluster, home: Deployments, verb: str) -> None:
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{home.namespace}/rolebindings"
    user = {"kind": "User", "name": "tenant", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "edit", "apiGroup": "rbac.authorization.k8s.io"}
    sealed.api.create(bindings, {"metadata": {"name": "tenant"}, "subjects": [user], "roleRef": role})
    tenant = Api(sealed.plane.kubeconfig_for("tenant"))
    home.wait("its rights", lambda: not is_forbidden(tenant, f"/api/v1/namespaces/{home.namespace}/pods"))
    before = annotations(sealed)
    attempts: dict[str, Any] = {
        "get": lambda: tenant.get(LEASE),
        "change": lambda: tenant.merge(LEASE, {"metadata": {"annotations": {UNTIL: "2099-01-01T00:00:00Z"}}}),
        "delete": lambda: tenant.delete(LEASE),
    }
    with pytest.raises(ApiError) as refused:
        attempts[verb]()
    assert refused.value.status == 403
    assert annotations(sealed).keys() == before.keys()
    assert annotations(sealed)[UNTIL] < "2099"


def is_forbidden(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError as error:
        return error.status == 403
    return False


@pytest.mark.parametrize("forged", [{UNTIL: "2099-01-01T00:00:00Z"}, {ENFORCED: ""}], ids=["moment", "names"])
def test_operator_corrects_a_lease_that_its_own_token_changed(
    sealed: SealedCluster, home: Deployments, forged: dict[str, str]
) -> None:
    """The token may update the Lease; the operator writes both annotations with its next renewal, ten seconds apart."""
    home.apply(a_baked_model("llama", endpoint={}, drainSeconds=5, replicas=GPU_NODES))
    home.wait("named", lambda: f"{home.namespace}/llama" in annotations(sealed)[ENFORCED].split(","))
    home.until("llama", "Serving", timeout=120)
    close(sealed)
    stolen = Api(sealed.operator.kubeconfig)
    with pytest.raises(ApiError, match="forbidden"):
        stolen.delete(LEASE)

    def forge() -> bool:
        lease = stolen.get(LEASE)
        lease["metadata"]["annotations"] |= forged
        try:
            stolen.replace(LEASE, lease)
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        return True

    home.wait("the forgery", forge)

    def is_corrected() -> bool:
        written = annotations(sealed)
        return not written[UNTIL] and f"{home.namespace}/llama" in written[ENFORCED].split(",")

    home.wait("the correction", is_corrected, timeout=20)


# ---------------------------------------------------------------------- a namespace that is being deleted


@pytest.fixture
def terminating(sealed: SealedCluster) -> Iterator[Deployments]:
    """Behind an open gate: a namespace whose policies are deleted, and a Deployment without pods is not.

    The Deployment's finalizer keeps it in the state in which the namespaces of others are for about a second.
    """
    made = sealed.namespace()
    sealed.open_gate()
    web = made.api.create(DEPLOYMENTS.format(made.namespace), {**RESTING, "metadata": {"name": "web"} | HELD})
    made.api.delete(f"/api/v1/namespaces/{made.namespace}")
    policies = f"/apis/networking.k8s.io/v1/namespaces/{made.namespace}/networkpolicies"
    sealed.wait("policies deleted", lambda: not made.api.get(policies)["items"])
    yield made
    path = f"{DEPLOYMENTS.format(made.namespace)}/{web['metadata']['name']}"
    assert made.api.get(path)["metadata"]["deletionTimestamp"], "it outlasted the test"
    made.api.merge(path, {"metadata": {"finalizers": None}})


def test_controller_without_pods_in_a_terminating_namespace_is_no_egress_path(
    sealed: SealedCluster, terminating: Deployments
) -> None:
    other = f"open-{terminating.namespace}"
    terminating.api.create("/api/v1/namespaces", {"metadata": {"name": other}})
    terminating.api.create(DEPLOYMENTS.format(other), {**RESTING, "metadata": {"name": "web"}})
    findings = sealed.until("Fail")["findings"]
    terminating.api.delete(f"/api/v1/namespaces/{other}")

    sealed.until("Pass")
    resources = [finding["resource"] for finding in findings if finding["check"] == "k8s-default-deny-egress"]
    assert resources == [f"v1/Namespace {other}"]


DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
HELD = {"finalizers": ["tests.example/held"]}
RESTING = {
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": f"contoso.azurecr.io/app@sha256:{'0' * 64}"}]},
        },
    }
}
