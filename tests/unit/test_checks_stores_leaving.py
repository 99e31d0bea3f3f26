"""What leaves registries and storage accounts by tokens, tasks, replication and local users."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, NETWORK, SUBSCRIPTION, FakeAzure
from tests.audit_services import (
    ACCOUNT,
    OTHER_SUBSCRIPTION,
    REGISTRY,
    REGISTRY_ENDPOINT,
    only,
    served_cluster,
    verdicts,
)

IN_REGISTRIES, IN_ACCOUNTS = ("acr-tokens", "acr-task-bypass"), ("storage-replication", "storage-local-users")
KINDS = {
    "acr-tokens": "Microsoft.ContainerRegistry/registries/tokens",
    "storage-replication": "Microsoft.Storage/storageAccounts/objectReplicationPolicies",
    "storage-local-users": "Microsoft.Storage/storageAccounts/localUsers",
}
SFTP = {"isSftpEnabled": True, "isLocalUserEnabled": True}
PULL, PUSH = f"{REGISTRY}/scopeMaps/_repositories_pull", f"{REGISTRY}/scopeMaps/push"
PASSWORD = {"passwords": [{"name": "password1"}], "certificates": None}
FAR = f"{OTHER_SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Storage/storageAccounts/drop"
NEAR = f"{SUBSCRIPTION}/resourceGroups/ai/providers/Microsoft.Storage/storageAccounts/copy"


def _target(check: str) -> str:
    return REGISTRY if check in IN_REGISTRIES else ACCOUNT


@pytest.mark.parametrize("check", [*IN_REGISTRIES, *IN_ACCOUNTS])
def test_what_is_closed_passes_with_evidence(check: str) -> None:
    finding = only(served_cluster(), check)
    assert (finding.verdict, finding.resource) == (Verdict.PASS, _target(check))
    assert finding.evidence


@pytest.mark.parametrize("check", [*IN_REGISTRIES, *IN_ACCOUNTS])
def test_what_cannot_be_read_is_unknown(check: str) -> None:
    target = _target(check)
    assert verdicts(served_cluster().refuse(target, verb="get"), check) == {target.lower(): "Unknown"}


@pytest.mark.parametrize("check", sorted(KINDS))
@pytest.mark.parametrize(
    "reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED, UnreadReason.NOT_FOUND, UnreadReason.REFUSED]
)
def test_children_that_cannot_be_listed_are_unknown(check: str, reason: UnreadReason) -> None:
    target = _target(check)
    azure = served_cluster().change(ACCOUNT, **SFTP).refuse(target, reason, kind=KINDS[check])
    assert verdicts(azure, check) == {target.lower(): "Unknown"}


@pytest.mark.parametrize("check", [*IN_REGISTRIES, *IN_ACCOUNTS])
def test_nothing_applies_where_none_is_in_use(check: str) -> None:
    azure = served_cluster().drop(CLUSTER, "bootstrapProfile").drop(REGISTRY_ENDPOINT)
    azure.drop(f"{NETWORK}/privateEndpoints/account")
    assert verdicts(azure, check) == {CLUSTER.lower(): "NotApplicable"}


@pytest.mark.parametrize(
    ("value", "verdict"), [(True, "Fail"), (False, "Pass"), (None, "Unknown"), ("no", "Unknown"), (0, "Unknown")]
)
def test_tasks_may_not_pass_the_network_rules(value: Any, verdict: str) -> None:
    finding = only(served_cluster().change(REGISTRY, networkRuleBypassAllowedForTasks=value), "acr-task-bypass")
    assert (finding.verdict, finding.severity) == (verdict, "high")
    assert bool(finding.paths) is (verdict == "Fail")


def test_addresses_behind_a_closed_registry_are_one_change_away() -> None:
    rules = {"defaultAction": "Deny", "ipRules": [{"value": "20.1.2.3"}]}
    finding = only(served_cluster().change(REGISTRY, networkRuleSet=rules), "acr-public")
    assert (finding.verdict, finding.severity, finding.reason) == ("Fail", "medium", "RulesAllow")


def test_the_required_cache_rule_needs_no_credentials() -> None:
    rule = f"{REGISTRY}/cacheRules/aks-managed-mcr"
    azure = served_cluster().change(rule, credentialSetResourceId=f"{REGISTRY}/credentialSets/upstream")
    finding = only(azure, "acr-cache-wildcard")
    assert finding.verdict is Verdict.FAIL
    assert "credentialSets/upstream" in finding.message


@pytest.mark.parametrize("check", ["acr-connected-registry", "acr-replications"])
class TestTiers:
    """Features of the tier Premium: what Azure answers to their lists elsewhere is not documented."""

    KINDS = ("connectedRegistries", "replications")

    @pytest.mark.parametrize("tier", ["Basic", "Standard"])
    def test_a_lesser_tier_has_none_and_is_not_asked(self, check: str, tier: str) -> None:
        azure = served_cluster()
        azure.bodies[REGISTRY.lower()]["sku"] = {"name": tier, "tier": tier}
        for kind in self.KINDS:
            azure.refuse(REGISTRY, UnreadReason.REFUSED, kind=f"Microsoft.ContainerRegistry/registries/{kind}")
        assert verdicts(azure, check) == {REGISTRY.lower(): "NotApplicable"}

    @pytest.mark.parametrize("sku", [None, {}, {"name": "Premium"}, {"name": "Odd"}])
    def test_every_other_is_asked(self, check: str, sku: Any) -> None:
        azure = served_cluster()
        azure.bodies[REGISTRY.lower()]["sku"] = sku
        for kind in self.KINDS:
            azure.refuse(REGISTRY, UnreadReason.REFUSED, kind=f"Microsoft.ContainerRegistry/registries/{kind}")
        assert verdicts(azure, check) == {REGISTRY.lower(): "Unknown"}

    def test_a_tier_that_cannot_be_read_is_unknown(self, check: str) -> None:
        azure = served_cluster()
        azure.bodies[REGISTRY.lower()]["sku"] = 7
        assert verdicts(azure, check) == {REGISTRY.lower(): "Unknown"}


def _token(scope_map: str | None = PUSH, **rest: Any) -> FakeAzure:
    azure = served_cluster()
    azure.put(PULL, {"actions": ["repositories/*/content/read", "repositories/*/metadata/read"]})
    azure.put(PUSH, {"actions": ["repositories/llm/content/read", "repositories/llm/content/write"]})
    fields = {"scopeMapId": scope_map, "status": "enabled", "credentials": PASSWORD, **rest}
    return azure.put(f"{REGISTRY}/tokens/partner", fields)


class TestTokens:
    @pytest.mark.parametrize(
        ("scope_map", "fields", "verdict", "severity"),
        [
            (PUSH, {}, "Fail", "medium"),
            (PUSH.upper(), {}, "Fail", "medium"),
            (PULL, {}, "Fail", "low"),
            (None, {}, "Fail", "medium"),
            (f"{REGISTRY}/scopeMaps/gone", {}, "Fail", "medium"),
            (PUSH, {"status": "Disabled"}, "Pass", "medium"),
            (PUSH, {"status": None}, "Fail", "medium"),
            (PUSH, {"status": "odd"}, "Fail", "medium"),
            (PUSH, {"credentials": {}}, "Pass", "medium"),
            (PUSH, {"credentials": {"passwords": [], "certificates": [{"name": "certificate1"}]}}, "Fail", "medium"),
            (PUSH, {"credentials": None}, "Fail", "medium"),
            (PUSH, {"credentials": 7}, "Unknown", "medium"),
            (7, {}, "Unknown", "medium"),
        ],
    )
    def test_one_that_can_sign_in_fails(self, scope_map: Any, fields: Any, verdict: str, severity: str) -> None:
        finding = only(_token(scope_map, **fields), "acr-tokens")
        assert (finding.verdict, finding.severity) == (verdict, severity)
        if verdict == "Fail":
            assert "partner" in finding.message

    @pytest.mark.parametrize("actions", [["repositories/a/content/delete"], ["gateway/edge/config/read"], ["odd"]])
    def test_what_is_no_plain_reading_counts_as_writing(self, actions: list[str]) -> None:
        assert only(_token().change(PUSH, actions=actions), "acr-tokens").severity == "medium"

    def test_the_worst_of_several_speaks_and_all_are_named(self) -> None:
        azure = _token(PULL)
        azure.put(f"{REGISTRY}/tokens/other", {"scopeMapId": PUSH, "status": "enabled", "credentials": PASSWORD})
        finding = only(azure, "acr-tokens")
        assert finding.severity == "medium"
        assert "partner" in finding.message
        assert "other" in finding.message

    def test_one_that_reads_beside_one_that_is_damaged_is_not_taken_lightly(self) -> None:
        azure = _token(PULL)
        azure.put(f"{REGISTRY}/tokens/odd", {"scopeMapId": PUSH, "status": 7})
        finding = only(azure, "acr-tokens")
        assert (finding.verdict, finding.severity) == ("Fail", "medium")
        assert "status" in finding.message

    def test_a_scope_map_that_cannot_be_read_leaves_it_open(self) -> None:
        assert only(_token(PUSH).change(PUSH, actions="odd"), "acr-tokens").verdict is Verdict.UNKNOWN

    def test_scope_maps_are_asked_for_only_where_there_is_a_token(self) -> None:
        azure = served_cluster().refuse(REGISTRY, kind="Microsoft.ContainerRegistry/registries/scopeMaps")
        assert only(azure, "acr-tokens").verdict is Verdict.PASS


def _replicated(source: Any, destination: Any, **account: Any) -> FakeAzure:
    azure = served_cluster().change(ACCOUNT, **account)
    rules = [{"sourceContainer": "a", "destinationContainer": "b"}]
    fields = {"sourceAccount": source, "destinationAccount": destination, "rules": rules}
    return azure.put(f"{ACCOUNT}/objectReplicationPolicies/one", fields)


class TestReplication:
    @pytest.mark.parametrize(
        ("source", "destination", "verdict", "severity"),
        [
            (ACCOUNT, FAR, "Fail", "high"),
            (ACCOUNT, "drop", "Fail", "high"),
            ("aistore", "drop", "Fail", "high"),
            (ACCOUNT, NEAR, "Fail", "medium"),
            (ACCOUNT, None, "Fail", "high"),
            (None, FAR, "Fail", "high"),
            (FAR, ACCOUNT.upper(), "Pass", "high"),
            ("drop", "AISTORE", "Pass", "high"),
            (None, ACCOUNT, "Pass", "high"),
            (ACCOUNT, ACCOUNT, "Fail", "medium"),
            (ACCOUNT, 7, "Unknown", "high"),
        ],
    )
    def test_a_policy_is_judged_by_where_it_copies_to(
        self, source: Any, destination: Any, verdict: str, severity: str
    ) -> None:
        finding = only(_replicated(source, destination), "storage-replication")
        assert (finding.verdict, finding.severity) == (verdict, severity)
        assert bool(finding.paths) is (verdict == "Fail")

    def test_subscriptions_of_the_policy_are_ours(self) -> None:
        own = Policy(own_subscriptions=(OTHER_SUBSCRIPTION,))
        assert only(_replicated(ACCOUNT, FAR), "storage-replication", own).severity == "medium"

    @pytest.mark.parametrize(
        ("kind", "verdict"), [("FileStorage", "NotApplicable"), ("StorageV2", "Fail"), (7, "Unknown")]
    )
    def test_accounts_for_files_replicate_no_objects(self, kind: Any, verdict: str) -> None:
        azure = _replicated(ACCOUNT, FAR)
        azure.bodies[ACCOUNT.lower()]["kind"] = kind
        assert only(azure, "storage-replication").verdict == verdict

    def test_one_to_ours_beside_one_that_is_damaged_leaves_it_open(self) -> None:
        azure = _replicated(ACCOUNT, NEAR)
        azure.put(f"{ACCOUNT}/objectReplicationPolicies/two", {"sourceAccount": 7})
        assert only(azure, "storage-replication").verdict is Verdict.UNKNOWN


class TestLocalUsers:
    @pytest.mark.parametrize(
        ("account", "verdict"),
        [
            (SFTP, "Fail"),
            ({"isSftpEnabled": True}, "Fail"),
            ({**SFTP, "isLocalUserEnabled": False}, "Pass"),
            ({**SFTP, "isSftpEnabled": False}, "Pass"),
            ({"isSftpEnabled": None, "isLocalUserEnabled": True}, "Pass"),
            ({**SFTP, "isSftpEnabled": "yes"}, "Unknown"),
            ({**SFTP, "isLocalUserEnabled": "no"}, "Unknown"),
        ],
    )
    def test_a_user_fails_where_it_can_sign_in(self, account: Any, verdict: str) -> None:
        azure = served_cluster().change(ACCOUNT, **account)
        azure.put(f"{ACCOUNT}/localUsers/partner", {"hasSshPassword": True})
        finding = only(azure, "storage-local-users")
        assert (finding.verdict, finding.severity) == (verdict, "medium")
        if verdict == "Fail":
            assert "partner" in finding.message

    def test_sftp_without_a_user_is_another_checks_business(self) -> None:
        azure = served_cluster().change(ACCOUNT, **SFTP)
        assert only(azure, "storage-local-users").verdict is Verdict.PASS
        assert only(azure, "storage-copy-scope").verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("azure", "check", "command"),
    [
        (_token(), "acr-tokens", "--registry aireg --name partner --status disabled"),
        (
            _replicated(ACCOUNT, FAR),
            "storage-replication",
            "--resource-group ai --account-name aistore --policy-id one",
        ),
        (
            served_cluster().change(ACCOUNT, **SFTP).put(f"{ACCOUNT}/localUsers/partner", {}),
            "storage-local-users",
            "--resource-group ai --account-name aistore --name partner",
        ),
    ],
    ids=["token", "policy", "user"],
)
def test_the_remedy_names_what_to_take_away(azure: FakeAzure, check: str, command: str) -> None:
    assert command in only(azure, check).remedy


@pytest.mark.parametrize("scope", ["All", "ALL", "all"])
def test_copies_to_all_accounts_fail(scope: str) -> None:
    finding = only(served_cluster().change(ACCOUNT, allowedCopyScope=scope), "storage-copy-scope")
    assert (finding.verdict, finding.severity) == ("Fail", "medium")
