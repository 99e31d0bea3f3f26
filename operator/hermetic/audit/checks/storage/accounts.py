"""Storage accounts: their data must not be readable elsewhere, or be copied there."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.azure.storage import AccountRules, StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, STORAGE, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.registry_storage_scope import each_account

PERIMETER = "securedbyperimeter"
CLOSED = {"disabled", PERIMETER}
ANYWHERE = "all"
COPY_SCOPES = {"privatelink", "aad"}
BYPASSES = {"none", "azureservices", "logging", "metrics"}


@check_each("storage-public", each_account)
def storage_public(_estate: Estate, _policy: Policy, seen: Seen[StorageAccount]) -> Iterator[Judgement]:
    """High where access is possible now; medium where only disabled public access makes permissive rules ineffective.

    Exceptions for Azure's services and for resource instances apply with public access off as well.
    """
    access = (seen.value.public_network_access if seen.value else None) or ""
    rules = seen.value.network_acls if seen.value else None
    if access.lower() not in CLOSED:
        words = f"publicNetworkAccess is {access or 'absent, which means Enabled'}"
        yield fails(seen.target, "PublicAccess", words, seen, paths=(path_of(INTERNET, STORAGE),))
    elif rules is None:
        yield cannot_say(seen.target, "RulesNotSeen", "the answer does not hold the network rules", seen)
    else:
        yield from _rules(seen, rules, access)


def _rules(seen: Seen[StorageAccount], rules: AccountRules, access: str) -> Iterator[Judgement]:
    let_in = _let_in(rules)
    behind = _behind_the_door(rules)
    odd = [word for word in _bypasses(rules) if word not in BYPASSES]
    if let_in:
        words = f"public access is off, and yet: {'; '.join(let_in)}"
        yield fails(
            seen.target, "TrustedAccess", words, seen, paths=(path_of(hops.service("azure services"), STORAGE),)
        )
    elif odd:
        yield cannot_say(seen.target, "BypassUnknown", f"bypass {', '.join(odd)} is not known", seen)
    elif access.lower() == PERIMETER:
        words = "a network security perimeter decides who is let in: its access rules, which may name addresses of the "
        yield cannot_say(seen.target, "PerimeterNotRead", f"{words}internet, are not read by this release", seen)
    elif behind:
        words = f"public access is off, but the rules behind it say: {'; '.join(behind)}"
        yield fails(seen.target, "RulesAllow", words, seen, severity=Severity.MEDIUM)
    else:
        yield passes(seen.target, "PrivateOnly", "public access is off, and no rule makes an exception", seen)


def _let_in(rules: AccountRules) -> list[str]:
    """Exceptions that apply with public access off; an absent bypass is Azure's default, AzureServices."""
    said = ["services of Azure pass"] if "azureservices" in _bypasses(rules) else []
    return said + (
        [f"{len(rules.resource_access_rules)} resource instance(s) pass"] if rules.resource_access_rules else []
    )


def _bypasses(rules: AccountRules) -> list[str]:
    return [word.strip().lower() for word in (rules.bypass or "AzureServices").split(",")]


def _behind_the_door(rules: AccountRules) -> list[str]:
    said = []
    if (rules.default_action or "").lower() != "deny":
        said.append(f"the default is {rules.default_action or 'absent, which means Allow'}")
    if rules.ip_rules or rules.ipv6_rules:
        said.append("addresses of the internet are listed")
    if rules.virtual_network_rules:
        said.append(f"subnets are listed: {', '.join(one.id for one in rules.virtual_network_rules)}")
    return said


@check_each("storage-copy-scope", each_account)
def storage_copy_scope(_estate: Estate, _policy: Policy, seen: Seen[StorageAccount]) -> Iterator[Judgement]:
    """Server-side copies and other ways for data to leave an account without passing the network."""
    value = seen.value
    scope = (value.allowed_copy_scope if value else None) or ""
    said = [*_switches(value)] if value is not None else []
    if not scope:
        said.append("allowedCopyScope is not set: copies may go to any account")
    if scope.lower() == ANYWHERE:
        said.append(f"allowedCopyScope is {scope}: copies may go to any account")
    if said:
        yield fails(
            seen.target, "CopiesLeave", "; ".join(said), seen, paths=(path_of(STORAGE, "copy", "other account"),)
        )
    elif scope.lower() not in COPY_SCOPES:
        yield cannot_say(seen.target, "ScopeUnknown", f"allowedCopyScope {scope!r} is not known", seen)
    else:
        yield passes(seen.target, "CopiesStay", f"allowedCopyScope is {scope}", seen)


def _switches(account: StorageAccount) -> Iterator[str]:
    """Absent counts as on, as for accounts older than the setting; only SFTP is off by default."""
    for field, value in (
        ("allowCrossTenantReplication", account.allow_cross_tenant_replication),
        ("allowBlobPublicAccess", account.allow_blob_public_access),
        ("allowSharedKeyAccess", account.allow_shared_key_access),
    ):
        if value is not False:
            yield f"{field} is {'absent, which may mean true' if value is None else 'true'}"
    if account.is_sftp_enabled:
        yield "isSftpEnabled is true"
