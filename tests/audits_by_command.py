"""`hermetic audit` against the stand-in for Azure: in this process where audits are many, else as a program.

    ran = audit(arm, "-o", "json")
    assert ran.code == 1
    assert failed(ran) == {("subnet-nat-gateway", arm.estate.site.gpu_subnet.lower())}

Requests go over loopback to the stand-in; nothing of the product is replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from testbed.azure.baseline import estate_of
from testbed.azure.estate import Estate
from testbed.azure.plants import PLANTS
from testbed.azure.server import ArmStandIn
from tests.commandline import Ran, hermetic, hermetic_process

NO_KUBECONFIG = "/nowhere/kubeconfig"


def a_stand_in(*plants: str, layout: str = "sealed", **options: Any) -> ArmStandIn:
    """A stand-in that serves a sealed estate with these paths opened in it."""
    return ArmStandIn(an_estate(*plants, layout=layout), **options)


def an_estate(*plants: str, layout: str = "sealed") -> Estate:
    """A sealed estate with these paths opened in it."""
    estate = estate_of(layout)
    estate.scale_set_outbound_shown_by = frozenset({"arm", "graph"})  # so that no policy file is needed
    for name in plants:
        PLANTS[name].into(estate)
    return estate


def arguments_for(arm: ArmStandIn, *arguments: str | Path) -> tuple[str | Path, ...]:
    """What names the stand-in and its cluster, and then the rest."""
    return ("audit", "--azure", arm.estate.cluster, "--arm-endpoint", arm.url, *arguments)


def environment_for(arm: ArmStandIn) -> dict[str, str]:
    """The stand-in's token, and no kubeconfig."""
    return {"HERMETIC_ARM_TOKEN": arm.token, "KUBECONFIG": NO_KUBECONFIG}


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Variables of this process for a while."""
    with mock.patch.dict(os.environ, variables):
        yield


def audit(arm: ArmStandIn, *arguments: str | Path) -> Ran:
    """One audit in this process."""
    with environment(**environment_for(arm)):
        return hermetic(*arguments_for(arm, *arguments))


def audit_process(arm: ArmStandIn, *arguments: str | Path, environ: Mapping[str, str] | None = None) -> Ran:
    """One audit as a process of its own."""
    return hermetic_process(*arguments_for(arm, *arguments), environ={**environment_for(arm), **(environ or {})})


def report_in(text: str) -> dict[str, Any]:
    """The JSON report."""
    report: dict[str, Any] = json.loads(text)
    assert report["schema"] == "hermetic.dev/audit/v1"
    return report


def findings_of(ran: Ran, check: str) -> dict[str, dict[str, Any]]:
    """The findings of a check in an audit with `-o json`, by resource in lower case."""
    findings = report_in(ran.out)["findings"]
    return {finding["resource"].lower(): finding for finding in findings if finding["check"] == check}


def failed(ran: Ran) -> set[tuple[str, str]]:
    """(check, resource in lower case) of every critical or high Fail."""
    return {
        (finding["check"], finding["resource"].lower())
        for finding in report_in(ran.out)["findings"]
        if finding["verdict"] == "Fail" and finding["severity"] in {"critical", "high"}
    }
