"""Identities of nodes and pods that may do more than pull: a registry that pods can push to can carry data out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.arm_ids import name_of, same_id
from hermetic.audit.estate.azure.registries import Registry, RegistryToken, RoleAssignment, ScopeMap
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Missing, missing, unreadable
from hermetic.audit.evaluation.each_resource import each_registry
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import POD, REGISTRY, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.held_identities import Identities, federated, identities_of
from hermetic.errors import FactDamaged

# Roles that cannot write to a registry; those without "pull" are assigned on a group or subscription above it.
HARMLESS_ROLES = {
    "7f951dda-4ed3-4680-a7ca-43fe172d538d": "AcrPull",
    "b93aa761-3e63-49ed-ac28-beffa264f7ac": "Container Registry Repository Reader",
    "bfdb9389-c9a5-478a-bb2f-ba9ca092c3c7": "Container Registry Repository Catalog Lister",
    "acdd72a7-3385-48ef-bd42-f606fba81ae7": "Reader",
    "4d97b98b-1d4f-4787-a291-c67834d212e7": "Network Contributor",
    "f1a07417-d97a-45cb-824c-7a7467783830": "Managed Identity Operator",
    "b12aa53e-6015-4669-85d0-8515ebb3ae7f": "Private DNS Zone Contributor",
    "befefa01-2a29-4197-83a8-272ff33ce314": "DNS Zone Contributor",
    "3913510d-42f4-4e42-8a64-420c390055eb": "Monitoring Metrics Publisher",
    "43d0d8ad-25c7-4714-9337-8ba259a9fe05": "Monitoring Reader",
    "4633458b-17de-408a-b874-0445c86b69e6": "Key Vault Secrets User",
    "db79e9a7-68ee-4b58-9aeb-b90e7c24fcba": "Key Vault Certificate User",
}
PEOPLE = frozenset({"user", "group", "foreigngroup"})
ABOVE = """\
{principal} has role {role} at {scope}, above the registry. AKS or an add-on may need it there: do not delete it. \
Keep images in a registry outside of {scope}, or give the identity a narrower role first."""
AT_THE_REGISTRY = """\
Warning: writing with this assignment is refused from then on. Never delete one that AKS made for itself.
az role assignment delete --ids ASSIGNMENT_ID"""

Assigned = Mapping[str, list[RoleAssignment]]
READING = ("/content/read", "/metadata/read")


@check_each("acr-push-identity", each_registry)
def acr_push_identity(estate: Estate, policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Every role, at the registry or above it, of an identity that a node or a pod can use."""
    yield _evaluate(estate, policy, registry)


def _evaluate(estate: Estate, policy: Policy, registry: Lookup[Registry]) -> CheckResult:
    identities = identities_of(estate)
    assignments = estate.every(RoleAssignment, registry.target)
    writing = _writing(assignments)
    other_principals = {
        principal
        for principal in writing
        if principal not in identities.holders and not _is_of_people(writing[principal])
    }
    trusted, more_observations = federated(estate, policy, other_principals, identities.control_plane)
    observations = (registry, *identities.observations, assignments, *more_observations)
    holders = {
        principal: identity for principal, identity in {**identities.holders, **trusted}.items() if principal in writing
    }
    if holders:
        path = path_of(POD, "identity", REGISTRY)
        message = "; ".join(
            _roles(writing[principal], identity)
            for principal, identity in sorted(holders.items(), key=lambda it: it[1])
        )
        remedy = "\n".join(dict.fromkeys(_remedies(registry.target, holders, writing)))
        theirs = (assignment for principal in holders for assignment in writing[principal])
        fill = {"ASSIGNMENT_ID": [assignment.id for assignment in theirs if _is_at(assignment, registry.target)]}
        return fails(registry.target, "MoreThanPull", message, *observations, paths=(path,), remedy=remedy, fill=fill)
    nameless = [assignment.id for assignment in assignments if not assignment.principal_id and _may_write(assignment)]
    if nameless:
        message = f"{', '.join(nameless)}: the answer does not show who has this role"
        return unknown(registry.target, "PrincipalNotNamed", message, missing(message), *observations)
    if identities.unread_holders:
        message = f"no identity can be read in {', '.join(identities.unread_holders)}"
        return unknown(registry.target, "IdentityNotRead", message, *observations)
    if not identities.names_the_kubelet:
        return unknown(
            registry.target, "KubeletNotNamed", "the cluster does not name its kubelet's identity", *observations
        )
    message = "no identity that a node or a pod can hold has a role that writes; roles of Entra groups are not resolved"
    return passes(registry.target, "PullOnly", message + _of_the_control_plane(identities, writing), *observations)


