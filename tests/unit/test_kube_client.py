"""The client against a small local HTTP server: what it sends, and what it makes of every kind of answer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from hermetic.api.field_managers import last_writer
from hermetic.controller.leader_guard import fence
from hermetic.errors import Conflict, NotFound, NotLeading, ServerTrouble, Throttled, Unreachable
from hermetic.kinds import NODE, POD, SERVICE, Kind
from hermetic.kube.client import KubernetesApi, Timeouts
from hermetic.kube.connection import Connection

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

A_SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "models", "name": "llama"}}
A_LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"namespace": "ops", "name": "hermetic"},
}


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class LocalServer:
    """Answers with what the test put in `answers`, in order, then with `otherwise`; remembers what was asked."""

    answers: list[web.StreamResponse | Handler] = field(default_factory=list)
    otherwise: Handler | None = None
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        body = json.loads(text) if text else None
        self.seen.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body))
        answer = self.answers.pop(0) if self.answers else self.otherwise
        assert answer is not None, f"the test has no answer for {request.method} {request.path}"
        return answer if isinstance(answer, web.StreamResponse) else await answer(request)


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    local = LocalServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", local.handle)
    async with TestServer(app) as running:
        local.url = str(running.make_url("")).rstrip("/")
        yield local


async def nobody() -> str:
    return ""


def client_of(server: LocalServer, **options: Any) -> KubernetesApi:
    return KubernetesApi(Connection(server.url, nobody), **options)


WRITER = [{"manager": "kubectl"}]
"""What is kept of the book of a Service: who wrote it, and no fields."""


def status_body(code: int, reason: str = "", message: str = "no") -> web.Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code)


def page(*names: str, version: str, carry_on: str = "") -> web.Response:
    items = [{"metadata": {"name": name, "managedFields": [{**WRITER[0], "fieldsV1": {}}]}} for name in names]
    metadata = {"resourceVersion": version} | ({"continue": carry_on} if carry_on else {})
    return web.json_response({"kind": "ServiceList", "apiVersion": "v1", "metadata": metadata, "items": items})


async def listed(api: KubernetesApi, **selectors: Any) -> list[tuple[list[str], str]]:
    return [
        ([item["metadata"]["name"] for item in items], version)
        async for items, version in api.pages(SERVICE, **selectors)
    ]


# --- answers that are no success --------------------------------------------------------------------------------------


async def test_a_refusal_is_raised_at_once_with_all_that_the_server_said(server: LocalServer) -> None:
    answer = status_body(429, "TooManyRequests", "slow down")
    answer.headers["Retry-After"] = "7"
    server.answers = [answer]
    async with client_of(server) as api:
        with pytest.raises(Throttled, match="slow down") as refused:
            await api.apply(A_SERVICE)
    assert refused.value.retry_after == 7.0
    assert len(server.seen) == 1  # waiting is the work queue's business


@pytest.mark.parametrize("body", ["<html>welcome</html>", "[1]", "", "{"])
async def test_a_success_that_is_not_a_json_object_is_no_success(server: LocalServer, body: str) -> None:
    server.answers = [web.Response(text=body)]
    async with client_of(server) as api:
        with pytest.raises(ServerTrouble, match="not a JSON object"):
            await api.apply(A_SERVICE)


# --- when no answer comes ---------------------------------------------------------------------------------------------


async def test_a_refused_connection_is_unreachable_and_names_the_server() -> None:
    nowhere = f"http://127.0.0.1:{unused_port()}"
    async with KubernetesApi(Connection(nowhere, nobody)) as api:
        with pytest.raises(Unreachable, match=nowhere) as unreachable:
            await api.apply(A_SERVICE)
    assert "PATCH /api/v1/namespaces/models/services/llama" in unreachable.value.message
    assert unreachable.value.fix


async def test_an_answer_that_does_not_come_in_time_is_unreachable(server: LocalServer) -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.answers = [never]
    async with client_of(server, timeouts=Timeouts(connect=5, request=0.1, write=0.1)) as api:
        with pytest.raises(Unreachable, match="no answer in time"):
            await api.apply(A_SERVICE)


async def test_an_answer_that_breaks_off_is_unreachable(server: LocalServer) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"kind"')
        assert request.transport is not None
        request.transport.abort()
        return response

    server.answers = [half]
    async with client_of(server) as api:
        with pytest.raises(Unreachable):
            await api.apply(A_SERVICE)


async def test_proxy_variables_of_the_environment_are_not_followed(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    server.answers = [web.json_response({"major": "1", "minor": "36"})]
    async with client_of(server) as api:
        assert await api.server_version() == (1, 36)


# --- lists ------------------------------------------------------------------------------------------------------------


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
    assert first.query == {"limit": "100", "labelSelector": "app in (x,y),!z"}
    assert second.query == first.query | {"continue": "tok/en+="}


async def test_a_list_forgotten_half_way_starts_again_under_a_new_version(server: LocalServer) -> None:
    server.answers = [
        page("a", version="7", carry_on="t"),
        status_body(410, "Expired"),
        page("a", version="9", carry_on="u"),
        page("b", version="9"),
    ]
    async with client_of(server) as api:
        assert await listed(api) == [(["a"], "7"), (["a"], "9"), (["b"], "9")]
    assert [seen.query.get("continue") for seen in server.seen] == [None, "t", None, "u"]


async def test_a_list_that_is_forgotten_every_time_is_given_up(server: LocalServer) -> None:
    for _ in range(4):
        server.answers += [page("a", version="7", carry_on="t"), status_body(410, "Expired")]
    async with client_of(server) as api:
        with pytest.raises(ServerTrouble) as refused:
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
    assert len(server.seen) < 30


async def test_definitions_of_kinds_are_asked_for_in_small_pages(server: LocalServer) -> None:
    definition = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
    server.answers = [page("a", version="5", carry_on="t"), page("b", version="5")]
    async with client_of(server) as api:
        assert [len(items) async for items, _ in api.pages(definition)] == [1, 1]
    assert [one.query["limit"] for one in server.seen] == ["20", "20"]


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b'{"object": {"metadata": {"resourceVersion": "1"}}}',
        b'{"type": "ADDED", "object": null}',
        b'{"type": "ADDED", "object": {"metadata": {}}}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": 7}}}',
        b'{"type": 3, "object": {"metadata": {"resourceVersion": "1"}}}',
    ],
)
async def test_a_line_of_a_watch_that_is_no_event_is_trouble_of_the_server(server: LocalServer, line: bytes) -> None:
    server.answers = [web.Response(body=line + b"\n")]
    async with client_of(server) as api:
        events = api.watch(SERVICE, since="1")
        with pytest.raises(ServerTrouble):
            await anext(events)


@pytest.mark.parametrize(
    "body", [{"items": []}, {"metadata": None}, {"metadata": {"resourceVersion": "1"}, "items": 5}]
)
async def test_an_answer_that_is_no_list_is_trouble_of_the_server(server: LocalServer, body: dict[str, object]) -> None:
    server.answers = [web.json_response(body)]
    async with client_of(server) as api:
        with pytest.raises(ServerTrouble):
            await listed(api)


async def test_an_empty_list_has_one_page_whatever_its_items_are_called(server: LocalServer) -> None:
    server.answers = [web.json_response({"metadata": {"resourceVersion": "3", "continue": ""}, "items": None})]
    async with client_of(server) as api:
        assert await listed(api) == [([], "3")]


async def test_of_a_pod_that_a_controller_made_and_of_a_node_no_writer_is_kept(server: LocalServer) -> None:
    book = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:spec": {}}}]
    metadata = {"name": "a", "managedFields": book}
    owned = {**metadata, "ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}
    for kind, given, kept in ((POD, metadata, True), (POD, owned, False), (NODE, metadata, False)):
        server.answers = [web.json_response({"metadata": {"resourceVersion": "7"}, "items": [{"metadata": given}]})]
        async with client_of(server) as api:
            ((items, _),) = [pair async for pair in api.pages(kind)]
        assert ("managedFields" in items[0]["metadata"]) is kept


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
    one = {"metadata": {"name": "a", "labels": labels, "managedFields": book}}
    server.answers = [web.json_response({"metadata": {"resourceVersion": "7"}, "items": [one]})]
    async with client_of(server) as api:
        ((items, _),) = [pair async for pair in api.pages(SERVICE)]
    assert items[0]["metadata"]["managedFields"] == [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": fields},
        {"manager": "mallory", "operation": "Update", "time": "2"},
    ]
    assert last_writer(items[0]["metadata"]["managedFields"]) == "'mallory' (Update, 2)"


# --- writes -----------------------------------------------------------------------------------------------------------


async def test_an_apply_is_forced_strict_and_signed_by_its_field_manager(server: LocalServer) -> None:
    live = A_SERVICE | {
        "metadata": {"name": "llama", "uid": "u", "managedFields": [{"manager": "hermetic", "operation": "Apply"}]}
    }
    server.answers = [web.json_response(live, status=201), web.json_response(live)]
    async with client_of(server) as api:
        assert (await api.apply(A_SERVICE))["metadata"] == {"name": "llama", "uid": "u"}
        assert (await api.apply_status(A_SERVICE))["metadata"] == {"name": "llama", "uid": "u"}
    whole, status = server.seen
    assert (whole.method, whole.path) == ("PATCH", "/api/v1/namespaces/models/services/llama")
    assert whole.query == {"fieldManager": "hermetic", "force": "true", "fieldValidation": "Strict"}
    assert whole.headers["Content-Type"] == "application/apply-patch+yaml"
    assert whole.body == A_SERVICE
    assert status.path == "/api/v1/namespaces/models/services/llama/status"
    assert status.query == whole.query | {"fieldManager": "hermetic-status"}


async def test_a_delete_names_exactly_one_object(server: LocalServer) -> None:
    server.answers = [web.json_response({"kind": "Status"}), web.json_response({"kind": "Status"})]
    async with client_of(server) as api:
        await api.delete(SERVICE, namespace="models", name="llama", uid="u-1")
        await api.delete(SERVICE, namespace="models", name="llama", uid="u-1", resource_version="12")
    by_uid, by_version = server.seen
    assert (by_uid.method, by_uid.path) == ("DELETE", "/api/v1/namespaces/models/services/llama")
    assert by_uid.body["preconditions"] == {"uid": "u-1"}
    assert by_uid.body["propagationPolicy"] == "Background"
    assert by_version.body["preconditions"] == {"uid": "u-1", "resourceVersion": "12"}


async def test_deleting_what_is_gone_is_a_success_but_only_on_the_api_servers_word(server: LocalServer) -> None:
    server.answers = [status_body(404, "NotFound"), web.Response(status=404, text="default backend - 404")]
    async with client_of(server) as api:
        await api.delete(SERVICE, namespace="models", name="llama", uid="u-1")
        with pytest.raises(NotFound, match="default backend"):
            await api.delete(SERVICE, namespace="models", name="llama", uid="u-1")


@pytest.mark.parametrize(("namespace", "name"), [("models", ""), (None, "llama"), ("", "llama")])
async def test_a_delete_can_never_reach_a_whole_collection(
    server: LocalServer, namespace: str | None, name: str
) -> None:
    async with client_of(server) as api:
        with pytest.raises(ValueError, match="one Service needs a name and a namespace"):
            await api.delete(SERVICE, namespace=namespace, name=name, uid="u-1")
        with pytest.raises(ValueError, match="one Node needs a name"):
            await api.delete(NODE, namespace=None, name="", uid="u-1")
    assert server.seen == []


async def test_only_the_kinds_and_versions_of_the_catalogue_are_written(server: LocalServer) -> None:
    async with client_of(server) as api:
        with pytest.raises(ValueError, match="v2 Service is not a kind that Hermetic writes"):
            await api.apply(A_SERVICE | {"apiVersion": "v2"})
    assert server.seen == []


async def test_an_event_goes_to_the_namespace_it_names(server: LocalServer) -> None:
    server.answers = [web.json_response({}, status=201)]
    event = {"metadata": {"namespace": "models", "name": "e"}}
    async with client_of(server) as api:
        await api.create_event(event)
    assert (server.seen[0].path, server.seen[0].body) == (
        "/apis/events.k8s.io/v1/namespaces/models/events",
        event,
    )


@pytest.mark.parametrize(("minor", "expected"), [("36", 36), ("34+", 34)])
async def test_the_server_version_is_read_as_providers_write_it(server: LocalServer, minor: str, expected: int) -> None:
    server.answers = [web.json_response({"major": "1", "minor": minor})]
    async with client_of(server) as api:
        assert await api.server_version() == (1, expected)


async def test_a_version_without_numbers_is_server_trouble(server: LocalServer) -> None:
    server.answers = [web.json_response({"major": "", "minor": ""})]
    async with client_of(server) as api:
        with pytest.raises(ServerTrouble, match="no version"):
            await api.server_version()


# --- every request ----------------------------------------------------------------------------------------------------


async def test_every_request_is_counted_by_verb_resource_and_code(server: LocalServer) -> None:
    counted: Counter[tuple[str, str, int]] = Counter()
    server.answers = [
        page("a", version="1", carry_on="t"),
        page("b", version="1"),
        web.json_response(A_SERVICE),
        status_body(409),
        status_body(404, "NotFound"),
    ]
    async with client_of(server, on_request=lambda *request: counted.update([request])) as api:
        await listed(api)
        await api.apply(A_SERVICE)
        with pytest.raises(Conflict):
            await api.apply_status(A_SERVICE)
        await api.delete(SERVICE, namespace="models", name="llama", uid="u")
    assert counted == {
        ("list", "services", 200): 2,
        ("patch", "services", 200): 1,
        ("patch", "services/status", 409): 1,
        ("delete", "services", 404): 1,
    }


async def test_a_request_without_an_answer_is_counted_with_code_0() -> None:
    counted: list[tuple[str, str, int]] = []
    nowhere = Connection(f"http://127.0.0.1:{unused_port()}", nobody)
    async with KubernetesApi(nowhere, on_request=lambda *request: counted.append(request)) as api:
        with pytest.raises(Unreachable):
            await api.apply(A_SERVICE)
    assert counted == [("patch", "services", 0)]


async def test_no_more_requests_fly_than_the_limit_allows_and_the_lease_does_not_wait_for_them(
    server: LocalServer,
) -> None:
    in_flight, most, full, gate = 0, 0, asyncio.Event(), asyncio.Event()

    async def hold(request: web.Request) -> web.StreamResponse:
        nonlocal in_flight, most
        if request.path.endswith("/leases/hermetic"):
            return web.json_response(A_LEASE)
        in_flight += 1
        most = max(most, in_flight)
        if in_flight == 3:
            full.set()
        await gate.wait()
        in_flight -= 1
        return web.json_response(A_SERVICE)

    server.otherwise = hold
    async with client_of(server, limit=asyncio.Semaphore(3)) as api:
        applies = [asyncio.create_task(api.apply(A_SERVICE)) for _ in range(10)]
        await full.wait()
        assert (await api.get_lease("ops", "hermetic"))["kind"] == "Lease"
        gate.set()
        await asyncio.gather(*applies)
    assert most == 3


async def test_a_lease_is_created_and_replaced_as_a_whole(server: LocalServer) -> None:
    server.answers = [web.json_response(A_LEASE, status=201), web.json_response(A_LEASE)]
    async with client_of(server) as api:
        await api.create_lease(A_LEASE)
        await api.replace_lease(A_LEASE)
    assert [(seen.method, seen.path) for seen in server.seen] == [
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/ops/leases"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/ops/leases/hermetic"),
    ]


async def test_credentials_are_asked_for_before_every_request(server: LocalServer) -> None:
    tokens = iter(["Bearer one", "Bearer two", ""])

    async def authorization() -> str:
        return next(tokens)

    server.answers = [web.json_response({"major": "1", "minor": "36"}) for _ in range(3)]
    async with KubernetesApi(Connection(server.url, authorization)) as api:
        for _ in range(3):
            await api.server_version()
    assert [seen.headers.get("Authorization") for seen in server.seen] == ["Bearer one", "Bearer two", None]


def test_the_client_library_is_loaded_only_when_a_connection_is_made() -> None:
    program = "import sys, hermetic.kube.client, hermetic.kube.connection; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


# --- watches ----------------------------------------------------------------------------------------------------------


def watch_event(name: str, what: str = "MODIFIED") -> bytes:
    manifest = {"metadata": {"name": name, "resourceVersion": "9", "managedFields": [{"manager": "kubectl"}]}}
    return json.dumps({"type": what, "object": manifest}).encode() + b"\n"


def streaming(*chunks: bytes, cut: bool = False, silent: bool = False) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.01)  # so that each arrives by itself
        if silent:
            await asyncio.sleep(0.5)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


async def watched(api: KubernetesApi, **selectors: Any) -> list[tuple[str, str]]:
    return [(what, manifest["metadata"]["name"]) async for what, manifest in api.watch(SERVICE, since="7", **selectors)]


async def test_a_watch_yields_whole_events_however_they_are_cut_into_pieces(server: LocalServer) -> None:
    both = watch_event("llama") + watch_event("phi", "DELETED")
    server.answers = [streaming(both[:10], both[10:50], both[50:], b'{"type": "MODI')]
    async with client_of(server) as api:
        assert await watched(api, namespace="models", label_selector="a=b") == [
            ("MODIFIED", "llama"),
            ("DELETED", "phi"),
        ]
    assert server.seen[0].path == "/api/v1/namespaces/models/services"
    assert server.seen[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "290",
        "resourceVersion": "7",
        "labelSelector": "a=b",
    }


async def test_what_is_watched_looks_like_what_is_listed(server: LocalServer) -> None:
    server.answers = [streaming(watch_event("llama"))]
    async with client_of(server) as api:
        found = [manifest async for _, manifest in api.watch(SERVICE, since="7")]
    assert found == [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "llama", "resourceVersion": "9", "managedFields": WRITER},
        },
    ]


async def test_a_forgotten_place_is_said_by_status_or_in_the_stream(server: LocalServer) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    event = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    server.answers = [status_body(410, "Expired"), streaming(watch_event("llama"), event)]
    async with client_of(server) as api:
        for _ in range(2):
            with pytest.raises(ServerTrouble) as trouble:
                await watched(api)
            assert trouble.value.status == 410


async def test_a_watch_that_is_cut_or_falls_silent_says_so(server: LocalServer) -> None:
    server.answers = [streaming(watch_event("llama"), cut=True), streaming(watch_event("llama"), silent=True)]
    async with client_of(server, timeouts=Timeouts(silence=0.1)) as api:
        for _ in range(2):
            with pytest.raises(Unreachable):
                await watched(api)


async def test_a_watch_takes_the_turn_of_no_other(server: LocalServer) -> None:
    server.answers = [streaming(watch_event("llama"), silent=True)]
    server.answers.append(web.json_response(A_SERVICE))
    async with client_of(server, limit=asyncio.Semaphore(1)) as api:
        watch = api.watch(SERVICE, since="7")
        await anext(watch)
        await asyncio.wait_for(api.apply(A_SERVICE), 2)
        await watch.aclose()  # type: ignore[attr-defined]


# --- who may still write ----------------------------------------------------------------------------------------------


async def test_a_write_that_waited_for_its_turn_is_not_sent_once_the_lease_is_lost(server: LocalServer) -> None:
    leading, arrived, go_on = True, asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        arrived.set()
        await go_on.wait()
        return web.json_response(A_SERVICE)

    server.otherwise = slow
    async with client_of(server, limit=asyncio.Semaphore(1)) as api:
        api.ask_before_writing(fence(lambda: leading))
        first = asyncio.create_task(api.apply(A_SERVICE))
        await arrived.wait()
        waiting = [
            asyncio.create_task(write)
            for write in (
                api.apply(A_SERVICE),
                api.apply_status({**A_SERVICE, "status": {}}),
                api.delete(SERVICE, namespace="models", name="llama", uid="u"),
                api.create_event({"metadata": {"namespace": "models"}}),
            )
        ]
        await asyncio.sleep(0)
        leading = False
        go_on.set()
        assert await first == A_SERVICE
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, NotLeading)
        assert len(server.seen) == 1
        server.otherwise, server.answers = None, [page("llama", version="7"), web.json_response(A_LEASE)]
        assert await listed(api) == [(["llama"], "7")], "reads go on"
        assert await api.replace_lease(A_LEASE) == A_LEASE, "the Lease itself must be written to be held"
