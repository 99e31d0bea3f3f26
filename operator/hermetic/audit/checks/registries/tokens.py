"""Tokens of a registry: credentials outside Entra ID, each with a scope map."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.azure.registries import Registry, RegistryToken, ScopeMap
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Missing, Seen
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes, unreadable
from hermetic.audit.findings import Severity
from hermetic.audit.hops import POD, REGISTRY, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.registry_storage_scope import each_registry
from hermetic.errors import FactDamaged

READING = ("/content/read", "/metadata/read")


@check_each("acr-tokens", each_registry)
def acr_tokens(estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[Judgement]:
    """Medium where a token that can sign in may write, low where all of them only read."""
    yield from _judge(estate, seen)


def _judge(estate: Estate, seen: Seen[Registry]) -> Iterator[Judgement]:
    every = estate.every(RegistryToken, seen.target)
    maps = {one.id.lower(): one for one in estate.every(ScopeMap, seen.target)} if every.items else {}
    writing, reading, odd, names = list[str](), list[str](), list[Missing](), list[str]()
    for token in every:
        try:
            if _is_usable(token):
                names.append(token.name)
                extra = _beyond_reading(maps.get((token.scope_map_id or "").lower()))
                (writing if extra else reading).append(f"{token.name} {extra or 'reads'}")
        except FactDamaged as broken:
            odd.append(unreadable(broken))
    path = path_of(POD, REGISTRY, "other place")
    if writing:
        words = f"tokens sign in without Entra ID: {'; '.join((*writing, *reading))}"
        yield fails(seen.target, "TokenWrites", words, seen, every, paths=(path,), fill={"RULE_NAME": names})
    elif reading:
        words = f"tokens sign in without Entra ID: {'; '.join(reading)}"
        severity = None if odd else Severity.LOW
        yield fails(seen.target, "TokenReads", words, seen, every, severity=severity, fill={"RULE_NAME": names})
    for damage in odd:
        yield cannot_say(seen.target, "Unreadable", damage.problem.detail, damage)
    if not (writing or reading or odd):
        yield passes(seen.target, "NoToken", "no token can sign in", seen, every)


def _is_usable(token: RegistryToken) -> bool:
    """Whether it can sign in: it is not disabled, and is not shown without any credential."""
    credentials = token.credentials
    has_none = credentials is not None and not (credentials.passwords or credentials.certificates)
    return (token.status or "").lower() != "disabled" and not has_none


def _beyond_reading(scope: ScopeMap | None) -> str:
    """What a scope map allows beside reading, as text; a scope map that was not read may allow all."""
    if scope is None or scope.actions is None:
        return "may write: its scope map was not seen"
    more = [one for one in scope.actions if not one.lower().endswith(READING)]
    return f"may do {', '.join(more)}" if more else ""
