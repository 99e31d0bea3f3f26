"""One end of a watch over a real network: `serve ADDRESS PORT`, or `watch ADDRESS PORT SECONDS`.

The server answers a watch with one event and then says nothing. The watch prints the event, and why it ended;
SECONDS is the limit of an unresponsive connection.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hermetic.errors import Unreachable
from hermetic.kinds import SERVICE
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection
from hermetic.kube.transport import Timeouts

say = partial(print, flush=True)
EVENT = b'{"type": "ADDED", "object": {"metadata": {"name": "llama", "resourceVersion": "9"}}}\n'


async def answer(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(EVENT)
    await asyncio.sleep(3600)
    return response


async def serve(address: str, port: int) -> None:
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    say("listening")
    await asyncio.sleep(3600)


async def without_a_token() -> str:
    return ""


async def watch(address: str, port: int, seconds: float) -> None:
    connection = Connection(f"http://{address}:{port}", without_a_token)
    api = KubernetesApi(connection, timeouts=Timeouts(unresponsive=seconds))
    began = 0.0
    try:
        async for event, _ in api.watch(SERVICE, since="7"):
            began = asyncio.get_running_loop().time()
            say(event)
    except Unreachable as error:
        say(f"{asyncio.get_running_loop().time() - began:.1f} {error.message}")
    finally:
        await api.close()


if __name__ == "__main__":
    verb, address, port, *limit = sys.argv[1:]
    asyncio.run(serve(address, int(port)) if verb == "serve" else watch(address, int(port), float(limit[0])))
