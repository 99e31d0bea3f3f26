"""Storage accounts: their data must not be readable elsewhere, or be copied there."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import network_ids_of
from hermetic.audit.estate.arm_ids import is_arm_id, same_id
from hermetic.audit.estate.azure.storage import AccountRules, BlobService, LocalUser, ReplicationPolicy, StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Missing, Seen
from hermetic.audit.evaluation import CheckResult, does_not_apply, fails, passes, unknown, unreadable
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, POD, STORAGE, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.registry_storage_scope import each_account
from hermetic.errors import FactDamaged

PERIMETER = "securedbyperimeter"
CLOSED = {"disabled", PERIMETER}
ANYWHERE = "all"
COPY_SCOPES = {"privatelink", "aad"}
BYPASSES = {"none", "azureservices", "logging", "metrics"}
# Kinds without object replication, which Azure offers for blobs only.
WITHOUT_REPLICATION = {"filestorage", "storage"}
# Azure serves websites from general-purpose v2 accounts and premium block blob accounts only.
WITHOUT_WEBSITE = {"filestorage", "storage", "blobstorage"}


@check_each("storage-public", each_account)
def storage_public(_estate: Estate, _policy: Policy, seen: Seen[StorageAccount]) -> Iterator[CheckResult]:
    """High where access is possible now; medium where only disabled public access makes permissive rules ineffective.

    Exceptions for Azure's services and for resource instances apply with public access off as well.
    """
    access = (seen.value.public_network_access if seen.value else None) or ""
    rules = seen.value.network_acls if seen.value else None
    if access.lower() not in CLOSED:
        words = f"publicNetworkAccess is {access or 'absent, which means Enabled'}"
        yield fails(seen.target, "PublicAccess", words, seen, paths=(path_of(INTERNET, STORAGE),))
    elif rules is None:
        yield unknown(seen.target, "RulesNotSeen", "the answer does not hold the network rules", seen)
    else:
        yield from _rules(seen, rules, access)


def _rules(seen: Seen[StorageAccount], rules: AccountRules, access: str) -> Iterator[CheckResult]:
    let_in = _let_in(rules)
    behind = _allowed_by_rules(rules)
    odd = [word for word in _bypasses(rules) if word not in BYPASSES]
    if let_in:
        words = f"public access is off, and yet: {'; '.join(let_in)}"
        yield fails(
            seen.target, "TrustedAccess", words, seen, paths=(path_of(hops.service("azure services"), STORAGE),)
        )
    elif odd:
        yield unknown(seen.target, "BypassUnknown", f"bypass {', '.join(odd)} is not known", seen)
    elif access.lower() == PERIMETER:
        words = "a network security perimeter decides who is let in: its access rules, which may name addresses of the "
        yield unknown(seen.target, "PerimeterNotRead", f"{words}internet, are not read by this release", seen)
    elif behind:
        words = f"public access is off, but its rules have exceptions: {'; '.join(behind)}"
        yield fails(seen.target, "RulesAllow", words, seen, severity=Severity.MEDIUM)
    else:
        yield passes(seen.target, "PrivateOnly", "public access is off, and no rule makes an exception", seen)


def _let_in(rules: AccountRules) -> list[str]:
    """Exceptions that apply with public access off; an absent bypass is Azure's default, AzureServices."""
    admitted = ["services of Azure pass"] if "azureservices" in _bypasses(rules) else []
    return admitted + (
        [f"{len(rules.resource_access_rules)} resource instance(s) pass"] if rules.resource_access_rules else []
    )


def _bypasses(rules: AccountRules) -> list[str]:
    return [word.strip().lower() for word in (rules.bypass or "AzureServices").split(",")]


def _allowed_by_rules(rules: AccountRules) -> list[str]:
    doubts = []
    if (rules.default_action or "").lower() != "deny":
        doubts.append(f"the default is {rules.default_action or 'absent, which means Allow'}")
    if rules.ip_rules or rules.ipv6_rules:
        doubts.append("addresses of the internet are listed")
    if rules.virtual_network_rules:
        doubts.append(f"subnets are listed: {', '.join(one.id for one in rules.virtual_network_rules)}")
    return doubts


@check_each("storage-copy-scope", each_account)
def storage_copy_scope(_estate: Estate, _policy: Policy, seen: Seen[StorageAccount]) -> Iterator[CheckResult]:
    """Server-side copies and other ways for data to leave an account without passing the network."""
    value = seen.value
    scope = (value.allowed_copy_scope if value else None) or ""
    switches = [*_switches(value)] if value is not None else []
    if not scope:
        switches.append("allowedCopyScope is not set: copies may go to any account")
    if scope.lower() == ANYWHERE:
        switches.append(f"allowedCopyScope is {scope}: copies may go to any account")
    if switches:
        yield fails(
            seen.target, "CopiesLeave", "; ".join(switches), seen, paths=(path_of(STORAGE, "copy", "other account"),)
        )
    elif scope.lower() not in COPY_SCOPES:
        yield unknown(seen.target, "ScopeUnknown", f"allowedCopyScope {scope!r} is not known", seen)
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


