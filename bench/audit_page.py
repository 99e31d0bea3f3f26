"""The sections of docs/figures.md about audits: of many resources and clusters, the operator's own, and its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench import closed_gate, evaluation, results
from bench.tables import Row, middle, origin, table
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


def evaluation_section() -> Iterator[str]:
    """How long an evaluation in the cluster holds what else the operator does."""
    result = results.load("evaluation")
    if result is None:
        return
    figures = result["figures"]
    yield f"## The operator's own audit of {figures['pods']:,} pods\n"
    yield (
        f"How long the event loop, which serves everything else, is held while a cluster of {figures['objects']:,} "
        "objects is listed, and while it is evaluated: the longest step by processor time, and how late a timer was. "
        "The second holds what other programs of the machine took as well; at rest it was "
        f"{figures['rest']['longest_ms']:g} ms. Evaluation is the worst of {evaluation.ROUNDS} rounds.\n"
    )
    rows = [
        _held("listing", "<= 50", [figures["listing"]]),
        _held("evaluation in a process of its own, as the operator does", "<= 50", figures["apart"]),
        _held("evaluation in a thread, for comparison", "", figures["thread"]),
        _held("evaluation in the loop, for comparison", "", figures["loop"]),
    ]
    yield table(("", "goal", "longest step (ms)", "timer late, longest (ms)", "p99 (ms)", "seconds"), rows)
    yield (
        f"The evaluation process has {figures['process_peak_rss']:g} MiB at its peak (goal <= 110), and ends after a "
        "minute without anything to evaluate.\n"
    )
    yield origin(result)


def _held(label: str, goal: str, rounds: list[dict[str, Any]]) -> Row:
    keys = ("longest_step_cpu_ms", "longest_ms", "p99_ms", "seconds")
    return (label, goal, *(f"{max(figures[key] for figures in rounds):g}" for key in keys))


def closed_gate_section() -> Iterator[str]:
    """How soon waiting pods go after a Fail."""
    result = results.load("closed-gate")
    if result is None:
        return
    rounds = result["figures"]["rounds"]
    yield f"## The gate closes with {closed_gate.MODELS} models whose pods wait for a node\n"
    yield (
        f"{len(rounds)} rounds, all admission policies installed. Seconds from the moment at which an attestation with"
        " the verdict Fail is applied.\n"
    )
    labels = {
        "seconds_to_first_refused_binding": ("seconds until a Binding is refused", ""),
        "seconds_to_last_pod_removed": ("seconds until the last waiting pod is removed", "<= 10"),
    }
    rows = [
        (label, goal, middle(rounds, key), f"{max(figures[key] for figures in rounds):g}")
        for key, (label, goal) in labels.items()
    ]
    yield table(("", "goal", "median", "greatest"), rows)
    if note := result["figures"].get("note"):
        yield f"{note}\n"
    yield origin(result)
