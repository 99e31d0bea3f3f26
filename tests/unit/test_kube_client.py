"""The client against a small local HTTP server: what it sends, and what it makes of every kind of answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port

from hermetic.errors import Conflict, NotFound, NotLeading, ServerError, Throttled, Unreachable
from hermetic.kinds import NODE, SERVICE
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection
from hermetic.kube.lease import fence
from hermetic.kube.transport import Timeouts
from tests.fakes.local_api_server import (
    A_SERVICE,
    LocalServer,
    client_of,
    listed,
    page,
    serving,
    status_body,
    without_a_token,
)

A_LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"namespace": "ops", "name": "hermetic"},
}


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    async with serving() as local:
        yield local


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
        with pytest.raises(ServerError, match="not a JSON object"):
            await api.apply(A_SERVICE)


# --- when no answer comes ---------------------------------------------------------------------------------------------


async def test_a_refused_connection_is_unreachable_and_names_the_server() -> None:
    nowhere = f"http://127.0.0.1:{unused_port()}"
    async with KubernetesApi(Connection(nowhere, without_a_token)) as api:
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


# --- writes -----------------------------------------------------------------------------------------------------------


async def test_an_apply_is_forced_strict_and_signed_by_its_field_manager(server: LocalServer) -> None:
    live = A_SERVICE | {
        "metadata": {"name": "llama", "uid": "u", "managedFields": [{"manager": "hermetic", "operation": "Apply"}]}
    }
    server.answers = [web.json_response(live, status=201), web.json_response(live)]
    async with client_of(server) as api:
        assert (await api.apply(A_SERVICE))["metadata"] == {"name": "llama", "uid": "u"}
        assert (await api.apply_status(A_SERVICE))["metadata"] == {"name": "llama", "uid": "u"}
    patch_request, status = server.seen
    assert (patch_request.method, patch_request.path) == ("PATCH", "/api/v1/namespaces/models/services/llama")
    assert patch_request.query == {"fieldManager": "hermetic", "force": "true", "fieldValidation": "Strict"}
    assert patch_request.headers["Content-Type"] == "application/apply-patch+yaml; charset=utf-8"
    assert patch_request.body == A_SERVICE
    assert status.path == "/api/v1/namespaces/models/services/llama/status"
    assert status.query == patch_request.query | {"fieldManager": "hermetic-status"}


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
        with pytest.raises(ServerError, match="no version"):
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
    nowhere = Connection(f"http://127.0.0.1:{unused_port()}", without_a_token)
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
    assert [(request.method, request.path) for request in server.seen] == [
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
    assert [request.headers.get("Authorization") for request in server.seen] == ["Bearer one", "Bearer two", None]


def test_the_client_library_is_loaded_only_when_a_connection_is_made() -> None:
    program = "import sys, hermetic.kube.client, hermetic.kube.connection; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


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


async def test_the_end_of_a_log_is_asked_for_in_bounds_and_is_text(server: LocalServer) -> None:
    server.answers = [web.Response(text="INFO one\nModelle \N{LATIN SMALL LETTER A WITH DIAERESIS}\n")]
    async with client_of(server) as api:
        assert await api.log_end("inference", "llama-1", "engine") == "INFO one\nModelle ä\n"
    (request,) = server.seen
    assert request.path == "/api/v1/namespaces/inference/pods/llama-1/log"
    assert dict(request.query) == {"container": "engine", "tailLines": "20", "limitBytes": "16384"}
