"""What a cluster refuses: quota, Pod Security, admission policies, rights, a namespace that goes away."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from testbed.api import Api
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl, KubectlError
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.kstatus import kstatus
from tests.renderings import RENDERINGS
from tests.scenarios import Manifest, a_baked_model, a_share_model, reporting

pytestmark = pytest.mark.sampled(4, of="refusals of the API server")

# ---------------------------------------------------------------------- quota


def test_quota_that_is_used_up_is_told_and_not_stuck_until_it_is_raised(served: Deployments):
    kubectl = served.kubectl.within(served.namespace)
    kubectl("create", "quota", "gpus", "--hard=requests.nvidia.com/gpu=0")
    served.wait("the quota counts", lambda: served.child("v1", "resourcequotas", "gpus")["status"].get("hard"))
    served.apply(reporting(a_baked_model("llama", endpoint={})))

    ready = served.until("llama", "QuotaExceeded")
    assert "requests.nvidia.com/gpu=0" in ready["message"]
    assert kstatus(served.get("llama")) == "InProgress"

    kubectl("delete", "quota", "gpus")
    served.until("llama", "Serving")


# ---------------------------------------------------------------------- Pod Security and admission

DENIES_PODS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "spec": {
        "matchConstraints": {"resourceRules": []},
        "validations": [{"expression": "false", "message": "team rule 7: not on a Friday"}],
    },
}


@pytest.fixture
def deny(served: Deployments) -> Iterator[Callable[..., None]]:
    """`deny("apps", "v1", "deployments")`: the cluster's policy refuses these in this namespace."""
    name = f"deny-{served.namespace}"

    def denied(group: str, version: str, plural: str, probe: Manifest) -> None:
        rule = {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": ["CREATE"]}
        spec = {**DENIES_PODS["spec"], "matchConstraints": {"resourceRules": [rule]}}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": served.namespace}}
        binding = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": selector},
            },
        }
        served.kubectl.apply({**DENIES_PODS, "metadata": {"name": name}, "spec": spec}, binding)
        served.wait("the policy is in force", lambda: _is_refused(served, probe))

    yield denied
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        served.kubectl("delete", kind, name, "--ignore-not-found", "--wait=false")


def _is_refused(served: Deployments, probe: Manifest) -> bool:
    try:
        served.kubectl.within(served.namespace)("create", "--dry-run=server", "--filename=-", stdin=probe)
    except KubectlError as error:
        return "team rule 7" in str(error)
    return False


A_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {"containers": [{"name": "probe", "image": "registry.test/probe"}]},
}
A_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "probe"},
    "spec": {
        "selector": {"matchLabels": {"app": "probe"}},
        "template": {"metadata": {"labels": {"app": "probe"}}, "spec": A_POD["spec"]},
    },
}


@pytest.mark.parametrize(
    "refused",
    [("", "v1", "pods", A_POD), ("apps", "v1", "deployments", A_DEPLOYMENT)],
    ids=["its pods", "its Deployment"],
)
def test_admission_policy_that_refuses_is_quoted(refused: tuple[str, str, str, Manifest], served, deny):
    deny(*refused)
    served.apply(reporting(a_baked_model("llama", endpoint={})))

    ready = served.until("llama", "AdmissionDenied")

    assert "team rule 7: not on a Friday" in ready["message"]
    assert kstatus(served.get("llama")) == "Failed"


def test_every_pod_of_ours_is_admitted_where_pod_security_is_restricted(
    hermetic: OperatorProcess, api: Api, kubectl: Kubectl
):
    """The API server's own judge, over every shape that can be rendered."""
    level = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}
    with module_namespace(api, "restricted", **level) as namespace:
        deployments = Deployments(api, kubectl, namespace, hermetic)
        deployments.apply(*(reporting(manifest) for manifest in RENDERINGS.values()))
        names = [manifest["metadata"]["name"] for manifest in RENDERINGS.values()]
        for name in names:
            deployments.wait(f"a pod of {name}", lambda n=name: deployments.pods(n))
            conditions = deployments.workload(name)["status"].get("conditions", ())
            assert "ReplicaFailure" not in {condition["type"] for condition in conditions}


