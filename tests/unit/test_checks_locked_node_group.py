"""What a lock of the node resource group hides is asked for by other reads: they refute, and prove only what cannot be
there twice.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import Question, UnreadReason
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.policy.exceptions import AcceptedRisk
from testbed.azure.plants import PLANTS
from testbed.azure.server import ArmStandIn
from testbed.textbook import TEXTBOOK
from tests.audit_estates import CLUSTER, NETWORK, NODES, SUBSCRIPTION, VNET
from tests.audit_services import DNS_POLICY, HUB, FakeServices, dns_rule, served_cluster
from tests.azure_collecting import audited

RULESET = f"{NETWORK}/dnsForwardingRulesets/site"
LISTS = f"{NETWORK}/dnsResolverDomainLists"
BLOCK, ALLOW = f"{DNS_POLICY}/dnsSecurityRules/block", f"{DNS_POLICY}/dnsSecurityRules/allow"
NAMES = ("dns-security-policy", "dns-allowed-domains")


class Asked(FakeServices):
    """Keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[Question] = []

    def answer(self, question: Question) -> Any:
        self.questions.append(question)
        return super().answer(question)


def locked(network: str = VNET) -> FakeServices:
    """Every action on the network is forbidden by a deny assignment."""
    azure = served_cluster().refuse(network, UnreadReason.LOCKED, verb="post")
    assert isinstance(azure, FakeServices)
    return azure


def with_ruleset(azure: FakeServices, *, server: str = "9.9.9.9", network: str = VNET) -> FakeServices:
    azure.put(RULESET, {})
    azure.put(f"{RULESET}/virtualNetworkLinks/one", {"virtualNetwork": {"id": network.upper()}})
    properties = {"domainName": ".", "targetDnsServers": [{"ipAddress": server}], "forwardingRuleState": "Enabled"}
    azure.put(f"{RULESET}/forwardingRules/one", properties)
    return azure


def with_policy(azure: FakeServices, *, network: str = VNET) -> FakeServices:
    azure.put(DNS_POLICY, {})
    properties = {"virtualNetwork": {"id": network}, "provisioningState": "Succeeded"}
    azure.put(f"{DNS_POLICY}/virtualNetworkLinks/one", properties)
    return azure


def at_network(findings: dict[str, Finding]) -> tuple[Verdict, str]:
    return findings[VNET.lower()].verdict, findings[VNET.lower()].reason


UNKNOWN = (Verdict.UNKNOWN, "DenyAssignment")


def of_nodes(azure: FakeServices) -> Verdict:
    return azure.findings("nsg-platform-dns")[NODES.lower()].verdict


class TestRulesets:
    def test_one_that_forwards_outside_fails_and_the_network_stays_unknown(self) -> None:
        findings = with_ruleset(locked()).findings("dns-forwarding-ruleset")
        assert findings[RULESET.lower()].verdict is Verdict.FAIL
        assert findings[RULESET.lower()].severity is Severity.HIGH
        assert at_network(findings) == UNKNOWN

    def test_one_that_forwards_inside_proves_nothing_of_the_network(self) -> None:
        findings = with_ruleset(locked(), server="10.1.2.3").findings("dns-forwarding-ruleset")
        assert at_network(findings) == UNKNOWN
        assert Verdict.FAIL not in {finding.verdict for finding in findings.values()}

    def test_none_that_is_linked_proves_nothing(self) -> None:
        for azure in (locked(), with_ruleset(locked(), network=HUB)):
            findings = azure.findings("dns-forwarding-ruleset")
            assert set(findings) == {VNET.lower()}
            assert at_network(findings) == UNKNOWN

    @pytest.mark.parametrize("refused", [SUBSCRIPTION, RULESET])
    def test_lists_that_are_refused_leave_it_unknown(self, refused: str) -> None:
        findings = with_ruleset(locked()).refuse(refused, verb="list").findings("dns-forwarding-ruleset")
        assert at_network(findings) == UNKNOWN
        assert Verdict.PASS not in {finding.verdict for finding in findings.values()}

    def test_a_damaged_link_hides_no_other(self) -> None:
        azure = with_ruleset(locked()).put(f"{RULESET}/virtualNetworkLinks/first", {"virtualNetwork": "odd"})
        assert azure.findings("dns-forwarding-ruleset")[RULESET.lower()].verdict is Verdict.FAIL

    def test_an_exception_about_the_network_does_not_cover_it(self) -> None:
        findings = with_ruleset(locked()).findings("dns-forwarding-ruleset")
        exception_fields = {"check": "dns-forwarding-ruleset", "resource": f"{VNET}*", "reason": "r", "owner": "o"}
        exception = AcceptedRisk.model_validate({**exception_fields, "expiry": "2999-01-01"})
        assert [key for key, finding in findings.items() if exception.accepts(finding)] == [VNET.lower()]


