"""Storage accounts: their data must not be readable elsewhere, or be copied there."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.checks.storage.perimeters import of_perimeters
from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.estate.arm_ids import is_arm_id, same_id
from hermetic.audit.estate.azure.storage import AccountRules, BlobService, LocalUser, ReplicationPolicy, StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Missing, unreadable
from hermetic.audit.evaluation.each_resource import each_account, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, POD, STORAGE, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.log_receivers import receivers_of_type
from hermetic.audit.scope.registry_storage import account_ids
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
def storage_public(estate: Estate, policy: Policy, account: Lookup[StorageAccount]) -> Iterator[CheckResult]:
    """High where access is possible now; medium where only disabled public access makes permissive rules ineffective.

    Exceptions for Azure's services and for resource instances apply with public access off as well.
    """
    access = (account.value.public_network_access if account.value else None) or ""
    rules = account.value.network_acls if account.value else None
    if access.lower() not in CLOSED:
        message = f"publicNetworkAccess is {access or 'absent, which means Enabled'}"
        yield fails(account.target, "PublicAccess", message, account, paths=(path_of(INTERNET, STORAGE),))
    elif rules is None:
        yield unknown(account.target, "RulesNotSeen", "the answer does not hold the network rules", account)
    else:
        if access.lower() == PERIMETER:
            yield from of_perimeters(estate, policy, account)
        yield from _rules(account, rules, access)


def _rules(account: Lookup[StorageAccount], rules: AccountRules, access: str) -> Iterator[CheckResult]:
    let_in = _let_in(rules)
    behind = _allowed_by_rules(rules)
    unknown_bypasses = [word for word in _bypasses(rules) if word not in BYPASSES]
    if let_in:
        message = f"public access is off, and yet: {'; '.join(let_in)}"
        yield fails(
            account.target, "TrustedAccess", message, account, paths=(path_of(hops.service("azure services"), STORAGE),)
        )
    elif unknown_bypasses:
        yield unknown(account.target, "BypassUnknown", f"bypass {', '.join(unknown_bypasses)} is not known", account)
    elif access.lower() == PERIMETER:
        return  # the perimeter decides, and the rules behind it do not apply
    elif behind:
        message = f"public access is off, but its rules have exceptions: {'; '.join(behind)}"
        yield fails(account.target, "RulesAllow", message, account, severity=Severity.MEDIUM)
    else:
        yield passes(account.target, "PrivateOnly", "public access is off, and no rule makes an exception", account)


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
        doubts.append(f"subnets are listed: {', '.join(rule.id for rule in rules.virtual_network_rules)}")
    return doubts


@check_each("storage-copy-scope", each_account)
def storage_copy_scope(_estate: Estate, _policy: Policy, account: Lookup[StorageAccount]) -> Iterator[CheckResult]:
    """Server-side copies and other ways for data to leave an account without passing the network."""
    value = account.value
    scope = (value.allowed_copy_scope if value else None) or ""
    switches = [*_switches(value)] if value is not None else []
    if not scope:
        switches.append("allowedCopyScope is not set: copies may go to any account")
    if scope.lower() == ANYWHERE:
        switches.append(f"allowedCopyScope is {scope}: copies may go to any account")
    if switches:
        yield fails(
            account.target,
            "CopiesLeave",
            "; ".join(switches),
            account,
            paths=(path_of(STORAGE, "copy", "other account"),),
        )
    elif scope.lower() not in COPY_SCOPES:
        yield unknown(account.target, "ScopeUnknown", f"allowedCopyScope {scope!r} is not known", account)
    else:
        yield passes(account.target, "CopiesStay", f"allowedCopyScope is {scope}", account)


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


@check("storage-replication")
def storage_replication(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Of accounts in use, and of those that only receive logs."""
    yield from each_account(estate, policy, lambda account: _copies(estate, policy, account))
    in_use = {account.lower() for account in account_ids(estate, policy)}
    receivers = receivers_of_type(estate, policy, StorageAccount)
    for account in (receiver for receiver in receivers if receiver.lower() not in in_use):
        observation = estate.one(StorageAccount, account)
        if observation.value is None:
            yield unknown(account, "NotSeen", "it receives logs, and could not be read", observation)
        else:
            yield from whatever_is_damaged(account, _copies(estate, policy, observation))
    yield from whole_or_unknown(estate.cluster, "accounts that receive logs", receivers)


