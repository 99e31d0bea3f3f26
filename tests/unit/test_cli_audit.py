"""`hermetic audit` as scripts meet it: what its exit codes mean, whom it talks to, and how its errors look.

Azure is stood in for at its HTTP boundary.
"""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.azure.faults import Fault, ForeignNextLink, Reset, Slow, Status
from testbed.azure.server import ArmStandIn
from testbed.processes import wait_until
from tests.audits_by_command import (
    a_stand_in,
    arguments_for,
    audit,
    audit_process,
    environment,
    environment_for,
    failed,
    findings_of,
    report_in,
)
from tests.commandline import PROGRAM, Ran, hermetic
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

CLUSTER = r"/managedClusters/[^/]+\?"
NO_RETRIES = ("--retry-budget", "0")


@pytest.fixture
def arm() -> Iterator[ArmStandIn]:
    """A sealed estate."""
    with a_stand_in() as started:
        yield started


def refused(ran: Ran, code: int, says: str) -> None:
    """It ended with this code, one error, its fix, and no report."""
    assert (ran.code, ran.out) == (code, "")
    (error,) = ran.errors
    assert error.startswith("error: HRM-")
    assert says in error
    assert len(ran.fixes) == 1


# ------------------------------------------------------------------ the verdict is the exit code


def test_a_sealed_estate_is_0_with_the_table_on_stdout_and_talk_on_stderr(arm: ArmStandIn) -> None:
    ran = audit(arm)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "Pass  aks-inference"
    assert ran.err
    assert [line for line in ran.err.splitlines() if not line.startswith("# ")] == []


def test_a_critical_egress_path_is_1_and_drawn() -> None:
    with a_stand_in("nat_gateway_on_the_gpu_subnet") as arm:
        ran = audit(arm, "-o", "json")
    report = report_in(ran.out)
    (finding,) = (
        finding
        for finding in report["findings"]
        if finding["check"] == "subnet-nat-gateway" and finding["verdict"] == "Fail"
    )
    assert (ran.code, report["verdict"]) == (1, "Fail")
    assert finding["paths"]
    assert finding["paths"][0].endswith("-> internet")


def test_a_warning_alone_is_0_and_shown() -> None:
    with a_stand_in("subnet_shared_with_other_subscriptions") as arm:
        ran = audit(arm, "-o", "json")
    assert ran.code == 0
    assert report_in(ran.out)["summary"]["Fail"] == 1


def test_what_may_not_be_read_is_3_with_the_permission_named(arm: ArmStandIn) -> None:
    arm.estate.deny(arm.estate.site.gpu_subnet)
    ran = audit(arm, "-o", "json")
    finding = findings_of(ran, "subnet-nat-gateway")[arm.estate.site.gpu_subnet.lower()]
    assert (ran.code, finding["verdict"]) == (3, "Unknown")
    assert "Microsoft.Network/virtualNetworks/subnets/read" in finding["message"]


def test_an_egress_path_that_was_seen_is_1_although_something_else_was_not() -> None:
    with a_stand_in("nat_gateway_on_the_gpu_subnet") as arm:
        arm.estate.deny(arm.estate.site.route_table)
        assert audit(arm).code == 1