class TestPolicies:
    def test_one_that_only_alerts_fails(self) -> None:
        azure = with_policy(locked()).change(BLOCK, action={"actionType": "Alert"})
        assert at_network(azure.findings("dns-security-policy")) == (Verdict.FAIL, "AllowsEveryName")
        assert of_nodes(azure) is Verdict.FAIL

    @pytest.mark.parametrize("check", NAMES)
    def test_one_that_blocks_decides_for_a_network_has_no_second(self, check: str) -> None:
        findings = with_policy(locked()).findings(check)
        assert {finding.verdict for finding in findings.values()} == {Verdict.PASS}
        assert of_nodes(with_policy(locked())) is Verdict.PASS

    def test_none_that_is_linked_proves_nothing(self) -> None:
        assert at_network(locked().findings("dns-security-policy")) == UNKNOWN
        assert of_nodes(locked()) is Verdict.UNKNOWN

    @pytest.mark.parametrize("state", ["Updating", "Deleting", "Failed", "Tomorrow", None])
    def test_a_link_that_is_not_in_force_proves_nothing(self, state: str | None) -> None:
        azure = with_policy(locked())
        azure.change(f"{DNS_POLICY}/virtualNetworkLinks/one", provisioningState=state)
        assert at_network(azure.findings("dns-security-policy")) == (Verdict.UNKNOWN, "LinkNotInForce")
        assert of_nodes(azure) is Verdict.UNKNOWN

    def test_two_that_claim_the_network_contradict_one_another(self) -> None:
        azure = with_policy(locked())
        other = f"{NETWORK}/dnsResolverPolicies/other"
        properties = {"virtualNetwork": {"id": VNET}, "provisioningState": "Succeeded"}
        azure.put(other, {}).put(f"{other}/virtualNetworkLinks/one", properties)
        assert at_network(azure.findings("dns-security-policy")) == (Verdict.UNKNOWN, "SeveralPolicies")

    def test_links_that_are_refused_leave_it_unknown(self) -> None:
        azure = with_policy(locked()).refuse(DNS_POLICY, verb="list")
        for check in NAMES:
            assert Verdict.PASS not in {finding.verdict for finding in azure.findings(check).values()}, check
        assert of_nodes(azure) is Verdict.UNKNOWN

    @pytest.mark.parametrize("check", NAMES)
    def test_one_that_is_linked_elsewhere_is_not_looked_at(self, check: str) -> None:
        azure = with_policy(locked(), network=HUB).change(BLOCK, action={"actionType": "Alert"})
        findings = azure.findings(check)
        assert set(findings) == {VNET.lower()}
        assert at_network(findings) == UNKNOWN

    def test_rules_that_cannot_be_read_are_unknown(self) -> None:
        findings = with_policy(locked()).refuse(DNS_POLICY, kind=f"{TYPE}/dnsSecurityRules").findings(NAMES[0])
        assert {finding.verdict for finding in findings.values()} == {Verdict.UNKNOWN}

    def test_a_strangers_domain_that_it_lets_through_fails(self) -> None:
        azure = with_policy(locked()).put(f"{DNS_POLICY}/dnsSecurityRules/more", dns_rule(50, "Allow", f"{LISTS}/more"))
        azure.put(f"{LISTS}/more", {"domains": ["attacker.example."]})
        findings = azure.findings("dns-allowed-domains")
        assert findings[f"{LISTS}/more".lower()].verdict is Verdict.FAIL

    def test_so_does_one_of_a_policy_that_is_not_clear(self) -> None:
        azure = with_policy(locked()).put(f"{DNS_POLICY}/dnsSecurityRules/more", dns_rule(50, "Allow", f"{LISTS}/more"))
        azure.put(f"{LISTS}/more", {"domains": ["attacker.example.", "*.odd."]})
        findings = azure.findings("dns-allowed-domains")
        assert findings[f"{LISTS}/more".lower()].verdict is Verdict.FAIL
        assert at_network(findings) == (Verdict.UNKNOWN, "WildcardUnknown")


