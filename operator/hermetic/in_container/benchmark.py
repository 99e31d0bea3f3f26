# Runs the benchmark of an engine for a limited time, and writes its figures to /dev/termination-log as JSON:
# {"seconds": 41.5, "figures": {...}}, or {"seconds": 90.0, "error": "...", "log": "the end of its output"}.
# Only the named figures leave the result file: that of SGLang holds the settings of the server as well.
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

ROOM = 1200


def main(words: list[str], message: str = "/dev/termination-log") -> int:
    limit, result, names, command = float(words[0]), words[1], words[2].split(","), words[3:]
    began = time.monotonic()
    error, log = run(command, limit)
    answer: dict[str, object] = {"seconds": round(time.monotonic() - began, 1)}
    if not error:
        try:
            answer["figures"] = figures(result, names)
        except (OSError, ValueError, IndexError, AttributeError) as damage:
            error = f"the result file cannot be read: {damage}"
    if error:
        end = log[-ROOM:].decode("utf-8", "replace")
        # Escaped, control characters would take six bytes each, and the kubelet takes 4 KiB of the message.
        answer.update(error=error, log="".join(letter if letter.isprintable() else " " for letter in end))
    with open(message, "w", encoding="utf-8") as file:
        json.dump(answer, file, ensure_ascii=False)
    return 1 if error else 0


def run(command: list[str], limit: float) -> tuple[str, bytes]:
    output, expired = bytearray(), threading.Event()
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as missing:
        return f"the image cannot start '{command[0]}': {missing}", b""

    def stop() -> None:
        expired.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(limit, stop)
    timer.start()
    with process, process.stdout as stream:  # type: ignore[union-attr]
        for chunk in iter(lambda: os.read(stream.fileno(), 1 << 16), b""):
            os.write(1, chunk)
            output = (output + chunk)[-2 * ROOM :]
    timer.cancel()
    code = process.returncode
    if expired.is_set():
        return f"it did not finish within {limit:g} s", bytes(output)
    return (f"it ended with exit code {code}" if code else ""), bytes(output)


def figures(result: str, names: list[str]) -> dict[str, float]:
    with open(result, encoding="utf-8") as file:
        document = json.loads([line for line in file.read().splitlines() if line.strip()][-1])
    values = {name: document.get(name) for name in names}
    return {name: value for name, value in values.items() if type(value) in (int, float)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
