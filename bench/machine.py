"""What a figure was measured on, and what a process costs it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("hermetic", "kopf", "kubernetes", "pydantic", "aiohttp")
MIB = 1024.0
TICKS = os.sysconf("SC_CLK_TCK")


def facts(kubernetes_version: str) -> dict[str, Any]:
    """Cores, memory, kernel and versions; nothing that names the machine."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memoryGiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3, 1),
        "kernel": platform.release().split("-", 1)[0],
        "python": platform.python_version(),
        "kubernetes": kubernetes_version,
        "packages": {name: version(name) for name in PACKAGES},
    }


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one process so far: processor seconds, resident memory now and at its highest, MiB."""

    cpu_seconds: float
    rss: float
    peak_rss: float


def usage(pid: int) -> Usage:
    """What the kernel says of a live process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return Usage(
        cpu_seconds=(int(times[11]) + int(times[12])) / TICKS,
        rss=int(status["VmRSS"].split()[0]) / MIB,
        peak_rss=int(status["VmHWM"].split()[0]) / MIB,
    )


def load_average() -> float:
    """Of the last minute: what else the machine was doing."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
