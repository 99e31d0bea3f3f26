# Runs an engine as a member of a group of pods: finds the head, adds rank and address to the command line, and answers
# the kubelet on the ranks above 0. Needs Python 3.8. Its text is a part of every pod template of a group and of an
# admission policy: a change of a letter restarts the groups.
from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import re
import resource
import signal
import ssl
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

RENDEZVOUS_PORT = 20000
"""Of SGLang; that of vLLM is an argument of the template."""
SECONDS_BETWEEN_TRIES = 1.0
SECONDS_OF_A_CONNECTION = 5.0
TRIES_WITHOUT_HEAD = 2
LONGEST_ADDRESS, LONGEST_REQUEST = 64, 4096
ADDRESS = re.compile(rb"[0-9a-fA-F.:]{2,45}\n?")
NO_POD = ("is_global", "is_loopback", "is_link_local", "is_multicast", "is_unspecified", "is_reserved")
"""Properties of addresses that no pod of a cluster has."""
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Member(NamedTuple):
    """This pod. `head`: the Service in front of rank 0. `tls`: the folder of tls.key and tls.crt, "" without TLS."""

    rank: int
    address: str
    head: str
    address_port: int
    endpoint_port: int
    health_path: str
    tls: str
    has_infiniband: bool


def member_of(environment: Mapping[str, str]) -> Member:
    return Member(
        rank=int(environment["HERMETIC_GROUP_RANK"]),
        address=str(ipaddress.ip_address(environment["HERMETIC_POD_ADDRESS"])),
        head=str(ipaddress.ip_address(environment["HERMETIC_HEAD_ADDRESS"])),
        address_port=int(environment["HERMETIC_ADDRESS_PORT"]),
        endpoint_port=int(environment["HERMETIC_ENDPOINT_PORT"]),
        health_path=environment["HERMETIC_HEALTH_PATH"],
        tls=environment.get("HERMETIC_ENDPOINT_TLS", ""),
        has_infiniband=environment.get("HERMETIC_INTERCONNECT") == "InfiniBand",
    )


def rank_flags(engine: str, rank: int, head: str) -> list[str]:
    """The flags that differ from pod to pod, behind all others: the parsers of both engines take the last of a flag."""
    if engine == "vllm":
        return ["--node-rank", str(rank), "--master-addr", head, *(["--headless"] if rank else [])]
    address = f"[{head}]" if ":" in head else head
    # SGLang's health server of such a rank knows no TLS: it is moved out of the way of the one below.
    loopback = ["--host", "127.0.0.1"] if rank else []
    return ["--node-rank", str(rank), "--dist-init-addr", f"{address}:{RENDEZVOUS_PORT}", *loopback]


def log(message: str) -> None:
    os.write(2, f"hermetic: {message}\n".encode())