def _copies(estate: Estate, policy: Policy, account: Lookup[StorageAccount]) -> Iterator[CheckResult]:
    """High where blobs are copied to an account that is not known to be ours, medium where it is."""
    kind = (account.value.kind if account.value is not None else None) or ""
    if kind.lower() in WITHOUT_REPLICATION:
        message = f"an account of kind {kind} replicates no objects"
        yield does_not_apply(account.target, "NoReplication", message, account)
    else:
        yield from _replication(estate, policy, account)


def _replication(estate: Estate, policy: Policy, account: Lookup[StorageAccount]) -> Iterator[CheckResult]:
    every = estate.every(ReplicationPolicy, account.target)
    copies, damages = list[tuple[str, str]](), list[Missing]()
    for replication_policy in every:
        try:
            source, destination = replication_policy.source_account or "", replication_policy.destination_account or ""
        except FactDamaged as broken:
            damages.append(unreadable(broken))
            continue
        if not _is(destination, account) or _is(source, account):
            copies.append((replication_policy.name, destination))
    for name, destination in copies:
        ours = is_arm_id(destination) and policy.owns(destination, estate.cluster, *network_ids_of(estate))
        message = f"policy {name} replicates objects to {destination or 'an account that is not named'}"
        yield fails(
            account.target,
            "Replicated" if ours else "ReplicatedBeyond",
            f"{message}, which is not evaluated" if ours else message,
            account,
            every,
            paths=(path_of(POD, STORAGE, "replication", "other account"),),
            severity=Severity.MEDIUM if ours else None,
            fill={"RULE_NAME": name},
        )
    for damage in damages:
        yield unknown(account.target, "Unreadable", damage.problem.detail, damage)
    if not (copies or damages):
        yield passes(account.target, "NotReplicated", "no object is replicated from it", account, every)


def _is(account: str, observation: Lookup[StorageAccount]) -> bool:
    """Whether the id or name in a policy is this account's."""
    name = (observation.value.name if observation.value is not None else "").lower()
    return same_id(account, observation.target) or (bool(name) and account.lower() == name)


@check_each("storage-local-users", each_account)
def storage_local_users(estate: Estate, _policy: Policy, observation: Lookup[StorageAccount]) -> Iterator[CheckResult]:
    """SFTP users; with SFTP or local users off, none of them can sign in."""
    account = observation.value
    if account is None or not account.is_sftp_enabled:
        yield passes(observation.target, "NoSftp", "SFTP is off, and local users sign in by nothing else", observation)
    elif account.is_local_user_enabled is False:
        yield passes(observation.target, "LocalUsersOff", "local users are turned off", observation)
    else:
        users = estate.every(LocalUser, observation.target)
        names = ", ".join(user.name or "one without a name" for user in users)
        if names:
            message = f"local users sign in by SFTP, without Entra ID: {names}"
            path = path_of(POD, STORAGE, "sftp user")
            fill = {"RULE_NAME": [user.name for user in users if user.name]}
            yield fails(observation.target, "LocalUsers", message, observation, users, paths=(path,), fill=fill)
        else:
            yield passes(observation.target, "NoUser", "SFTP is on, and no local user is there", observation, users)


@check_each("storage-static-website", each_account)
def storage_static_website(
    estate: Estate, _policy: Policy, observation: Lookup[StorageAccount]
) -> Iterator[CheckResult]:
    """High where the site is reachable from the internet now, medium where disabled public access prevents it."""
    account = observation.value
    kind = (account.kind if account is not None else None) or ""
    if kind.lower() in WITHOUT_WEBSITE:
        yield does_not_apply(
            observation.target, "NoWebsite", f"an account of kind {kind} serves no website", observation
        )
        return
    service = estate.one(BlobService, f"{observation.target}/blobServices/default")
    site = service.value.static_website if service.value is not None else None
    if site is None or site.enabled is None:
        message = "the answer does not show whether the account serves a static website"
        yield unknown(observation.target, "NotSaid", message, service)
    elif not site.enabled:
        yield passes(observation.target, "WebsiteOff", "the account serves no static website", observation, service)
    else:
        is_closed = account is not None and (account.public_network_access or "").lower() in CLOSED
        message = "files in $web are served without a login" + ("; public access is off" if is_closed else "")
        severity, path = None if is_closed else Severity.HIGH, path_of(POD, STORAGE, "static website", INTERNET)
        yield fails(observation.target, "Website", message, observation, service, paths=(path,), severity=severity)
