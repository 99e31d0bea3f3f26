"""Definitions of kinds, hundreds of KiB each: kept is whom the API server calls to convert, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calls import CustomResourceDefinition
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.collect.kube.listing import listed, listed_packed
from hermetic.kinds import Kind
from hermetic.kube.client import FIRST_PAGE
from tests.fakes.served_cluster import Manifest, Served
from tests.kubernetes_estates import manifest
from tests.traced_memory import traced_memory

REQUEST = ListRequest(CustomResourceDefinition, "")
PAGES = 3
A_PAGE = FIRST_PAGE
LARGE = 100 * 2**10
"""Bytes of one definition, as those of larger operators have."""
MOST_KEPT = 2_500
"""Of one definition that has a conversion webhook (1,900 as an object and 670 packed, as measured)."""
FOR_ALL = 64 * 2**10
"""Of the list itself, and what the first object of a model costs once."""
MOST_AT_ONCE = 3 * 2 * A_PAGE * LARGE
"""Of two pages, the one that was looked at and the next one; objects take 2.7 times the bytes of their JSON."""
CONFIG = {"service": {"namespace": "team", "name": "converter"}, "url": None}


def definition(name: str, *, converts: bool) -> Manifest:
    """A large definition with everything that an API server shows of one."""
    field = {"type": "object", "description": "what it is for, in one sentence " * 4}
    fields = {f"field{number}": field for number in range(LARGE // len(json.dumps(field)))}
    webhook = {"clientConfig": {**CONFIG, "caBundle": "A" * 1_600}, "conversionReviewVersions": ["v1"]}
    conversion = {"strategy": "Webhook", "webhook": webhook} if converts else {"strategy": "None"}
    spec = {
        "group": "ray.io",
        "names": {"plural": name, "kind": name},
        "conversion": conversion,
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": fields}}}],
    }
    some = {"labels": {"a": "b"}, "annotations": {"kubernetes.azure.com/x": "y" * 1_000}, "ownerReferences": []}
    crd = manifest(CustomResourceDefinition, f"{name}.ray.io", spec=spec, status={"conditions": [{}]}, **some)
    crd["metadata"] |= {"uid": "u", "resourceVersion": "5"}
    return crd


class Large(Served):
    """Parses each page when it is asked for, as the client does."""

    def __init__(self, *, converts: bool) -> None:
        super().__init__([])
        texts = [definition(f"kind{number}", converts=converts) for number in range(A_PAGE)]
        self._page = json.dumps(texts)

    async def pages(self, kind: Kind, **_: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
        assert kind == REQUEST.kind
        for number in range(PAGES):
            items = json.loads(self._page)
            for item in items:
                item["metadata"]["name"] += str(number)
            yield items, "5"


def test_of_a_definition_nothing_is_kept_but_its_name_and_conversion_webhook() -> None:
    body = projected(CustomResourceDefinition, definition("kind0", converts=True))
    assert body == {
        "metadata": {"name": "kind0.ray.io"},
        "spec": {"conversion": {"webhook": {"clientConfig": CONFIG}}},
    }


@pytest.mark.parametrize("read", [listed, partial(listed_packed, feed=None)], ids=["listed", "listed_packed"])
@pytest.mark.parametrize("converts", [True, False])
async def test_definitions_take_little_memory(read: Any, converts: bool) -> None:
    api = Large(converts=converts)
    with traced_memory() as memory_use:
        listing = await read(api, REQUEST)
        bytes_kept, peak = memory_use()
    assert listing.error is None
    assert len(listing.items) == (PAGES * A_PAGE if converts else 0)
    assert bytes_kept <= MOST_KEPT * len(listing.items) + FOR_ALL
    assert peak <= MOST_AT_ONCE
