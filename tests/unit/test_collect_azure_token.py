"""The token: refused at the start ends the audit, expiring midway ends only the asking, and it is never shown."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.estate.snapshot import Snapshot, to_json
from hermetic.audit.model.findings import Verdict
from hermetic.collect.azure.clouds import cloud_of
from hermetic.collect.azure.credentials import GivenToken, IdentityTokens, tokens_for
from hermetic.collect.azure.session import AzureSettings, azure_opened
from hermetic.errors import InputError, Unreachable
from testbed.azure.baseline import sealed_estate
from testbed.azure.faults import Fault, Reset, Slow, Status
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited, client_of, question
from tests.fakes.clocks import START, SleepingClock
from tests.fakes.progress import Progress
from tests.sampled_groups import AZURE_AUDITS, LONG

pytestmark = AZURE_AUDITS

ESTATE = sealed_estate()
CLUSTER = question("get", "Microsoft.ContainerService/managedClusters", ESTATE.cluster, "2026-01-01")
VNET = question("get", "Microsoft.Network/virtualNetworks", ESTATE.site.vnet)


class Renewable:
    """Tokens that can be renewed to what they are given, and how often that was asked."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.renewals = 0

    async def current(self) -> str:
        return self.tokens[0]

    async def another(self) -> str:
        self.renewals += 1
        if len(self.tokens) == 1:
            return ""
        self.tokens.pop(0)
        return self.tokens[0]


async def test_a_token_that_is_refused_at_the_start_ends_the_audit() -> None:
    with ArmStandIn(ESTATE) as arm:
        with pytest.raises(Unreachable, match="rejected the token") as caught:
            await audited(arm, tokens=GivenToken("wrong"))
        assert len(arm.requests) == 1
    assert "wrong" not in caught.value.message


