"""Checks of what an engine needs of its container besides the model: writable caches, a user name, shared memory."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from .console import log
from .failures import StartFailure, cache_unwritable, plain, service_link, shm_too_small
from .settings import Settings
from .tables import Table

SHARED_MEMORY = Path("/dev/shm")
BROADCAST_QUEUE = 160 << 20
RESPONSE_QUEUE = 240 << 20
OWN_VARIABLE = "VLLM_STAND_IN_VERSION"


def check_environment(table: Table, *, strict: bool) -> None:
    """An unknown VLLM_ name is a warning, or fatal when asked for; a Service's VLLM_PORT is always fatal."""
    port = os.environ.get("VLLM_PORT", "0")
    if not port.isdigit():
        raise StartFailure(
            service_link(port)
            if urlsplit(port).scheme
            else plain(f"ValueError: VLLM_PORT '{port}' must be a valid integer")
        )
    for name in sorted(os.environ):
        if name.startswith("VLLM_") and name not in table.environment and name != OWN_VARIABLE:
            message = f"Unknown vLLM environment variable detected: {name}"
            if strict:
                raise StartFailure(plain(f"ValueError: {message}"))
            log(message, "WARNING")


def check_writable() -> None:
    """Writes where vLLM writes: the temporary folder first, then its compile cache."""
    try:
        with tempfile.NamedTemporaryFile(prefix="vllm_dist_"):
            pass
        getpass.getuser()
    except OSError as error:
        raise StartFailure(plain(f"{type(error).__name__}: {error}")) from error
    except KeyError as error:
        raise StartFailure(plain(f"KeyError: {error}")) from error
    write_below(_cache_root() / "torch_compile_cache")


def _cache_root() -> Path:
    # os.path leaves the ~ where a user has no home, as vLLM does; pathlib would raise.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(os.environ.get("VLLM_CACHE_ROOT") or Path(cache) / "vllm")


def write_below(folder: Path) -> None:
    """Makes the folder and a file in it. Raises StartFailure with the operating system's own words."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(folder)
        raise StartFailure(cache_unwritable(error)) from error


def check_shared_memory(settings: Settings, folder: Path = SHARED_MEMORY) -> None:
    """Workers talk through shared memory; one worker alone needs none, unless it is a member of a group.

    The executor of several nodes has the queues for one worker as well (vLLM: v1/executor/multiproc_executor.py).
    """
    workers = settings.group.local_world_size if settings.group else settings.engine.tensor_parallel_size
    if workers == 1 and settings.group is None:
        return
    needed = BROADCAST_QUEUE + RESPONSE_QUEUE * workers
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StartFailure(shm_too_small(needed, free))
    write_below(folder)
