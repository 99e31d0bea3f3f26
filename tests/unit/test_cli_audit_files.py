"""The files of `hermetic audit`: nothing in a policy or in exceptions is ignored without a word, and bad input is 2.

Azure is stood in for at its HTTP boundary.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.cli.audit.files import read_exceptions, replaced_reports
from hermetic.cli.audit.formats import form_of_file
from testbed.azure.baseline.layout import CONNECTIVITY, WORKLOAD
from testbed.azure.server import ArmStandIn
from tests.audits_by_command import a_stand_in, audit, failed, findings_of, report_in
from tests.commandline import Ran, hermetic
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

NAT = "nat_gateway_on_the_gpu_subnet"
NIC = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/n"
FIREWALL = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/azureFirewalls/f"
VNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v"
PRIVATE = {"subnet": f"{VNET}/subnets/gpu", "since": "2026-07-01T08:00:00Z", "statedBy": "network-team"}
AN_EXCEPTION = {
    "check": "subnet-nat-gateway",
    "resource": "*/subnets/snet-gpu",
    "reason": "moves out with the next release",
    "owner": "network-team@contoso.example",
    "expiry": "2099-12-31",
}


@pytest.fixture
def arm() -> Iterator[ArmStandIn]:
    """A sealed estate."""
    with a_stand_in() as started:
        yield started


@pytest.fixture
def open_arm() -> Iterator[ArmStandIn]:
    """An estate with one NAT gateway."""
    with a_stand_in(NAT) as started:
        yield started


def written(folder: Path, content: Any, name: str = "file.yaml") -> Path:
    """A file with this text, or with this value as YAML."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def refused(ran: Ran, *says: str) -> None:
    """Exit code 2, one error with these words, one fix, and no report."""
    ended(ran, 2, *says)


def ended(ran: Ran, code: int, *says: str) -> None:
    """This exit code, one error with these words, one fix, and no report."""
    assert (ran.code, ran.out, len(ran.errors), len(ran.fixes)) == (code, "", 1, 1)
    for say in says:
        assert say in ran.errors[0]


# ------------------------------------------------------------------ files that cannot be used


@pytest.mark.parametrize("option", ["--policy", "--exceptions", "--snapshot"])
def test_a_file_that_is_not_there_is_4_and_one_that_cannot_be_used_2_before_azure_is_asked(
    arm: ArmStandIn, option: str, tmp_path: Path
) -> None:
    ended(audit(arm, option, tmp_path / "none.yaml"), 2, "none.yaml: No such file")
    refused(audit(arm, option, tmp_path), "is a folder")
    (tmp_path / "latin").write_bytes("propriétaire: 1".encode("latin-1"))
    refused(audit(arm, option, tmp_path / "latin"), "UTF-8")
    assert arm.requests == []


@pytest.mark.parametrize("option", ["--policy", "--exceptions"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "neither YAML nor JSON"),
        ('{"a": ', "neither YAML nor JSON"),
        ("", "holds 0 documents"),
        ("a: 1\n---\nb: 2\n", "holds 2 documents"),
        ("- check: x\n", "holds no keys"),
        ("# none\nfirewal: x\n", ".yaml:2:1: `firewal`: is not a key that is known here"),
        ("ownSubscriptions: []\nownSubscriptions: []\n", "duplicate key"),
        ("own_subscriptions: []\n", "`own_subscriptions`: is not a key that is known here"),
    ],
)
def test_a_file_that_says_nothing_sensible_is_2(option: str, text: str, says: str, tmp_path: Path) -> None:
    refused(hermetic("audit", "--azure", "x", option, written(tmp_path, text)), says)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"profile": "filtered"}, "a policy file has no key `profile`"),
        ({"ownSubscriptions": ["the-other-one"]}, "is not the id of a subscription"),
        ({"ownSubscriptions": WORKLOAD}, "`ownSubscriptions`"),
        ({"allowedPeerings": ["vnet-hub"]}, "is not the ARM id of a virtual network or a peering"),
        ({"allowedPeerings": [NIC]}, "is not the ARM id of a virtual network or a peering"),
        ({"allowedDnsServers": ["10.0.0.0/24"]}, "is not an IP address"),
        ({"harmlessKinds": ["Widget"]}, "is not an API group and a kind"),
        ({"sentinelNics": ["nic-sentinel"]}, "is not an ARM id"),
        ({"sentinelNics": [FIREWALL]}, "is not the ARM id of a network interface"),
        ({"firewall": NIC}, "is not the ARM id of an Azure Firewall"),
        ({"hermeticNamespaces": ["Probes"]}, "is not the name of a namespace"),
        ({"sentinelNics": [7]}, "`sentinelNics.0`"),
        ({"subnetsPrivateSince": [PRIVATE | {"since": "2126-07-01T08:00:00Z"}]}, "`subnetsPrivateSince.0.since`"),
        ({"subnetsPrivateSince": [PRIVATE | {"since": "2126-07-01T08:00:00Z"}]}, "lies in the future"),
        ({"subnetsPrivateSince": [PRIVATE | {"since": "2026-07-01T08:00:00"}]}, "write 2026-07-01T08:00:00Z"),
        ({"subnetsPrivateSince": [PRIVATE | {"subnet": f"{VNET}/subnets/*"}]}, "is a pattern"),
        ({"subnetsPrivateSince": [{"subnet": f"{VNET}/subnets/gpu", "since": "2026-07-01T08:00:00Z"}]}, "statedBy"),
    ],
)
def test_a_policy_with_a_value_that_could_never_match_is_2(policy: dict[str, Any], says: str, tmp_path: Path) -> None:
    refused(hermetic("audit", "--azure", "x", "--policy", written(tmp_path, policy)), says)


