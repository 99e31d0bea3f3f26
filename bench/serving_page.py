"""The sections of the page about served models that change: requests lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench import results
from bench.tables import origin, table


def rolling_update_section() -> Iterator[str]:
    """Requests lost while pods are replaced."""
    result = results.load("rolling-update")
    if result is None:
        return
    yield "## Requests lost in a rolling update\n"
    yield "A served model on the real node under steady load, one run each.\n"
    yield table(
        ("", "goal", "sent", "lost"),
        [
            (label, goal, str(result["figures"][key]["sent"]), str(sum(result["figures"][key]["lost"].values())))
            for key, label, goal in (
                ("drained", "Hermetic's pods, a connection for each request", "0 of >= 4000"),
                ("drainedKeepAlive", "Hermetic's pods, connections kept alive", ""),
                ("control", "the same pods without the drain", "some"),
            )
        ],
    )
    yield (
        "A connection that is kept alive stays with its pod to the end: what is sent on it after the engine begins to"
        " stop is lost, as with vLLM itself. Clients that keep connections must repeat a request that got no answer or"
        " a 500.\n"
    )
    yield origin(result)


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
        yield (
            "\nThe trace with no time divided ran at idle priority on a machine with other work, whose load average "
            f"was between 5 and 29.\n\n{origin(in_real_time)}"
        )


def promotion_section() -> Iterator[str]:
    """Requests lost while the weights of a route move to a canary."""
    result = results.load("promotion")
    if result is None:
        return
    figures = result["figures"]
    promoted, control = figures["promoted"], figures["control"]
    rate, members = promoted["sent"] / figures["seconds"], promoted["answeredBy"]
    yield "## Requests lost in a promotion through one Gateway\n"
    yield (
        f"Two members of a group share a route of the real Envoy. {rate:.0f} requests a second come in for "
        f"{figures['seconds']:g} s, half of them streamed, while edits of the weights move 0, 10, 50 and 100 % to the "
        f"canary. It answered {members['canary']:,} of them, the stable member {members['stable']:,}.\n"
    )
    rows = [
        ("the promotion", "0 of >= 30,000", f"{promoted['sent']:,}", str(sum(promoted["lost"].values()))),
        ("a pod that is ended at once", "some", f"{control['sent']:,}", str(sum(control["lost"].values()))),
    ]
    yield table(("", "goal", "sent", "lost"), rows)
    yield origin(result)


def _load(report: dict[str, Any]) -> tuple[str, str, str]:
    return str(report["sent"]), str(sum(report["lost"].values())), f"{report['rolledInSeconds']:g}"
