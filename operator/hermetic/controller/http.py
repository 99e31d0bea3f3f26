"""/healthz, /readyz and /metrics, served by a thread with an event loop of its own.

The operator's loop may be busy for longer than a probe waits, above all where other pods take the processor time of the
node. A probe that it served itself would then fail, and the kubelet would restart a process that works.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any, TypeVar

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from hermetic.errors import ConfigurationInvalid

T = TypeVar("T")


@asynccontextmanager
async def serving_health(
    port: int, *, failure: Callable[[], str], ready: Callable[[], bool], metrics: Callable[[], bytes]
) -> AsyncIterator[None]:
    """Serve on every address while entered.

    `failure` is why to restart the process, "" if healthy. The thread calls it and `ready`; the loop that enters calls
    `metrics`, which reads the state of that loop. Raises ConfigurationInvalid for a port that cannot be listened on.
    """
    operator_loop, loop = asyncio.get_running_loop(), asyncio.new_event_loop()

    async def exposition() -> bytes:
        async def render() -> bytes:
            return metrics()

        return await _result_of(render(), operator_loop)

    thread = Thread(target=loop.run_forever, name="health", daemon=True)
    thread.start()
    try:
        runner = await _result_of(_started(port, _application(failure, ready, exposition)), loop)
        try:
            yield
        finally:
            await _result_of(runner.cleanup(), loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _result_of(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Run the coroutine in the loop of another thread."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


def _application(
    failure: Callable[[], str], ready: Callable[[], bool], exposition: Callable[[], Coroutine[Any, Any, bytes]]
) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        wrong = failure()
        return web.Response(text=wrong or "ok", status=500 if wrong else 200)

    async def readyz(_: web.Request) -> web.Response:
        is_ready = ready()
        return web.Response(text="ok" if is_ready else "not primed yet", status=200 if is_ready else 503)

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(body=await exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", show_metrics)])
    return app


async def _started(port: int, app: web.Application) -> web.AppRunner:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, None, port).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigurationInvalid(
            f"`httpPort` {port} cannot be listened on: {error.strerror or error}",
            fix="end the process that holds the port, or choose another `httpPort`",
        ) from error
    return runner
