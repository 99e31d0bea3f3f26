"""What a connection that says nothing keeps in memory: the operator has one for each kind that it watches."""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from pathlib import Path

import pytest

from hermetic.kube.tls_buffers import READ_BUFFER_BYTES, limit_read_buffers
from tests.traced_memory import traced_memory
from tests.unit.test_kube_connection import write_self_signed

CONNECTIONS = 4
UNLIMITED_BYTES = 256 * 1024
"""What asyncio keeps by default (`max_size` in https://github.com/python/cpython/blob/v3.11.7/Lib/asyncio/sslproto.py)."""


async def kept_by_a_silent_connection(folder: Path) -> int:
    """Bytes that Python keeps of a TLS connection, on average of one end; both ends are in this process."""
    certificate, key = write_self_signed(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: accepted.append(writer), "127.0.0.1", 0, ssl=context)
    port, trust = server.sockets[0].getsockname()[1], ssl.create_default_context(cafile=certificate)
    with traced_memory() as memory:
        opened = [(await asyncio.open_connection("127.0.0.1", port, ssl=trust))[1] for _ in range(CONNECTIONS)]
        while len(accepted) < CONNECTIONS:  # noqa: ASYNC110 - the server tells it to nobody
            await asyncio.sleep(0.001)
        bytes_now, _ = memory()
    for writer in (*opened, *accepted):
        writer.transport.abort()
    server.close()
    await server.wait_closed()
    return bytes_now // (2 * CONNECTIONS)


async def test_a_silent_connection_keeps_little_more_than_its_limited_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await kept_by_a_silent_connection(tmp_path) > UNLIMITED_BYTES, "asyncio keeps less by itself now"
    monkeypatch.setattr(SSLProtocol, "max_size", UNLIMITED_BYTES)  # and afterwards for other tests
    limit_read_buffers()
    assert await kept_by_a_silent_connection(tmp_path) < 1.5 * READ_BUFFER_BYTES
