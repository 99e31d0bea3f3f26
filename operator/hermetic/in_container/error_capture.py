# Runs the engine, passes its output on, and at a failed end writes its first errors to /dev/termination-log.
# A worker of vLLM prints 10 KiB after the cause; of a log the kubelet keeps the last 2 KiB.
from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading

KEPT = 1 << 19
ROOM = 2000
PREFIX = re.compile(r"^\([^()]*\) ?(?:[A-Z]+ [-0-9]+ [:0-9]+ \[[^\]]*\] ?)?")
ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)\b|[\w./ -]+: error: |Fatal Python error")


def errors(output: bytes) -> str:
    found: dict[str, None] = {}
    lines = [PREFIX.sub("", line).rstrip() for line in output.decode("utf-8", "replace").splitlines()]
    for at, line in enumerate(lines):
        if ERROR.match(line):
            more = lines[at + 1 : at + 3] if "validation error" in line else []
            found[" ".join([line, *map(str.strip, more)])[:300]] = None
    every = list(found)
    return "\n".join(every if len(every) < 9 else every[:4] + every[-4:])


def last_words(output: bytes) -> bytes:
    first = errors(output).encode()[:ROOM]
    end = output[-ROOM:].partition(b"\n")[2] if len(output) > ROOM else output
    return b"\n".join([first, b"--- end of the log:", end]) if first else end


def main(command: list[str], words: str = "/dev/termination-log") -> int:
    asked: list[int] = []
    running: list[subprocess.Popen[bytes]] = []
    kept = bytearray()

    def pass_on(number: int, _: object) -> None:
        running[0].send_signal(number) if running else asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, pass_on)
    read, write = os.pipe()
    running.append(subprocess.Popen(command, stdout=write, stderr=write))
    os.close(write)
    for early in asked:
        running[0].send_signal(early)

    def copy() -> None:
        for chunk in iter(lambda: os.read(read, 1 << 16), b""):
            kept.extend(chunk)
            del kept[: -KEPT if len(kept) > 2 * KEPT else 0]
            with contextlib.suppress(OSError):
                rest = chunk
                while rest:
                    rest = rest[os.write(1, rest) :]

    reader = threading.Thread(target=copy, daemon=True)
    reader.start()
    code = running[0].wait()
    # A worker that outlives the engine may hold the pipe open.
    reader.join(5)
    if code:
        with contextlib.suppress(OSError), open(words, "wb") as file:
            file.write(last_words(bytes(kept)))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
