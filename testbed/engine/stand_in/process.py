"""One life of the engine: check, load, serve, drain, leave. The main thread only waits for signals."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import NAME
from .console import log
from .engine import Engine, Phase
from .failures import ORDERED, StartFailure, plain
from .metrics import Metrics
from .model_folder import read_model
from .openai_routes import OpenAi, guard_of
from .orders import Orders, read_orders
from .settings import Settings
from .surroundings import check_shared_memory
from .web import Routes, Server

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
RoutesOf = Callable[[Settings, Engine, OpenAi], Routes]


@dataclass(frozen=True)
class Life:
    """What distinguishes one face's life from the other's."""

    settings: Settings
    routes: RoutesOf
    metric_prefix: str
    live_while_loading: bool


def live(life: Life) -> int:
    """Runs until told to stop; gives the exit code. Raises StartFailure, and KeyboardInterrupt while loading.

    The stop signals must be blocked already, so that every thread made here inherits the mask and only this one waits.
    """
    settings = life.settings
    log(f"{NAME}: {settings.face} {settings.line or settings.engine_version} in front of {settings.model}")
    orders = read_orders(Path(settings.model))
    metrics = Metrics(settings.served_names[0], life.metric_prefix)
    engine = Engine(metrics, orders.seconds_per_token, settings.engine.max_queued_requests)
    context = read_model(settings)
    server = _bind(life, engine, context)
    if life.live_while_loading:
        server.open()
    _load(settings, orders)
    engine.serve()
    if not life.live_while_loading:
        server.open()
    log(f"Starting {NAME} on port {server.server_port}")
    log("Application startup complete.")
    return _serve(settings, orders, engine, server)


def _bind(life: Life, engine: Engine, context: int) -> Server:
    settings = life.settings
    routes = life.routes(settings, engine, OpenAi(settings, engine, context))
    try:
        return Server(settings, routes, guard_of(settings), engine.metrics)
    except OSError as error:  # a port in use, a certificate that is not there or not readable
        raise StartFailure(plain(f"{type(error).__name__}: {error}")) from error


def _load(settings: Settings, orders: Orders) -> None:
    check_shared_memory(settings)
    if orders.load_seconds:
        log(f"Loading weights takes {orders.load_seconds} s, as ordered")
        if signal.sigtimedwait(STOP_SIGNALS, orders.load_seconds) is not None:
            raise KeyboardInterrupt
    if orders.fail_with:
        if orders.fail_with not in ORDERED:
            raise ValueError(f"fail_with is one of {', '.join(sorted(ORDERED))}, not {orders.fail_with!r}")
        raise StartFailure(ORDERED[orders.fail_with])


def _serve(settings: Settings, orders: Orders, engine: Engine, server: Server) -> int:
    if orders.die_after_seconds:
        timer = threading.Timer(orders.die_after_seconds, engine.die)
        timer.daemon = True
        timer.start()
    while signal.sigtimedwait(STOP_SIGNALS, 0.2) is None:
        if engine.phase is Phase.DEAD:
            return _after_death(server)
    mode = "drain" if settings.shutdown_timeout else "abort"
    log(f"[shutdown] API server: stopping engine client mode={mode} timeout={settings.shutdown_timeout}s")
    finished = engine.stop(settings.shutdown_timeout)
    time.sleep(orders.teardown_seconds)
    log(f"[shutdown] API server: engine client stopped, {'nothing' if finished else 'requests'} aborted")
    server.close()
    return 0


def _after_death(server: Server) -> int:
    """vLLM's watchdog looks every 5 s: until then /health says 503."""
    log("EngineCore encountered an issue. See stack trace (above) for the root cause.", "ERROR")
    signal.sigtimedwait(STOP_SIGNALS, 5)
    server.close()
    return 1
