"""Waits until an API server enforces the admission policies that were applied before.

It compiles them in rounds, seconds after they were stored. One more policy, made last, refuses an object of its own:
once it does, those before it are in force.
"""

from __future__ import annotations

from testbed.kubectl import Kubectl, KubectlError, Manifest
from testbed.processes import wait_until

NAME = "policies-in-force"
SECONDS = 120.0


def wait_for_policies(kubectl: Kubectl) -> None:
    """Returns when every policy that was applied before counts; leaves nothing behind."""
    policy, binding = _canary()
    kubectl.apply(policy)
    kubectl.apply(binding)
    wait_until("the admission policies to be in force", lambda: _is_refused(kubectl), (), SECONDS)
    kubectl("delete", "--filename=-", stdin=[binding, policy])


def _is_refused(kubectl: Kubectl) -> bool:
    try:
        kubectl.within("default")("create", "configmap", NAME, "--dry-run=server")
    except KubectlError as error:
        if NAME not in str(error).rpartition("denied request")[2]:
            raise
        return True
    return False


def _canary() -> tuple[Manifest, Manifest]:
    group = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    policy = {
        "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [NAME]}]},
        "validations": [{"expression": "false", "message": f"{NAME}: yes"}],
    }
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    metadata = {"metadata": {"name": NAME}}
    return (
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicy", **metadata, "spec": policy},
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", **metadata, "spec": binding},
    )
