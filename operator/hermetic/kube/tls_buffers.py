"""The buffer of each TLS connection: asyncio keeps 256 KiB for what arrives next, also while nothing arrives.

The operator keeps a connection for each kind that it watches, in each of `watchNamespaces`, and nearly all of them are
silent. A TLS record has 16 KiB at most (RFC 8446, section 5.1). With 64 KiB a long list takes as much processor time as
before; with 32 KiB it takes a quarter more.
"""

from __future__ import annotations

from asyncio.sslproto import SSLProtocol

READ_BUFFER_BYTES = 64 * 1024


def limit_read_buffers() -> None:
    """Give TLS connections that this process opens from now on a buffer of READ_BUFFER_BYTES.

    asyncio has no other setting for it than the attribute of the class that it copies the size from (`max_size` in
    https://github.com/python/cpython/blob/v3.11.7/Lib/asyncio/sslproto.py).
    """
    SSLProtocol.max_size = READ_BUFFER_BYTES
