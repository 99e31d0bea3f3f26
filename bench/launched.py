"""Run a command from a process that is small itself, and write down what it cost.

    python bench/launched.py FILE COMMAND...

Linux counts the memory of the process that starts a command towards the peak of the command. A bench that holds an
estate of 50,000 resources would find its own size in every figure.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

KIB = 1024


def main(arguments: list[str]) -> int:
    """The exit code of the command; FILE gets its processor time in seconds and its peak memory in MiB."""
    file, *command = arguments
    code = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = {"cpu_seconds": round(used.ru_utime + used.ru_stime, 2), "peak_rss": round(used.ru_maxrss / KIB, 1)}
    Path(file).write_text(json.dumps(cost))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
