"""/healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from hermetic.errors import ConfigurationInvalid


async def serve_health(
    port: int, *, failure: Callable[[], str], ready: Callable[[], bool], metrics: Callable[[], bytes]
) -> web.AppRunner:
    """Serve on every address until the runner is cleaned up. `failure` is why to restart the process, "" if healthy."""

    async def healthz(_: web.Request) -> web.Response:
        wrong = failure()
        return web.Response(text=wrong or "ok", status=500 if wrong else 200)

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok" if ready() else "not primed yet", status=200 if ready() else 503)

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposition)])
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