@LONG
async def test_a_token_that_dies_midway_leaves_what_came_after_it_unknown() -> None:
    with ArmStandIn(ESTATE) as arm:
        usual_report = await audited(arm)
        verdicts = []
        for good in range(1, len(arm.requests), 9):
            arm.requests.clear()
            arm.expire_token_after(good)
            report = await audited(arm)
            assert report.claims() - usual_report.claims() <= {
                claim for claim in report.claims() if claim[2] == Verdict.UNKNOWN.value
            }
            decided = not any(
                finding.verdict is Verdict.UNKNOWN and finding.severity.decides for finding in report.findings
            )
            assert report.overall is (Verdict.PASS if decided else Verdict.UNKNOWN)
            verdicts.append(report.overall)
            # those that were already on the way, and no retry storm
            assert len(arm.requests) <= good + 8
            assert report.progress.waited == []
        # The last answers may bear on findings of medium severity alone.
        assert set(verdicts[: len(verdicts) * 3 // 4]) == {Verdict.UNKNOWN}


async def test_a_dead_token_is_said_to_be_the_reason() -> None:
    with ArmStandIn(ESTATE) as arm:
        async with client_of(arm) as bench:
            await bench.answer(CLUSTER)
            arm.expire_token_after(0)
            for asked_question in (VNET, question("list", "Microsoft.Network/natGateways", ESTATE.site.node_group)):
                answer = await bench.answer(asked_question)
                assert answer.problem is not None
                assert answer.problem.reason is UnreadReason.UNAUTHENTICATED


async def test_a_token_that_can_be_renewed_is_renewed_once_for_all_that_need_it() -> None:
    with ArmStandIn(ESTATE, latency=0.02) as arm:
        tokens = Renewable("old", arm.token)
        async with client_of(arm, tokens=tokens) as bench:
            answers = await bench.answerer.answers([CLUSTER, VNET])
            assert all(answer.problem is None for answer in answers.values())
        assert tokens.renewals == 1


async def test_a_renewed_token_that_is_refused_too_is_not_renewed_again() -> None:
    with ArmStandIn(ESTATE) as arm:
        tokens = Renewable(arm.token, "second", "third")
        async with client_of(arm, tokens=tokens) as bench:
            await bench.answer(CLUSTER)
            arm.expire_token_after(0)
            answers = await bench.answerer.answers([VNET])
            assert {answer.problem and answer.problem.reason for answer in answers.values()} == {
                UnreadReason.UNAUTHENTICATED
            }
        assert tokens.renewals == 1
        assert len(arm.requests) == 3


class _Logout:
    """A login that ends after so many requests for a token."""

    def __init__(self, token: str, times: int) -> None:
        self.token, self.times = token, times

    async def current(self) -> str:
        self.times -= 1
        if self.times < 0:
            raise Unreachable("logged out")
        return self.token

    async def another(self) -> str:
        return ""


async def test_a_login_that_ends_midway_leaves_the_rest_unknown_and_at_the_start_ends_the_audit() -> None:
    with ArmStandIn(ESTATE) as arm:
        report = await audited(arm, tokens=_Logout(arm.token, 20))
        assert report.overall is Verdict.UNKNOWN
        with pytest.raises(Unreachable, match="logged out"):
            await audited(arm, tokens=_Logout(arm.token, 0))


async def test_an_endpoint_on_this_machine_is_never_asked_by_way_of_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ArmStandIn(ESTATE) as arm:
        async with client_of(arm) as bench:
            assert (await bench.answer(CLUSTER)).problem is None


async def test_a_host_that_is_not_there_ends_the_audit_at_once() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        clock = SleepingClock()
        settings = AzureSettings(ESTATE.cluster, endpoint)
        with pytest.raises(Unreachable, match="cannot be reached"):
            async with azure_opened(
                settings,
                environment={"HERMETIC_ARM_TOKEN": "t"},
                clock=clock,
                progress=Progress(),
                sleep=clock.sleep,
            ) as azure:
                await azure.answers([CLUSTER])
        assert clock.passed == 0


async def test_a_host_that_never_answers_ends_the_audit_when_the_budget_is_spent() -> None:
    async def slam(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(slam, "127.0.0.1", 0)
    async with server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        clock = SleepingClock()
        settings = AzureSettings(ESTATE.cluster, endpoint, retry_budget=5)
        with pytest.raises(Unreachable):
            async with azure_opened(
                settings,
                environment={"HERMETIC_ARM_TOKEN": "t"},
                clock=clock,
                progress=Progress(),
                sleep=clock.sleep,
            ) as azure:
                await azure.answers([CLUSTER])


async def test_a_cluster_that_is_not_there_is_bad_input() -> None:
    with ArmStandIn(ESTATE) as arm:
        async with client_of(arm) as bench:
            bench.answerer = type(bench.answerer)(bench.client, f"{ESTATE.cluster}-2")
            with pytest.raises(InputError, match="does not exist"):
                await bench.answer(question("get", CLUSTER.kind, f"{ESTATE.cluster}-2", CLUSTER.api_version))


async def test_a_cluster_that_may_not_be_read_is_unknown_and_no_error() -> None:
    estate = sealed_estate()
    estate.deny(estate.cluster)
    with ArmStandIn(estate) as arm:
        report = await audited(arm)
    assert report.overall is Verdict.UNKNOWN
    assert Verdict.PASS not in {finding.verdict for finding in report.findings if finding.severity.decides}


@pytest.mark.parametrize(
    "cluster",
    [
        "",
        "aks",
        "/subscriptions/s/resourceGroups/g",
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters",
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c/agentPools/p",
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v",
        "/subscriptions//resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c",
    ],
)
async def test_what_is_no_cluster_id_is_bad_input_before_anything_is_sent(cluster: str) -> None:
    with pytest.raises(InputError):
        async with azure_opened(AzureSettings(cluster), environment={}, clock=SleepingClock(), progress=Progress()):
            pass


# ------------------------------------------------------------------ where it comes from, and where it never goes


@pytest.mark.parametrize(
    ("endpoint", "authority", "scope"),
    [
        ("https://management.azure.com", "login.microsoftonline.com", "https://management.azure.com/.default"),
        ("https://Management.Azure.com:443/", "login.microsoftonline.com", "https://management.azure.com/.default"),
        (
            "https://management.usgovcloudapi.net",
            "login.microsoftonline.us",
            "https://management.core.usgovcloudapi.net/.default",
        ),
        (
            "https://management.chinacloudapi.cn",
            "login.chinacloudapi.cn",
            "https://management.chinacloudapi.cn/.default",
        ),
        ("https://arm.stack.example", "", "https://arm.stack.example/.default"),
        ("http://127.0.0.1:8080", "", "http://127.0.0.1:8080/.default"),
    ],
)
def test_each_cloud_has_its_authority_and_scope(endpoint: str, authority: str, scope: str) -> None:
    cloud = cloud_of(endpoint)
    assert (cloud.authority, cloud.scope) == (authority, scope)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://management.azure.com",
        "https://management.azure.com/subscriptions",
        "https://user@management.azure.com",
        "https://management.azure.com:port",
        "management.azure.com",
        "",
        "ftp://127.0.0.1",
    ],
)
def test_an_endpoint_that_would_show_the_token_or_is_none_is_bad_input(endpoint: str) -> None:
    with pytest.raises(InputError):
        cloud_of(endpoint)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ümlaut"])
def test_a_variable_that_holds_no_token_is_bad_input_and_not_shown(token: str) -> None:
    with pytest.raises(InputError) as caught:
        tokens_for(cloud_of(), {"HERMETIC_ARM_TOKEN": token}, lambda: 0.0)
    assert token not in caught.value.message


@dataclass
class _Granted:
    token: str
    expires_on: int


class _Credential:
    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.number = type(self).made

    def get_token(self, scope: str) -> _Granted:
        return _Granted(f"token-{self.number} for {scope}", 3600)


async def test_identity_tokens_are_kept_renewed_early_and_made_anew_when_refused() -> None:
    now = [0.0]
    tokens = IdentityTokens(cloud_of(), lambda: now[0], lambda _: _Credential())
    assert await tokens.current() == "token-1 for https://management.azure.com/.default"
    now[0] = 3299.0
    assert (await tokens.current()).startswith("token-1")
    assert (await tokens.another()).startswith("token-2")
    assert (await tokens.current()).startswith("token-2")


async def test_without_a_credential_the_audit_cannot_begin() -> None:
    from azure.core.exceptions import ClientAuthenticationError

    def refuse(_cloud: object) -> object:
        raise ClientAuthenticationError("nobody is logged in\nsecond line")

    tokens = IdentityTokens(cloud_of(), lambda: 0.0, refuse)
    with pytest.raises(Unreachable, match="nobody is logged in") as caught:
        await tokens.current()
    assert "second line" not in caught.value.message
    assert await tokens.another() == ""


def test_azure_identity_is_not_imported_before_it_is_needed() -> None:
    program = (
        "import sys, hermetic.collect.azure.session\n"
        "print([name for name in sys.modules if name.split('.')[0] in {'azure', 'msal', 'requests'}])"
    )
    program_run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert program_run.stdout.strip() == "[]"


async def test_the_token_is_in_no_log_no_error_no_progress_and_no_snapshot(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    faults = [Fault(Status(503), path="subnets", times=2), Fault(Reset(), path="routeTables"), Fault(Slow(0.01))]
    with ArmStandIn(ESTATE, faults=faults) as arm:
        report = await audited(arm, retry_budget=5)
        arm.expire_token_after(3)
        dying = await audited(arm)
    for broken_report in (report, dying):
        text = to_json(Snapshot(ESTATE.cluster, ("azure",), START, START, "0", broken_report.answers))
        (tmp_path / "snapshot.json").write_text(text)
        assert arm.token not in text
        assert arm.token not in repr((broken_report.findings, broken_report.progress, broken_report.answers))
    assert arm.token not in caplog.text
    assert arm.token not in repr(GivenToken(arm.token).__class__(arm.token))
