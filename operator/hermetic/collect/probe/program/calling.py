"""One attempt at one address: TCP, TLS, HTTP, a proxy, a datagram."""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl

from hermetic.collect.probe.program.racing import READ, WRITE, NothingCame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hermetic.collect.probe.program.racing import Steps

# linux/in.h: asks the kernel to say which ICMP message ended an attempt, and whose. Python names neither option.
TELL_V4, TELL_V6 = (socket.IPPROTO_IP, 11), (socket.IPPROTO_IPV6, 25)
# linux/errqueue.h: 16 bytes of sock_extended_err, then the socket address of who sent the message
ICMP_ORIGINS = (2, 3)
# Azure/WALinuxAgent, protocol/wire.py and protocol/hostplugin.py: what the machine's agent asks the host first
VERSIONS = {80: "/?comp=versions", 32526: "/versions"}
# An answer of a proxy may take as long as its own attempts at the far end.
PROXY_PATIENCE = 4
OFFENDERS = {TELL_V4: (socket.AF_INET, slice(20, 24)), TELL_V6: (socket.AF_INET6, slice(24, 40))}


def tcp(address: str, port: int, limit: float, further: Callable[[socket.socket], Steps] | None = None) -> Steps:
    """`o` for an established connection, or what `further` returns for it."""
    sock, code = towards(socket.SOCK_STREAM, address, port)
    with sock:
        own = sock.getsockname()[0]
        if code == errno.EINPROGRESS:
            yield sock, WRITE, limit
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == errno.ETIMEDOUT:
            return "t"
        if code:
            return refusal(sock, code, own)
        if further is None:
            return "o"
        try:
            return (yield from further(sock))
        except (OSError, NothingCame):
            return "o"


def tls(address: str, port: int, limit: float, name: str = "") -> Steps:
    """`s` for a server that answers a ClientHello with a handshake record, `l` for one that answers with an alert."""

    def further(sock: socket.socket) -> Steps:
        sock.send(client_hello(name))
        yield sock, READ, limit
        return {b"\x16": "s", b"\x15": "l"}.get(sock.recv(1), "o")

    return tcp(address, port, limit, further)


def client_hello(name: str) -> bytes:
    """The first bytes of a TLS client. The server's certificate is not verified: any answer is a finding."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name or None).do_handshake()
    return outgoing.read()


def http(address: str, port: int, limit: float) -> Steps:
    """`h` and the status with which HTTP is answered to a request for versions, which changes nothing."""

    def further(sock: socket.socket) -> Steps:
        path = VERSIONS.get(port, "/")
        sock.send(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        yield sock, READ, limit
        words = sock.recv(64).split(b" ")
        return f"h{int(words[1])}" if words[0].startswith(b"HTTP/") and words[1:] and words[1].isdigit() else "o"

    return tcp(address, port, limit, further)


def proxy(address: str, port: int, limit: float, request: str) -> Steps:
    """`p` and the status with which a proxy answers a request. It may answer late: after it has asked the far end."""

    def further(sock: socket.socket) -> Steps:
        sock.send(request.encode())
        yield sock, READ, limit * PROXY_PATIENCE
        words = sock.recv(64).split(b" ")
        return f"p{int(words[1])}" if words[0].startswith(b"HTTP/") and words[1:] and words[1].isdigit() else "o"

    return tcp(address, port, limit, further)


def connect_request(name: str) -> str:
    """The request for a tunnel to port 443 of a name (RFC 9110, 9.3.6)."""
    return f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n"


def forward_request(name: str) -> str:
    """The request that a proxy forwards without a tunnel (RFC 9112, 3.2.2)."""
    return f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"


def socks(address: str, port: int, limit: float, name: str) -> Steps:
    """A SOCKS5 request for port 443 of a name (RFC 1928), as the HTTP status that means the same.

    p200 for a connection, p407 where the proxy wants credentials, p403 for any refusal.
    """

    def further(sock: socket.socket) -> Steps:
        sock.send(b"\x05\x01\x00")
        yield sock, READ, limit
        method = sock.recv(2)
        if method == b"\x05\xff":
            return "p407"
        if method != b"\x05\x00":
            return "o"
        sock.send(b"\x05\x01\x00\x03" + bytes([len(name)]) + name.encode() + (443).to_bytes(2, "big"))
        yield sock, READ, limit * PROXY_PATIENCE
        reply = sock.recv(2)
        return "o" if reply[:1] != b"\x05" or len(reply) < 2 else "p403" if reply[1] else "p200"

    return tcp(address, port, limit, further)


def ask(address: str, port: int, payload: bytes, limit: float, read: Callable[[bytes], str]) -> Steps:
    """One datagram, sent again after half of the time limit; returns what `read` makes of the first answer."""
    sock, code = towards(socket.SOCK_DGRAM, address, port)
    with sock:
        own = sock.getsockname()[0]
        for _ in range(0 if code else 2):
            try:
                sock.send(payload)
                yield sock, READ, limit / 2
                return read(sock.recv(4096))
            except NothingCame:
                continue
            except OSError as error:
                code = error.errno or 0
                break
        return refusal(sock, code, own) if code else "t"


def towards(kind: int, address: str, port: int) -> tuple[socket.socket, int]:
    """A non-blocking socket that connects to an address, and the errno of `connect`."""
    v6 = ":" in address
    sock = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, kind | socket.SOCK_NONBLOCK)
    sock.setsockopt(*(TELL_V6 if v6 else TELL_V4), 1)
    return sock, sock.connect_ex((address, port))


def refusal(sock: socket.socket, code: int, own: str) -> str:
    """An errno, with the ICMP message that caused it, if any."""
    try:
        _, notes, _, _ = sock.recvmsg(512, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
    except OSError:
        return f"e{code}"
    for level, kind, note in notes:
        if (level, kind) in OFFENDERS and note[4] in ICMP_ORIGINS:
            family, place = OFFENDERS[level, kind]
            offender = socket.inet_ntop(family, note[place])
            return f"e{code}:{note[5]}.{note[6]}@{'=' if offender == own else offender}"
    return f"e{code}"


def is_address(text: str) -> bool:
    """Whether it is an IP address: resolving a name would block all other attempts."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, text)
        except OSError:
            continue
        return True
    return False
