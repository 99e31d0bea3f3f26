"""The sections of the page about served models that change: adapters, and the number of replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench import results
from bench.tables import origin, table


def adapters_section() -> Iterator[str]:
    """Requests lost while adapters come and go."""
    result = results.load("adapters")
    if result is None:
        return
    yield "## Requests lost while adapters are added and removed\n"
    yield (
        "Two replicas on the real node under steady load, a connection for each request. The model is asked while two "
        "adapters are added, then an adapter that stays while the other one is removed.\n"
    )
    figures = result["figures"]
    rows = [("two adapters are added", *_load(figures["added"])), ("one is removed", *_load(figures["removed"]))]
    sent, lost = (sum(int(row[column]) for row in rows) for column in (1, 2))
    rows.append(("both (goal: 0 of >= 10,000)", str(sent), str(lost), ""))
    yield table(("", "sent", "lost", "seconds of the update"), rows)
    yield origin(result)


def autoscaling_section() -> Iterator[str]:
    """Changes of direction over a trace, and requests lost on the way down."""
    result = results.load("autoscaling")
    if result is None:
        return
    figures = result["figures"]
    yield "## Autoscaling over a trace\n"
    yield (
        f"{figures['traceMinutes']} minutes with two peaks and a lull between them, then quiet, with the real "
        "HorizontalPodAutoscaler controller, the operator, and nodes that kwok simulates. The queue is computed from "
        f"the trace and the number of pods. All times are divided by {figures['clock']}: the trace, the period of the "
        "controller, and the windows of the autoscaler; minutes are those of the trace. A reversal is growth after "
        "the number of replicas had fallen.\n"
    )
    in_real_time = results.load("autoscaling-real-time")
    runs = [
        ("Hermetic (goal: <= 1 reversal)", figures["ours"]),
        *([("Hermetic, no time divided", in_real_time["figures"]["ours"])] if in_real_time else []),
        ("with the default behaviour of Kubernetes", figures["default"]),
    ]
    rows = [
        (label, str(run["most"]), str(run["least"]), str(run["reversals"]), f"{run['minutes']:g}")
        for label, run in runs
    ]
    yield table(("", "most replicas", "at the end", "reversals", "minutes until then"), rows)
    sent, lost, seconds = _load(figures["down"])
    yield (
        f"\nOn the way down, in real time on the real node: {lost} of {sent} requests were lost while a model went "
        f"from three replicas to one in {seconds} s (goal: 0).\n"
    )
    yield origin(result)
    if in_real_time:
        yield f"\nWith no time divided: {origin(in_real_time)}"


def _load(report: dict[str, Any]) -> tuple[str, str, str]:
    return str(report["sent"]), str(sum(report["lost"].values())), f"{report['rolledInSeconds']:g}"
