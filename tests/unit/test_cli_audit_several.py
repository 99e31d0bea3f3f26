"""`hermetic audit` of several clusters, and `hermetic summary` of their stored reports.

Azure is stood in for at its HTTP boundary.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermetic.audit.result.run import Evaluation
from hermetic.cli.audit.several import file_stem
from hermetic.collect.azure.session import AzureSession
from hermetic.collect.collecting import collected
from testbed.azure.estate import Estate as ArmEstate
from testbed.azure.faults import Fault, Status
from testbed.azure.requests import ArmRequest
from testbed.azure.server import ArmStandIn
from testbed.azure.several_clusters import several_clusters
from tests.audits_by_command import environment, environment_for
from tests.azure_audits import client_of_desk
from tests.azure_collecting import policy_of
from tests.commandline import Ran, hermetic

LAYOUT = "overlay"  # without actions that run for long


@dataclass(frozen=True)
class Estate:
    """A stand-in with clusters in one subscription; `folder` has the policy file and the reports."""

    arm: ArmStandIn
    clusters: tuple[str, ...]
    folder: Path

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    def audit(self, *arguments: str | Path) -> Ran:
        with environment(**environment_for(self.arm)):
            return hermetic(
                "audit", "--arm-endpoint", self.arm.url, "--policy", self.folder / "policy.json", *arguments
            )

    def audit_all(self, *arguments: str | Path) -> Ran:
        listed = self.folder / "clusters.txt"
        listed.write_text("# inference\n" + "\n".join(self.clusters) + "\n\n")
        return self.audit("--clusters", listed, "--reports", self.reports, *arguments)

    def report(self, position: int) -> dict[str, Any]:
        name = self.clusters[position].rpartition("/")[2]
        (file,) = self.reports.glob(f"{name}-*.json")
        report: dict[str, Any] = json.loads(file.read_text())
        return report

    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads((self.reports / "summary.json").read_text())
        return summary


@dataclass(frozen=True)
class Runs:
    """Three clusters audited twice: a NAT gateway on the first is removed between; the second may not be read."""

    estate: Estate
    first: Ran
    first_summary: dict[str, Any]
    first_reports: tuple[dict[str, Any], ...]
    requests: tuple[ArmRequest, ...]
    second: Ran


def an_estate(count: int, folder: Path) -> tuple[ArmStandIn, tuple[str, ...]]:
    estate, clusters = several_clusters(count, LAYOUT)
    (folder / "policy.json").write_text(json.dumps(estate.policy))
    return ArmStandIn(estate), clusters


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("several")
    stand_in, clusters = an_estate(3, folder)
    with stand_in as arm:
        estate, subnet = Estate(arm, clusters, folder), arm.estate.site.gpu_subnet
        gateway = arm.estate.add(
            f"{subnet.partition('/virtualNetworks/')[0]}/natGateways/nat", {"subnets": [{"id": subnet}]}
        )
        arm.estate.properties(subnet)["natGateway"] = {"id": gateway}
        arm.estate.deny(subnet.replace("rg-inference", "rg-inference2"))
        first = estate.audit_all("-o", "json")
        first_summary, reports = estate.summary(), tuple(map(estate.report, range(3)))
        requests = tuple(arm.requests)
        arm.estate.remove(gateway)
        del arm.estate.properties(subnet)["natGateway"]
        yield Runs(estate, first, first_summary, reports, requests, estate.audit_all())


def claims(report: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(finding["check"], finding["resource"].lower(), finding["verdict"]) for finding in report["findings"]}


def test_audit_of_several_clusters_has_a_report_for_each_and_the_worst_verdict_decides(runs: Runs) -> None:
    assert runs.first.code == 1
    assert [report["verdict"] for report in runs.first_reports] == ["Fail", "Unknown", "Pass"]
    assert [report["cluster"] for report in runs.first_reports] == list(runs.estate.clusters)
    assert len(list(runs.estate.reports.glob("aks-*.html"))) == 3
    assert runs.second.code == 3


def test_summary_is_printed_and_written_worst_cluster_first(runs: Runs) -> None:
    assert json.loads(runs.first.out) == runs.first_summary
    assert [entry["verdict"] for entry in runs.first_summary["clusters"]] == ["Fail", "Unknown", "Pass"]
    assert runs.first_summary["counts"] == {"Fail": 1, "Unknown": 1, "Pass": 1}
    causes = {cause["title"]: cause["clusters"] for cause in runs.first_summary["causes"]}
    assert causes["Remove NAT gateways from the cluster's network"] == [runs.estate.clusters[0]]
    assert all(entry["changes"] is None for entry in runs.first_summary["clusters"])
    assert runs.second.out.splitlines()[0] == "Unknown  3 clusters: 1 Unknown, 2 Pass."


def test_summary_names_what_was_closed_since_the_last_run(runs: Runs) -> None:
    by_cluster = {entry["cluster"]: entry["changes"] for entry in runs.estate.summary()["clusters"]}
    changes = by_cluster[runs.estate.clusters[0]]
    assert changes["verdictBefore"] == "Fail"
    assert "subnet-nat-gateway" in {entry["check"] for entry in changes["closed"]}
    assert changes["opened"] == []
    assert by_cluster[runs.estate.clusters[2]]["closed"] == []
    page = (runs.estate.reports / "summary.html").read_text()
    assert "subnet-nat-gateway" in page
    assert '<a href="aks-inference-' in page


def test_shared_reads_lead_to_the_findings_of_audits_one_by_one(runs: Runs) -> None:
    for position, cluster in enumerate(runs.estate.clusters[:2]):
        alone = json.loads(runs.estate.audit("--azure", cluster, "-o", "json").out)
        assert claims(alone) == claims(runs.estate.report(position))


def test_every_list_of_the_subscription_is_asked_once(runs: Runs) -> None:
    lists = Counter(
        (request.path.lower(), json.dumps(request.query, sort_keys=True))
        for request in runs.requests
        if request.method == "GET" and "/resourcegroups/" not in request.path.lower()
    )
    assert len(lists) > 10
    assert {listed: count for listed, count in lists.items() if count > 1} == {}
    queries = Counter(request.body for request in runs.requests if request.is_graph)
    assert queries
    assert max(queries.values()) == 1


def test_stored_reports_give_the_same_summary(runs: Runs) -> None:
    ran = hermetic("summary", runs.estate.reports, "-o", "json")
    stored, written = json.loads(ran.out), runs.estate.summary()
    for summary in (stored, written):
        del summary["at"]
        for entry in summary["clusters"]:
            entry["report"] = Path(entry["report"]).name
            del entry["ageMinutes"]
    assert (ran.code, stored) == (3, written)


def test_csv_of_a_summary_has_a_row_for_each_cluster(runs: Runs) -> None:
    rows = list(csv.DictReader(io.StringIO((runs.estate.reports / "summary.csv").read_text())))
    assert {row["cluster"]: row["verdict"] for row in rows} == {
        entry["cluster"]: entry["verdict"] for entry in runs.estate.summary()["clusters"]
    }


# ------------------------------------------------------------------ what cannot be audited


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Estate]:
    stand_in, clusters = an_estate(2, tmp_path)
    with stand_in as arm:
        yield Estate(arm, clusters, tmp_path)


def test_a_cluster_that_does_not_exist_ends_the_run_before_any_report(pair: Estate) -> None:
    missing = pair.clusters[1].replace("aks-inference2", "aks-gone")
    ran = pair.audit("--azure", pair.clusters[0], "--azure", missing, "--reports", pair.reports)
    assert (ran.code, list(pair.reports.iterdir())) == (2, [])
    assert f"the cluster {missing} does not exist" in ran.errors[0]


def test_a_request_that_failed_for_one_cluster_is_sent_again_for_the_next(pair: Estate) -> None:
    pair.arm.inject(
        Fault(Status(503), path=r"/subscriptions/[^/]+/providers/Microsoft\.Network/loadBalancers\?", times=1)
    )
    ran = pair.audit_all("--retry-budget", "0")
    assert ran.code == 3
    assert [pair.report(position)["verdict"] for position in (0, 1)] == ["Unknown", "Pass"]


def test_a_report_of_another_kind_in_the_folder_is_refused_before_the_audit(pair: Estate) -> None:
    pair.reports.mkdir()
    file = pair.reports / f"{file_stem(pair.clusters[1])}.json"
    file.write_text('{"schema": "other"}')
    ran = pair.audit_all()
    assert (ran.code, pair.arm.requests) == (2, [])
    assert str(file) in ran.errors[0]


CLUSTER = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/aks"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--azure", CLUSTER, "--azure", f"{CLUSTER}2"), "need a folder"),
        (("--azure", CLUSTER, "--azure", CLUSTER.upper().replace("/AKS", "/aks"), "--reports", "r"), "named twice"),
        (("--azure", CLUSTER, "--azure", f"{CLUSTER}2", "--reports", "r", "--kube"), "--kube is for one cluster"),
        (("--azure", CLUSTER, "--reports", "r", "--sign", "k", "--attestation", "a"), "--sign is for one cluster"),
        (("--azure", CLUSTER, "--reports", "r", "-o", "sarif"), "a summary of several clusters cannot have this form"),
        (("--clusters", "-", "--reports", "r"), "names no cluster"),
        (("--azure", CLUSTER, "--azure", "aks", "--reports", "r"), "is not the ARM id of a cluster"),
    ],
)
def test_options_that_several_clusters_cannot_have_are_refused(
    arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = hermetic("audit", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.errors[0]
    assert len(ran.fixes) == 1


# ------------------------------------------------------------------ the quota


async def requests_about(estate: ArmEstate, clusters: Sequence[str]) -> list[ArmRequest]:
    """What Azure is asked about these clusters in one run."""
    requests: list[ArmRequest] = []
    evaluation = Evaluation(policy_of(estate))
    async with client_of_desk(estate, requests) as client:
        session = AzureSession(client, "graph")
        for cluster in clusters:
            answerers = {"azure": session.answerer(cluster)}
            await collected(cluster, answerers, evaluation.findings, client.progress)
    return requests


def shared_requests(requests: Iterable[ArmRequest]) -> list[tuple[str, str]]:
    """Lists of the subscription and queries of Resource Graph, which are not about one cluster."""
    return [
        (request.path.lower(), json.dumps(request.query, sort_keys=True) + repr(request.body))
        for request in requests
        if "/resourcegroups/" not in request.path.lower()
    ]


@pytest.mark.sampled(0, of="twenty clusters in one subscription")
async def test_twenty_clusters_in_one_subscription_ask_what_they_share_once() -> None:
    estate, clusters = several_clusters(20, LAYOUT)
    alone = await requests_about(estate, clusters[:1])
    together = await requests_about(estate, clusters)
    assert sorted(shared_requests(together)) == sorted(shared_requests(alone))
    assert len(together) <= 20 * len(alone) - 19 * len(shared_requests(alone))
