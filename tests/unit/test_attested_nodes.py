"""Places of nodes, compared with the pools and subnets that an attestation lists.

Labels of nodes: Azure/karpenter-provider-azure, pkg/providers/labels (network-subnet, nodenetwork-vnetguid), and the
node labels that AKS sets (learn.microsoft.com/azure/aks/use-labels). Scale sets: `spec.providerID`, as
cloud-provider-azure writes it.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.audit.attestation.custom_resource import as_object
from hermetic.audit.attestation.verification import Expected
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.verdict.attested_nodes import nodes_attested
from hermetic.audit.verdict.inputs import ProbeRound, VerdictInputs
from hermetic.audit.verdict.node_places import place_of_ready_node, placed_nodes
from hermetic.audit.verdict.overall import standing_of
from tests.attestations import CLUSTER, NOW, SUBSCRIPTION, a_finding, a_report, an_ed25519_key, choose, signed, trust

KEY = an_ed25519_key()
SPEC = EgressAuditSpec.model_validate(
    {"cluster": CLUSTER, "probe": {"image": "contoso.azurecr.io/hermetic@sha256:" + "a" * 64}}
)
NETWORK = f"{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet"
NODES, BURST = f"{NETWORK}/subnets/nodes", f"{NETWORK}/subnets/burst"
SETS = f"{SUBSCRIPTION}/resourceGroups/MC_x/providers/Microsoft.Compute/virtualMachineScaleSets"
GPU_SET, SYSTEM_SET = f"{SETS}/aks-gpu-1-vmss", f"{SETS}/aks-system-1-vmss"
LONG = "snet-" + "x" * 70
IMAGE = "AKSUbuntu-2204gen2containerd-202607.14.0"
COVERAGE: dict[str, Any] = {
    "pools": [
        {"name": "gpu", "subnets": [NODES], "scaleSets": [GPU_SET], "nodeImage": IMAGE},
        {"name": "system", "subnets": [NODES], "scaleSets": [SYSTEM_SET], "nodeImage": IMAGE},
        {"name": "vms", "subnets": [f"{NETWORK}/subnets/{LONG}"], "scaleSets": [], "nodeImage": ""},
    ],
    "subnets": [{"id": NODES, "prefixes": ["10.1.0.0/24"]}, {"id": BURST, "prefixes": ["10.2.0.0/24"]}],
    "provisionedSubnets": [NODES],
}
AGENTPOOL, SUBNET_LABEL = "kubernetes.azure.com/agentpool", "kubernetes.azure.com/network-subnet"
NETWORK_LABEL, GROUP_LABEL = "kubernetes.azure.com/network-name", "kubernetes.azure.com/network-resourcegroup"
IMAGE_LABEL, NODEPOOL = "kubernetes.azure.com/node-image-version", "karpenter.sh/nodepool"


def a_node(
    labels: dict[str, str], machine: str = "", ready: str = "True", address: str = "10.1.0.4", **spec: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": "node-0", "labels": labels},
        "spec": {**({"providerID": f"azure://{machine}"} if machine else {}), **spec},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "addresses": [{"type": "InternalIP", "address": address}],
        },
    }


def of_set(scale_set: str) -> str:
    return f"{scale_set}/virtualMachines/3"


def standing(*nodes: dict[str, Any], coverage: dict[str, Any] | None = COVERAGE) -> Any:
    report = a_report(a_finding(), coverage=coverage)
    if coverage is None:
        del report["coverage"]
    choice = choose([as_object(signed(KEY, report))], trust(KEY), Expected(CLUSTER), NOW)
    node_places = (
        (node["metadata"]["name"], node_place)
        for node in nodes
        if (node_place := place_of_ready_node(node)) is not None
    )
    fine = Finding(
        "k8s-public-lb", "cluster", Verdict.PASS, Severity.CRITICAL, "NoPublicService", "no Service is public"
    )
    inputs = VerdictInputs(choice, (fine,), NOW, ProbeRound(NOW, 1), nodes=placed_nodes(node_places))
    condition = nodes_attested(SPEC, inputs)
    return standing_of(SPEC, inputs, NOW).verdict, condition.reason.value, condition.message


@pytest.mark.parametrize(
    ("labels", "machine"),
    [
        ({AGENTPOOL: "gpu"}, of_set(GPU_SET)),
        ({AGENTPOOL: "gpu", SUBNET_LABEL: "nodes"}, of_set(GPU_SET)),
        ({AGENTPOOL: "GPU", SUBNET_LABEL: "Nodes"}, of_set(GPU_SET.upper())),
        (
            {"agentpool": "system", SUBNET_LABEL: "nodes", NETWORK_LABEL: "vnet", GROUP_LABEL: "rg-net"},
            of_set(SYSTEM_SET),
        ),
        ({SUBNET_LABEL: "nodes"}, of_set(GPU_SET)),
        ({AGENTPOOL: "vms", SUBNET_LABEL: LONG[:63]}, f"{SUBSCRIPTION}/resourceGroups/MC_x/virtualMachines/aks-vms-1"),
        (
            {NODEPOOL: "default", SUBNET_LABEL: "nodes"},
            f"{SUBSCRIPTION}/resourceGroups/MC_x/virtualMachines/aks-default-1",
        ),
        ({NODEPOOL: "default"}, f"{SUBSCRIPTION}/resourceGroups/MC_x/virtualMachines/aks-default-1"),
        ({"type": "virtual-kubelet"}, ""),
    ],
)
def test_a_ready_node_of_an_attested_pool_and_subnet_keeps_the_pass(labels: dict[str, str], machine: str) -> None:
    assert standing(a_node(labels, machine))[:2] == (Verdict.PASS, "PlacesAttested")


@pytest.mark.parametrize(
    ("node", "named"),
    [
        (a_node({AGENTPOOL: "burst", SUBNET_LABEL: "nodes"}), "the pool 'burst'"),
        (a_node({AGENTPOOL: "gpu", SUBNET_LABEL: "burst"}, of_set(GPU_SET)), "the subnet 'burst'"),
        (a_node({AGENTPOOL: "gpu", SUBNET_LABEL: "nodes", NETWORK_LABEL: "vnet-2"}, of_set(GPU_SET)), "'vnet-2/nodes'"),
        (a_node({AGENTPOOL: "gpu", SUBNET_LABEL: "nodes", GROUP_LABEL: "rg-2"}, of_set(GPU_SET)), "the subnet 'nodes'"),
        (a_node({AGENTPOOL: "gpu"}, of_set(f"{SETS}/aks-gpu-2-vmss")), "aks-gpu-2-vmss"),
        (a_node({AGENTPOOL: "gpu"}, of_set(SYSTEM_SET)), "its scale set belongs to the pool 'system'"),
        (a_node({AGENTPOOL: "burst", "type": "virtual-kubelet"}), "the pool 'burst'"),
        (a_node({"type": "virtual-kubelet"}, of_set(f"{SETS}/aks-burst-1-vmss")), "no label of a pool"),
        (a_node({}), "no label of a pool"),
        (a_node({AGENTPOOL: "burst"}, unschedulable=True), "the pool 'burst'"),
        (a_node({NODEPOOL: "default", SUBNET_LABEL: "burst"}), "node auto provisioning"),
        (a_node({NODEPOOL: "default"}, address="10.9.0.4"), "node auto provisioning"),
        (a_node({NODEPOOL: "gpu", AGENTPOOL: "burst"}, of_set(f"{SETS}/aks-burst-1-vmss")), "the pool 'burst'"),
    ],
)
def test_a_ready_node_elsewhere_is_unknown_and_its_message_has_the_command(node: dict[str, Any], named: str) -> None:
    verdict, reason, message = standing(node)
    assert (verdict, reason) == (Verdict.UNKNOWN, "PoolNotAttested")
    assert named in message
    assert f"hermetic audit --azure {CLUSTER}" in message
    assert "kubectl apply -f" in message


def test_a_provisioned_node_elsewhere_asks_for_an_audit_that_reads_the_node_classes() -> None:
    assert f"--azure {CLUSTER} --kube --sign" in standing(a_node({NODEPOOL: "x", SUBNET_LABEL: "burst"}))[2]


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_changes_nothing(ready: str) -> None:
    assert standing(a_node({AGENTPOOL: "burst"}, ready=ready))[0] is Verdict.PASS


def test_an_attested_pool_that_grows_stays_pass_and_a_hundred_strangers_are_named_by_place() -> None:
    attested = [a_node({AGENTPOOL: "gpu"}, of_set(GPU_SET)) for _ in range(500)]
    assert standing(*attested)[0] is Verdict.PASS
    strangers = [a_node({AGENTPOOL: f"p{number % 50:02}"}) for number in range(100)]
    message = standing(*attested, *strangers)[2]
    assert "and 47 more" in message
    assert len(message) < 2048


def test_another_node_image_is_told_and_keeps_the_pass() -> None:
    node = a_node({AGENTPOOL: "gpu", IMAGE_LABEL: "AKSUbuntu-2204gen2containerd-202608.01.0"}, of_set(GPU_SET))
    verdict, reason, message = standing(node)
    assert (verdict, reason) == (Verdict.PASS, "PoolChanged")
    assert "202608.01.0" in message
    assert IMAGE in message


def test_an_attestation_without_the_list_is_unknown_once_a_node_is_ready() -> None:
    verdict, reason, message = standing(a_node({AGENTPOOL: "gpu"}), coverage=None)
    assert (verdict, reason) == (Verdict.UNKNOWN, "PoolNotAttested")
    assert "earlier release" in message
    assert "hermetic audit" in message
    assert standing(coverage=None)[0] is Verdict.PASS
