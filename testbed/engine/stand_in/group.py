"""The members of an engine on several nodes: how they meet, load together, and what happens when a member dies.

They meet as in vLLM 0.33.0 (engine/arg_utils.py, v1/executor/multiproc_executor.py, entrypoints/cli/serve.py) and
SGLang 0.5.23 (srt/entrypoints/engine.py, srt/server_args.py): rank 0 listens on the master port, where every member,
rank 0 included, gives its rank, the size of the group, and the address of a port that the kernel chose. When all ranks
are there, each connects to the port of every other, as gloo, NCCL and ZeroMQ do. Members that state another size are
left waiting.

Then the worst of what is reported holds:
- A member whose head has died neither exits nor joins again (vLLM issue 32136, LLMKube pull request 1782).
- A head whose member has died answers /health and /v1/models as before (vLLM issues 11996 and 53157, KServe issue 3845,
  SGLang issue 3099). A request for tokens waits for ever. vLLM itself gives up on it after five minutes.
- Where a member dies while the group loads, the others wait for ever.
- A member that comes back finds a store that answers nobody, and gives up when its time to join is over.
- What hangs needs nine seconds to end after SIGTERM (multiproc_executor.py, `_ensure_worker_termination`).
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from .console import log
from .failures import StartFailure, plain
from .settings import GroupSettings

RETRY_SECONDS = 0.2
LOADED, SERVING, STEP = b"L", b"S", b"."
STORE_GONE = (
    "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote "
    "server shutdown or crash?"
)


def check_group(group: GroupSettings) -> None:
    """Raises StartFailure for sizes, ranks, devices and interfaces with which no member could join."""
    if group.world_size % group.nodes:
        raise StartFailure(plain(group.uneven))
    if not 0 <= group.rank < group.nodes:
        raise StartFailure(
            plain(
                f"ValueError: Invalid data-parallel launch options: `--node-rank` must be between 0 and "
                f"{group.nodes - 1}; got `--node-rank {group.rank}`. Set it to this node's zero-based index."
            )
        )
    devices = [name for name in os.environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if name.startswith("GPU-")]
    if devices and group.local_world_size > len(devices):
        raise StartFailure(plain("torch.AcceleratorError: CUDA error: invalid device ordinal"))
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "")
    if interface and interface not in {name for _, name in socket.if_nameindex()}:
        raise StartFailure(plain(f"RuntimeError: Unable to find address for: {interface}"))


class Group:
    """This member's connections to the others. `join` comes first, then `load_together`."""

    def __init__(self, settings: GroupSettings, join_seconds: float, start_seconds: float) -> None:
        self.settings = settings
        self._start_seconds = start_seconds
        self._seconds = join_seconds
        self._deadline = time.monotonic() + start_seconds + join_seconds
        self._peers: dict[int, socket.socket] = {}
        self._store_connection: socket.socket | None = None
        self._stepping = threading.Lock()

    # ------------------------------------------------------------------ meeting

    def join(self) -> None:
        """Returns when every member is connected to every other. Raises StartFailure when the time is over."""
        settings = self.settings
        time.sleep(self._start_seconds)
        store = _Store(settings) if settings.rank == 0 else None
        log(f"rank {settings.rank} of {settings.nodes}: waiting for members at {settings.address}:{settings.port}")
        with socket.create_server(("", 0), backlog=settings.nodes) as listener:
            addresses = self._introduce(listener.getsockname()[1], store)
            for rank in range(settings.rank + 1, settings.nodes):
                self._peers[rank] = self._connected(addresses[rank])
            for _ in range(settings.rank):
                rank, connection = self._accepted(listener)
                self._peers[rank] = connection
        log(f"rank {settings.rank} of {settings.nodes}: Init COMPLETE")

    def _introduce(self, port: int, store: _Store | None) -> dict[int, tuple[str, int]]:
        """Gives the store this member's address, and waits for those of all."""
        settings = self.settings
        connection = self._store_connection = self._master()
        own = connection.getsockname()[0]
        hello = {"rank": settings.rank, "world": settings.world_size, "nodes": settings.nodes, "address": [own, port]}
        connection.settimeout(max(0.01, self._deadline - time.monotonic()))
        try:
            connection.sendall(json.dumps(hello).encode() + b"\n")
            answer = _line(connection)
        except OSError as error:
            raise StartFailure(plain(self._nobody(store))) from error
        if not answer:
            raise StartFailure(plain(STORE_GONE))
        return {int(rank): (host, number) for rank, (host, number) in answer.items()}

    def _nobody(self, store: _Store | None) -> str:
        seconds = f"{self._seconds:.0f}"
        if store is None:
            return f"torch.distributed.DistStoreError: wait timeout after {seconds}000ms, keys: /init/"
        joined = f"{len(store.joined)}/{self.settings.nodes} clients joined"
        return f"torch.distributed.DistStoreError: Timed out after {seconds} seconds waiting for clients. {joined}."

    def _master(self) -> socket.socket:
        settings = self.settings
        where = f"({settings.address}, {settings.port})"
        message = (
            "torch.distributed.DistNetworkError: The client socket has timed out after "
            f"{self._seconds:.0f}000ms while trying to connect to {where}."
        )
        return self._connection((settings.address, settings.port), message)

    def _connected(self, address: tuple[str, int]) -> socket.socket:
        message = (
            "RuntimeError: Gloo connectFullMesh failed with timed out connecting: SO_ERROR: Connection timed out, "
            f"remote=[{address[0]}]:{address[1]}"
        )
        connection = self._connection(address, message)
        connection.sendall(json.dumps({"rank": self.settings.rank}).encode() + b"\n")
        return connection

    def _connection(self, address: tuple[str, int], message: str) -> socket.socket:
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise StartFailure(plain(message))
            try:
                connection = socket.create_connection(address, timeout=min(5.0, left))
            except OSError:
                time.sleep(min(RETRY_SECONDS, max(0.0, left)))
            else:
                connection.settimeout(None)
                return connection

    def _accepted(self, listener: socket.socket) -> tuple[int, socket.socket]:
        listener.settimeout(max(0.01, self._deadline - time.monotonic()))
        try:
            connection, _ = listener.accept()
            connection.settimeout(None)
            return int(_line(connection)["rank"]), connection
        except (OSError, KeyError) as error:
            message = "RuntimeError: Gloo connectFullMesh failed with timed out waiting for a connection"
            raise StartFailure(plain(message)) from error

    # ------------------------------------------------------------------ loading and serving

    def load_together(self) -> None:
        """Returns when every member has loaded; for ever where one of them dies before."""
        if self.settings.rank == 0:
            for rank, peer in sorted(self._peers.items()):
                self._receive(rank, peer, LOADED)
            for peer in self._peers.values():
                with suppress(OSError):  # it is noticed with the first step
                    peer.sendall(SERVING)
            return
        head = self._peers[0]
        with suppress(OSError):
            head.sendall(LOADED)
        self._receive(0, head, SERVING)

    def _receive(self, rank: int, peer: socket.socket, expected: bytes) -> None:
        try:
            received = peer.recv(1)
        except OSError:
            received = b""
        if received != expected:
            self.wait_for_ever(rank)

    def follow(self) -> None:
        """A member's part in every step of the head, until the head is gone; then it hangs."""
        head = self._peers[0]
        with suppress(OSError):
            while head.recv(1) == STEP:
                head.sendall(STEP)
        self.wait_for_ever(0)

    def step(self) -> bool:
        """The head's step with all members; False where one of them is gone. Waits for one that does not answer."""
        with self._stepping:
            for peer in self._peers.values():
                try:
                    peer.sendall(STEP)
                    answer = peer.recv(1)
                except OSError:
                    return False
                if answer != STEP:
                    return False
            return True

    def lost(self) -> list[int]:
        """Ranks whose connection has ended."""
        return [rank for rank, peer in sorted(self._peers.items()) if _has_ended(peer)]

    def wait_for_ever(self, rank: int) -> None:
        """What c10d prints once a second when a peer has gone, and nothing else happens."""
        while True:
            log(
                f"[rank{self.settings.rank}] [c10d] recvValue failed: Failed to recv, got 0 bytes. Connection was "
                f"likely closed. Did the remote server shutdown or crash? (node rank {rank})",
                "ERROR",
            )
            time.sleep(1.0)


