"""The sections of docs/figures.md about audits: one among many resources, and one of many clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench import results
from bench.tables import origin, table
from testbed.azure.quota import Quota

SEVERAL_ROWS: tuple[tuple[str, str, Callable[[dict[str, Any]], float], str], ...] = (
    ("resources", "", lambda figures: figures["resources"], ","),
    ("seconds", "", lambda figures: figures["seconds"], "g"),
    ("seconds that the quota demands", "", lambda figures: figures["quota_bound_seconds"], "g"),
    ("reads", "", lambda figures: figures["by_sort"].get("reads", 0), ","),
    ("actions", "", lambda figures: figures["by_sort"].get("actions", 0), ","),
    ("queries of Resource Graph", "", lambda figures: figures["by_sort"].get("graph", 0), ","),
    ("answers 429", "0", lambda figures: figures["refused_429"], ","),
    ("processor seconds", "", lambda figures: figures["cpu_seconds"], "g"),
    ("peak memory (MiB)", "<= 250", lambda figures: figures["peak_rss"], "g"),
)


def audit_section() -> Iterator[str]:
    """The section of one audit among many resources; nothing where it was not measured."""
    result = results.load("audit")
    if result is None:
        return
    figures = result["figures"]
    large, small, peer, evaluation = (figures[name] for name in ("large", "small", "peer", "evaluation"))
    yield "## One audit among many resources\n"
    yield (
        "`hermetic audit` as a process, from start to exit, against the stand-in for Azure with ARM's token buckets, "
        "Resource Graph's window and 30 ms for every answer. The bound is the time before which the quota would not "
        "have admitted the last of the same requests; it knows no latency. The peer, a loop as the SDK teaches it, "
        "reads every resource by itself, one after the other, and evaluates nothing.\n"
    )
    rows = [
        ("resources", "", f"{large['resources']:,}", f"{small['resources']:,}", f"{small['resources']:,}"),
        ("seconds", "", f"{large['seconds']:g}", f"{small['seconds']:g}", f"{peer['seconds']:g}"),
        (
            "seconds that the quota demands",
            "",
            f"{large['quota_bound_seconds']:g}",
            f"{small['quota_bound_seconds']:g}",
            f"{peer['quota_bound_seconds']:g}",
        ),
        ("ratio to what the quota demands", "<= 1.15", f"{large['ratio']:g}", "", ""),
        ("requests", "", f"{large['requests']:,}", f"{small['requests']:,}", f"{peer['requests']:,}"),
        ("answers 429", "0", f"{large['refused_429']}", f"{small['refused_429']}", f"{peer['refused']}"),
        ("processor seconds", "", f"{large['cpu_seconds']:g}", f"{small['cpu_seconds']:g}", ""),
        ("peak memory (MiB)", "<= 250", f"{large['peak_rss']:g}", f"{small['peak_rss']:g}", ""),
    ]
    yield table(("", "goal", "Hermetic, large", "Hermetic, small", "peer, small"), rows)
    plain = figures["plain"]
    yield (
        f"A plain cluster, with nothing beside it ({plain['resources']} resources), takes {plain['requests']} requests "
        f"and {plain['cpu_seconds'] - plain['start_cpu_seconds']:.2f} s of processor time (goal <= 0.5) beyond the "
        f"{plain['start_cpu_seconds']:g} s in which the command starts.\n"
    )
    yield (
        f"The checks make {evaluation['findings_per_second_first']:,} findings a second when every body is read for "
        f"the first time, and {evaluation['findings_per_second']:,} of an estate that was read before.\n"
    )
    yield origin(result)


def several_clusters_section() -> Iterator[str]:
    """The section of one audit of many clusters, beside an audit of one; nothing where it was not measured."""
    result = results.load("several-clusters")
    if result is None:
        return
    single, several = (result["figures"][name] for name in ("single", "several"))
    count, quota = several["clusters"], Quota()
    yield f"## One audit of {count} clusters of one subscription\n"
    yield (
        "`hermetic audit --clusters` as a process, against the same stand-in. The clusters are plain: each has its own "
        "network, and nothing is beside it. They share the quota of the subscription: "
        f"{quota.reads} reads at once and {quota.reads_per_second:g} more a second, {quota.actions} actions at once "
        f"and {quota.actions_per_second:g} more a second, and {quota.graph} queries of Resource Graph in "
        f"{quota.graph_seconds:g} s.\n"
    )
    rows = [
        (title, goal, *(f"{form(figures):{sign}}" for figures in (single, several)))
        for title, goal, form, sign in SEVERAL_ROWS
    ]
    yield table(("", "goal", "1 cluster", f"{count} clusters"), rows)
    yield origin(result)
