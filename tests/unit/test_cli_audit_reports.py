"""What `hermetic audit` writes: every form, on standard output and into files, and no credential anywhere.

Azure is stood in for at its HTTP boundary.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.azure.server import ArmStandIn
from tests.audits_by_command import a_stand_in, arguments_for, audit, audit_process, environment, report_in
from tests.commandline import Ran, hermetic
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

NAT = "nat_gateway_on_the_gpu_subnet"
DOCS = Path(__file__).resolve().parents[2] / "docs"
TOP_LEVEL = [
    "schema",
    "cluster",
    "sources",
    "profile",
    "startedAt",
    "finishedAt",
    "verdict",
    "notAsked",
    "summary",
    "findings",
]
OF_A_FINDING = ["check", "verdict", "severity", "resource", "reason", "message", "remedy", "paths", "evidence"]


@pytest.fixture(scope="module")
def arm() -> Iterator[ArmStandIn]:
    """An estate with one NAT gateway."""
    with a_stand_in(NAT) as started:
        yield started


@pytest.fixture(scope="module")
def saved(arm: ArmStandIn, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """One audit in JSON, and the snapshot that it saved."""
    file = tmp_path_factory.mktemp("audit") / "estate.json"
    return audit(arm, "-o", "json", "--save-snapshot", file), file


def offline(arm: ArmStandIn, file: Path, *arguments: str | Path) -> Ran:
    """The snapshot judged where no API can be asked."""
    with environment(HERMETIC_ARM_TOKEN="", KUBECONFIG="/nowhere"):
        return hermetic("audit", "--azure", arm.estate.cluster, "--snapshot", file, *arguments)


# ------------------------------------------------------------------ JSON


def test_json_has_exactly_the_fields_of_the_contract(arm: ArmStandIn, saved: tuple[Ran, Path]) -> None:
    report = report_in(saved[0].out)
    assert list(report)[: len(TOP_LEVEL)] == TOP_LEVEL
    optional_fields = {"run", "causes", "privateSubnets", "coverage", "subscription", "tenant"}
    assert {"run", "causes"} <= set(report) - set(TOP_LEVEL) <= optional_fields
    field_lists = [
        [field for field in finding if field not in {"derivedFrom", "masked"}] for finding in report["findings"]
    ]
    assert field_lists == [OF_A_FINDING] * len(field_lists)
    evidence_fields = {tuple(evidence) for finding in report["findings"] for evidence in finding["evidence"]}
    assert evidence_fields == {("request", "status", "sha256"), ("request", "status", "sha256", "value")}
    assert (report["cluster"], report["sources"], report["profile"]) == (arm.estate.cluster, ["azure"], "sealed")
    assert list(report["summary"]) == ["Pass", "Fail", "Unknown", "Excepted", "NotApplicable"]
    assert sum(report["summary"].values()) == len(report["findings"])


def test_who_ran_it_and_with_which_files_is_in_the_report(
    arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text("allowedDnsServers: [10.0.0.4]\n")
    ran = offline(arm, saved[1], "--policy", tmp_path / "policy.yaml", "-o", "json")
    run = report_in(ran.out)["run"]
    assert " on " in run["by"]
    assert run["policy"] == "sha256:" + hashlib.sha256((tmp_path / "policy.yaml").read_bytes()).hexdigest()
    assert run["exceptions"] is None


def test_what_another_source_answers_is_not_asked_and_has_no_finding(saved: tuple[Ran, Path]) -> None:
    report = report_in(saved[0].out)
    not_asked = report["notAsked"]
    assert set(not_asked) == {"kube", "probe"}
    assert {"k8s-public-lb", "aks-acns", "aks-nap"} <= set(not_asked["kube"])
    assert "dns-recursion" in not_asked["probe"]
    check_ids = {check_ids["check"] for check_ids in report["findings"]}
    assert check_ids & {check for checks in not_asked.values() for check in checks} == set()


def test_one_finding_for_each_check_and_resource(saved: tuple[Ran, Path]) -> None:
    named = [(finding["check"], finding["resource"].lower()) for finding in report_in(saved[0].out)["findings"]]
    assert len(set(named)) == len(named)


def test_no_pass_without_the_request_that_shows_it(saved: tuple[Ran, Path]) -> None:
    for finding in report_in(saved[0].out)["findings"]:
        if finding["verdict"] == "Pass":
            assert finding["evidence"]
        for evidence in finding["evidence"]:
            method, path = evidence["request"].split(" ", 1)
            assert method in {"GET", "POST"}
            assert path.startswith("/")
            assert "api-version=" in path


def test_every_field_is_named_in_the_manual(saved: tuple[Ran, Path]) -> None:
    chapter = (DOCS / "cli.md").read_text(encoding="utf-8").split("\n## hermetic audit\n")[1].split("\n## ")[0]
    named = [*TOP_LEVEL, *OF_A_FINDING, "request", "status", "sha256", *report_in(saved[0].out)["summary"]]
    assert [field for field in named if f"`{field}`" not in chapter] == []


# ------------------------------------------------------------------ forms and files


FORMS: dict[str, Callable[[str], bool]] = {
    "table": lambda text: text.startswith("Fail  aks-inference\n"),
    "json": lambda text: json.loads(text)["schema"] == "hermetic.dev/audit/v1",
    "sarif": lambda text: json.loads(text)["version"] == "2.1.0",
    "junit": lambda text: ET.fromstring(text).tag == "testsuites",
    "openreports": lambda text: yaml.safe_load(text)["kind"] == "ClusterReport",
    "html": lambda text: text.startswith("<!doctype html>") and text.rstrip().endswith("</html>"),
    "oscal": lambda text: "assessment-results" in json.loads(text),
    "csv": lambda text: text.startswith('"cluster","finishedAt","check"') and text.endswith('"\r\n'),
}


def is_form(form: str, text: str) -> bool:
    """Whether a text is of this form, by what only that form has."""
    return FORMS[form](text)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_printed_whole_and_the_exit_code_is_the_verdict_s(
    arm: ArmStandIn, saved: tuple[Ran, Path], form: str
) -> None:
    ran = offline(arm, saved[1], "-o", form)
    assert ran.code == 1
    assert is_form(form, ran.out)
    assert ran.out.endswith("\n")


@pytest.mark.parametrize(
    ("options", "name", "form"),
    [
        ([], "a.json", "json"),
        ([], "a.sarif", "sarif"),
        ([], "a.xml", "junit"),
        ([], "a.yaml", "openreports"),
        ([], "a.HTML", "html"),
        ([], "a.oscal", "oscal"),
        ([], "a.csv", "csv"),
        ([], "a.txt", "table"),
        ([], "report", "table"),
        (["-o", "oscal"], "a.json", "oscal"),
        (["-o", "sarif"], "a.json", "sarif"),
        (["-o", "openreports"], "a.json", "openreports"),
        (["-o", "json"], "a.html", "html"),
        (["-o", "html"], "a.json", "json"),
        (["-o", "sarif"], "report", "sarif"),
    ],
)
def test_a_file_gets_the_form_that_its_ending_and_o_say(
    arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path, options: list[str], name: str, form: str
) -> None:
    ran = offline(arm, saved[1], *options, "--out", tmp_path / name)
    assert is_form(form, (tmp_path / name).read_bytes().decode())
    assert is_form(options[1] if options else "table", ran.out)


def test_several_files_and_standard_output_tell_the_same_audit(
    arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path
) -> None:
    json_file, other, third = tmp_path / "a.json", tmp_path / "b.sarif", tmp_path / "c.html"
    ran = offline(arm, saved[1], "-o", "json", "--out", json_file, "--out", other, "--out", third)
    assert json_file.read_text() == ran.out
    assert is_form("sarif", other.read_text())
    assert is_form("html", third.read_text())


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--out", "{}/none/a.json"], 4, "/none does not exist"),
        (["--save-snapshot", "{}/none/a.json"], 4, "/none does not exist"),
        (["--out", "{}"], 2, "is not a file"),
        (["--out", "-"], 2, "is not a file"),
        (["--out", "{}/a.json", "--out", "{}/a.json"], 2, "named twice"),
        (["--out", "{}/a.json", "--save-snapshot", "{}/a.json"], 2, "named twice"),
    ],
)
def test_an_output_that_cannot_be_written_is_reported_before_the_first_request(
    arm: ArmStandIn, tmp_path: Path, options: list[str], code: int, says: str
) -> None:
    before = len(arm.requests)
    ran = audit(arm, *(option.format(tmp_path) for option in options))
    assert (ran.code, ran.out, len(ran.errors)) == (code, "", 1)
    assert says in ran.errors[0]
    assert len(arm.requests) == before


def test_a_terminal_without_utf8_gets_what_it_can_show(arm: ArmStandIn, saved: tuple[Ran, Path]) -> None:
    ran = audit_process(arm, "--snapshot", saved[1], environ={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 1
    assert ran.out.startswith("Fail  aks-inference\n")


# ------------------------------------------------------------------ snapshots


def test_a_replay_sends_no_request_and_gives_the_same_bytes(arm: ArmStandIn, saved: tuple[Ran, Path]) -> None:
    before = len(arm.requests)
    ran = offline(arm, saved[1], "-o", "json")
    assert ran.out == saved[0].out
    assert (ran.code, ran.err) == (1, "")
    assert len(arm.requests) == before


def test_a_replay_as_a_process_without_any_network_gives_the_same_bytes(
    arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "def refuse(event, arguments):\n"
        "    if event in {'socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'socket.gethostbyname'}:\n"
        "        raise SystemError(f'a host is asked: {arguments}')\n"
        "sys.addaudithook(refuse)\n"
    )
    arguments = ("--snapshot", saved[1], "-o", "json")
    ran = audit_process(arm, *arguments, environ={"PYTHONPATH": str(tmp_path), "HERMETIC_ARM_TOKEN": ""})
    assert (ran.code, ran.out) == (1, saved[0].out)


def test_a_snapshot_needs_no_cluster_and_takes_its_id_in_any_case(arm: ArmStandIn, saved: tuple[Ran, Path]) -> None:
    for azure in ([], ["--azure", arm.estate.cluster.upper() + "/"]):
        assert hermetic("audit", *azure, "--snapshot", saved[1], "-o", "json").out == saved[0].out


def test_a_snapshot_of_another_cluster_is_2(arm: ArmStandIn, saved: tuple[Ran, Path]) -> None:
    ran = hermetic("audit", "--azure", arm.estate.cluster + "-2", "--snapshot", saved[1])
    assert (ran.code, ran.out, len(ran.errors)) == (2, "", 1)
    assert "is about" in ran.errors[0]


@pytest.mark.parametrize("source", ["--kube", "--probe"])
def test_a_snapshot_without_a_source_that_is_wanted_is_2(saved: tuple[Ran, Path], source: str) -> None:
    ran = hermetic("audit", source, "--snapshot", saved[1])
    assert (ran.code, ran.out) == (2, "")
    assert f"holds nothing from {source}" in ran.errors[0]


@pytest.mark.parametrize("damage", ["{}", "[]", "", "{", '{"schema": "hermetic.dev/snapshot/v1"}'])
def test_what_is_no_snapshot_is_2(damage: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(damage)
    ran = hermetic("audit", "--snapshot", tmp_path / "file")
    assert (ran.code, ran.out, len(ran.errors), len(ran.fixes)) == (2, "", 1, 1)


def test_a_snapshot_that_was_changed_by_hand_is_2(saved: tuple[Ran, Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text(saved[1].read_text().replace("natGateway", "natGatewax"))
    ran = hermetic("audit", "--snapshot", tmp_path / "file")
    assert ran.code == 2
    assert "was changed after it was written" in ran.errors[0]


def test_a_replay_may_be_judged_by_another_policy(arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path) -> None:
    open_ = {finding["check"] for finding in report_in(saved[0].out)["findings"] if finding["verdict"] == "Fail"}
    accepted = [
        {"check": check, "resource": "*", "reason": "known", "owner": "us", "expiry": "2099-01-01"} for check in open_
    ]
    (tmp_path / "exceptions.yaml").write_text(yaml.safe_dump({"exceptions": accepted}))
    assert offline(arm, saved[1], "--exceptions", tmp_path / "exceptions.yaml").code == 0


# ------------------------------------------------------------------ a baseline


def earlier(saved: tuple[Ran, Path], tmp_path: Path, **changed: Any) -> Path:
    """The saved audit as the report of an earlier one, in which the NAT gateway was not there."""
    report = report_in(saved[0].out) | changed
    for finding in report["findings"]:
        if finding["check"] == "subnet-nat-gateway":
            finding["verdict"] = "Pass"
    file = tmp_path / "earlier.json"
    file.write_text(json.dumps(report), encoding="utf-8")
    return file


@pytest.mark.parametrize("form", ["table", "html", "json", "csv"])
def test_what_changed_since_a_baseline_is_in_the_forms_for_people_and_scripts(
    arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path, form: str
) -> None:
    ran = offline(arm, saved[1], "-o", form, "--baseline", earlier(saved, tmp_path))
    assert ran.code == 1
    if form == "json":
        (changed,) = report_in(ran.out)["baseline"]["changed"]
        assert (changed["check"], changed["verdict"]) == ("subnet-nat-gateway", "Fail")
        assert changed["before"] == {"verdict": "Pass", "severity": "critical"}
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(ran.out, newline="")))
        assert {row["check"] for row in rows if row["sinceBaseline"]} == {"subnet-nat-gateway"}
    else:
        assert "Pass critical -&gt; Fail critical" in ran.out or "Pass critical -> Fail critical" in ran.out


def test_a_baseline_changes_nothing_but_what_is_said_of_it(
    arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path
) -> None:
    ran = offline(arm, saved[1], "-o", "json", "--baseline", earlier(saved, tmp_path))
    report = report_in(ran.out)
    assert report.pop("baseline")["added"] == []
    assert report == report_in(saved[0].out)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not JSON"),
        ("[]", "`schema` must be"),
        ("{}", "`schema` must be"),
        ('{"schema": "hermetic.dev/snapshot/v1"}', "hermetic.dev/snapshot/v1"),
        ('{"schema": "hermetic.dev/audit/v1"}', "`cluster`: Field required"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_baseline_is_2_and_nothing_is_requested(
    arm: ArmStandIn, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "earlier.json").write_text(content)
    before = len(arm.requests)
    ran = audit(arm, "--baseline", tmp_path / "earlier.json")
    assert (ran.code, ran.out, len(ran.errors), len(ran.fixes)) == (2, "", 1, 1)
    assert says in ran.errors[0]
    assert len(arm.requests) == before


def test_a_baseline_that_is_not_there_or_of_another_cluster_is_2(
    arm: ArmStandIn, saved: tuple[Ran, Path], tmp_path: Path
) -> None:
    for file, code, says in (
        (tmp_path / "none.json", 2, "No such file"),
        (earlier(saved, tmp_path, cluster=arm.estate.cluster + "-2"), 2, "it is about"),
    ):
        ran = offline(arm, saved[1], "--baseline", file)
        assert (ran.code, ran.out, len(ran.errors), len(ran.fixes)) == (code, "", 1, 1)
        assert says in ran.errors[0]


# ------------------------------------------------------------------ credentials


def test_no_credential_in_any_report_snapshot_or_log(arm: ArmStandIn, tmp_path: Path) -> None:
    endings = ("txt", "json", "sarif", "xml", "yaml", "html", "oscal", "csv")
    files: list[Any] = [argument for ending in endings for argument in ("--out", tmp_path / f"report.{ending}")]
    ran = audit_process(arm, *files, "--save-snapshot", tmp_path / "estate.json")
    outputs = [ran.out, ran.err, *(file.read_text() for file in tmp_path.iterdir())]
    assert len(outputs) == 2 + len(endings) + 1
    assert all(outputs)
    for text in outputs:
        assert arm.token not in text
        assert "Bearer" not in text


def test_no_credential_in_any_error(arm: ArmStandIn) -> None:
    token = "eyJ0eXAi.secret-part.signature"
    with environment(HERMETIC_ARM_TOKEN=token):
        for endpoint in (arm.url, "http://127.0.0.1:1", "http://management.invalid"):
            ran = hermetic(*arguments_for(arm)[:-1], endpoint)
            assert ran.code in {2, 4}
            assert "secret-part" not in ran.out + ran.err
