"""Names that the probe asks for: recursion to the internet, resolvers, and what their answers prove."""

from __future__ import annotations

import pytest

from hermetic.audit.model.findings import Severity, Verdict
from tests.probe_runs import (
    ALLOWED,
    HELD_NAMES,
    both,
    changed,
    finding,
    sealed,
)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("r0:198.51.100.99;/5", Verdict.FAIL),
        ("r3:;example.com/5", Verdict.FAIL),
        ("r0:;example.com/5", Verdict.FAIL),
        ("r3:;/5", Verdict.PASS),
        ("r3:;./5", Verdict.PASS),
        ("r2:;/5", Verdict.PASS),
        ("r5:;/5", Verdict.PASS),
        ("r0:10.0.0.1;/5", Verdict.UNKNOWN),
        ("t/1500", Verdict.PASS),
        ("e101/0", Verdict.PASS),
        ("r0:;/5", Verdict.UNKNOWN),
        ("r0:blockpolicy.azuredns.invalid;/5", Verdict.PASS),
        ("r3:BlockPolicy.AzureDNS.invalid.;/5", Verdict.PASS),
        ("r2:blockpolicy.azuredns.invalid;/5", Verdict.UNKNOWN),
        ("r0:other.example.com,blockpolicy.azuredns.invalid;/5", Verdict.UNKNOWN),
        ("r0:198.51.100.99,blockpolicy.azuredns.invalid;/5", Verdict.FAIL),
        ("r0:blockpolicy.azuredns.invalid.example.com;/5", Verdict.UNKNOWN),
        ("r9:;/5", Verdict.UNKNOWN),
        ("g/5", Verdict.UNKNOWN),
        ("xValueError", Verdict.UNKNOWN),
        ("", Verdict.UNKNOWN),
    ],
)
@pytest.mark.parametrize("question", ["dns", "known"])
def test_a_question_must_not_leave_by_any_resolver(answer, verdict, question):
    result = finding("dns-recursion", both(changed(**{question: ["r2:;/3", answer]})))

    assert result.verdict is verdict


def test_a_sinkhole_that_answers_every_name_with_one_public_address_is_unknown():
    answers = ["r0:198.51.100.99;/3", "r2:;/3"]
    names = ["r0:198.51.100.99;|t/1500"] * 4
    result = finding("dns-recursion", both(changed(dns=answers, known=answers, names=names)))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "ResolverRewrites")
    assert result.remedy


def test_a_name_with_an_address_that_no_sinkhole_gives_is_a_leak():
    answers = ["r0:198.51.100.99;/3", "r2:;/3"]
    names = ["r0:198.51.100.99;|t/1500"] * 3 + ["r0:198.51.100.30;|t/1500"]

    assert finding("dns-recursion", both(changed(dns=answers, known=answers, names=names))).verdict is Verdict.FAIL


def test_a_forwarder_that_hides_where_a_denial_comes_from_is_caught_by_the_name_that_is_there():
    result = finding("dns-recursion", both(changed(dns=["r3:;/3", "r3:;/3"], known=["r0:198.51.100.1;/9", "r3:;/3"])))

    assert result.verdict is Verdict.FAIL


def test_a_name_that_resolves_and_stays_silent_is_a_finding_about_names():
    bodies = both(changed(names=["r0:198.51.100.20;|t/1600", *HELD_NAMES]))

    assert finding("dns-recursion", bodies).verdict is Verdict.FAIL
    assert finding("probe-internet", bodies).verdict is Verdict.PASS


def test_names_that_azure_blocks_by_policy_are_denied():
    blocked = ["r0:blockpolicy.azuredns.invalid;/4"] * len(sealed(host_network=True)["names"])
    bodies = both(changed(names=blocked), changed(host_network=True, names=blocked))

    assert finding("dns-recursion", bodies).verdict is Verdict.PASS
    assert finding("probe-internet", bodies).verdict is Verdict.PASS


def test_a_resolver_that_is_down_proves_nothing():
    result = finding("dns-recursion", both(changed(clusterName=["t/1500"])))

    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "ResolverSilent")


@pytest.mark.parametrize(
    ("servers", "verdict", "severity"),
    [
        (["168.63.129.16", "10.0.0.4"], Verdict.PASS, Severity.MEDIUM),
        (["10.0.0.53"], Verdict.FAIL, Severity.MEDIUM),
        (["198.51.100.8"], Verdict.FAIL, Severity.HIGH),
        (None, Verdict.UNKNOWN, Severity.MEDIUM),
        ([], Verdict.UNKNOWN, Severity.MEDIUM),
    ],
)
def test_only_allowed_resolvers_pass(servers, verdict, severity):
    resolvers = [*(servers or []), *({"168.63.129.16"} - set(servers or []))]
    answers = changed(
        host_network=True,
        nameservers=servers,
        servers=resolvers,
        dns=["r2:;/1" for _ in resolvers],
        known=["r2:;/1" for _ in resolvers],
        clusterName=["r3:;/1" for _ in servers or []],
    )
    result = finding("node-resolv", both(None, answers), ALLOWED)

    assert (result.verdict, result.severity) == (verdict, severity)
