"""The key of this account that authenticates the journals of its stagings, which lie where others may write too."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

_BYTES = 32


def staging_key() -> bytes:
    """The key in `$XDG_STATE_HOME/hermetic`, made where it is missing; another one each time where none can be kept."""
    made = secrets.token_bytes(_BYTES)
    with suppress(OSError, RuntimeError, ValueError):
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hermetic"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _kept(folder / "staging.key", made)
    return made


def _kept(path: Path, made: bytes) -> bytes:
    """Raises OSError where it can neither be read nor written."""
    partial = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(8)}")
    if not path.exists():
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(made)
            with suppress(FileExistsError):
                os.link(partial, path)  # of two processes one is first, and both read its key
        finally:
            partial.unlink(missing_ok=True)
    content = path.read_bytes()
    return content if len(content) == _BYTES else made