def test_filtered_without_a_firewall_is_2(tmp_path: Path) -> None:
    filtered = ("audit", "--azure", "x", "--profile", "filtered")
    refused(hermetic(*filtered), "--profile filtered needs `firewall`")
    refused(hermetic(*filtered, "--policy", written(tmp_path, {"allowedPeerings": []})), "needs `firewall`")


@pytest.mark.parametrize("field", AN_EXCEPTION)
def test_an_exception_without_one_of_its_five_fields_is_2(field: str, tmp_path: Path) -> None:
    for value in ({}, {field: ""}):
        damaged_exception = {name: content for name, content in AN_EXCEPTION.items() if name != field} | value
        file = written(tmp_path, {"exceptions": [AN_EXCEPTION, damaged_exception]})
        refused(hermetic("audit", "--azure", "x", "--exceptions", file), f"`exceptions.1.{field}`")


def test_the_last_day_is_read_in_both_spellings_and_never_in_two_at_once(tmp_path: Path) -> None:
    as_in_the_cluster = {name: value for name, value in AN_EXCEPTION.items() if name != "expiry"} | {
        "expires": "2099-12-31"
    }
    of_the_file, of_the_cluster = (
        read_exceptions(Path(written(tmp_path, {"exceptions": [document]})), {AN_EXCEPTION["check"]})
        for document in (AN_EXCEPTION, as_in_the_cluster)
    )
    assert of_the_file == of_the_cluster
    both = written(tmp_path, {"exceptions": [AN_EXCEPTION | {"expires": "2026-01-01"}]})
    refused(hermetic("audit", "--azure", "x", "--exceptions", both), "is not a key that is known here")
    invalid_file = written(tmp_path, {"exceptions": [as_in_the_cluster | {"expires": "soon"}]})
    refused(hermetic("audit", "--azure", "x", "--exceptions", invalid_file), "is not a day YYYY-MM-DD")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"check": "subnet-nat-gatway"}, "no check is called 'subnet-nat-gatway'; did you mean subnet-nat-gateway?"),
        ({"expiry": "31.12.2099"}, "is not a day YYYY-MM-DD"),
        ({"expiry": "2026-W53-4"}, "is not a day YYYY-MM-DD"),
        ({"expiry": "2026-02-30"}, "`exceptions.0.expiry`"),
        ({"severity": "low"}, "`exceptions.0.severity`: is not a key that is known here"),
    ],
)
def test_an_exception_that_cannot_be_meant_is_2(changes: dict[str, str], says: str, tmp_path: Path) -> None:
    file = written(tmp_path, {"exceptions": [AN_EXCEPTION | changes]})
    refused(hermetic("audit", "--azure", "x", "--exceptions", file), says)


# ------------------------------------------------------------------ what a policy allows


