"""The kinds that are listed and watched, and `relist`, which removes from the store what a watch missed."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.errors import Forbidden, NotFound
from hermetic.kinds import (
    CORE_EVENT,
    EGRESS_ATTESTATION,
    EGRESS_AUDIT,
    ENDPOINT_SLICE,
    GATEWAY,
    INGRESS,
    MODEL_DEPLOYMENT,
    NODE,
    POD,
    ROUTES,
    SERVICE,
    UNLABELLED_POD,
    Kind,
)
from hermetic.kube.cooperative import cooperatively
from hermetic.kube.owners import Key
from hermetic.kube.store import Store
from hermetic.objects.children import CHILD_KINDS
from hermetic.objects.names import CHILD_SELECTOR, MANAGED_BY
from hermetic.ports import KubeApi

NEWEST = 2**63
PUT_AT_ONCE = 10
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


# Children, nodes, Events and objects that lead to pods (reflector); and user-created kinds (kopf).
STORE_WATCHES: tuple[WatchSpec, ...] = (
    WatchSpec(NODE),
    *(WatchSpec(kind, label_selector=CHILD_SELECTOR) for kind in (*CHILD_KINDS, POD) if kind is not SERVICE),
    WatchSpec(UNLABELLED_POD, label_selector=UNLABELLED_SELECTOR, field_selector=UNLABELLED_FIELDS),
    WatchSpec(SERVICE, everywhere=True),
    *(WatchSpec(kind, everywhere=True, optional=True) for kind in (ENDPOINT_SLICE, INGRESS, GATEWAY, *ROUTES)),
    WatchSpec(CORE_EVENT, field_selector=WARNINGS_ABOUT_PODS),
    WatchSpec(EGRESS_ATTESTATION),
)
PRIMARY_WATCHES: tuple[WatchSpec, ...] = (WatchSpec(EGRESS_AUDIT), WatchSpec(MODEL_DEPLOYMENT))

# ModelDeployments are listed last: everything that their decisions need is then in the store.
ALL_WATCHES: tuple[WatchSpec, ...] = (*STORE_WATCHES, *PRIMARY_WATCHES)


async def relist(api: KubeApi, store: Store, watched: WatchSpec, namespaces: tuple[str, ...] = ()) -> frozenset[Key]:
    """List one kind and bring the store in line with it; returns the ModelDeployments to reconcile."""
    concerned: set[Key] = set()
    for namespace in scopes(watched, namespaces):
        concerned |= await _relist_scope(api, store, watched, namespace)
    return frozenset(concerned)


async def _relist_scope(api: KubeApi, store: Store, watched: WatchSpec, namespace: str | None) -> set[Key]:
    concerned: set[Key] = set()
    listed: set[str] = set()
    as_of = ""
    pages = api.pages(
        watched.kind,
        namespace=namespace,
        label_selector=watched.label_selector,
        field_selector=watched.field_selector,
    )
    try:
        async for items, version in pages:
            if version != as_of:  # the list expired and started again: discard what came before
                listed, as_of = set(), version
            store.note_listed(watched.kind, namespace, version)
            async for item in cooperatively(items, every=PUT_AT_ONCE):
                listed.add(item["metadata"]["uid"])
                concerned |= store.put(item)
    except (NotFound, Forbidden) as error:
        if not watched.optional:
            raise
        # The API server checks the right before the kind: with 403, only discovery shows whether the kind is served.
        refused = isinstance(error, Forbidden) and await api.serves(watched.kind)
        store.note_listed(watched.kind, namespace, "")
        concerned |= store.note_served(watched.kind, may_be_listed=not refused)
        return concerned | store.sweep(watched.kind, set(), NEWEST)
    concerned |= store.note_served(watched.kind, may_be_listed=True)
    return concerned | store.sweep(watched.kind, listed, int(as_of or 0), namespace=namespace)


def scopes(watched: WatchSpec, namespaces: tuple[str, ...]) -> tuple[str | None, ...]:
    """The namespaces in which a kind is listed and watched one by one, or None for everywhere at once."""
    return namespaces if namespaces and watched.kind.namespaced and not watched.everywhere else (None,)
