"""Which reads of an audit the caller's roles allow: the permissions that Azure reports against those needed.

Azure: "Permissions - List For Resource Group" and "Deny Assignments - List"; an action is allowed when one role allows
and does not except it, and no deny assignment forbids it. '*' in a pattern matches any text, slashes included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate

from hermetic.audit.estate.resource import Resource


@dataclass(frozen=True, slots=True)
class Grant:
    """The patterns of actions of one role or deny assignment, and its exclusions (`notActions`)."""

    actions: tuple[str, ...]
    not_actions: tuple[str, ...] = ()

    def covers(self, action: str) -> bool:
        """Whether the action matches a pattern and no exclusion."""
        return _matches(self.actions, action) and not _matches(self.not_actions, action)


@dataclass(frozen=True, slots=True)
class Access:
    """The permissions of the caller at one scope. With a `problem` they could not be read and are unknown."""

    scope: str
    granted: tuple[Grant, ...] = ()
    denied: tuple[Grant, ...] = ()
    problem: str = ""

    def missing(self, actions: Iterable[str]) -> tuple[str, ...]:
        """The actions that no role allows at this scope."""
        return tuple(action for action in actions if not any(grant.covers(action) for grant in self.granted))

    def locked(self, actions: Iterable[str]) -> tuple[str, ...]:
        """The actions that a role allows and a deny assignment forbids."""
        absent = set(self.missing(every := tuple(actions)))
        return tuple(a for a in every if a not in absent and any(denial.covers(a) for denial in self.denied))


def needed(posts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Every action that the checks may need, sorted: a read for each type, and the POST actions that only read."""
    reads = {f"{kind.TYPE}/read" for kind in _kinds(Resource) if not kind.ACTION}
    return tuple(sorted({*reads, *(f"{kind}/{action}/action" for kind, action in posts)}, key=str.lower))


def _kinds(base: type[Resource]) -> Sequence[type[Resource]]:
    """Every declared kind with source azure; importing the checks declares them."""
    kinds = [subkind for kind in base.__subclasses__() for subkind in (kind, *_kinds(kind))]
    return [kind for kind in kinds if kind.SOURCE == "azure" and hasattr(kind, "TYPE")]


def _matches(patterns: Iterable[str], action: str) -> bool:
    return any(re.fullmatch(translate(pattern.lower()), action.lower()) for pattern in patterns)