@pytest.mark.parametrize("of", ["peering", "hub"])
@pytest.mark.parametrize("form", [yaml.safe_dump, json.dumps], ids=["YAML", "JSON"])
def test_a_peering_is_allowed_by_its_id_or_its_remote_network_s_in_any_case(of: str, form, tmp_path: Path) -> None:
    with a_stand_in(layout="peered") as arm:
        assert ("peering-any", arm.estate.site.peering.lower()) in failed(audit(arm, "-o", "json"))
        allowed = {**arm.estate.policy, "allowedPeerings": [getattr(arm.estate.site, of).upper()]}
        ran = audit(arm, "-o", "json", "--policy", written(tmp_path, form(allowed)))
    assert findings_of(ran, "peering-any")[arm.estate.site.peering.lower()]["verdict"] == "Pass"


@pytest.mark.parametrize("spelled", ["{}", "/subscriptions/{}"])
def test_own_subscriptions_add_to_the_cluster_s_own(spelled: str, tmp_path: Path) -> None:
    with a_stand_in() as arm:
        foreign = arm.estate.site.registry.replace(WORKLOAD, CONNECTIVITY)
        endpoint = next(
            endpoint
            for endpoint in arm.estate.of_type("Microsoft.Network/privateEndpoints")
            if "registries" in json.dumps(endpoint).lower()
        )
        connection = endpoint["properties"]["privateLinkServiceConnections"][0]
        connection["properties"]["privateLinkServiceId"] = foreign
        of_ours = {endpoint["id"].lower() for endpoint in arm.estate.of_type("Microsoft.Network/privateEndpoints")}
        alone = findings_of(audit(arm, "-o", "json"), "pe-foreign-target")
        policy = written(tmp_path, {"ownSubscriptions": [spelled.format(CONNECTIVITY)]})
        together = findings_of(audit(arm, "-o", "json", "--policy", policy), "pe-foreign-target")
    assert {resource for resource, finding in alone.items() if finding["verdict"] == "Fail"} == {endpoint["id"].lower()}
    assert {resource for resource, finding in together.items() if finding["verdict"] == "Pass"} == of_ours


def test_a_sentinel_that_is_not_there_is_2_and_one_that_is_there_is_asked(arm: ArmStandIn, tmp_path: Path) -> None:
    missing = arm.estate.site.sentinel + "-gone"
    refused(
        audit(arm, "--policy", written(tmp_path, {"sentinelNics": [missing]})), "`sentinelNics`", missing, "not there"
    )
    named = written(tmp_path, {"sentinelNics": [arm.estate.site.sentinel]})
    assert audit(arm, "--policy", named).code == 0


def test_a_sentinel_that_may_not_be_read_is_unknown_not_a_typing_error(arm: ArmStandIn, tmp_path: Path) -> None:
    arm.estate.deny(arm.estate.site.sentinel)
    assert audit(arm, "--policy", written(tmp_path, {"sentinelNics": [arm.estate.site.sentinel]})).code == 3


def test_filtered_accepts_the_declared_firewall_and_sealed_does_not(tmp_path: Path) -> None:
    with a_stand_in(layout="filtered") as arm:
        policy = written(tmp_path, arm.estate.policy)
        assert audit(arm, "--policy", policy, "--profile", "filtered").code == 0
        assert audit(arm, "--policy", policy).code == 1


# ------------------------------------------------------------------ exceptions


def test_an_exception_accepts_and_is_shown_with_its_text(open_arm: ArmStandIn, tmp_path: Path) -> None:
    several = [AN_EXCEPTION | {"check": check, "resource": "*"} for check, _ in failed(audit(open_arm, "-o", "json"))]
    ran = audit(open_arm, "-o", "json", "--exceptions", written(tmp_path, {"exceptions": several}))
    finding = findings_of(ran, "subnet-nat-gateway")[open_arm.estate.site.gpu_subnet.lower()]
    assert (ran.code, finding["verdict"]) == (0, "Excepted")
    assert finding["exception"] == {
        "reason": AN_EXCEPTION["reason"],
        "owner": AN_EXCEPTION["owner"],
        "expiry": AN_EXCEPTION["expiry"],
        "accepted": "Fail",
    }
    assert "notes" not in report_in(ran.out)


def test_an_exception_that_has_expired_counts_for_nothing_and_is_reported(open_arm: ArmStandIn, tmp_path: Path) -> None:
    file = written(tmp_path, {"exceptions": [AN_EXCEPTION | {"expiry": "2020-01-31"}]})
    ran = audit(open_arm, "-o", "json", "--exceptions", file)
    (note,) = report_in(ran.out)["notes"]
    assert ran.code == 1
    assert "expired on 2020-01-31 and is ignored" in note
    assert f"# {note}" in ran.err
    assert report_in(ran.out)["summary"]["Excepted"] == 0
    [ended] = report_in(ran.out)["endedExceptions"]
    assert ended == {key: AN_EXCEPTION[key] for key in ("check", "resource", "owner")} | {"expiry": "2020-01-31"}


