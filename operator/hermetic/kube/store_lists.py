"""Lists into the operator's store: they remove what a watch missed."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from hermetic.errors import Forbidden, HermeticError, NotFound
from hermetic.kube.metadata import name_of
from hermetic.kube.owners import Key
from hermetic.kube.paging import Selection, list_each
from hermetic.kube.store import Store
from hermetic.kube.watch_specs import WatchSpec, scopes
from hermetic.ports import KubeApi, Manifest

NEWEST = 2**63
log = structlog.get_logger(__name__)

Concerned = Callable[[frozenset[Key]], None]


class StoreList:
    """One list of a kind, of a namespace or of all, into the store. `listed` gets the ModelDeployments to reconcile."""

    def __init__(self, store: Store, watched: WatchSpec, namespace: str | None, listed: Concerned) -> None:
        self._store = store
        self._watched = watched
        self._namespace = namespace
        self._report = listed
        self._listed: set[str] = set()
        self._version = ""
        self._is_whole = True

    def begin(self, version: str) -> None:
        """A list at this resourceVersion begins; objects of an earlier one that expired no longer count."""
        self._listed, self._version, self._is_whole = set(), version, True

    def add(self, manifest: Manifest) -> None:
        """Store one object. Its models are reported at once: if the list breaks off, the next one shows no change."""
        try:
            self._listed.add(manifest["metadata"]["uid"])
            concerned = self._store.put(manifest)
        except Exception:
            # One malformed object must not stop the list: without it the operator neither starts nor goes on.
            self._is_whole = False
            log.exception("object not understood", kind=manifest.get("kind"), name=name_of(manifest))
            self._report(self._store.note_malformed(self._watched.kind, int(self._version or 0)))
        else:
            self._report(concerned)

    def complete(self) -> None:
        """Remove from the store what the list lacks."""
        kind, namespace, version = self._watched.kind, self._namespace, int(self._version or 0)
        self._store.note_listed(kind, namespace, self._version)
        self._report(self._store.note_served(kind, may_be_listed=True))
        if self._is_whole:
            self._report(self._store.note_understood(kind, version))
        self._report(self._store.sweep(kind, self._listed, version, namespace=namespace))

    def refused(self, *, is_served: bool) -> None:
        """Forget an optional kind that is not served, or not granted."""
        kind = self._watched.kind
        self._store.note_listed(kind, self._namespace, "")
        self._report(self._store.note_served(kind, may_be_listed=not is_served, is_served=is_served))
        self._report(self._store.note_understood(kind, NEWEST))
        self._report(self._store.sweep(kind, set(), NEWEST, is_listed=False))


async def relist(
    api: KubeApi, store: Store, watched: WatchSpec, namespaces: tuple[str, ...] = (), *, listed: Concerned
) -> None:
    """List one kind and bring the store in line with it; `listed` gets the ModelDeployments to reconcile.

    After an exception that is no HermeticError the kind counts as unseen until a list is complete.
    """
    for namespace in scopes(watched, namespaces):
        store_list = StoreList(store, watched, namespace, listed)
        selection = Selection(watched.kind, namespace, watched.label_selector, watched.field_selector)
        try:
            await list_each(api, selection, begin=store_list.begin, add=store_list.add)
        except (NotFound, Forbidden) as error:
            if not watched.optional:
                raise
            # The API server checks the right before the kind: with 403, only discovery shows whether it is served.
            store_list.refused(is_served=isinstance(error, Forbidden) and await api.serves(watched.kind))
        except HermeticError:
            raise
        except Exception:
            listed(store.note_malformed(watched.kind, 0))
            raise
        else:
            store_list.complete()
