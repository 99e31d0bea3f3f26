"""Simulated servers beyond the router: run as a program, in a namespace of its own.

    TCP 443     TLS with a certificate of no authority
    TCP 80      the instance metadata service, on 169.254.169.254; elsewhere a listener that says nothing
    TCP 3128    a proxy: its answer to CONNECT by its own address
    UDP 53      name servers: what they do by their own address
    UDP 123     answers every datagram, as the ports of "datagramPorts" do

Its first argument is a JSON object: {"certificate": FILE, "key": FILE, "dns": {ADDRESS: BEHAVIOUR}, "imds": {PATH:
[STATUS, BODY]}, "proxies": {ADDRESS: STATUS}, "datagramPorts": [PORT]}. It prints a line when it listens. A BEHAVIOUR
is one of the functions below; an address without one recurses, as a resolver on the internet does.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import sys
from collections.abc import Callable
from functools import partial

IP_PKTINFO, IPV6_RECVPKTINFO, IPV6_PKTINFO = 8, 49, 50
PUBLIC = {
    "login.microsoftonline.com": "198.51.100.20",
    "management.azure.com": "198.51.100.21",
    "mcr.microsoft.com": "198.51.100.22",
    "stranger.blob.core.windows.net": "198.51.100.30",
}
CLUSTER = {"kubernetes.default.svc.cluster.local": "10.96.0.1", "ours.blob.core.windows.net": "10.13.5.5"}


def a_record(address: str) -> bytes:
    return b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(address)


def soa_record(zone: str) -> bytes:
    content = b"\x02ns\x00\x02hm\x00" + struct.pack("!IIIII", 1, 2, 3, 4, 60)
    return encoded(zone) + struct.pack("!HHIH", 6, 1, 60, len(content)) + content


def encoded(name: str) -> bytes:
    labels = [label for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def response(query: bytes, code: int, answers: list[bytes] = [], authority: list[bytes] = []) -> bytes:  # noqa: B006
    head = query[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(answers), len(authority), 0)
    return head + query[12:] + b"".join(answers) + b"".join(authority)


def recurses(query: bytes, name: str) -> bytes:
    if name in PUBLIC:
        return response(query, 0, [a_record(PUBLIC[name])])
    return response(query, 3, authority=[soa_record("example.com")])


def knows_the_cluster(query: bytes, name: str) -> bytes:
    """A cluster's resolver without any upstream that answers."""
    return response(query, 0, [a_record(CLUSTER[name])]) if name in CLUSTER else response(query, 2)


def knows_everything(query: bytes, name: str) -> bytes:
    """A cluster's resolver that hands on what it does not know."""
    return response(query, 0, [a_record(CLUSTER[name])]) if name in CLUSTER else recurses(query, name)


def refuses(query: bytes, _name: str) -> bytes:
    return response(query, 5)


def denies(query: bytes, _name: str) -> bytes:
    return response(query, 3)


def denies_as_the_root(query: bytes, _name: str) -> bytes:
    return response(query, 3, authority=[soa_record("")])


def says_nothing_at_all(query: bytes, _name: str) -> bytes:
    return response(query, 0)


def answers_everything(query: bytes, _name: str) -> bytes:
    return response(query, 0, [a_record("198.51.100.99")])


def sinks_everything(query: bytes, _name: str) -> bytes:
    return response(query, 0, [a_record("10.0.0.1")])


def garbles(_query: bytes, _name: str) -> bytes:
    return b"\xff" * 40


def answers_another_question(query: bytes, name: str) -> bytes:
    return bytes([query[0] ^ 1]) + recurses(query, name)[1:]


def points_at_itself(query: bytes, _name: str) -> bytes:
    return query[:2] + struct.pack("!HHHHH", 0x8180, 0, 1, 0, 0) + b"\xc0\x0c"


def name_of(query: bytes) -> str:
    labels, at = [], 12
    while size := query[at]:
        labels.append(query[at + 1 : at + 1 + size].decode())
        at += 1 + size
    return ".".join(labels)


def datagrams(family: int, port: int) -> socket.socket:
    """A socket on every address that is told at which of them a datagram came, to answer from there."""
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    sock.bind(("", port))
    sock.setblocking(False)
    return sock


def answer_one(sock: socket.socket, answer: Callable[[str, bytes], bytes]) -> None:
    data, (note,), _, sender = sock.recvmsg(2048, 256)
    level, kind, info = note
    if kind == IPV6_PKTINFO:
        here, info = socket.inet_ntop(socket.AF_INET6, info[:16]), info[:16] + bytes(4)
    else:
        here, info = socket.inet_ntoa(info[8:12]), bytes(4) + info[8:12] * 2
    if answers := answer(here, data):
        sock.sendmsg([answers], [(level, kind, info)], 0, sender)


def name_server(behaviours: dict[str, str], here: str, query: bytes) -> bytes:
    behaviour: Callable[[bytes, str], bytes] = globals()[behaviours.get(here, "recurses")]
    return behaviour(query, name_of(query))


async def metadata(documents: dict, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = await reader.readuntil(b"\r\n\r\n")
    if writer.get_extra_info("sockname")[0] == "169.254.169.254" and b"\r\nMetadata: true\r\n" in request:
        path = request.split(b" ")[1].decode().partition("?")[0]
        status, body = documents.get(path, [404, {"error": "Not found"}])
        text = body if isinstance(body, str) else json.dumps(body)
        head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        writer.write((head + text).encode())
        await writer.drain()
    writer.close()


async def pass_on(statuses: dict[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 %d Said\r\n\r\n" % statuses.get(writer.get_extra_info("sockname")[0], 403))
    await writer.drain()
    writer.close()


async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def main(wanted: dict) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # callers hang up at any time
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(wanted["certificate"], wanted["key"])
    servers = [
        await asyncio.start_server(hang_up, None, 443, ssl=context, backlog=1024),
        await asyncio.start_server(partial(metadata, wanted.get("imds", {})), "0.0.0.0", 80),
        await asyncio.start_server(partial(pass_on, wanted.get("proxies", {})), "0.0.0.0", 3128),
    ]
    for family in (socket.AF_INET, socket.AF_INET6):
        answers: dict[int, Callable[[str, bytes], bytes]] = {
            port: lambda _here, data: data for port in (123, *wanted.get("datagramPorts", ()))
        }
        for port, answer in {**answers, 53: partial(name_server, wanted.get("dns", {}))}.items():
            sock = datagrams(family, port)
            loop.add_reader(sock, answer_one, sock, answer)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
