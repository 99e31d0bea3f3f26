"""A DaemonSet of the platform for Windows has no pod in a cluster without a Windows node, and is not evaluated there.

Sources: github.com/Azure/AKS/issues/4952 and kubernetes/ingress-nginx/issues/13351 list such DaemonSets in clusters
without a Windows node; kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node for the selection of nodes.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.templates import DaemonSet
from hermetic.audit.model.findings import Verdict
from tests.kubernetes_estates import NODE, OF_TIGERA, Manifest, container, manifest, owned, pod, verdicts, with_one

OS = "kubernetes.io/os"
CHECKS = ("k8s-hostnetwork", "k8s-privileged")
NAME = "agent-of-a-later-release-win"
RIGHTS = {
    "hostNetwork": True,
    "containers": [
        container(image="mcr.microsoft.com/x/y:v1", securityContext={"windowsOptions": {"hostProcess": True}})
    ],
}
SELECTOR = {"nodeSelector": {OS: "windows"}}


def expression(operator: str = "In", key: str = OS, values: Any = ("windows",)) -> Manifest:
    return {"key": key, "operator": operator, "values": values if isinstance(values, str) else list(values)}


def affinity(*terms: Manifest, rule: str = "requiredDuringSchedulingIgnoredDuringExecution") -> Manifest:
    return {"affinity": {"nodeAffinity": {rule: {"nodeSelectorTerms": list(terms)}}}}


def term(*expressions: Manifest) -> Manifest:
    return {"matchExpressions": list(expressions)}


def daemon_set(choice: Manifest, *, namespace: str = "kube-system", status: Any = None) -> Manifest:
    status = {"desiredNumberScheduled": 0} if status is None else status
    return manifest(DaemonSet, NAME, namespace, spec={"template": {"spec": {**RIGHTS, **choice}}}, status=status)


def node(name: str = NODE, **labels: Any) -> Manifest:
    return manifest(Node, name, labels=labels, status={"addresses": [], "capacity": {}})


LINUX = node(**{OS: "linux"})


def verdict(*changes: Manifest, **how: Any) -> Verdict:
    """The worst verdict of the checks about the DaemonSet, in a sealed cluster with these objects."""
    manifests = with_one(LINUX)
    for change in changes:
        manifests = [
            *(
                manifest_before
                for manifest_before in manifests
                if manifest_before["metadata"]["name"] != change["metadata"]["name"]
            ),
            change,
        ]
    reached = {value for check in CHECKS for value in verdicts(check, manifests, **how).values()}
    return next(candidate for candidate in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS) if candidate in reached)


WINDOWS_ONLY = {
    "node selector": SELECTOR,
    "with another label": {"nodeSelector": {OS: "windows", "kubernetes.azure.com/cluster": "c"}},
    "required affinity": affinity(term(expression())),
    "one of several expressions": affinity(
        term(expression("Exists", "kubernetes.azure.com/cluster", ()), expression())
    ),
    "each of two terms": affinity(term(expression()), term(expression(), expression("In", "agentpool", ("w",)))),
    "selector beside an affinity for all": {**SELECTOR, **affinity(term(expression("Exists", OS, ())))},
}
ALSO_LINUX = {
    "nothing": {},
    "linux": {"nodeSelector": {OS: "linux"}},
    "another label": {"nodeSelector": {"os": "windows"}},
    "upper case": {"nodeSelector": {OS: "Windows"}},
    "not in": affinity(term(expression("NotIn"))),
    "not in linux": affinity(term(expression("NotIn", OS, ("linux",)))),
    "both systems": affinity(term(expression(values=("windows", "linux")))),
    "one of two terms": affinity(term(expression()), term(expression("Exists", "agentpool", ()))),
    "preferred only": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term(expression())}]
            }
        }
    },
    "no term": affinity(),
    "by fields": affinity({"matchFields": [expression(key="metadata.name")]}),
    "anti-affinity of pods": {"affinity": {"podAntiAffinity": {}}},
}


@pytest.mark.parametrize("choice", WINDOWS_ONLY.values(), ids=WINDOWS_ONLY)
def test_daemon_set_for_windows_without_windows_nodes_adds_nothing(choice: Manifest) -> None:
    assert verdict(daemon_set(choice)) is Verdict.PASS


@pytest.mark.parametrize("choice", ALSO_LINUX.values(), ids=ALSO_LINUX)
def test_daemon_set_that_linux_nodes_may_run_is_evaluated(choice: Manifest) -> None:
    assert verdict(daemon_set(choice)) is Verdict.FAIL


@pytest.mark.parametrize("choice", [{"nodeSelector": "x"}, {"affinity": "x"}, affinity(term(expression(values="x")))])
def test_daemon_set_with_unreadable_choice_of_nodes_does_not_pass(choice: Manifest) -> None:
    assert verdict(daemon_set(choice)) is not Verdict.PASS


@pytest.mark.parametrize("status", [{}, {"desiredNumberScheduled": 1}, {"desiredNumberScheduled": "x"}, "x"], ids=str)
def test_daemon_set_with_nodes_or_without_their_number_is_evaluated(status: Any) -> None:
    assert verdict(daemon_set(SELECTOR, status=status)) is Verdict.FAIL


@pytest.mark.parametrize(
    "other",
    [
        node("w", **{OS: "windows"}),
        node("w", **{OS: "Windows"}),
        node("w"),
        node("w", **{OS: 7}),
        node("w", **{"beta.kubernetes.io/os": "windows"}),
        node(NODE, **{OS: "windows"}),
    ],
    ids=["windows", "another case", "no label", "unreadable", "earlier label", "only node"],
)
def test_daemon_set_beside_node_not_known_as_linux_is_evaluated(other: Manifest) -> None:
    assert verdict(daemon_set(SELECTOR), other) is Verdict.FAIL


def test_daemon_set_with_unreadable_list_of_nodes_is_evaluated() -> None:
    assert verdict(daemon_set(SELECTOR), forbidden=[Node]) is Verdict.FAIL


def test_daemon_set_without_any_node_in_list_is_evaluated() -> None:
    manifests = [item for item in with_one(daemon_set(SELECTOR)) if item["kind"] != "Node"]
    assert Verdict.FAIL in verdicts("k8s-hostnetwork", manifests).values()


@pytest.mark.parametrize("namespace", ["inference", "team", "gatekeeper-system", "calico-system"])
def test_daemon_set_outside_namespaces_of_platform_is_evaluated(namespace: str) -> None:
    assert verdict(daemon_set(SELECTOR, namespace=namespace)) is Verdict.FAIL


def test_daemon_set_of_calico_where_calico_is_installed_adds_nothing() -> None:
    assert verdict(daemon_set(SELECTOR, namespace="calico-system"), OF_TIGERA) is Verdict.PASS


def test_pod_of_daemon_set_for_windows_is_evaluated() -> None:
    running = pod(f"{NAME}-x", "kube-system", ownerReferences=owned("DaemonSet", NAME), spec=RIGHTS)
    assert verdict(daemon_set(SELECTOR), running) is Verdict.FAIL


def test_projection_keeps_choice_of_nodes_of_templates_alone() -> None:
    projection = projected(DaemonSet, daemon_set({**SELECTOR, "tolerations": []}))
    assert projection["spec"]["template"]["spec"]["nodeSelector"] == SELECTOR["nodeSelector"]
    assert projection["status"] == {"desiredNumberScheduled": 0}
    assert not {"nodeSelector", "affinity"} & projected(Pod, pod("p", spec={**SELECTOR, "affinity": {}}))["spec"].keys()


def test_projection_of_daemon_set_with_pods_keeps_no_status() -> None:
    status = {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3}
    assert "status" not in projected(DaemonSet, daemon_set(SELECTOR, status=status))
