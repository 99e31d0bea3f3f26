"""The sections of docs/figures.md about the operator: requests, a burst, a steady rate, and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench import burst, restart, results, steady, writes
from bench.tables import Row, middle, origin, table
from bench.workload import CHILDREN

CPU_MS_PER_MODEL = 24
"""Goal for the processor time of a create, from the apply until its status is settled."""
MOST_GROUP_WRITES = 11
"""Goal for the writes of a create with two nodes."""


def writes_section() -> Iterator[str]:
    """Requests of each act, beside those of the peer."""
    result = results.load("writes")
    if result is None:
        return
    ours, peers = result["figures"]["hermetic"], result["figures"]["kopf"]
    yield "## Requests to the API server\n"
    yield f"Median of {writes.SAMPLES} models per act; every model {_scatter(ours)}. Events in brackets.\n"
    yield table(
        ("per model", "goal", "Hermetic writes", "kopf writes", "Hermetic reads", "kopf reads"),
        [(act, _goal(act), *_pair(ours[act], peers[act])) for act in writes.ACTS],
    )
    yield f"With {writes.MODELS} models, one run.\n"
    names = {"rest": f"{writes.REST_SECONDS} s of rest", "restart": "restart"}
    yield table(
        ("in all", "goal", "Hermetic writes", "kopf writes", "Hermetic reads", "kopf reads"),
        [(label, "0", *_pair(ours[act], peers[act])) for act, label in names.items()],
    )
    yield _leases(ours["rest"])
    yield origin(result)


def _goal(act: str) -> str:
    settled = len(CHILDREN) + 2
    return {"create": f"<= {settled}", "label change": "0", "apply again": "0"}.get(act, "changed children + 1 to 3")


def _scatter(ours: dict[str, Any]) -> str:
    varied = [act for act in writes.ACTS if ours[act]["most_writes"] != ours[act]["writes"]]
    return f"alike but in: {', '.join(varied)}" if varied else "alike"


def _pair(ours: dict[str, Any], peers: dict[str, Any]) -> Row:
    return (_counted(ours), _counted(peers), f"{ours['reads']:g}", f"{peers['reads']:g}")


def _counted(counts: dict[str, Any]) -> str:
    events = f" [+{counts['events']:g}]" if counts["events"] else ""
    refused = f", {counts['refused']:g} refused" if counts["refused"] else ""
    return f"{counts['writes']:g}{refused}{events}"


def _leases(counts: dict[str, Any]) -> str:
    return f"Hermetic renewed its Lease {counts['leases']} times in the {writes.REST_SECONDS} s; the peer has none.\n"


def groups_section() -> Iterator[str]:
    """What a create of a model of several nodes costs."""
    result = results.load("groups")
    if result is None:
        return
    figures = result["figures"]
    yield "## Create a model of two nodes\n"
    yield (
        f"One replica, a pod on each node. The median of {figures['samples']} models on simulated nodes.\n"
        f"{_load_beside(result)}"
    )
    yield table(("", "goal", "measured"), [("writes of a create", f"<= {MOST_GROUP_WRITES}", f"{figures['writes']:g}")])
    yield origin(result)


def _load_beside(result: results.Result) -> str:
    """A sentence for figures of a machine that did other work; "" for those of an idle one."""
    if result["loadBefore"] <= result["machine"]["cores"]:
        return ""
    return "The machine was busy with other work meanwhile: its load average is below.\n"


def burst_section() -> Iterator[str]:
    """Two hundred models at once."""
    result = results.load("burst")
    if result is None:
        return
    ours, peers = (result["figures"][name]["median"] for name in ("hermetic", "kopf"))
    yield f"## {burst.MODELS} models at once\n"
    rounds = len(result["figures"]["hermetic"]["rounds"])
    yield f"Median of {rounds} rounds, which the two take in turns. Ratio: how much better Hermetic is.\n"
    least = result["figures"]["floor"]["median"]
    rows = [
        _compared("seconds until all children are written", "written_seconds", ours, peers, ">= 1.5x"),
        _against_the_loop("the same, times the plain loop", "written_seconds", ours, peers, least),
        _compared("seconds until all models serve", "settled_seconds", ours, peers, ">= 1.5x"),
        _compared("apply to children written, p50 (s)", "p50_seconds", ours, peers),
        _compared("apply to children written, p99 (s)", "p99_seconds", ours, peers),
        _compared("seconds until the user's applies are taken", "applied_seconds", ours, peers),
        _compared("processor seconds of the operator", "cpu_seconds", ours, peers),
        _per_model("processor time for a model (ms)", "cpu_seconds", ours, peers, f"<= {CPU_MS_PER_MODEL}"),
        _compared("writes", "writes", ours, peers, f"<= {burst.MODELS * (len(CHILDREN) + 3)}"),
        _compared("Events", "events", ours, peers),
        _compared("resident memory before (MiB)", "rss_before", ours, peers),
        _compared("resident memory, peak (MiB)", "peak_rss", ours, peers),
    ]
    yield table(("", "goal", "Hermetic", "kopf", "ratio"), rows)
    yield (
        f"The same children, created by a plain loop without any operator: written after {least['written_seconds']:g} "
        f"s, all available after {least['settled_seconds']:g} s. Every figure above includes the time of the API "
        "server, its controllers and the nodes for them, and no operator can be faster.\n"
    )
    yield origin(result)


def _compared(label: str, key: str, ours: dict[str, Any], peers: dict[str, Any], goal: str = "") -> Row:
    ratio = f"{peers[key] / ours[key]:.1f}x" if ours[key] and peers[key] else ""
    return (label, goal, f"{ours[key]:g}", f"{peers[key]:g}", ratio)


def _against_the_loop(label: str, key: str, ours: dict[str, Any], peers: dict[str, Any], loop: dict[str, Any]) -> Row:
    return (label, "<= 1.5", f"{ours[key] / loop[key]:.1f}", f"{peers[key] / loop[key]:.1f}", "")


def _per_model(label: str, key: str, ours: dict[str, Any], peers: dict[str, Any], goal: str) -> Row:
    return (label, goal, *(f"{1000 * figures[key] / burst.MODELS:.0f}" for figures in (ours, peers)), "")


def steady_section() -> Iterator[str]:
    """Models that arrive at a steady rate."""
    result = results.load("steady")
    if result is None:
        return
    ours, peers, loop = (result["figures"][name]["median"] for name in ("hermetic", "kopf", "floor"))
    yield f"## {steady.PER_SECOND} models a second\n"
    yield (
        f"{steady.MODELS} models; median of {steady.ROUNDS} rounds, which the two and the plain loop take in turns. "
        "The loop creates the children of a model one after the other, at the moment at which a user would apply it.\n"
    )
    rows = [
        (f"apply to children written, {rank} (ms)", goal, *(f"{figures[key]:g}" for figures in (ours, peers, loop)))
        for rank, key, goal in (("p50", "p50_ms", ""), ("p99", "p99_ms", "<= 250"), ("longest", "longest_ms", ""))
    ]
    costs = (
        ("processor time for a model (ms)", "cpu_ms_per_model", f"<= {CPU_MS_PER_MODEL}"),
        ("resident memory with one model (MiB)", "rss_one_model", "<= 70"),
    )
    rows += [(label, goal, f"{ours[key]:g}", f"{peers[key]:g}", "") for label, key, goal in costs]
    yield table(("", "goal", "Hermetic", "kopf", "plain loop"), rows)
    yield origin(result)


def restart_section() -> Iterator[str]:
    """A restart with a thousand models."""
    yield from _restarts("restart", restart.MODELS, idle_goal="<= 6", memory_goal="<= 110")


def large_restart_section() -> Iterator[str]:
    """A restart with ten thousand models."""
    yield from _restarts("restart-large", restart.LARGE_MODELS, ready_goal="<= 30")


def _restarts(
    name: str, models: int, *, ready_goal: str = "", idle_goal: str = "", memory_goal: str = ""
) -> Iterator[str]:
    result = results.load(name)
    if result is None:
        return
    restarts = result["figures"]["restarts"]
    filled = result["figures"]["fill"]
    yield f"## Restart with {models:,} models\n"
    count = len(restarts)
    yield f"Median of {count} restarts of Hermetic; the peer's restart is in the table above, with fewer models.\n"
    rows = [
        ("seconds until /readyz says yes", ready_goal, middle(restarts, "seconds_to_ready")),
        ("seconds until idle", idle_goal, middle(restarts, "seconds_to_idle")),
        ("processor seconds", "", middle(restarts, "cpu_seconds")),
        ("writes", "0", middle(restarts, "writes")),
        ("reads", "", middle(restarts, "reads")),
        ("resident memory at rest (MiB)", memory_goal, middle(restarts, "rss")),
        ("resident memory, peak (MiB)", "", middle(restarts, "peak_rss")),
    ]
    yield table(("", "goal", "Hermetic"), rows)
    yield (
        f"Making the {models:,} took {filled['settled_seconds']:g} s until all served, {filled['cpu_seconds']:g}"
        f" processor seconds of the operator and {filled['peak_rss']:g} MiB at its peak (one run).\n"
    )
    yield origin(result)
