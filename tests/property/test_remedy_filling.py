"""Whatever a resource is called, its name stays one word of the command of a remedy."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermetic.audit.remedies.filling import filled as filled_steps
from hermetic.audit.remedies.filling import filled_command, merged, values_of
from hermetic.audit.remedies.steps import RemedyStep, steps_of, text_of

SUBNET = "/subscriptions/s-1/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes"
CLUSTER = "/subscriptions/s-2/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/aks"
UPDATE = "az network vnet subnet update --resource-group RESOURCE_GROUP --name SUBNET_NAME --vnet-name VNET_NAME"
HOSTILE = [
    "a b",
    "a'b",
    'a"b',
    "$(id)",
    "`id`",
    "a;id",
    "a&b",
    "a|b",
    "a>b",
    "--yes",
    "-n",
    "*",
    "~",
    "a\\",
    "{x}",
    "#a",
]
UNTYPED = ["a\nb", "a\x00b", "\x1b[2J", "a\u202eb", "-x", "", "a" * 3000]


def with_names(name: str) -> dict[str, str]:
    return {"RESOURCE_GROUP": name, "SUBNET_NAME": name, "VNET_NAME": "vnet"}


def words_of(command: str) -> list[str]:
    """What a real shell makes of it; nothing but printf is run."""
    script = f"az() {{ printf '%s\\0' az \"$@\"; }}; {command}"
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=30, cwd="/")
    return ran.stdout.split("\0")[:-1]


@pytest.mark.parametrize("name", [name for name in HOSTILE if not name.startswith("-")])
def test_a_hostile_name_is_one_word_to_a_real_shell(name: str) -> None:
    expected = [with_names(name).get(word, word) for word in UPDATE.split()]
    assert words_of(filled_command(UPDATE, with_names(name))) == expected


@given(st.text(max_size=40))
@example("$(id)")
@example("a\nb")
@example("--yes")
@example("SUBNET_NAME")
def test_any_name_leaves_the_number_of_words_and_every_other_word_as_they_were(name: str) -> None:
    (step,) = filled_steps(steps_of(UPDATE), with_names(name))
    (command,) = step.commands
    assert "\n" not in command
    typed = shlex.split(command)
    assert len(typed) == len(UPDATE.split())
    assert all(
        word in {before, with_names(name).get(before, before)}
        for before, word in zip(UPDATE.split(), typed, strict=True)
    )
    assert steps_of(text_of([step])) == (step,)


@pytest.mark.parametrize("name", UNTYPED)
def test_a_name_that_cannot_be_typed_leaves_the_placeholder(name: str) -> None:
    (step,) = filled_steps(steps_of(UPDATE), with_names(name))
    assert step.commands == (UPDATE.replace("VNET_NAME", "vnet"),)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=40))
def test_a_value_within_a_document_stays_one_value_of_it(name: str) -> None:
    command = """kubectl patch aksnodeclass x --patch '{"spec":{"vnetSubnetID":"SUBNET_ID","count":1}}'"""
    typed = shlex.split(filled_command(command, {"SUBNET_ID": name}))
    assert json.loads(typed[-1]) == {"spec": {"vnetSubnetID": name, "count": 1}}
    assert len(typed) == 6


def test_short_notation_takes_plain_values_only() -> None:
    command = 'az dns-resolver policy vnet-link create --virtual-network "{id:VNET_ID}"'
    assert shlex.split(filled_command(command, {"VNET_ID": "/a/b-1"}))[-1] == "{id:/a/b-1}"
    assert filled_command(command, {"VNET_ID": "/a},{id:/b"}).endswith("'{id:VNET_ID}'")


def test_a_child_tells_its_parents_and_the_cluster_tells_itself() -> None:
    values = values_of(SUBNET, CLUSTER, "MC_rg")
    assert values["SUBNET_ID"] == values["RESOURCE_ID"] == SUBNET
    assert values["VNET_ID"] == values["PARENT_ID"] == SUBNET.rsplit("/", 2)[0]
    assert (values["SUBNET_NAME"], values["VNET_NAME"], values["RESOURCE_GROUP"]) == ("nodes", "vnet", "rg-net")
    assert (values["SUBSCRIPTION_ID"], values["CLUSTER_SUBSCRIPTION"]) == ("s-1", "s-2")
    assert (values["CLUSTER_NAME"], values["CLUSTER_GROUP"], values["NODE_GROUP"]) == ("aks", "rg", "MC_rg")


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("apps/v1/Deployment inference/llama", {"NAMESPACE": "inference", "NAME": "llama"}),
        ("v1/Node aks-gpu-0", {"NAME": "aks-gpu-0"}),
        ("agentPools/gpu/subnets/snet", {"POOL_NAME": "gpu"}),
        (
            "/subscriptions/s/resourceGroups/g/providers/microsoft.Compute/virtualMachineScaleSets/"
            "aks-gpu-31862004-vmss/virtualMachines/0/networkInterfaces/nic",
            {"POOL_NAME": "gpu", "SCALE_SET_NAME": "aks-gpu-31862004-vmss", "INSTANCE_NAME": "0"},
        ),
        ("a cluster named by a kubeconfig", {}),
    ],
)
def test_every_sort_of_resource_tells_its_names(resource: str, expected: dict[str, str]) -> None:
    values = values_of(resource, "kubeconfig-context")
    assert {name: values.get(name) for name in expected} == expected
    assert expected or values == {}


def test_two_remedies_of_one_resource_are_one_with_the_commands_of_both() -> None:
    first = (RemedyStep("Delete the rule.", "", ("az a --name one",)), RemedyStep("Then wait."))
    second = (RemedyStep("Delete the rule.", "", ("az a --name two",)), RemedyStep("Then wait."))
    assert merged(first, second) == (
        RemedyStep("Delete the rule.", "", ("az a --name one", "az a --name two")),
        first[1],
    )
    assert merged(first, (RemedyStep("Or leave it."),)) == (*first, RemedyStep("Or leave it."))