def test_pod_that_pod_security_refuses_is_told_with_the_rule(served: Deployments, api: Api):
    """A mutation of others makes our pod privileged: that is refused, and not our doing."""
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api.merge(f"/api/v1/namespaces/{served.namespace}", label)
    name = f"mutate-{served.namespace}"
    served.kubectl.apply(*a_mutation(name, served.namespace))
    try:
        served.wait("the mutation is in force", lambda: _is_mutated(served))
        served.apply(reporting(a_baked_model("llama", endpoint={})))
        ready = served.until("llama", "PodSecurityViolation")
        judged = kstatus(served.get("llama"))  # while it lasts: without the mutation the next pod is admitted
    finally:
        for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
            served.kubectl("delete", kind, name, "--ignore-not-found", "--wait=false")
    assert 'violates PodSecurity "restricted' in ready["message"]
    assert "host namespaces" in ready["message"]
    assert judged == "Failed"


def a_mutation(name: str, namespace: str) -> tuple[Manifest, Manifest]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    patch = {"expression": "Object{spec: Object.spec{hostNetwork: true}}"}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [rule]},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": patch}],
        },
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "matchResources": {"namespaceSelector": selector}},
    }
    return policy, binding


def _is_mutated(served: Deployments) -> bool:
    restricted = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "probe", "image": "registry.test/probe", "securityContext": restricted}
    probe = {**A_POD, "spec": {"containers": [container]}}
    try:
        served.kubectl.within(served.namespace)("create", "--dry-run=server", "--filename=-", stdin=probe)
    except KubectlError as error:
        return "host namespaces" in str(error)
    return False


# ---------------------------------------------------------------------- rights and namespaces


def test_lost_permission_is_named_with_verb_and_resource_and_others_go_on(served: Deployments):
    role = served.kubectl.json("get", "clusterrole", "hermetic-operator-models")
    weakened = [rule for rule in role["rules"] if "networkpolicies" not in rule.get("resources", ())]
    assert len(weakened) < len(role["rules"])
    served.apply(reporting(a_baked_model("before", endpoint={})))
    served.until("before", "Serving")
    served.api.merge("/apis/rbac.authorization.k8s.io/v1/clusterroles/hermetic-operator-models", {"rules": weakened})
    try:
        served.apply(reporting(a_baked_model("llama", endpoint={})))
        ready = served.until("llama", "PermissionLost")
        assert "may not 'patch' resource 'networkpolicies'" in ready["message"]
        assert kstatus(served.get("llama")) == "Failed"
        assert served.condition("before")["status"] == "True"
        assert served.workload("llama") is None, "no pod without its network policy"
    finally:
        rules = {"rules": role["rules"]}
        served.api.merge("/apis/rbac.authorization.k8s.io/v1/clusterroles/hermetic-operator-models", rules)
    served.until("llama", "Serving")


def test_namespace_that_goes_away_is_not_fought_for(served: Deployments, api: Api):
    """Its children are deleted one by one before it; each of them is missed at most a few times."""
    served.apply(reporting(a_share_model("llama", endpoint={})))
    served.until("llama", "Serving")

    api.delete(f"/api/v1/namespaces/{served.namespace}")

    served.wait("no child is left", lambda: not served.workload("llama") and not _claims(served))
    lines = [line for line in served.operator.log_lines() if line.get("ns") == served.namespace]
    refused = [line for line in lines if line.get("result") in {"refused", "retried"}]
    assert len(refused) <= 12
    assert {line.get("reason") for line in refused} <= {"NamespaceTerminating"}


def _claims(served: Deployments) -> list[Manifest]:
    claims: list[Manifest] = served.api.get(f"/api/v1/namespaces/{served.namespace}/persistentvolumeclaims")["items"]
    return claims