def report_memory_lock() -> None:
    """Says where a limit may keep InfiniBand from its memory. It ends nothing, for what a driver locks differs."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit != resource.RLIM_INFINITY:
        log(f"error: RLIMIT_MEMLOCK is {limit} bytes, and InfiniBand locks the memory that it sends from")


# ---------------------------------------------------------------- the address of the head


def parse_head_address(answer: bytes, own: str) -> str:
    """The address in an answer. Raises ValueError for what cannot be the head of this group."""
    if not ADDRESS.fullmatch(answer):
        raise ValueError("it is no IP address")
    address = ipaddress.ip_address(answer.decode("ascii").strip())
    if address.version != ipaddress.ip_address(own).version or str(address) == own:
        raise ValueError(f"'{address}' is not the address of another pod")
    if any(getattr(address, name) for name in NO_POD) or getattr(address, "ipv4_mapped", None):
        raise ValueError(f"'{address}' is not a private address")
    return str(address)


async def read_answer(host: str, port: int) -> bytes:
    """The answer of an address port. Raises OSError, or asyncio.TimeoutError."""

    async def read() -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            answer = b""
            while len(answer) <= LONGEST_ADDRESS and (chunk := await reader.read(LONGEST_ADDRESS + 1)):
                answer += chunk
            return answer
        finally:
            writer.close()

    return await asyncio.wait_for(read(), SECONDS_OF_A_CONNECTION)


async def find_head(member: Member) -> str:
    logged = ""
    while True:
        try:
            return parse_head_address(await read_answer(member.head, member.address_port), member.address)
        except (asyncio.TimeoutError, OSError) as error:  # noqa: UP041 - a class of its own before Python 3.11
            problem = f"rank {member.rank} waits for the head at {member.head}: {error or 'no answer'}"
        except ValueError as error:
            problem = f"rank {member.rank} refuses the answer of {member.head}: {error}"
        if problem != logged:
            log(problem)
            logged = problem
        await asyncio.sleep(SECONDS_BETWEEN_TRIES)


async def wait_for_end_of_head(member: Member, head: str) -> None:
    """Waits as long as the head serves its address, for it drains with the help of this rank."""
    missed = 0
    while missed < TRIES_WITHOUT_HEAD:
        await asyncio.sleep(SECONDS_BETWEEN_TRIES)
        try:
            await read_answer(head, member.address_port)
            missed = 0
        except (asyncio.TimeoutError, OSError):  # noqa: UP041 - as above
            missed += 1


# ---------------------------------------------------------------- servers


def with_time_limit(
    answer: Callable[[StreamReader, StreamWriter], Awaitable[None]],
) -> Callable[[StreamReader, StreamWriter], Awaitable[None]]:
    """The same, within a limit of time for each connection, whatever its client does."""

    async def handle(reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            await asyncio.wait_for(answer(reader, writer), SECONDS_OF_A_CONNECTION)
        writer.transport.abort()

    return handle


async def send_answer(writer: StreamWriter, answer: bytes) -> None:
    writer.write(answer)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def serve_address(member: Member) -> None:
    async def answer(_: StreamReader, writer: StreamWriter) -> None:
        await send_answer(writer, member.address.encode("ascii") + b"\n")

    every_address = "::" if ":" in member.address else "0.0.0.0"
    await asyncio.start_server(with_time_limit(answer), every_address, member.address_port)


async def serve_health(member: Member) -> None:
    """Answers the probes of the kubelet. Only the head answers clients."""

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = request.split(b"\r\n")[0].split(b" ")
        is_probe = (method, path) == (b"GET", member.health_path.encode("ascii"))
        status = b"200 OK" if is_probe else b"404 Not Found"
        await send_answer(writer, b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    context, handshake = None, None
    if member.tls:
        context, handshake = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), SECONDS_OF_A_CONNECTION
        context.load_cert_chain(f"{member.tls}/tls.crt", f"{member.tls}/tls.key")
    await asyncio.start_server(
        with_time_limit(answer),
        member.address,
        member.endpoint_port,
        limit=LONGEST_REQUEST,
        ssl=context,
        ssl_handshake_timeout=handshake,
    )


# ---------------------------------------------------------------- the engine


async def forward_signals(
    member: Member, head: str, engine: asyncio.subprocess.Process, signals: asyncio.Queue[int], received: list[int]
) -> None:
    """Sends signals to the engine; to a rank above 0 the first SIGTERM once the head has ended, others at once."""
    waiting: set[asyncio.Task[None]] = set()

    def send_signal(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            engine.send_signal(number)

    async def send_after_head(number: int) -> None:
        await wait_for_end_of_head(member, head)
        send_signal(number)

    while True:
        number = await signals.get()
        received.append(number)
        if member.rank and number == signal.SIGTERM and not waiting:
            waiting.add(asyncio.ensure_future(send_after_head(number)))
        else:
            send_signal(number)


async def run(member: Member, command: list[str]) -> int:
    """Runs the engine; returns its exit code, or 128 and the number of the signal that ended it."""
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in PASSED_ON:
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    if member.rank == 0:
        await serve_address(member)
        head = member.address
    else:
        search, stop = asyncio.ensure_future(find_head(member)), asyncio.ensure_future(signals.get())
        await asyncio.wait({search, stop}, return_when=asyncio.FIRST_COMPLETED)
        if stop.done():
            return 128 + stop.result()
        stop.cancel()
        head = search.result()
        await serve_health(member)
    if member.has_infiniband:
        report_memory_lock()
    flags = rank_flags(os.path.basename(command[0]), member.rank, head)
    log(f"rank {member.rank} starts {' '.join(flags)}")
    engine = await asyncio.create_subprocess_exec(*command, *flags)
    received: list[int] = []
    forwarding = asyncio.ensure_future(forward_signals(member, head, engine, signals, received))
    code = await engine.wait()
    forwarding.cancel()
    if code == 0 and not received:
        # A headless vLLM whose workers died ends like this (`run_headless` in vllm/entrypoints/cli/serve.py of 0.33.0).
        log(f"error: the engine of rank {member.rank} ended, and nothing had asked it to")
        return 1
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(asyncio.run(run(member_of(os.environ), sys.argv[1:])))
