"""`python -m testbed azure`: the stand-in as a process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Callable

from testbed.azure.baseline import LAYOUTS, estate_of
from testbed.azure.estate import Estate
from testbed.azure.large_estate import large_estate
from testbed.azure.plants import PLANTS
from testbed.azure.quota import Quota
from testbed.azure.reference_estate import reference_estate
from testbed.azure.server import ArmStandIn
from testbed.console import say
from testbed.errors import BedError

ESTATES: dict[str, Callable[[], Estate]] = {
    "reference": reference_estate,
    "crowded": large_estate,
    **{name: lambda name=name: estate_of(name) for name in LAYOUTS},  # type: ignore[misc]
}


def main(arguments: list[str]) -> int:
    """First line of stdout: {"url", "token", "cluster"}. Returns 0 after SIGTERM or Ctrl-C."""
    options = _options(arguments)
    estate = large_estate(options.resources) if options.resources else ESTATES[options.estate]()
    for name in options.plant:
        _plant(estate, name)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    quota = Quota() if options.quota else None
    latency = options.latency_ms / 1000
    standing = ArmStandIn(estate, port=options.port, page_size=options.page_size, latency=latency, quota=quota)
    with standing as arm:
        say("azure: a stand-in for Azure at its HTTP boundary; what it serves exists nowhere")
        print(json.dumps({"url": arm.url, "token": arm.token, "cluster": estate.cluster}), flush=True)
        ended.wait()
        say(f"azure: {len(arm.requests)} requests, {len(arm.forbidden_requests)} of them forbidden")
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed azure", description=__doc__)
    parser.add_argument("--estate", choices=sorted(ESTATES), default="sealed")
    parser.add_argument("--resources", type=int, default=0, help="the sealed estate among so many resources")
    parser.add_argument("--plant", action="append", default=[], metavar="NAME", help="open a path; may be repeated")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--page-size", type=int, default=100)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--quota", action="store_true", help="refuse beyond ARM's documented quota")
    return parser.parse_args(arguments)


def _plant(estate: Estate, name: str) -> None:
    plant = PLANTS.get(name)
    if plant is None or not plant.fits(estate):
        fitting = ", ".join(sorted(name for name, plant in PLANTS.items() if plant.fits(estate)))
        raise BedError(f"this estate takes no plant {name!r}; it takes: {fitting}")
    for expected in plant.into(estate):
        say(f"azure: planted {name}: {expected.check} on {expected.resource}")
