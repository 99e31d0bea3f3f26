"""List is truth, watch is latency: a full look at one kind, with everything that vanished unseen swept out."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.kinds import (
    CHILDREN,
    CORE_EVENT,
    EGRESS_ATTESTATION,
    EGRESS_AUDIT,
    MODEL_DEPLOYMENT,
    NODE,
    POD,
    Kind,
)
from hermetic.kube.store import Key, Store
from hermetic.objects.names import CHILD_SELECTOR
from hermetic.ports import KubeApi

WARNINGS_ABOUT_PODS = "type=Warning,involvedObject.kind=Pod"


@dataclass(frozen=True, slots=True)
class Watched:
    """A kind that is listed and watched, narrowed on the server to what concerns us."""

    kind: Kind
    label_selector: str = ""
    field_selector: str = ""


# What follows from wishes and machines, by the thousand; and what people and auditors wish and say, which kopf watches.
FOLLOWED: tuple[Watched, ...] = (
    Watched(NODE),
    *(Watched(kind, label_selector=CHILD_SELECTOR) for kind in (*CHILDREN, POD)),
    Watched(CORE_EVENT, field_selector=WARNINGS_ABOUT_PODS),
    Watched(EGRESS_ATTESTATION),
)
WISHES: tuple[Watched, ...] = (Watched(EGRESS_AUDIT), Watched(MODEL_DEPLOYMENT))

# Wishes last: when they are in, everything that a decision needs is.
WATCHED: tuple[Watched, ...] = (*FOLLOWED, *WISHES)


async def relist(api: KubeApi, store: Store, watched: Watched, namespaces: tuple[str, ...] = ()) -> frozenset[Key]:
    """Bring the store in line with the API server for one kind; returns the deployments that should look again."""
    concerned: set[Key] = set()
    listed: set[str] = set()
    versions: list[int] = []
    for namespace in scopes(watched.kind, namespaces):
        pages = api.pages(
            watched.kind,
            namespace=namespace,
            label_selector=watched.label_selector,
            field_selector=watched.field_selector,
        )
        async for items, version in pages:
            versions.append(int(version))
            store.note_listed(watched.kind, namespace, version)
            for item in items:
                listed.add(item["metadata"]["uid"])
                concerned |= store.put(item)
    return frozenset(concerned | store.sweep(watched.kind, listed, min(versions, default=0)))


def scopes(kind: Kind, namespaces: tuple[str, ...]) -> tuple[str | None, ...]:
    """The namespaces in which a kind is listed and watched one by one, or None for everywhere at once."""
    return namespaces if namespaces and kind.namespaced else (None,)
