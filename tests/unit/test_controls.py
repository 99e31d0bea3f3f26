"""Controls that checks give evidence for: known ids of known frameworks, in every report that names a framework."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermetic.audit.checks.registry import CHECKS, PAGES
from hermetic.audit.model.controls import KNOWN, Controls, read_controls
from hermetic.audit.report.csv_form import as_csv
from hermetic.audit.report.oscal import as_oscal
from hermetic.audit.report.page import as_html
from hermetic.audit.report.sarif import as_sarif
from hermetic.audit.report.sentences import controls_of
from tests.audit_reports import a_failing_report, pages


def test_most_checks_give_evidence_for_a_control_of_each_of_the_first_two_frameworks():
    controls_of_checks = [check.page.controls for check in CHECKS]
    assert sum(bool(controls.nist) for controls in controls_of_checks) > 0.8 * len(controls_of_checks)
    assert sum(bool(controls.mcsb) for controls in controls_of_checks) > 0.6 * len(controls_of_checks)
    assert sum(bool(controls.cis_aks) for controls in controls_of_checks) >= 10


@pytest.mark.parametrize(
    ("check", "framework", "control"),
    [
        ("aks-network-policy", "cis_aks", "5.4.4"),
        ("k8s-default-deny-egress", "cis_aks", "4.4.2"),
        ("aks-private-api", "cis_aks", "5.4.2"),
        ("subnet-default-outbound", "nist", "SC-7(5)"),
        ("dns-recursion", "mcsb", "NS-10"),
    ],
)
def test_checks_of_which_a_framework_speaks_by_name_are_mapped_to_it(check, framework, control):
    assert control in getattr(PAGES[check].controls, framework)


@pytest.mark.parametrize(
    "data",
    [
        {"mcsb": ["NS-11"]},
        {"nist": ["SC-7 (5)"]},
        {"nist": ["sc-7"]},
        {"cis_aks": ["5.4"]},
        {"iso": ["A.8.20"]},
        {"mcsb": []},
        {"mcsb": "NS-1"},
        {"mcsb": ["NS-1", "NS-1"]},
    ],
)
def test_what_is_no_known_control_is_refused(data):
    with pytest.raises(ValueError):
        read_controls(data)


def test_a_check_may_have_none():
    assert read_controls({}) == Controls()
    assert controls_of(next(iter(pages().values()))) == ""


def test_every_known_id_can_be_named():
    assert read_controls({framework: sorted(ids) for framework, ids in KNOWN.items()})


def test_they_are_in_every_form_that_a_framework_is_read_from():
    check = "subnet-nat-gateway"
    mapped = {**pages(), check: replace(pages()[check], controls=Controls(("NS-1",), ("SC-7(5)",), ("5.4.3",)))}
    report = a_failing_report()
    assert "MCSB v1 NS-1; NIST SP 800-53 r5 SC-7(5); CIS AKS 1.8 5.4.3" in as_html(report, mapped)
    rules = json.loads(as_sarif(report, mapped))["runs"][0]["tool"]["driver"]["rules"]
    (rule,) = [sarif_rule for sarif_rule in rules if sarif_rule["id"] == check]
    assert rule["properties"]["tags"][-3:] == ["mcsb/NS-1", "nist/SC-7(5)", "cis-aks/5.4.3"]
    assert '"control-nist"' in as_oscal(report, mapped)
    assert '"NS-1","SC-7(5)","5.4.3"' in as_csv(report, mapped)