def _writing(assignments: Iterable[RoleAssignment]) -> Assigned:
    """Assignments of roles that may write, by principal id in lower case."""
    by_principal: dict[str, list[RoleAssignment]] = {}
    for assignment in assignments:
        if assignment.principal_id and _may_write(assignment):
            by_principal.setdefault(assignment.principal_id.lower(), []).append(assignment)
    return by_principal


def _may_write(assignment: RoleAssignment) -> bool:
    return name_of(assignment.role_definition_id or "").lower() not in HARMLESS_ROLES


def _is_of_people(assignments: Iterable[RoleAssignment]) -> bool:
    return all((assignment.principal_type or "").lower() in PEOPLE for assignment in assignments)


def _of_the_control_plane(identities: Identities, writing: Assigned) -> str:
    """A note: AKS needs the control plane's role, and no node or pod gets a token of that identity."""
    roles = [
        _roles(writing[principal], "the control plane's identity")
        for principal in writing
        if principal in identities.control_plane
    ]
    return f"; {'; '.join(roles)}, and is on no node: leave it" if roles else ""


def _roles(assignments: Iterable[RoleAssignment], identity: str) -> str:
    roles = dict.fromkeys(name_of(assignment.role_definition_id or "not named") for assignment in assignments)
    return f"{identity} has role {', '.join(roles)}"


def _scope_of(assignment: RoleAssignment) -> str:
    return assignment.scope or assignment.id.lower().rpartition("/providers/microsoft.authorization/")[0]


def _is_at(assignment: RoleAssignment, registry: str) -> bool:
    return same_id(_scope_of(assignment), registry)


def _remedies(registry: str, holders: Mapping[str, str], writing: Assigned) -> Iterator[str]:
    """Assignments above the registry may be AKS's own and needed: only those at the registry are to be deleted."""
    for principal, identity in sorted(holders.items(), key=lambda it: it[1]):
        for assignment in writing[principal]:
            scope = _scope_of(assignment)
            if _is_at(assignment, registry):
                yield AT_THE_REGISTRY
            else:
                yield ABOVE.format(
                    principal=identity, role=name_of(assignment.role_definition_id or ""), scope=scope or "/"
                )


@check_each("acr-tokens", each_registry)
def acr_tokens(estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Medium where a token that can sign in may write, low where all of them only read."""
    yield from _of_registry(estate, registry)


def _of_registry(estate: Estate, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    every = estate.every(RegistryToken, registry.target)
    maps = (
        {scope_map.id.lower(): scope_map for scope_map in estate.every(ScopeMap, registry.target)}
        if every.items
        else {}
    )
    writing, reading, damages, names = list[str](), list[str](), list[Missing](), list[str]()
    for token in every:
        try:
            if _is_usable(token):
                names.append(token.name)
                extra = _beyond_reading(maps.get((token.scope_map_id or "").lower()))
                (writing if extra else reading).append(f"{token.name} {extra or 'reads'}")
        except FactDamaged as broken:
            damages.append(unreadable(broken))
    path = path_of(POD, REGISTRY, "other place")
    if writing:
        message = f"tokens sign in without Entra ID: {'; '.join((*writing, *reading))}"
        yield fails(registry.target, "TokenWrites", message, registry, every, paths=(path,), fill={"RULE_NAME": names})
    elif reading:
        message = f"tokens sign in without Entra ID: {'; '.join(reading)}"
        severity = None if damages else Severity.LOW
        yield fails(
            registry.target, "TokenReads", message, registry, every, severity=severity, fill={"RULE_NAME": names}
        )
    for damage in damages:
        yield unknown(registry.target, "Unreadable", damage.problem.detail, damage)
    if not (writing or reading or damages):
        yield passes(registry.target, "NoToken", "no token can sign in", registry, every)


def _is_usable(token: RegistryToken) -> bool:
    """Whether it can sign in: it is not disabled, and is not shown without any credential."""
    credentials = token.credentials
    has_none = credentials is not None and not (credentials.passwords or credentials.certificates)
    return (token.status or "").lower() != "disabled" and not has_none


def _beyond_reading(scope: ScopeMap | None) -> str:
    """What a scope map allows beside reading, as text; a scope map that was not read may allow all."""
    if scope is None or scope.actions is None:
        return "may write: its scope map was not seen"
    more = [action for action in scope.actions if not action.lower().endswith(READING)]
    return f"may do {', '.join(more)}" if more else ""
