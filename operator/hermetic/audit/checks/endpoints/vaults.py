"""Key vaults that pods can reach: what a pod stores there must not be readable from the internet.

Pods reach a vault by a private endpoint, or by a rule of the declared firewall.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.estate.azure.key_vaults import KeyVault, ManagedHsm, Vault
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, ObservedDocument, is_not_found
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.registry_storage import vault_ids

PERIMETER = "securedbyperimeter"
KINDS: tuple[type[Vault], ...] = (KeyVault, ManagedHsm)


def vaults_of(estate: Estate, policy: Policy) -> tuple[Lookup[Vault], ...]:
    """Vaults and HSMs that private endpoints in reach, or hosts in rules of the declared firewall, lead to."""
    return tuple(estate.one(kind, vault) for kind in KINDS for vault in vault_ids(estate, policy, kind))


@check("vault-public")
def vault_public(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Absent means public access. High where every network is let in, medium where rules name addresses or subnets."""
    vaults = vaults_of(estate, policy)
    for observed in vaults:
        if is_not_found(observed):
            gone = ObservedDocument(observed.evidence)
            yield does_not_apply(observed.target, "VaultGone", "it is in reach, and it was deleted", gone)
        elif observed.value is None:
            yield unknown(observed.target, "NotSeen", "it is in reach, and it could not be read", observed)
        else:
            yield from whatever_is_damaged(observed.target, _vault(observed, observed.value))
    targets = tuple(vault_ids(estate, policy, kind) for kind in KINDS)
    if vaults:
        yield from whole_or_unknown(estate.cluster, "vaults in reach", *targets)
    else:
        yield does_not_apply(
            estate.cluster,
            "NoVault",
            "no private endpoint and no rule of the declared firewall leads to a key vault",
            *targets,
        )


def _vault(observed: Lookup[Vault], vault: Vault) -> Iterable[CheckResult]:
    access, rules = vault.public_network_access or "", vault.network_acls
    path = path_of(POD, "key vault", INTERNET)
    default = (rules.default_action if rules is not None else None) or "Allow"
    if access.lower() == "disabled":
        yield passes(observed.target, "PrivateOnly", "publicNetworkAccess is Disabled", observed)
    elif access.lower() == PERIMETER:
        message = "a network security perimeter decides who has access, and this release does not read its rules"
        yield unknown(observed.target, "PerimeterNotRead", message, observed)
    elif default.lower() != "deny":
        message = (
            f"publicNetworkAccess is {access or 'absent, which means Enabled'}, and its rules let every network in"
        )
        yield fails(observed.target, "PublicAccess", message, observed, paths=(path,))
    elif rules is not None and (rules.ip_rules or rules.virtual_network_rules):
        message = "its rules let addresses of the internet or subnets in"
        yield fails(observed.target, "RulesAllow", message, observed, paths=(path,), severity=Severity.MEDIUM)
    else:
        yield passes(observed.target, "NobodyLetIn", "its rules refuse every network", observed)
