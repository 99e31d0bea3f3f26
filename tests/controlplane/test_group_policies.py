"""Models of several nodes under the policies: the operator's account may write what is rendered, and nothing wider."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from hermetic.objects.accelerator_checks import AcceleratorChecks
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.names import Owner
from hermetic.objects.weights_verifier import Signers, Verifier
from testbed.api import Api
from tests.controlplane.test_operator_account_policies import IMAGE, home, refusal, stolen
from tests.renderings import GROUP_RENDERINGS
from tests.scenarios import Manifest
from tests.snapshots import spec_of

__all__ = ["home", "stolen"]

Spoil = Callable[[Manifest], object]


def children(namespace: str, shape: str = "group") -> list[Manifest]:
    manifest = GROUP_RENDERINGS[shape]
    owner = Owner(namespace, manifest["metadata"]["name"], "7d3f9c52-0f5e-4c0f-9d0a-6f1f3f8f2b11")
    platform = PlatformSettings(
        Verifier(IMAGE, "Warn", Signers(("-----BEGIN PUBLIC KEY-----",))),
        accelerator_checks=AcceleratorChecks("Require"),
        head_addresses=("10.0.0.7",) * spec_of(manifest).wanted_replicas,
    )
    return [copy.deepcopy(child) for child in render(owner, spec_of(manifest), platform)]


def of_group(namespace: str, kind: str) -> Manifest:
    return next(
        child for child in children(namespace) if child["kind"] == kind and "-group-" in child["metadata"]["name"]
    )


@pytest.mark.parametrize("shape", GROUP_RENDERINGS)
def test_every_child_of_a_model_of_several_nodes_is_admitted(stolen: Api, home: str, shape: str) -> None:
    for child in children(home, shape):
        assert refusal(stolen, child, home) == "", (child["kind"], child["metadata"]["name"])


def container(manifest: Manifest) -> dict[str, Any]:
    engine: dict[str, Any] = manifest["spec"]["template"]["spec"]["containers"][0]
    return engine


def labelled(manifest: Manifest) -> dict[str, str]:
    labels: dict[str, str] = manifest["spec"]["template"]["metadata"]["labels"]
    return labels


STATEFUL_SETS: dict[str, Spoil] = {
    "another name": lambda manifest: manifest["metadata"].update(name="other-group-0"),
    "the name of the model": lambda manifest: manifest["metadata"].update(name="wide"),
    "no group label": lambda manifest: manifest["metadata"]["labels"].pop("hermetic.dev/group"),
    "another group": lambda manifest: manifest["metadata"]["labels"].update({"hermetic.dev/group": "1"}),
    "a group that is no number": lambda manifest: manifest["metadata"]["labels"].update({"hermetic.dev/group": "x"}),
    "pods of another group": lambda manifest: (
        labelled(manifest).update({"hermetic.dev/group": "1"}),
        manifest["spec"]["selector"]["matchLabels"].update({"hermetic.dev/group": "1"}),
    ),
    "a selector of every pod of the model": lambda manifest: manifest["spec"]["selector"]["matchLabels"].pop(
        "hermetic.dev/group"
    ),
    "claims": lambda manifest: manifest["spec"].update(
        volumeClaimTemplates=[
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ]
    ),
    "a rolling update": lambda manifest: manifest["spec"].update(updateStrategy={"type": "RollingUpdate"}),
    "one pod after the other": lambda manifest: manifest["spec"].update(podManagementPolicy="OrderedReady"),
    "other ranks": lambda manifest: manifest["spec"].update(ordinals={"start": 3}),
    "another program": lambda manifest: container(manifest).update(command=["sh", "-c", "id"]),
    "the command of a single pod": lambda manifest: container(manifest).update(
        command=[*container(manifest)["command"][:6], "vllm", "serve"]
    ),
    "another program around the engine": lambda manifest: container(manifest)["command"].__setitem__(11, "import os"),
    "a privileged container": lambda manifest: container(manifest)["securityContext"].update(
        allowPrivilegeEscalation=True
    ),
    "the network of the node": lambda manifest: manifest["spec"]["template"]["spec"].update(hostNetwork=True),
    "another account": lambda manifest: manifest["spec"]["template"]["spec"].update(serviceAccountName="default"),
    "a secret as a variable": lambda manifest: container(manifest)["env"].append(
        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}
    ),
    "another label as a variable": lambda manifest: container(manifest)["env"].append(
        {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}
    ),
}


@pytest.mark.parametrize("spoil", STATEFUL_SETS)
def test_stateful_set_that_is_not_rendered_is_refused(stolen: Api, home: str, spoil: str) -> None:
    stateful_set = of_group(home, "StatefulSet")
    STATEFUL_SETS[spoil](stateful_set)
    assert "hermetic-operator" in refusal(stolen, stateful_set, home)


def rule(manifest: Manifest, direction: str) -> dict[str, Any]:
    first_rule: dict[str, Any] = manifest["spec"][direction][0]
    return first_rule


ANY_POD: dict[str, Any] = {"podSelector": {}}
NETWORK_POLICIES: dict[str, Spoil] = {
    "egress to a range": lambda manifest: rule(manifest, "egress")["to"].append({"ipBlock": {"cidr": "10.0.0.0/8"}}),
    "egress to every pod": lambda manifest: rule(manifest, "egress").update(to=[ANY_POD]),
    "egress to other namespaces": lambda manifest: rule(manifest, "egress")["to"][0].update(namespaceSelector={}),
    "egress to all": lambda manifest: rule(manifest, "egress").pop("to"),
    "egress to the model": lambda manifest: rule(manifest, "egress")["to"][0]["podSelector"]["matchLabels"].pop(
        "hermetic.dev/group"
    ),
    "egress to another group": lambda manifest: rule(manifest, "egress")["to"][0]["podSelector"]["matchLabels"].update(
        {"hermetic.dev/group": "1"}
    ),
    "one more egress rule": lambda manifest: manifest["spec"]["egress"].append(
        {"ports": [{"protocol": "UDP", "port": 53}]}
    ),
    "every port": lambda manifest: rule(manifest, "egress").pop("ports"),
    "lower ports": lambda manifest: rule(manifest, "egress")["ports"][0].update(port=1),
    "UDP": lambda manifest: rule(manifest, "egress")["ports"][0].update(protocol="UDP"),
    "ingress from every pod": lambda manifest: rule(manifest, "ingress").update({"from": [ANY_POD]}),
    "ingress from all": lambda manifest: rule(manifest, "ingress").pop("from"),
    "no ingress part": lambda manifest: manifest["spec"].update(policyTypes=["Egress"]),
    "no egress part": lambda manifest: manifest["spec"].update(policyTypes=["Ingress"]),
    "the pods of the model": lambda manifest: manifest["spec"]["podSelector"]["matchLabels"].pop("hermetic.dev/group"),
    "every pod": lambda manifest: manifest["spec"].update(podSelector={}),
    "the policy of the model": lambda manifest: manifest["metadata"].update(name="wide"),
    "no group label": lambda manifest: manifest["metadata"]["labels"].pop("hermetic.dev/group"),
}


@pytest.mark.parametrize("spoil", NETWORK_POLICIES)
def test_network_policy_of_a_group_that_opens_more_is_refused(stolen: Api, home: str, spoil: str) -> None:
    policy = of_group(home, "NetworkPolicy")
    NETWORK_POLICIES[spoil](policy)
    assert "hermetic-operator" in refusal(stolen, policy, home)


SERVICES: dict[str, Spoil] = {
    "every rank": lambda manifest: manifest["spec"]["selector"].pop("apps.kubernetes.io/pod-index"),
    "another rank": lambda manifest: manifest["spec"]["selector"].update({"apps.kubernetes.io/pod-index": "1"}),
    "another group": lambda manifest: manifest["spec"]["selector"].update({"hermetic.dev/group": "1"}),
    "another model": lambda manifest: manifest["spec"]["selector"].update({"hermetic.dev/modeldeployment": "other"}),
    "a load balancer": lambda manifest: (
        manifest["spec"].update(type="LoadBalancer"),
        manifest["metadata"]
        .setdefault("annotations", {})
        .update({"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}),
    ),
}


@pytest.mark.parametrize("spoil", SERVICES)
def test_service_of_a_group_that_leads_elsewhere_is_refused(stolen: Api, home: str, spoil: str) -> None:
    service = of_group(home, "Service")
    SERVICES[spoil](service)
    assert "hermetic-operator-services" in refusal(stolen, service, home)