def test_a_reader_that_leaves_turns_no_fail_into_a_pass(tmp_path: Path) -> None:
    with a_stand_in("nat_gateway_on_the_gpu_subnet") as arm:
        file = tmp_path / "report.json"
        program = subprocess.Popen(
            [*PROGRAM, *map(str, arguments_for(arm, "--out", file))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment_for(arm),
        )
        assert program.stdout is not None
        program.stdout.close()
        _, output = program.communicate(timeout=60)
    assert program.returncode == 1
    assert b"Traceback" not in output
    assert report_in(file.read_text())["verdict"] == "Fail"


# ------------------------------------------------------------------ rule 22: what is refused, and when


@pytest.mark.parametrize(
    "cluster",
    ["", "aks-inference", "/subscriptions/x", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/nics/n"],
)
def test_an_id_that_is_no_cluster_s_is_2_and_nothing_is_sent(arm: ArmStandIn, cluster: str) -> None:
    with environment(**environment_for(arm)):
        refused(hermetic("audit", "--azure", cluster, "--arm-endpoint", arm.url), 2, "is not the ARM id of a cluster")
    assert arm.requests == []


@pytest.mark.parametrize("part", ["3c1f6a52-8e0b-4d7a-9b64-2f5c7d10e8a1", "rg-inference", "aks-inference"])
def test_a_cluster_that_is_not_there_is_2(arm: ArmStandIn, part: str) -> None:
    cluster = arm.estate.cluster.replace(part, "00000000-0000-0000-0000-000000000000")
    with environment(**environment_for(arm)):
        refused(hermetic("audit", "--azure", cluster, "--arm-endpoint", arm.url), 2, "does not exist")


def test_a_token_that_is_refused_at_the_start_is_4(arm: ArmStandIn) -> None:
    with environment(HERMETIC_ARM_TOKEN="not-this-one"):
        refused(hermetic(*arguments_for(arm)), 4, "rejected the token")
    assert len(arm.requests) == 1


def test_a_token_that_no_header_can_carry_is_2_and_not_shown(arm: ArmStandIn) -> None:
    with environment(HERMETIC_ARM_TOKEN="two words"):
        ran = hermetic(*arguments_for(arm))
    refused(ran, 2, "HERMETIC_ARM_TOKEN is not a bearer token")
    assert "two words" not in ran.err


def test_a_host_that_is_not_there_is_4(arm: ArmStandIn) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with environment(**environment_for(arm)):
            ran = hermetic("audit", "--azure", arm.estate.cluster, "--arm-endpoint", endpoint)
    refused(ran, 4, f"{endpoint} cannot be reached")


def test_a_token_that_dies_midway_is_3(arm: ArmStandIn) -> None:
    arm.expire_token_after(12)
    ran = audit(arm, "-o", "json")
    report = report_in(ran.out)
    assert (ran.code, report["verdict"]) == (3, "Unknown")
    assert "the token has expired or was revoked during the audit" in ran.out


def test_a_cluster_that_may_not_be_read_is_3(arm: ArmStandIn) -> None:
    arm.estate.deny(arm.estate.cluster)
    ran = audit(arm, "-o", "json")
    assert ran.code == 3
    assert "Microsoft.ContainerService/managedClusters/read" in ran.out
    assert report_in(ran.out)["summary"]["Pass"] == 0


@pytest.mark.parametrize("trouble", [Status(503), Status(429, retry_after=60), Reset()], ids=["503", "429", "reset"])
def test_what_stays_ill_beyond_the_budget_is_3(arm: ArmStandIn, trouble) -> None:
    arm.inject(Fault(trouble, path="/networkSecurityGroups"))
    ran = audit(arm, *NO_RETRIES, "-o", "json")
    assert ran.code == 3
    assert failed(ran) == set()


def test_an_illness_that_passes_within_the_budget_changes_nothing(arm: ArmStandIn) -> None:
    arm.inject(Fault(Status(503, retry_after=0), path="/networkSecurityGroups", times=2))
    assert audit(arm, "-o", "json").code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "no source is named"),
        (("--azure", "x", "--discovery", "guess"), "'guess' is not one of"),
        (("--azure", "x", "--retry-budget", "nan"), "'nan' is not a finite number"),
        (("--azure", "x", "--retry-budget", "-1"), "-1"),
        (("--azure", "x", "-o", "pdf"), "'pdf' is not one of"),
        (("--azure", "x", "--probe-image", "i"), "--probe-image is for --probe"),
        (("--azure", "x", "--sign", "k"), "--sign and --attestation belong together"),
        (("--kube", "--sign", "k", "--attestation", "a"), "only what Azure was asked can be signed"),
        (("--azure", "x", "--previous", "p"), "--previous is for a report that is signed"),
        (("--azure", "x", "--valid-hours", "169"), "169"),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_2(arguments: tuple[str, ...], says: str) -> None:
    refused(hermetic("audit", *arguments), 2, says)


def test_a_kubeconfig_that_is_not_there_is_2() -> None:
    refused(hermetic("audit", "--kube", "--kubeconfig", "/nowhere/config"), 2, "/nowhere/config: No such file")


def test_a_token_never_travels_in_the_clear(arm: ArmStandIn) -> None:
    for endpoint in ("http://management.invalid", "https://user@management.invalid", "management.invalid", "https://"):
        with environment(**environment_for(arm)):
            refused(hermetic("audit", "--azure", arm.estate.cluster, "--arm-endpoint", endpoint), 2, "--arm-endpoint")


def test_that_there_is_no_azure_login_is_one_line_with_its_fix(arm: ArmStandIn, tmp_path: Path) -> None:
    """In a network namespace of its own: the default chain asks the metadata service, and writes to the home folder."""
    sealed = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*sealed, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespaces here")
    command = [*sealed, *PROGRAM, *map(str, arguments_for(arm))]
    environ = {**environment_for(arm), "HERMETIC_ARM_TOKEN": "", "HOME": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120, check=False)
    refused(Ran(ran.returncode, ran.stdout, ran.stderr), 4, "no Azure login for")
    assert "Azure CLI: " in ran.stderr
    error, fix = ran.stderr.splitlines()
    assert "aka.ms" not in error
    assert "az login" in fix


def test_ctrl_c_is_130_without_a_traceback(arm: ArmStandIn) -> None:
    arm.inject(Fault(Slow(5)))
    program = subprocess.Popen(
        [*PROGRAM, *map(str, arguments_for(arm))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment_for(arm),
    )
    wait_until("a request", lambda: bool(arm.requests), ())
    program.send_signal(signal.SIGINT)
    out, output = program.communicate(timeout=60)
    assert (program.returncode, out) == (130, b"")
    assert b"Traceback" not in output


# ------------------------------------------------------------------ whom it talks to, and how


@pytest.mark.parametrize("discovery", ["graph", "list"])
def test_nothing_but_reads_is_ever_sent(discovery: str) -> None:
    with a_stand_in("nat_gateway_on_the_gpu_subnet", layout="peered") as arm:
        audit(arm, "--discovery", discovery)
        assert arm.forbidden_requests == []
        assert {request.method for request in arm.requests} <= {"GET", "POST"}


def test_discovery_by_list_never_asks_resource_graph_and_finds_the_same(arm: ArmStandIn) -> None:
    by_graph = audit(arm, "-o", "json")
    assert any("ResourceGraph" in request.path for request in arm.requests)
    arm.requests.clear()
    by_list = audit(arm, "-o", "json", "--discovery", "list")
    assert [request.path for request in arm.requests if "resourcegraph" in request.path.lower()] == []
    assert [verdict(finding) for finding in report_in(by_graph.out)["findings"]] == [
        verdict(finding) for finding in report_in(by_list.out)["findings"]
    ]


def verdict(finding: dict[str, Any]) -> tuple[str, str, str]:
    return finding["check"], finding["resource"].lower(), finding["verdict"]


def test_the_given_host_is_the_only_one_talked_to(arm: ArmStandIn, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "def heard(event, arguments):\n"
        "    if event in {'socket.connect', 'socket.getaddrinfo', 'socket.sendto'}:\n"
        f"        with open({str(recorded)!r}, 'a') as file:\n"
        "            print(event, arguments[1] if event != 'socket.getaddrinfo' else arguments[0], file=file)\n"
        "sys.addaudithook(heard)\n"
    )
    proxy = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}
    ran = audit_process(arm, environ={"PYTHONPATH": str(tmp_path), **proxy})
    assert ran.code == 0, ran.err
    connected = f"socket.connect ('127.0.0.1', {arm.url.rsplit(':', 1)[1]})"
    assert set(recorded.read_text().splitlines()) - {"socket.getaddrinfo 127.0.0.1"} == {connected}


def test_a_link_to_another_host_is_not_followed(arm: ArmStandIn) -> None:
    arm.inject(Fault(ForeignNextLink(), path="/networkInterfaces"))
    ran = audit(arm, *NO_RETRIES, "-o", "json")
    assert ran.code == 3
    assert "another host" in ran.out
