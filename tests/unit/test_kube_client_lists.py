"""Lists of the client: page by page, begun again once they are forgotten, and what is kept of each object."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from hermetic.api.field_managers import last_writer
from hermetic.errors import ServerError
from hermetic.kinds import NODE, POD, SERVICE
from tests.fakes.local_api_server import WRITER, LocalServer, client_of, listed, page, serving, status_body


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    async with serving() as local:
        yield local


async def test_a_list_is_read_page_by_page_and_its_items_look_like_single_objects(server: LocalServer) -> None:
    server.answers = [page("a", "b", version="7", carry_on="tok/en+="), page("c", version="7")]
    async with client_of(server) as api:
        pages = [pair async for pair in api.pages(SERVICE, namespace="models", label_selector="app in (x,y),!z")]
    assert pages[0] == (
        [
            {"metadata": {"name": "a", "managedFields": WRITER}, "apiVersion": "v1", "kind": "Service"},
            {"metadata": {"name": "b", "managedFields": WRITER}, "apiVersion": "v1", "kind": "Service"},
        ],
        "7",
    )
    assert [len(items) for items, _ in pages] == [2, 1]
    first, second = server.seen
    assert first.path == "/api/v1/namespaces/models/services"
    assert first.query == {"limit": "20", "labelSelector": "app in (x,y),!z"}
    assert second.query == first.query | {"limit": "80", "continue": "tok/en+="}


async def test_a_list_forgotten_half_way_starts_again_under_a_new_version(server: LocalServer) -> None:
    server.answers = [
        page("a", version="7", carry_on="t"),
        status_body(410, "Expired"),
        page("a", version="9", carry_on="u"),
        page("b", version="9"),
    ]
    async with client_of(server) as api:
        assert await listed(api) == [(["a"], "7"), (["a"], "9"), (["b"], "9")]
    assert [request.query.get("continue") for request in server.seen] == [None, "t", None, "u"]


async def test_a_list_that_is_forgotten_every_time_is_given_up(server: LocalServer) -> None:
    for _ in range(4):
        server.answers += [page("a", version="7", carry_on="t"), status_body(410, "Expired")]
    async with client_of(server) as api:
        with pytest.raises(ServerError) as refused:
            await listed(api)
    assert refused.value.status == 410
    assert server.answers == []


async def test_a_page_of_large_objects_is_asked_for_again_in_smaller_ones(server: LocalServer) -> None:
    """450 Events of a tenant, a megabyte each: no more than a bounded share of them is ever held at once."""
    events = [{"metadata": {"name": f"e-{number}"}, "message": "x" * 1_000_000} for number in range(60)]

    async def paged(request: web.Request) -> web.StreamResponse:
        start, limit = int(request.query.get("continue") or 0), int(request.query["limit"])
        chosen, end = events[start : start + limit], start + limit
        metadata = {"resourceVersion": "5", "continue": str(end) if end < len(events) else ""}
        return web.json_response({"metadata": metadata, "items": chosen})

    server.otherwise = paged
    async with client_of(server) as api:
        pages = [[item["metadata"]["name"] for item in items] async for items, _ in api.pages(SERVICE)]
    assert [name for names in pages for name in names] == [event["metadata"]["name"] for event in events]
    assert max(map(len, pages)) <= 16
    assert len(server.seen) <= len(events) + 2


@pytest.mark.parametrize(
    ("size", "limits"),
    [(0, [20, 80, 320, 500, 500]), (2_000, [20, 80, 320, 384]), (40_000, [20, 19, 19, 19]), (900_000, [20, 2, 1, 1])],
    ids=["empty", "Services", "Deployments", "definitions of kinds"],
)
async def test_the_next_page_follows_from_the_size_of_the_objects(
    server: LocalServer, size: int, limits: list[int]
) -> None:
    async def paged(request: web.Request) -> web.StreamResponse:
        items = [{"metadata": {"name": "a"}, "message": "x" * size}] * int(request.query["limit"])
        carry_on = "t" if len(server.seen) < len(limits) else ""
        return web.json_response({"metadata": {"resourceVersion": "5", "continue": carry_on}, "items": items})

    server.otherwise = paged
    async with client_of(server) as api:
        async for _ in api.pages(SERVICE):
            pass
    assert [int(request.query["limit"]) for request in server.seen][-len(limits) :] == limits


@pytest.mark.parametrize(
    "body", [{"items": []}, {"metadata": None}, {"metadata": {"resourceVersion": "1"}, "items": 5}]
)
async def test_an_answer_that_is_no_list_is_trouble_of_the_server(server: LocalServer, body: dict[str, object]) -> None:
    server.answers = [web.json_response(body)]
    async with client_of(server) as api:
        with pytest.raises(ServerError):
            await listed(api)


async def test_an_empty_list_has_one_page_whatever_its_items_are_called(server: LocalServer) -> None:
    server.answers = [web.json_response({"metadata": {"resourceVersion": "3", "continue": ""}, "items": None})]
    async with client_of(server) as api:
        assert await listed(api) == [([], "3")]


async def test_of_a_pod_that_a_controller_made_and_of_a_node_no_writer_is_kept(server: LocalServer) -> None:
    book = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:spec": {}}}]
    metadata = {"name": "a", "managedFields": book}
    owned = {**metadata, "ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}
    for kind, item_metadata, is_kept in ((POD, metadata, True), (POD, owned, False), (NODE, metadata, False)):
        server.answers = [
            web.json_response({"metadata": {"resourceVersion": "7"}, "items": [{"metadata": item_metadata}]})
        ]
        async with client_of(server) as api:
            ((items, _),) = [pair async for pair in api.pages(kind)]
        assert ("managedFields" in items[0]["metadata"]) is is_kept


async def test_of_a_child_the_record_of_the_spec_and_the_last_writer_are_kept(server: LocalServer) -> None:
    fields = {"f:spec": {"f:type": {}}}
    annotated = {
        "manager": "mallory",
        "operation": "Update",
        "time": "2",
        "fieldsV1": {"f:metadata": {"f:annotations": {}}},
    }
    book = [{"manager": "kubectl", "operation": "Update", "time": "1", "fieldsV1": fields}, annotated]
    labels = {"app.kubernetes.io/managed-by": "hermetic"}
    item = {"metadata": {"name": "a", "labels": labels, "managedFields": book}}
    server.answers = [web.json_response({"metadata": {"resourceVersion": "7"}, "items": [item]})]
    async with client_of(server) as api:
        ((items, _),) = [pair async for pair in api.pages(SERVICE)]
    assert items[0]["metadata"]["managedFields"] == [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": fields},
        {"manager": "mallory", "operation": "Update", "time": "2"},
    ]
    assert last_writer(items[0]["metadata"]["managedFields"]) == "'mallory' (Update, 2)"
