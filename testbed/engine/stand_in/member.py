"""A member of a group above rank 0: it joins, loads, and takes part in the steps of the head; it serves no clients."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from . import NAME
from .behaviour import Behaviour
from .console import log
from .failures import Failure, StartFailure, plain
from .group import Group
from .metrics import Metrics
from .model_folder import read_model
from .settings import Settings
from .signals import unless_stopped
from .web import Routes, Server


def run_member(
    settings: Settings, routes: Routes | None, behaviour: Behaviour, group: Group, load: Callable[[], None]
) -> int:
    """Runs until a stop signal, which ends it with 0 in every phase. Raises StartFailure."""
    member = group.settings
    try:
        read_model(settings)
        if member.is_headless and routes is None:
            log(
                f"Launching vLLM (v{settings.engine_version}) headless multiproc executor, with head node address "
                f"{member.address}:{member.port} for torch.distributed process group."
            )
        unless_stopped(group.join)
        load()
        if not member.is_headless:  # vLLM pull request 36875
            raise StartFailure(
                Failure("AssertionError: collective_rpc should not be called on follower node", in_core=True)
            )
        unless_stopped(group.load_together)
        if routes is not None:
            _open(settings, routes)
        log(f"rank {member.rank} of {member.nodes}: loaded, and follows the head")
        unless_stopped(group.follow)
    except KeyboardInterrupt:
        if group.lost():
            log("[shutdown] Executor: workers still running after grace period; sending SIGTERM", "WARNING")
            time.sleep(behaviour.hung_shutdown_seconds)
    return 0


def _open(settings: Settings, routes: Routes) -> None:
    """SGLang's server of a member has neither TLS nor a key, whatever the flags say."""
    try:
        server = Server(replace(settings, tls=None), routes, None, Metrics(settings.served_names[0], ""))
    except OSError as error:
        raise StartFailure(plain(f"{type(error).__name__}: {error}")) from error
    server.open()
    log(f"{NAME}: health checks on port {server.server_port}")