@pytest.mark.parametrize(("days", "is_reported"), [(0, True), (14, True), (15, False)])
def test_an_exception_that_ends_soon_is_announced(
    open_arm: ArmStandIn, tmp_path: Path, days: int, is_reported: bool
) -> None:
    last = f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"
    file = written(tmp_path, {"exceptions": [AN_EXCEPTION | {"expiry": last}]})
    notes = report_in(audit(open_arm, "-o", "json", "--exceptions", file).out).get("notes", [])
    assert [f"ends on {last}" in note for note in notes] == ([True] if is_reported else [])


def test_what_follows_from_what_is_accepted_is_accepted_with_it(open_arm: ArmStandIn, tmp_path: Path) -> None:
    parts = {check for check, _ in failed(audit(open_arm, "-o", "json"))} - {"aks-outbound-type"}
    several = [AN_EXCEPTION | {"check": check, "resource": "*"} for check in parts]
    ran = audit(open_arm, "-o", "json", "--exceptions", written(tmp_path, {"exceptions": several}))
    [about] = findings_of(ran, "aks-outbound-type").values()
    assert (ran.code, about["verdict"], about["exception"]["accepted"]) == (0, "Excepted", "Fail")
    assert "subnet-nat-gateway" in about["message"]
    assert "outbound-type" not in about["remedy"]


def test_an_exception_is_no_prefix(open_arm: ArmStandIn, tmp_path: Path) -> None:
    resource = open_arm.estate.site.gpu_subnet[:-1]
    file = written(tmp_path, {"exceptions": [AN_EXCEPTION | {"resource": resource}]})
    ran = audit(open_arm, "--exceptions", file)
    assert ran.code == 1
    assert f"for subnet-nat-gateway on {resource} matches no finding that is Fail or Unknown" in ran.err


def test_an_exception_may_accept_what_cannot_be_seen(arm: ArmStandIn, tmp_path: Path) -> None:
    arm.estate.deny(arm.estate.site.share)
    unknown = {
        (finding["check"], finding["resource"])
        for finding in report_in(audit(arm, "-o", "json").out)["findings"]
        if finding["verdict"] == "Unknown"
    }
    accepted = [AN_EXCEPTION | {"check": check, "resource": resource.upper()} for check, resource in unknown]
    ran = audit(arm, "-o", "json", "--exceptions", written(tmp_path, json.dumps({"exceptions": accepted})))
    assert unknown
    assert (ran.code, report_in(ran.out)["summary"]["Excepted"]) == (0, len(unknown))


def test_an_exception_of_a_check_that_did_not_run_is_no_error(arm: ArmStandIn, tmp_path: Path) -> None:
    file = written(tmp_path, {"exceptions": [AN_EXCEPTION | {"check": "k8s-public-lb"}]})
    ran = audit(arm, "--exceptions", file)
    assert ran.code == 0
    assert "meets no" not in ran.err


@pytest.mark.parametrize("name", ["report.pdf", "report.docx", "report.htmlx", "report.md"])
def test_a_file_with_an_unknown_ending_is_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    ran = hermetic("audit", "--azure", f"{NIC}", "--out", tmp_path / name)
    assert ran.code == 2
    assert f"no format has the ending '{Path(name).suffix}'" in ran.err
    assert ".html" in ran.fixes[0]
    assert ".sarif" in ran.fixes[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "chosen", "form"),
    [
        ("report.HTML", None, "html"),
        ("findings.json", "sarif", "sarif"),
        ("findings.json", None, "json"),
        ("report", None, "table"),
        ("report", "csv", "csv"),
    ],
)
def test_the_ending_of_a_file_selects_its_format(name: str, chosen: str | None, form: str) -> None:
    assert form_of_file(Path(name), chosen) == form


@pytest.mark.timeout(60)
def test_pipe_in_the_place_of_a_report_is_not_read(tmp_path: Path) -> None:
    """Its reader waits for the report: a read of it would never end."""
    pipe, absent, other = tmp_path / "pipe.json", tmp_path / "absent.json", tmp_path / "other.json"
    os.mkfifo(pipe)
    other.write_text("{}")
    assert replaced_reports([pipe, absent, other, tmp_path]) == []