@check_each("storage-replication", each_account)
def storage_replication(estate: Estate, policy: Policy, seen: Seen[StorageAccount]) -> Iterator[CheckResult]:
    """High where blobs are copied to an account that is not known to be ours, medium where it is."""
    kind = (seen.value.kind if seen.value is not None else None) or ""
    if kind.lower() in WITHOUT_REPLICATION:
        words = f"an account of kind {kind} replicates no objects"
        yield does_not_apply(seen.target, "NoReplication", words, seen)
    else:
        yield from _replication(estate, policy, seen)


def _replication(estate: Estate, policy: Policy, seen: Seen[StorageAccount]) -> Iterator[CheckResult]:
    every = estate.every(ReplicationPolicy, seen.target)
    copies, odd = list[tuple[str, str]](), list[Missing]()
    for one in every:
        try:
            source, destination = one.source_account or "", one.destination_account or ""
        except FactDamaged as broken:
            odd.append(unreadable(broken))
            continue
        if not _is(destination, seen) or _is(source, seen):
            copies.append((one.name, destination))
    for name, destination in copies:
        ours = is_arm_id(destination) and policy.owns(destination, estate.cluster, *network_ids_of(estate))
        words = f"policy {name} replicates objects to {destination or 'an account that is not named'}"
        yield fails(
            seen.target,
            "Replicated" if ours else "ReplicatedBeyond",
            f"{words}, which is not evaluated" if ours else words,
            seen,
            every,
            paths=(path_of(POD, STORAGE, "replication", "other account"),),
            severity=Severity.MEDIUM if ours else None,
            fill={"RULE_NAME": name},
        )
    for damage in odd:
        yield unknown(seen.target, "Unreadable", damage.problem.detail, damage)
    if not (copies or odd):
        yield passes(seen.target, "NotReplicated", "no object is replicated from it", seen, every)


def _is(account: str, seen: Seen[StorageAccount]) -> bool:
    """Whether the id or name in a policy is this account's."""
    name = (seen.value.name if seen.value is not None else "").lower()
    return same_id(account, seen.target) or (bool(name) and account.lower() == name)


@check_each("storage-local-users", each_account)
def storage_local_users(estate: Estate, _policy: Policy, seen: Seen[StorageAccount]) -> Iterator[CheckResult]:
    """SFTP users; with SFTP or local users off, none of them can sign in."""
    account = seen.value
    if account is None or not account.is_sftp_enabled:
        yield passes(seen.target, "NoSftp", "SFTP is off, and local users sign in by nothing else", seen)
    elif account.is_local_user_enabled is False:
        yield passes(seen.target, "LocalUsersOff", "local users are turned off", seen)
    else:
        users = estate.every(LocalUser, seen.target)
        names = ", ".join(one.name or "one without a name" for one in users)
        if names:
            words = f"local users sign in by SFTP, without Entra ID: {names}"
            path = path_of(POD, STORAGE, "sftp user")
            fill = {"RULE_NAME": [one.name for one in users if one.name]}
            yield fails(seen.target, "LocalUsers", words, seen, users, paths=(path,), fill=fill)
        else:
            yield passes(seen.target, "NoUser", "SFTP is on, and no local user is there", seen, users)


@check_each("storage-static-website", each_account)
def storage_static_website(estate: Estate, _policy: Policy, seen: Seen[StorageAccount]) -> Iterator[CheckResult]:
    """High where the site is reachable from the internet now, medium where disabled public access prevents it."""
    account = seen.value
    kind = (account.kind if account is not None else None) or ""
    if kind.lower() in WITHOUT_WEBSITE:
        yield does_not_apply(seen.target, "NoWebsite", f"an account of kind {kind} serves no website", seen)
        return
    service = estate.one(BlobService, f"{seen.target}/blobServices/default")
    site = service.value.static_website if service.value is not None else None
    if site is None or site.enabled is None:
        words = "the answer does not show whether the account serves a static website"
        yield unknown(seen.target, "NotSaid", words, service)
    elif not site.enabled:
        yield passes(seen.target, "WebsiteOff", "the account serves no static website", seen, service)
    else:
        is_closed = account is not None and (account.public_network_access or "").lower() in CLOSED
        words = "what lies in $web is served without a login" + ("; public access is off" if is_closed else "")
        severity, path = None if is_closed else Severity.HIGH, path_of(POD, STORAGE, "static website", INTERNET)
        yield fails(seen.target, "Website", words, seen, service, paths=(path,), severity=severity)
