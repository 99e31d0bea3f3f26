"""The real az CLI understands every az command of Hermetic's pages and remedies: group, options, required ones."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from hermetic.audit.remedies.steps import steps_of
from testbed.azure_cli.installing import Answer, azure_cli, parsed
from tests.commands.extensions import COMMANDS, GLOBAL, OPTIONS, OPTIONS_FROM
from tests.remedy_commands import GROUP, Typed, commands_of, page_steps

pytestmark = pytest.mark.sampled(3, of="the real az")

SUBNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
ROUTE = "az network route-table route update -g rg --route-table-name t --name r --next-hop-type None"
SECURITY_RULE = "az dns-resolver policy dns-security-rule create -g rg --policy-name p --name block"

Parse = Callable[[list[str]], list[Answer]]


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    """Before the first test: a cold installation takes longer than any test may."""
    azure_cli()


def added_by(words: list[str]) -> str:
    """The command of an extension that the words begin with; "" where there is none."""
    return next((name for name in COMMANDS if words[: len(name.split())] == name.split()), "")


def without_added_options(words: list[str]) -> list[str]:
    """The words with what aks-preview adds taken off."""
    text = "\0".join(("", *words, ""))
    for added, instead in OPTIONS.items():
        text = text.replace("\0".join(("", *added, "")), "\0".join(("", *instead, "")))
    return text.strip("\0").split("\0")


def problem_of_added(words: list[str]) -> str:
    """What is wrong with a command of an extension, by the table."""
    added = COMMANDS[added_by(words)]
    options = {word for word in words if word.startswith("--")}
    missing, unknown = added.needed - options, options - added.needed - added.known - GLOBAL
    return " ".join(
        [*(f"missing {name}" for name in sorted(missing)), *(f"unknown {name}" for name in sorted(unknown))]
    )


def is_accepted(typed: Typed, answer: Answer) -> bool:
    """A command that is only named has to exist; one that is told whole has to be understood whole."""
    return not answer.problem or (typed.is_named_only and "are required" in answer.problem)


def test_every_az_command_is_understood_by_the_real_az(record_property: Callable[[str, object], None]) -> None:
    commands = commands_of("az")
    of_az = [typed for typed in commands if not added_by(typed.words)]
    answers = parsed([without_added_options(typed.words) for typed in of_az])
    refused = {
        f"{typed.origin}: {typed.command}": answer.problem
        for typed, answer in zip(of_az, answers, strict=True)
        if not is_accepted(typed, answer)
    }
    refused |= {
        f"{typed.origin}: {typed.command}": problem
        for typed in commands
        if added_by(typed.words) and (problem := problem_of_added(typed.words))
    }
    summary = f"{len(commands) - len(refused)} of {len(commands)}"
    record_property("remedies parsed by the real az", summary)
    assert refused == {}
    assert len(of_az) > 100


def test_a_remedy_says_which_extension_or_preview_it_needs() -> None:
    steps = [(check, text, step) for check, text in page_steps() for step in steps_of(text)]
    az = [
        (check, text, Typed(command, check).words)
        for check, text, step in steps
        for command in step.commands
        if command.startswith("az ")
    ]
    by_az = [command for command in az if not added_by(command[2])]
    previews = {
        (check, text)
        for (check, text, _), answer in zip(
            by_az, parsed([without_added_options(command[2]) for command in by_az]), strict=True
        )
        if answer.preview
    }
    previews |= {(check, text) for check, text, arguments in by_az if without_added_options(arguments) != arguments}
    assert [check for check, text in sorted(previews) if "preview" not in text] == []
    needed = {
        (check, text, COMMANDS[added_by(arguments)].extension) for check, text, arguments in az if added_by(arguments)
    }
    needed |= {
        (check, text, OPTIONS_FROM) for check, text, arguments in by_az if without_added_options(arguments) != arguments
    }
    assert [
        command[::2] for command in sorted(needed) if f"extension {command[2]}" not in " ".join(command[1].split())
    ] == []


WRONG = {
    "no group of that name": f"az network service-gateway delete --ids {SUBNET}",
    "no command of that name": "az network vnet subnet remove --name s",
    "vmss has no --ids": f"az vmss deallocate --ids {GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/s",
    "nor for update-instances": "az vmss update-instances --ids x --instance-ids 1",
    "ip-config has no --ids": f"az network nic ip-config update --ids {SUBNET} --remove publicIPAddress",
    "an option that is not there": f"az network vnet subnet update --ids {SUBNET} --default-outbound false-access",
    "an option of an extension": "az aks update -g rg -n c --enable-imds-restriction",
    "a value of an extension": "az aks update -g rg -n c --outbound-type block",
    "required options are missing": "az aks nodepool add --cluster-name c --name p",
    "neither names nor --ids": "az network vnet subnet update --default-outbound-access false",
    "an id of a parent": f"az network vnet subnet update --ids {GROUP}/providers/Microsoft.Network/virtualNetworks/v "
    "--default-outbound-access false",
    "a group alone": "az network vnet subnet",
    "help": "az network vnet subnet --help",
}


def test_the_real_az_refuses_what_is_wrong() -> None:
    """Each of them was printed once, or is like one that was."""
    answers = parsed([Typed(command, "").words for command in WRONG.values()])
    assert [why for why, answer in zip(WRONG, answers, strict=True) if not answer.problem] == []


def test_the_real_az_takes_the_same_commands_when_they_are_right() -> None:
    right = (
        f"az network vnet subnet update --ids {SUBNET} --default-outbound-access false",
        "az vmss deallocate -g rg -n s --instance-ids 1",
        "az network nic ip-config update -g rg --nic-name n -n c --remove publicIPAddress",
        f"{ROUTE} --remove nextHopIpAddress",
        "az aks update -g rg -n c --outbound-type none",
    )
    assert [answer.problem for answer in parsed([Typed(command, "").words for command in right])] == [""] * len(right)


def test_every_row_of_the_table_is_in_a_remedy_and_names_the_page_and_source_of_its_command() -> None:
    used = {added_by(typed.words) for typed in commands_of("az")}
    assert set(COMMANDS) <= used
    assert [name for name, added in COMMANDS.items() if not name.startswith(added.page.replace("/", " "))] == []
    source = re.compile(r"src/\S+\.py@[0-9a-f]{12}|articles/aks/\S+\.md")
    assert [name for name, added in COMMANDS.items() if not source.fullmatch(added.source)] == []


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (f"{SECURITY_RULE} --priority 1 --action x --frobnicate", "unknown --frobnicate"),
        ("az connectedk8s delete --resource-group rg --yes", "missing --name"),
        (SECURITY_RULE.replace("-g", "--resource-group"), "missing --action missing --domain-lists missing --priority"),
    ],
)
def test_the_table_of_extensions_refuses_what_is_wrong(command: str, problem: str) -> None:
    assert problem in problem_of_added(Typed(command, "").words)