TYPE = "Microsoft.Network/dnsResolverPolicies"


@pytest.mark.parametrize("reason", [None, UnreadReason.FORBIDDEN, UnreadReason.UNAVAILABLE])
@pytest.mark.parametrize("check", [*NAMES, "dns-forwarding-ruleset"])
def test_nothing_more_is_asked_where_no_lock_refuses(check: str, reason: UnreadReason | None) -> None:
    azure = Asked()
    azure.__dict__ |= {**with_ruleset(with_policy(served_cluster())).__dict__, "questions": []}
    if reason is not None:
        azure.refuse(VNET, reason, verb="post")
    findings = azure.findings(check)
    assert not [
        question
        for question in azure.questions
        if question.kind.endswith("/virtualNetworkLinks") and "/dns" in question.kind
    ]
    assert reason is None or findings[VNET.lower()].reason == reason.value


MANAGER = f"{NETWORK}/networkManagers/avnm"
MESH = f"{MANAGER}/connectivityConfigurations/mesh"
BASE = f"{MANAGER}/securityAdminConfigurations/base"
RULES = f"{BASE}/ruleCollections/c"
OUT = f"{RULES}/rules/out"
ROWS = {
    "avnm-connectivity": ("effectiveConnectivityConfigurations", "effectiveConnectivityConfigurations", MESH),
    "avnm-admin-rules": ("effectiveSecurityAdminRules", "EffectiveSecurityAdminConfigurations", BASE),
}


def row_of(check: str, network: str = VNET) -> str:
    return f"{network}/providers/Microsoft.Network/{ROWS[check][0]}/default"


def applied(check: str, azure: FakeServices, network: str = VNET) -> FakeServices:
    _, field, configuration = ROWS[check]
    return _put(azure, row_of(check, network), {field: [{"Id": f"{configuration}/snapshots/7"}]})


def with_rule(azure: FakeServices, to: str = "Internet", **fields: Any) -> FakeServices:
    word = {"addressPrefixType": "ServiceTag", "addressPrefix": to}
    rule_properties = {"access": "AlwaysAllow", "direction": "Outbound", "priority": 1, "destinations": [word]}
    _put(azure, RULES, {})
    return _put(azure, OUT, {**rule_properties, **fields})


def _put(azure: FakeServices, arm_id: str, properties: dict[str, Any]) -> FakeServices:
    azure.put(arm_id, properties)
    return azure


