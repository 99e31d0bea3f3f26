"""The journal of staging: one line for each range that is on the destination's disk, with its digest.

A line is written after its data were synchronised. An incomplete line, one that another account wrote, and every line
of a source file that changed, is ignored: that range is copied again.

The digests become those of the manifest, and the journal lies on the share: each line is authenticated by a key that is
not there, or who may write to the share could have other weights listed and signed than those of the source.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from hermetic.weights.destination import own_file
from hermetic.weights.tree import Item

_LARGEST_LINE = 2**14


class Journal:
    """The journal of one destination, read as a whole and appended to.

    What is added is found again only by the next run, unless `remembers`: a million files fit into little memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remembers = False
        self._secret = staging_key()
        self.damaged = 0
        self._digests: dict[bytes, bytes] = {}
        self._lock = threading.Lock()
        self._descriptor = own_file(path, os.O_RDWR | os.O_APPEND)
        for name, start, end, identity, digest in self._lines():
            self._digests[_key(name, (start, end), identity)] = digest
        if os.fstat(self._descriptor).st_size:
            os.write(self._descriptor, b"\n")  # ends an incomplete line

    def _lines(self) -> Iterator[tuple[str, int, int, list[int], bytes]]:
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            while line := file.readline(_LARGEST_LINE):
                if not line.strip():
                    continue
                check, _, text = line.rstrip(b"\n").partition(b" ")
                try:
                    is_own = hmac.compare_digest(check, self._check(text))
                    name, start, end, identity, digest = json.loads(text if is_own else b"")
                    yield str(name), int(start), int(end), list(identity), bytes.fromhex(digest)
                except (ValueError, TypeError):
                    self.damaged += 1

    def digest(self, item: Item, span: tuple[int, int]) -> bytes | None:
        """The digest of a range that is staged, of this same file; None where it is not."""
        return self._digests.get(_key(item.path, span, item.identity))

    def add(self, item: Item, span: tuple[int, int], digest: bytes) -> None:
        """Records a range that is staged and synchronised."""
        text = json.dumps([item.path, *span, list(item.identity), digest.hex()]).encode()
        line = b"%s %s\n" % (self._check(text), text)
        with self._lock:
            if self.remembers:
                self._digests[_key(item.path, span, item.identity)] = digest
            os.write(self._descriptor, line)

    def _check(self, text: bytes) -> bytes:
        return hmac.digest(self._secret, text, "sha256")[:16].hex().encode()

    def close(self) -> None:
        """Synchronises the journal and closes it."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)


def _key(path: str, span: tuple[int, int], identity: Sequence[int]) -> bytes:
    """16 bytes for a range of a file in one state."""
    return hashlib.blake2b(repr((path, *span, *identity)).encode(), digest_size=16).digest()


_BYTES = 32


def staging_key() -> bytes:
    """The key in `$XDG_STATE_HOME/hermetic`, made where it is missing; another one each time where none can be kept."""
    key = secrets.token_bytes(_BYTES)
    with suppress(OSError, RuntimeError, ValueError):
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hermetic"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _kept(folder / "staging.key", key)
    return key


def _kept(path: Path, key: bytes) -> bytes:
    """Raises OSError where it can neither be read nor written."""
    partial = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(8)}")
    if not path.exists():
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(key)
            with suppress(FileExistsError):
                os.link(partial, path)  # of two processes one is first, and both read its key
        finally:
            partial.unlink(missing_ok=True)
    content = path.read_bytes()
    return content if len(content) == _BYTES else key
