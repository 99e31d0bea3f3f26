"""One run of the engine: check, load, serve, drain, end. The main thread only waits for signals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import NAME
from .behaviour import Behaviour, read_behaviour
from .console import log
from .container_checks import check_shared_memory
from .engine import Engine, Phase
from .failures import ORDERED, StartFailure, plain
from .group import Group, check_group
from .member import run_member
from .metrics import Metrics
from .model_folder import read_model
from .openai_routes import OpenAi, guard_of
from .settings import Settings
from .signals import is_stopped, unless_stopped
from .web import Routes, Server

RoutesOf = Callable[[Settings, Engine, OpenAi], Routes]


@dataclass(frozen=True)
class EngineApi:
    """What distinguishes the API of one engine from another's.

    member_routes: what a member of a group above rank 0 answers, over HTTP without TLS; None where it has no server.
    """

    settings: Settings
    routes: RoutesOf
    metric_prefix: str
    live_while_loading: bool
    member_routes: Routes | None = None


def run_engine(api: EngineApi) -> int:
    """Runs until a stop signal; returns the exit code. Raises StartFailure, and KeyboardInterrupt while loading.

    The stop signals must be blocked already, so that every thread made here inherits the mask and only this one waits.
    """
    settings = api.settings
    log(f"{NAME}: {settings.product} {settings.line or settings.engine_version} in front of {settings.model}")
    behaviour = read_behaviour(Path(settings.model), settings.group.rank if settings.group else 0)
    group = None
    if settings.group is not None:
        check_group(settings.group)
        group = Group(settings.group, behaviour.join_seconds, behaviour.start_seconds)
    if group is not None and group.settings.rank > 0:
        return run_member(api.settings, api.member_routes, behaviour, group, lambda: load(settings, behaviour))
    metrics = Metrics(settings.served_names[0], api.metric_prefix)
    limits = settings.engine.max_queued_requests, settings.engine.max_running_requests
    engine = Engine(metrics, behaviour.seconds_per_token, *limits, group)
    context = read_model(settings)
    server = _bind(api, engine, context)
    if api.live_while_loading:
        server.open()
    if group is not None:
        unless_stopped(group.join)
    load(settings, behaviour)
    if group is not None:
        unless_stopped(group.load_together)
    engine.serve()
    if not api.live_while_loading:
        server.open()
    log(f"Starting {NAME} on port {server.server_port}")
    log("Application startup complete.")
    return _serve(settings, behaviour, engine, server, group)


def _bind(api: EngineApi, engine: Engine, context: int) -> Server:
    settings = api.settings
    routes = api.routes(settings, engine, OpenAi(settings, engine, context))
    try:
        return Server(settings, routes, guard_of(settings), engine.metrics)
    except OSError as error:  # a port in use, a certificate that is not there or not readable
        raise StartFailure(plain(f"{type(error).__name__}: {error}")) from error


def load(settings: Settings, behaviour: Behaviour) -> None:
    """Loads the weights, as ordered. Raises StartFailure, and KeyboardInterrupt where a stop signal comes."""
    check_shared_memory(settings)
    if behaviour.load_seconds:
        log(f"Loading weights takes {behaviour.load_seconds} s, as ordered")
        if is_stopped(behaviour.load_seconds):
            raise KeyboardInterrupt
    if behaviour.fail_with:
        if behaviour.fail_with not in ORDERED:
            raise ValueError(f"fail_with is one of {', '.join(sorted(ORDERED))}, not {behaviour.fail_with!r}")
        raise StartFailure(ORDERED[behaviour.fail_with])


def _serve(settings: Settings, behaviour: Behaviour, engine: Engine, server: Server, group: Group | None) -> int:
    if behaviour.die_after_seconds:
        timer = threading.Timer(behaviour.die_after_seconds, engine.die)
        timer.daemon = True
        timer.start()
    while not is_stopped(0.2):
        if engine.phase is Phase.DEAD:
            return _after_death(server)
    mode = "drain" if settings.shutdown_timeout else "abort"
    log(f"[shutdown] API server: stopping engine client mode={mode} timeout={settings.shutdown_timeout}s")
    finished = engine.stop(settings.shutdown_timeout)
    time.sleep(behaviour.hung_shutdown_seconds if group is not None and group.lost() else behaviour.teardown_seconds)
    log(f"[shutdown] API server: engine client stopped, {'nothing' if finished else 'requests'} aborted")
    server.close()
    return 0


def _after_death(server: Server) -> int:
    """vLLM's watchdog checks every 5 s: until then /health says 503."""
    log("EngineCore encountered an issue. See stack trace (above) for the root cause.", "ERROR")
    is_stopped(5)
    server.close()
    return 1