class TestNetworkManager:
    def test_a_mesh_that_resource_graph_shows_fails_and_the_network_stays_unknown(self) -> None:
        findings = applied("avnm-connectivity", locked()).findings("avnm-connectivity")
        assert {key: finding.verdict for key, finding in findings.items()} == {
            MESH.lower(): Verdict.FAIL,
            VNET.lower(): Verdict.UNKNOWN,
        }
        assert at_network(findings) == UNKNOWN
        assert findings[MESH.lower()].severity is Severity.HIGH

    @pytest.mark.parametrize("check", ROWS)
    def test_no_row_proves_nothing(self, check: str) -> None:
        empty = _put(locked(), row_of(check), {ROWS[check][1]: []})
        for azure in (locked(), empty, applied(check, locked(), HUB), locked().refuse(VNET, verb="list")):
            findings = azure.findings(check)
            assert set(findings) == {VNET.lower()}
            assert at_network(findings) == UNKNOWN

    @pytest.mark.parametrize("check", ROWS)
    def test_a_row_that_cannot_be_read_is_unknown_beside_the_network(self, check: str) -> None:
        findings = _put(locked(), row_of(check), {ROWS[check][1]: "odd"}).findings(check)
        assert set(findings) == {VNET.lower(), CLUSTER.lower()}
        assert {finding.verdict for finding in findings.values()} == {Verdict.UNKNOWN}

    @pytest.mark.parametrize("check", ROWS)
    def test_an_exception_about_the_network_covers_no_configuration(self, check: str) -> None:
        findings = with_rule(applied(check, locked())).findings(check)
        exception_fields = {"check": check, "resource": f"{VNET}*", "reason": "r", "owner": "o", "expiry": "2999-01-01"}
        assert [
            key for key, finding in findings.items() if AcceptedRisk.model_validate(exception_fields).accepts(finding)
        ] == [VNET.lower()]

    @pytest.mark.parametrize(
        ("rule", "verdict"),
        [
            ({}, Verdict.FAIL),
            ({"access": "Allow"}, Verdict.FAIL),
            ({"access": "Odd"}, Verdict.UNKNOWN),
            ({"destinations": "odd"}, Verdict.UNKNOWN),
            ({"access": "Deny"}, None),
            ({"direction": "Inbound"}, None),
            ({"to": "10.0.0.0/8"}, None),
        ],
    )
    def test_a_rule_of_an_applied_configuration(self, rule: dict[str, Any], verdict: Verdict | None) -> None:
        findings = with_rule(applied("avnm-admin-rules", locked()), **rule).findings("avnm-admin-rules")
        finding = findings.get(OUT.lower())
        assert (finding.verdict if finding is not None else None) is verdict
        # what is deployed may be older than what the rules say now
        assert findings[BASE.lower()].verdict is Verdict.UNKNOWN
        assert at_network(findings) == UNKNOWN

    def test_a_damaged_rule_hides_no_other(self) -> None:
        azure = with_rule(applied("avnm-admin-rules", locked()), destinations="odd")
        _put(azure, f"{RULES}/rules/zz", {"access": "Allow", "direction": "Outbound"})
        findings = azure.findings("avnm-admin-rules")
        assert findings[f"{RULES}/rules/zz".lower()].verdict is Verdict.FAIL
        assert findings[OUT.lower()].verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize("refused", [BASE, RULES])
    def test_rules_that_cannot_be_read_are_unknown(self, refused: str) -> None:
        azure = with_rule(applied("avnm-admin-rules", locked())).refuse(refused, verb="list")
        findings = azure.findings("avnm-admin-rules")
        assert set(findings) == {VNET.lower(), BASE.lower()}
        assert {finding.verdict for finding in findings.values()} == {Verdict.UNKNOWN}

    @pytest.mark.parametrize("check", ROWS)
    def test_resource_graph_is_not_asked_where_no_lock_refuses(self, check: str) -> None:
        assert set(with_rule(applied(check, served_cluster())).findings(check)) == {VNET.lower()}


@pytest.mark.parametrize(("discovery", "is_seen"), [("graph", True), ("list", False)])
async def test_an_audit_asks_resource_graph_unless_it_must_not(discovery: Any, is_seen: bool) -> None:
    estate = TEXTBOOK["managed-network-block"].azure
    planted = ("mesh_pushed_by_a_network_manager", "admin_rule_that_outranks_security_groups")
    expected = [misconfiguration for name in planted for misconfiguration in PLANTS[name].into(estate)]
    with ArmStandIn(estate) as arm:
        report = await audited(arm, discovery=discovery)
    failed = [finding for finding in report.findings if finding.verdict is Verdict.FAIL]
    for misconfiguration in expected:
        met = [
            finding
            for finding in failed
            if misconfiguration.is_met_by(finding.check, finding.resource, finding.severity.value)
        ]
        assert bool(met) is is_seen