class _Store:
    """Rank 0's side of the master port: it collects the members, tells each where the others are, and then is mute."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.joined: dict[int, tuple[socket.socket, list[Any]]] = {}
        self._connections: list[socket.socket] = []
        self._joining = threading.Lock()
        try:
            self._listener = socket.create_server(("", settings.port), backlog=128)
        except OSError as error:
            raise StartFailure(
                plain(
                    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
                    f"address. port: {settings.port}, code: -{error.errno}, message: {error.strerror}"
                )
            ) from error
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._take, args=(connection,), daemon=True).start()

    def _take(self, connection: socket.socket) -> None:
        settings, hello = self._settings, _line(connection)
        is_ours = hello.get("world") == settings.world_size and hello.get("nodes") == settings.nodes
        with self._joining:
            self._connections.append(connection)  # never closed: one that is not answered stays open
            rank = int(hello.get("rank", -1))
            if not is_ours or rank in self.joined or len(self.joined) == settings.nodes:
                return
            self.joined[rank] = (connection, hello["address"])
            if len(self.joined) < settings.nodes:
                return
            addresses = {member: address for member, (_, address) in self.joined.items()}
            for member, _ in self.joined.values():
                with suppress(OSError):
                    member.sendall(json.dumps(addresses).encode() + b"\n")


def _line(connection: socket.socket) -> dict[str, Any]:
    """One JSON object, and no byte beyond its line; {} where the other side sends none."""
    received = b""
    while not received.endswith(b"\n"):
        part = connection.recv(1)
        if not part:
            return {}
        received += part
    with suppress(ValueError):
        document: dict[str, Any] = json.loads(received)
        return document
    return {}


def _has_ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
