"""From a question to its URL: below the parent, in a scope, or attached to a resource; and never somewhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.estate.questions import Problem, UnreadReason, Verb
from hermetic.collect.azure.allowed_requests import must_read
from hermetic.collect.azure.paths import ask_for
from hermetic.collect.azure.replies import Ask
from tests.azure_collecting import question
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

S = "/subscriptions/0000"
G = f"{S}/resourceGroups/g"
N = f"{G}/providers/Microsoft.Network"
VMSS = f"{G}/providers/Microsoft.Compute/virtualMachineScaleSets/aks"
MACHINES = f"{G}/providers/Microsoft.Compute/virtualMachines"
CLUSTER = f"{G}/providers/Microsoft.ContainerService/managedClusters/c"
REGISTRY = f"{G}/providers/Microsoft.ContainerRegistry/registries/r"


@pytest.mark.parametrize(
    ("verb", "kind", "target", "version", "expected"),
    [
        ("get", "Microsoft.Network/virtualNetworks", f"{N}/virtualNetworks/v", "2025-05-01", f"{N}/virtualNetworks/v"),
        ("get", "Microsoft.Resources/subscriptions", S, "2022-12-01", S),
        ("get", "Microsoft.Network/natGateways", f"{N}/natGateways/a b(1)/", "2025-05-01", f"{N}/natGateways/a%20b(1)"),
        ("list", "Microsoft.Network/natGateways", S, "2025-05-01", f"{S}/providers/Microsoft.Network/natGateways"),
        ("list", "Microsoft.Network/natGateways", f"{G}/", "2025-05-01", f"{N}/natGateways"),
        (
            "list",
            "Microsoft.Network/virtualNetworks/virtualNetworkPeerings",
            f"{N}/virtualNetworks/v",
            "2025-05-01",
            f"{N}/virtualNetworks/v/virtualNetworkPeerings",
        ),
        (
            "list",
            "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces",
            VMSS.replace("Microsoft", "microsoft"),
            "2018-10-01",
            VMSS.replace("Microsoft", "microsoft") + "/networkInterfaces",
        ),
        (
            "list",
            "Microsoft.Authorization/roleAssignments",
            REGISTRY,
            "2022-04-01",
            f"{REGISTRY}/providers/Microsoft.Authorization/roleAssignments",
        ),
        (
            "list",
            "Microsoft.KubernetesConfiguration/extensions",
            CLUSTER,
            "2023-05-01",
            f"{CLUSTER}/providers/Microsoft.KubernetesConfiguration/extensions",
        ),
    ],
)
def test_gets_and_lists_become_the_paths_that_arm_documents(
    verb: str, kind: str, target: str, version: str, expected: str
) -> None:
    ask = ask_for(question(verb, kind, target, version))
    assert isinstance(ask, Ask)
    assert (ask.method, ask.target) == ("GET", f"{expected}?api-version={version}")
    assert ask.permission == f"{kind}/read"


def test_an_action_is_posted_to_the_resource_with_its_body() -> None:
    kind, watcher = "Microsoft.Network/networkWatchers", f"{N}/networkWatchers/w"
    ask = ask_for(question("post", kind, watcher, action="nextHop", body='{"a":1}'))
    assert ask == Ask("POST", f"{watcher}/nextHop?api-version=2025-05-01", f"{kind}/nextHop/action", {"a": 1})


@pytest.mark.parametrize(
    ("verb", "kind", "target"),
    [
        ("get", "Microsoft.Network/natGateways", "not an id"),
        ("get", "Microsoft.Network/natGateways", "https://evil.example/subscriptions/s"),
        ("get", "Microsoft.Network/natGateways", f"{N}/natGateways/../../../../s2"),
        ("get", "Microsoft.Network/natGateways", f"{N}//natGateways"),
        ("get", "Microsoft.Network/natGateways", f"{N}/natGateways/a\r\nX: y"),
        ("get", "Microsoft.Network/natGateways", f"{N}/natGateways/\ud800"),
        ("list", "Microsoft.Network/virtualNetworks/subnets", S),
        ("list", "Microsoft.Network/virtualNetworks/subnets", f"{N}/routeTables/r"),
        ("get", "../x", S),
    ],
)
def test_what_is_no_id_is_unreadable_and_never_sent(verb: str, kind: str, target: str) -> None:
    ask_result = ask_for(question(verb, kind, target))
    assert isinstance(ask_result, Problem)
    assert ask_result.reason is UnreadReason.UNREADABLE


@given(st.text(max_size=60))
def test_an_id_out_of_an_answer_cannot_become_another_request(name: str) -> None:
    target = f"{N}/networkInterfaces/{name}"
    ask_result = ask_for(question("get", "Microsoft.Network/networkInterfaces", target))
    if isinstance(ask_result, Ask):
        must_read("GET", ask_result.target)
        path, _, query = ask_result.target.partition("?")
        assert query == "api-version=2025-05-01"
        assert path.startswith(f"{N}/networkInterfaces")
        assert not {".", ".."} & set(path.split("/"))


@pytest.mark.parametrize(
    ("verb", "kind", "target", "path"),
    [
        ("list", "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", VMSS, f"{VMSS}/virtualMachines"),
        ("get", "Microsoft.Compute/virtualMachines", f"{MACHINES}/vm", f"{MACHINES}/vm"),
    ],
)
def test_machines_are_asked_with_what_their_agents_report(verb: Verb, kind: str, target: str, path: str) -> None:
    ask = ask_for(question(verb, kind, target, "2025-04-01"))
    assert isinstance(ask, Ask)
    assert ask.target == f"{path}?api-version=2025-04-01&$expand=instanceView"
