"""`hermetic check` on a screen and for programs."""

from __future__ import annotations

import pytest

from hermetic.api.configuration import Configuration
from hermetic.cli.check.command import EXIT_CODES, as_document, lines, namespaces_of
from hermetic.cli.check.rows import CheckRow, RowVerdict, overall, passes
from tests.commandline import hermetic

COMMAND = (
    "az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name gpu --node-taints sku=gpu:NoSchedule"
)
ROWS = (
    passes("kubernetes-version", "the API server is Kubernetes 1.34"),
    CheckRow(
        "gpu-taints",
        RowVerdict.WARNING,
        "pool gpu (2 nodes Standard_NC24ads_A100_v4): has no taint",
        "w " * 60,
        "f",
        (COMMAND,),
    ),
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal_and_commands_stay_whole(width: int) -> None:
    shown = list(lines(ROWS, width))
    assert [line for line in shown if len(line) > width and COMMAND not in line] == []
    assert f"    {COMMAND}" in shown
    assert shown[0].startswith("Pass        kubernetes-version: ")


def test_without_a_terminal_every_row_is_one_line() -> None:
    shown = list(lines(ROWS, 0))
    assert shown[-1] == "Pass: 1 Pass, 1 Warning"
    assert len(shown) == 6


@pytest.mark.parametrize(
    ("verdicts", "code"), [("Pass Warning NotChecked", 0), ("Pass Unknown", 3), ("Unknown Fail", 1)]
)
def test_the_exit_code_is_that_of_the_worst(verdicts: str, code: int) -> None:
    assert EXIT_CODES[overall(CheckRow("x", RowVerdict(verdict), "m") for verdict in verdicts.split())] == code


def test_programs_get_every_field() -> None:
    document = as_document(ROWS, "before")
    assert document["schema"] == "hermetic.dev/check/v1"
    assert document["verdict"] == "Pass"
    assert document["summary"] == {"Pass": 1, "Warning": 1, "Fail": 0, "Unknown": 0, "NotChecked": 0}


def test_namespaces_come_from_what_is_watched_or_allowed() -> None:
    registry = {"host": "a.azurecr.io", "namespaces": ["inference", "*"]}
    assert namespaces_of(Configuration.model_validate({"registries": [registry]})) == ("inference",)
    assert namespaces_of(Configuration.model_validate({"watchNamespaces": ["team"]})) == ("team",)


def test_what_cannot_be_meant_or_reached_is_told() -> None:
    assert hermetic("check", "--installed", "--config", "x").code == 2
    assert hermetic("check", "--kubeconfig", "/no/such").code == 4
