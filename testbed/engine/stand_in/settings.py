"""The settings of the server, for any engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Tls:
    """PEM files as configured; `client_certificates` is the ssl module's verify mode (0, 1, 2)."""

    key: str
    certificate: str
    authorities: str | None = None
    client_certificates: int = 0


@dataclass(frozen=True)
class EngineSettings:
    """The settings of the engine itself."""

    max_model_len: int | None = None
    tensor_parallel_size: int = 1
    max_queued_requests: int | None = None
    max_running_requests: int | None = None
    trust_remote_code: bool = False
    reads_weights: bool = True


@dataclass(frozen=True)
class GroupSettings:
    """One member's part of an engine on several nodes.

    world_size: workers of all nodes. is_headless: vLLM's flag; SGLang needs none. uneven: what the engine says of a
    world that the nodes do not divide.
    """

    nodes: int
    rank: int
    address: str
    port: int
    world_size: int
    is_headless: bool
    uneven: str

    @property
    def local_world_size(self) -> int:
        """Workers of this node."""
        return self.world_size // self.nodes


@dataclass(frozen=True)
class Settings:
    """One start of the stand-in."""

    product: Literal["vLLM", "NIM", "SGLang"]
    engine_version: str
    argv: tuple[str, ...]
    model: str
    served_names: tuple[str, ...]
    host: str = ""
    port: int = 8000
    api_keys: tuple[str, ...] = ()
    open_paths: tuple[str, ...] | None = None
    """Beginnings of the paths that need no key, and no others; None for vLLM's rule."""
    admin_key: str = ""
    tls: Tls | None = None
    shutdown_timeout: float = 0.0
    keep_alive_comment_seconds: float = 0.0
    idle_connection_seconds: float = 5.0
    quiet_paths: frozenset[str] = frozenset()
    engine: EngineSettings = EngineSettings()
    group: GroupSettings | None = None
    line: str = ""
    parsed: Mapping[str, Any] = field(default_factory=dict)
