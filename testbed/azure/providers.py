"""Resource providers: whether a subscription has registered them, and what it may use of one that it has not."""

from __future__ import annotations

from typing import Any, Protocol

from testbed.azure import refusals, versions
from testbed.azure.estate import Estate
from testbed.azure.ids import ArmPath, subscription_of

Body = dict[str, Any]
ACTION = "Microsoft.Resources/subscriptions/providers/read"
REGISTERED = "Registered"
_CANNOT_BE_USED = frozenset({"NotRegistered", "Unregistered"})


class Reads(Protocol):
    """What is needed of the reader."""

    @property
    def estate(self) -> Estate: ...

    def demand(self, scope: str, action: str) -> None: ...


def told(reader: Reads, path: str, taken: ArmPath, version: str) -> Body:
    """GET of a provider in a subscription."""
    versions.check_endpoint(version, versions.CONTAINERS)
    reader.demand(taken.scope, ACTION)
    served = versions.BY_NAMESPACE.get(taken.namespace.lower())
    if served is None:
        raise refusals.no_such_provider(taken.namespace)
    return {
        "id": path,
        "namespace": taken.namespace,
        "resourceTypes": [
            {"resourceType": kind, "locations": ["Sweden Central"], "apiVersions": list(reversed(known))}
            for kind, known in _types(taken.namespace, served)
        ],
        "registrationState": state_of(reader.estate, path, taken.namespace),
        "registrationPolicy": "RegistrationRequired",
    }


def state_of(estate: Estate, path: str, namespace: str) -> str:
    """As the subscription of this path says it."""
    return estate.registrations.get((subscription_of(path).lower(), namespace.lower()), REGISTERED)


def must_be_registered(estate: Estate, path: str, taken: ArmPath) -> None:
    """Raises what ARM answers to any use of a provider that is not registered."""
    if state_of(estate, path, taken.namespace) in _CANNOT_BE_USED:
        raise refusals.not_registered(taken.namespace)


def _types(namespace: str, served: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    prefix = f"{namespace.lower()}/"
    own = [(kind.removeprefix(prefix), known) for kind, known in versions.BY_TYPE.items() if kind.startswith(prefix)]
    return [("operations", served), *own]
