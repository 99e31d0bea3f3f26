"""What every remedy of a page keeps to, and what becomes of it where AKS manages the resource."""

from __future__ import annotations

import re
import shlex

import pytest

from hermetic.audit.remedies.of_finding import IN_THE_NODE_GROUP, RemedyContext, filled_remedy
from hermetic.audit.remedies.placeholders import CHOSEN, FROM_THE_CHECK, FROM_THE_CLUSTER, FROM_THE_RESOURCE
from hermetic.audit.remedies.steps import RemedyStep, steps_of
from tests.remedy_commands import KNOWN, page_steps, placeholders_in

PAGES = list(page_steps())
STEPS = [(check, step) for check, text in PAGES for step in steps_of(text)]
COMMANDS = [(check, command) for check, step in STEPS for command in step.commands]
CLUSTER = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/aks"
BALANCER = "/subscriptions/s/resourceGroups/{}/providers/Microsoft.Network/loadBalancers/lb"
DELETE = "az network lb delete --ids LOAD_BALANCER_ID"


def test_a_page_knows_every_placeholder_that_it_uses() -> None:
    unknown = {(check, word) for check, command in COMMANDS for word in placeholders_in(command) if word not in KNOWN}
    assert unknown == set()


def test_prose_holds_no_placeholder_and_no_command_that_is_not_marked_as_one() -> None:
    for check, step in STEPS:
        prose = f"{step.explanation} {step.warning}"
        assert not set(placeholders_in(prose)) & KNOWN, check
        assert not re.search(r"(?<![`'])\b(az|kubectl) [a-z]+[^.,;:]* --", prose), check


@pytest.mark.parametrize(
    ("check", "command"), [command_of for command_of in COMMANDS if "--resource-group" in command_of[1]]
)
def test_a_command_about_a_group_says_of_which_subscription_and_of_the_cluster_its_own(
    check: str, command: str
) -> None:
    arguments = shlex.split(command)
    group = arguments[arguments.index("--resource-group") + 1]
    if (group, check) not in {("NSG_GROUP", "probe-storage"), ("LOAD_BALANCER_GROUP", "imds-lb")}:
        assert "--subscription" in arguments
    if "CLUSTER_NAME" in arguments:
        assert group == "CLUSTER_GROUP"
        assert arguments[arguments.index("--subscription") + 1] == "CLUSTER_SUBSCRIPTION"


DESTRUCTIVE = re.compile(
    r"\b(delete|remove|disable|reject|deallocate|restart)\b|(aks|nodepool) upgrade|--disable-|--remove | none$"
)


@pytest.mark.parametrize(
    ("check", "step"),
    [remedy_step for remedy_step in STEPS if any(DESTRUCTIVE.search(command) for command in remedy_step[1].commands)],
)
def test_a_step_that_takes_something_away_says_what_it_can_cut_off(check: str, step: RemedyStep) -> None:
    assert step.warning or check in HARMLESS, step


# What these take away carries no packet that is needed.
HARMLESS = {
    "natgw-inventory",
    "vnet-nat-gateway",
    "csi-nfs-storageclass",
    "aks-arc",
    "aks-addons",
    "route-table-missing",
}


def test_a_placeholder_is_filled_by_a_finding_or_chosen_and_not_both() -> None:
    assert not CHOSEN.keys() & {*FROM_THE_RESOURCE, *FROM_THE_CLUSTER, *FROM_THE_CHECK}


def test_what_aks_manages_is_told_so_with_the_way_that_lasts() -> None:
    around, managed = RemedyContext(CLUSTER, "MC_rg"), BALANCER.format("mc_RG")
    remedy = filled_remedy(DELETE, "Ask AKS:\naz aks update --name CLUSTER_NAME", managed, around)
    assert remedy == f"{IN_THE_NODE_GROUP} Ask AKS:\naz aks update --name aks"
    assert filled_remedy(DELETE, "", managed, around) == f"{IN_THE_NODE_GROUP}\naz network lb delete --ids {managed}"


@pytest.mark.parametrize(
    ("text", "group", "node_group"),
    [
        (DELETE, "rg-of-ours", "MC_rg"),
        (DELETE, "MC_rg", ""),
        ("az network lb show --ids LOAD_BALANCER_ID", "MC_rg", "MC_rg"),
        ("az network nic list-effective-nsg --ids LOAD_BALANCER_ID", "MC_rg", "MC_rg"),
        ("az aks update --name CLUSTER_NAME --outbound-type none", "MC_rg", "MC_rg"),
    ],
)
def test_what_changes_nothing_there_is_told_as_it_is(text: str, group: str, node_group: str) -> None:
    remedy = filled_remedy(text, "Something else.", BALANCER.format(group), RemedyContext(CLUSTER, node_group))
    assert IN_THE_NODE_GROUP not in remedy
    assert "Something else." not in remedy
