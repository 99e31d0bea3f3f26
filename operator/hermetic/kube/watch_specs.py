"""The kinds that are listed and watched for the operator's store, with their selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.kinds import (
    CORE_EVENT,
    EGRESS_ATTESTATION,
    EGRESS_AUDIT,
    ENDPOINT_SLICE,
    GATEWAY,
    HTTP_ROUTE,
    INGRESS,
    MODEL_DEPLOYMENT,
    NODE,
    POD,
    ROUTES,
    SERVICE,
    UNLABELLED_POD,
    Kind,
)
from hermetic.objects.children import CHILD_KINDS
from hermetic.objects.names import CHILD_SELECTOR, MANAGED_BY

# A tenant may take labels off a pod and change its owners, but not its service account. Most pods of others have the
# account 'default', which no model has, and are not sent.
UNLABELLED_SELECTOR = "!=".join(MANAGED_BY)
UNLABELLED_FIELDS = "spec.serviceAccountName!=default,status.phase!=Succeeded,status.phase!=Failed"
WARNINGS_ABOUT_PODS = "type=Warning,involvedObject.kind=Pod"


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """A kind that is listed and watched, filtered by the server.

    `everywhere`: in other namespaces than the watched ones too, for what leads to a pod may be in any. `optional`: a
    cluster may not serve it, or a role may not grant it.
    """

    kind: Kind
    label_selector: str = ""
    field_selector: str = ""
    everywhere: bool = False
    optional: bool = False

    def selects(self, manifest: Mapping[str, Any]) -> bool:
        """Whether the API server would send this object of the kind for these selectors, in any namespace."""
        labels = manifest["metadata"].get("labels") or {}
        return _holds(self.label_selector, labels.get) and _holds(self.field_selector, lambda at: _field(manifest, at))


# Children of which those of others are read too: of every namespace, and without a selector.
SHARED = (SERVICE, HTTP_ROUTE)
# Children, nodes, Events and objects that lead to pods (reflector); and user-created kinds (kopf).
STORE_WATCHES: tuple[WatchSpec, ...] = (
    WatchSpec(NODE),
    *(WatchSpec(kind, label_selector=CHILD_SELECTOR) for kind in (*CHILD_KINDS, POD) if kind not in SHARED),
    WatchSpec(UNLABELLED_POD, label_selector=UNLABELLED_SELECTOR, field_selector=UNLABELLED_FIELDS),
    WatchSpec(SERVICE, everywhere=True),
    *(WatchSpec(kind, everywhere=True, optional=True) for kind in (ENDPOINT_SLICE, INGRESS, GATEWAY, *ROUTES)),
    WatchSpec(CORE_EVENT, field_selector=WARNINGS_ABOUT_PODS),
    WatchSpec(EGRESS_ATTESTATION),
)
PRIMARY_WATCHES: tuple[WatchSpec, ...] = (WatchSpec(EGRESS_AUDIT), WatchSpec(MODEL_DEPLOYMENT))

# ModelDeployments are listed last: everything that their decisions need is then in the store.
ALL_WATCHES: tuple[WatchSpec, ...] = (*STORE_WATCHES, *PRIMARY_WATCHES)


def scopes(watched: WatchSpec, namespaces: tuple[str, ...]) -> tuple[str | None, ...]:
    """The namespaces in which a kind is listed and watched one by one, or None for everywhere at once."""
    return namespaces if namespaces and watched.kind.namespaced and not watched.everywhere else (None,)


def _holds(selector: str, value_of: Callable[[str], str | None]) -> bool:
    """Whether every term of the selector holds: `name=value` or `name!=value`."""
    for term in filter(None, selector.split(",")):
        is_unequal = "!=" in term
        name, _, value = term.partition("!=" if is_unequal else "=")
        if (value_of(name) == value) is is_unequal:
            return False
    return True


def _field(manifest: Mapping[str, Any], path: str) -> str:
    """The field at a dotted path; "" where it is not set, as for the API server."""
    value: Any = manifest
    for name in path.split("."):
        value = (value or {}).get(name)
    return str(value or "")
