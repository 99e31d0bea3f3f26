"""Whole runs of `hermetic bench`: the program of the container, the recorded figures, and the ends of a run.

The benchmark and the engine are stand-ins with a clock of their own (tests/fakes/engine_benchmark.py, timed_engine.py):
the program of the container, the result file, the termination message and the annotation are those of the product.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.times import moment_in, timestamp
from hermetic.cli.bench.command import bench_document, bench_lines
from hermetic.cli.bench.job import CONTAINER
from hermetic.cli.bench.running import BenchmarkOutcome, BenchmarkRequest, Runner
from hermetic.cli.benchmarks import ANNOTATION, records_of
from hermetic.engines.benchmark import RESULT_FILE, Load
from hermetic.errors import BenchmarkFailed, Conflict, Forbidden, HermeticError, NotFound
from hermetic.in_container import benchmark as program
from hermetic.kinds import BY_KIND
from tests.fakes import engine_benchmark
from tests.fakes.clocks import SleepingClock
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.timed_engine import TimedEngine
from tests.golden.benchmarks import LOAD, live, objects_of, planned, serving_pod, shape
from tests.scenarios import Manifest

NAMESPACE = "inference"
TOLERANCE = 0.02


def ran(tmp_path: Path, *command: str, limit: float = 30) -> tuple[int, Manifest]:
    message = tmp_path / "message"
    code = program.main([str(limit), str(tmp_path / "result"), "completed,duration", *command], str(message))
    return code, json.loads(message.read_text())


def python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", source)


def test_only_the_named_figures_leave_the_result_file(tmp_path: Path) -> None:
    result = {"completed": 3, "duration": 1.5, "server_info": {"api_key": "hunter2"}, "other": 1}
    (tmp_path / "result").write_text("{}\n" + json.dumps(result) + "\n")
    code, message = ran(tmp_path, *python("pass"))
    assert (code, message["figures"]) == (0, {"completed": 3, "duration": 1.5})


FAILURES = {
    "exit code": (python("import sys; sys.exit('error: the tokenizer is not there')"), "exit code 1", "the tokenizer"),
    "no result file": (python("print('done')"), "the result file cannot be read", "done"),
    "no such program": (("/nonexistent/vllm",), "the image cannot start '/nonexistent/vllm'", ""),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_benchmark_that_fails_leaves_the_reason_and_the_end_of_its_output(case: str, tmp_path: Path) -> None:
    command, error, log = FAILURES[case]
    code, message = ran(tmp_path, *command)
    assert code == 1
    assert error in message["error"]
    assert log in message["log"]


def test_a_benchmark_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    endless = "import subprocess, sys, time; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    code, message = ran(tmp_path, *python(endless), limit=0.3)
    assert (code, message["error"]) == (1, "it did not finish within 0.3 s")


@pytest.mark.parametrize("letter", ["\\\\", '"', "\\x1b", "\\x00", "█", "\\U0001f600"])
def test_the_message_of_a_failure_fits_the_kubelet(letter: str, tmp_path: Path) -> None:
    code, message = ran(tmp_path, *python(f"print('{letter}' * 100000); raise SystemExit(1)"))
    assert (code, message["error"]) == (1, "it ended with exit code 1")
    assert (tmp_path / "message").stat().st_size <= 4096


def test_bytes_that_are_no_text_fit_the_kubelet(tmp_path: Path) -> None:
    ran(tmp_path, *python("import os; os.write(1, bytes([255]) * 100000); raise SystemExit(1)"))
    assert (tmp_path / "message").stat().st_size <= 4096


def failed(error: str, log: str) -> str:
    """The termination message of a benchmark that fails."""
    return json.dumps({"seconds": 1.0, "error": error, "log": log})


@dataclass
class Kubelet:
    """Runs the container of a Job as soon as it is applied, and reports its end.

    `ends`: its termination message; `end`: further parts of its end, without a run.
    """

    folder: Path
    url: str
    secrets: dict[str, str] = field(default_factory=dict)
    cluster: ClusterInMemory = field(init=False)
    ends: str = ""
    end: dict[str, Any] = field(default_factory=dict)
    is_stopped: bool = False
    is_waiting: bool = False

    async def after(self, verb: str, where: Coordinates) -> None:
        if (verb, where[0]) != ("patch", "Job") or self.is_stopped:
            return
        job = self.cluster.objects[where]
        (container,) = job["spec"]["template"]["spec"]["containers"]
        if self.is_waiting:
            unplaced = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
            self._report(where, {"conditions": [unplaced]})
            return
        message = self.ends or ("" if self.end else self.run(container))
        terminated = {"reason": "Completed", "exitCode": 0, "message": message, **self.end}
        self._report(where, {"containerStatuses": [{"name": CONTAINER, "state": {"terminated": terminated}}]})

    def _report(self, where: Coordinates, status: Manifest) -> None:
        labels = {"batch.kubernetes.io/job-name": where[2]}
        metadata = {"name": f"{where[2]}-x", "namespace": where[1], "labels": labels}
        self.cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})

    def run(self, container: Manifest) -> str:
        result, message = self.folder / "result.json", self.folder / "message"
        arguments = [word.replace(RESULT_FILE, str(result)) for word in container["args"]]
        begin = next(index for index, word in enumerate(arguments) if word in {"vllm", "python3"})
        engine, flags = (
            ("vllm", arguments[begin + 3 :]) if arguments[begin] == "vllm" else ("sglang", arguments[begin + 3 :])
        )
        flags[flags.index("--base-url") + 1] = self.url
        stand_in = (sys.executable, engine_benchmark.__file__, engine)
        with pytest.MonkeyPatch.context() as environment:
            for variable in container["env"]:
                if "valueFrom" in variable:
                    environment.setenv(variable["name"], self.secrets[variable["valueFrom"]["secretKeyRef"]["name"]])
            program.main([*arguments[:begin], *stand_in, *flags], str(message))
        return message.read_text()


@dataclass
class Bench:
    """A model in a cluster, an engine that serves it, and the command."""

    cluster: ClusterInMemory
    kubelet: Kubelet
    engine: TimedEngine
    name: str
    clock: SleepingClock = field(default_factory=SleepingClock)
    notes: list[str] = field(default_factory=list)

    def run(self, load: Load = LOAD) -> BenchmarkOutcome:
        runner = Runner(self.cluster, self.clock, self.notes.append, self.clock.sleep)
        return asyncio.run(runner.run(BenchmarkRequest(NAMESPACE, self.name, load, {})))

    @property
    def model(self) -> Manifest:
        return self.cluster.objects["ModelDeployment", NAMESPACE, self.name]

    def kinds(self) -> list[str]:
        return sorted(kind for kind, _, _ in self.cluster.objects)


@pytest.fixture
def engine() -> Iterator[TimedEngine]:
    with TimedEngine(ttft=400, itl=20, slow_ttft=1000, slow_itl=50, slow_every=16).serving() as served:
        yield served


def a_bench(manifest: Manifest, engine: TimedEngine, folder: Path, **secrets: str) -> Bench:
    kubelet = Kubelet(folder, engine.url, secrets)
    cluster = ClusterInMemory(done=kubelet.after, late=0)
    kubelet.cluster = cluster
    objects, name = live(manifest), manifest["metadata"]["name"]
    assert objects.workload is not None
    assert objects.service is not None
    for live_object in (objects.model, objects.workload, objects.service, serving_pod(name)):
        cluster.put(dict(live_object))
    return Bench(cluster, kubelet, engine, name)


MODELS_THAT_SERVE = {
    "vLLM": shape("share"),
    "SGLang with an API key": shape("sglang-guarded-without-tls"),
    "vLLM with an API key": shape("tls-and-api-key"),
}


@pytest.mark.parametrize("case", MODELS_THAT_SERVE)
def test_recorded_figures_are_the_dialled_ones_within_two_percent(
    case: str, engine: TimedEngine, tmp_path: Path
) -> None:
    manifest = MODELS_THAT_SERVE[case]
    key = manifest["spec"]["endpoint"].get("apiKey")
    engine.key = "s3cret" if key else ""
    bench = a_bench(manifest, engine, tmp_path, **({key["secretName"]: "s3cret"} if key else {}))
    bench.run()
    (record,) = records_of(bench.model)
    # 64 requests in 8 lanes: every 16th is slow, so lane 0 has 4 slow and 4 fast ones, and is the last to end
    fast, slow = engine.ttft + 127 * engine.itl, engine.slow_ttft + 127 * engine.slow_itl
    seconds = 4 * (fast + slow) / 1000
    dialled = {
        "requestsPerSecond": 64 / seconds,
        "outputTokensPerSecond": 64 * 128 / seconds,
        "ttftMedianMs": engine.ttft,
        "ttftP99Ms": engine.slow_ttft,
        "itlMedianMs": engine.itl,
        "itlP99Ms": engine.slow_itl,
    }
    assert record.figures == pytest.approx(dialled, rel=TOLERANCE)
    assert engine.models == {manifest["spec"]["model"]["name"]}
    assert "s3cret" not in json.dumps(bench.model)


def test_a_second_run_of_the_same_fingerprint_is_compared_in_percent(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.run()
    bench.clock.seconds += 3600
    engine.ttft, engine.slow_ttft, engine.itl, engine.slow_itl = 800, 2000, 10, 25
    outcome = bench.run()
    document = bench_document("llama", NAMESPACE, outcome)
    assert document["changePercent"]["ttftMedianMs"] == pytest.approx(100, abs=0.1)
    assert document["changePercent"]["itlP99Ms"] == pytest.approx(-50, abs=0.1)
    assert document["comparedWith"]["at"] != document["at"]
    shown = "\n".join(bench_lines("llama", outcome))
    assert "TTFT median, ms" in shown
    assert "+100.0 %" in shown
    assert len(records_of(bench.model)) == 2


def test_another_fingerprint_is_not_compared_and_the_parts_that_differ_are_named(
    engine: TimedEngine, tmp_path: Path
) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.run()
    bench.cluster.put(serving_pod("llama", 1))
    outcome = bench.run(replace(LOAD, concurrency=4))
    document = bench_document("llama", NAMESPACE, outcome)
    assert (document["comparedWith"], document["changePercent"]) == (None, {})
    assert document["differs"] == ["replicas", "load"]
    shown = list(bench_lines("llama", outcome))
    assert "  replicas: 1, now 2" in shown


def test_failed_requests_are_counted_and_the_result_is_not_recorded(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.kubelet.ends = json.dumps({"seconds": 9, "figures": {**COMPLETE, "completed": 60}})
    with pytest.raises(BenchmarkFailed, match="4 of 64 requests failed"):
        bench.run()
    assert records_of(bench.model) == ()
    assert "Job" in bench.kinds(), "its log says which requests failed"


def test_an_engine_that_answers_503_leaves_no_record(engine: TimedEngine, tmp_path: Path) -> None:
    engine.refused = 1
    bench = a_bench(shape("share"), engine, tmp_path)
    with pytest.raises(BenchmarkFailed, match="503"):
        bench.run()
    assert records_of(bench.model) == ()


COMPLETE = {
    "completed": 64,
    "duration": 10.0,
    "total_output_tokens": 8192,
    "request_throughput": 6.4,
    "output_throughput": 819.2,
    "median_ttft_ms": 210.0,
    "p99_ttft_ms": 400.0,
    "median_itl_ms": 20.0,
    "p99_itl_ms": 35.0,
}
UNREADABLE = {
    "no message": "",
    "end of a log": "Killed",
    "a list": "[]",
    "another form": '{"figures": 3}',
    "a text for a number": json.dumps({"figures": {**COMPLETE, "p99_itl_ms": "x"}}),
    "not a number": json.dumps({"figures": {**COMPLETE, "p99_itl_ms": float("nan")}}),
    "a figure is missing": json.dumps({"figures": {key: COMPLETE[key] for key in COMPLETE if key != "median_ttft_ms"}}),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_message_that_is_no_result_is_never_recorded(case: str, engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.kubelet.ends = UNREADABLE[case] or " "
    with pytest.raises(BenchmarkFailed):
        bench.run()
    assert records_of(bench.model) == ()


def test_a_benchmark_that_another_one_would_disturb_is_refused(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    other, _ = objects_of(planned("share"))
    bench.cluster.put(dict(other))
    with pytest.raises(BenchmarkFailed, match="another benchmark of 'llama' runs"):
        bench.run()
    ended = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    bench.cluster.put({**other, **ended})
    assert bench.run().earlier == ()


@pytest.mark.parametrize(("age", "gives_way"), [(-5, True), (0, True), (5, False)])
def test_of_two_commands_at_once_the_later_one_gives_way_and_leaves_nothing(
    age: int, gives_way: bool, engine: TimedEngine, tmp_path: Path
) -> None:
    """Both looked before either had made its Job. `age`: seconds between the other Job and the own one."""
    bench = a_bench(shape("share"), engine, tmp_path)
    other = dict(objects_of(planned("share"))[0])
    run_container = bench.kubelet.after

    async def meanwhile(verb: str, where: Coordinates) -> None:
        if (verb, where[0]) == ("patch", "Job") and where[2] != other["metadata"]["name"]:
            created = moment_in(bench.cluster.objects[where]["metadata"]["creationTimestamp"])
            timestamp_of_other = timestamp(created + timedelta(seconds=age))
            metadata = {**other["metadata"], "uid": "x", "creationTimestamp": timestamp_of_other}
            bench.cluster.objects["Job", NAMESPACE, metadata["name"]] = {**other, "metadata": metadata}
            await run_container(verb, where)

    bench.cluster.done = meanwhile
    if gives_way:
        with pytest.raises(BenchmarkFailed, match=f"runs: Job {other['metadata']['name']}"):
            bench.run()
        assert records_of(bench.model) == ()
    else:
        bench.run()
    assert [name for kind, _, name in bench.cluster.objects if kind == "Job"] == [other["metadata"]["name"]]


ENDS = {
    "no python3": (
        {"reason": "StartError", "exitCode": 128, "message": 'exec: "python3": executable file not found in $PATH'},
        "(StartError, exit code 128): exec",
        True,
    ),
    "no memory": ({"reason": "OOMKilled", "exitCode": 137}, "without a result (OOMKilled, exit code 137)", False),
    "vLLM before its benchmark": (
        {"message": failed("it ended with exit code 2", "vllm: error: argument subparser: invalid choice: 'bench'")},
        "invalid choice: 'bench'",
        True,
    ),
    "a package that is missing": (
        {"message": failed("it ended with exit code 1", "ModuleNotFoundError: No module named 'pandas'")},
        "No module named 'pandas'",
        True,
    ),
    "no program of the engine": (
        {"message": failed("the image cannot start 'vllm': [Errno 2]", "")},
        "the image cannot start 'vllm'",
        True,
    ),
    "an error of the engine": (
        {"message": failed("it ended with exit code 1", "503 Service Unavailable")},
        "503 Service Unavailable",
        False,
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_an_image_that_lacks_the_benchmark_is_told_from_a_benchmark_that_fails(
    case: str, engine: TimedEngine, tmp_path: Path
) -> None:
    end, says, lacks_tool = ENDS[case]
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.kubelet.end = end
    with pytest.raises(BenchmarkFailed) as refused:
        bench.run()
    assert says in refused.value.message
    assert ("the image lacks the benchmark" in refused.value.fix) == lacks_tool
    assert records_of(bench.model) == ()
    assert "Job" in bench.kinds(), "its log has more"


@pytest.mark.parametrize("end", [KeyboardInterrupt(), Forbidden("pods is forbidden", status=403)])
def test_a_run_that_is_given_up_takes_its_job_with_it(end: BaseException, engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)

    async def fault(verb: str, where: Coordinates) -> None:
        if (verb, where[0]) == ("patch", "NetworkPolicy"):
            raise end

    bench.cluster.fault = fault
    with pytest.raises(type(end)):
        bench.run()
    assert "Job" not in bench.kinds()


def test_a_job_that_gets_no_pod_says_why(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.kubelet.is_stopped = True

    async def fail(verb: str, where: Coordinates) -> None:
        if (verb, where[0]) == ("patch", "NetworkPolicy"):
            (job,) = [live_object for key, live_object in bench.cluster.objects.items() if key[0] == "Job"]
            failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too slow"}
            bench.cluster.put({**job, "status": {"conditions": [failed]}})

    bench.cluster.fault = fail
    with pytest.raises(BenchmarkFailed, match="DeadlineExceeded: too slow") as refused:
        bench.run()
    assert refused.value.fix.startswith("kubectl describe job llama-bench-a")


def test_a_job_that_never_ends_is_given_up(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.kubelet.is_stopped = True
    with pytest.raises(BenchmarkFailed, match="gave no result within") as refused:
        bench.run()
    assert refused.value.fix.startswith("kubectl describe job llama-bench-a")


def test_why_the_pod_waits_is_told_while_it_waits_and_once(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.kubelet.is_waiting = True
    with pytest.raises(BenchmarkFailed, match="0/3 nodes are available"):
        bench.run()
    waits = [note for note in bench.notes if "waits" in note]
    assert waits == ["the pod of the benchmark waits: 0/3 nodes are available"]


def test_a_model_that_changes_meanwhile_gets_the_record_all_the_same(engine: TimedEngine, tmp_path: Path) -> None:
    bench, conflicts = a_bench(shape("share"), engine, tmp_path), [1, 2]

    async def fault(verb: str, where: Coordinates) -> None:
        if (verb, where[0]) == ("patch", "ModelDeployment") and conflicts:
            conflicts.pop()
            raise Conflict("changed", status=409)

    bench.cluster.fault = fault
    bench.run()
    assert len(records_of(bench.model)) == 1


def test_a_model_of_the_name_that_was_made_anew_gets_no_record(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)

    async def fault(verb: str, where: Coordinates) -> None:
        if (verb, where[0]) == ("patch", "NetworkPolicy"):
            bench.model["metadata"]["uid"] = "another"

    bench.cluster.fault = fault
    with pytest.raises(BenchmarkFailed, match="was replaced"):
        bench.run()
    assert records_of(bench.model) == ()


def test_a_name_that_is_near_another_is_named(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    bench.name = "lama"
    with pytest.raises(NotFound, match="did you mean 'llama'"):
        bench.run()


def test_writes_of_a_run_are_its_job_its_policy_and_one_annotation(engine: TimedEngine, tmp_path: Path) -> None:
    bench = a_bench(shape("share"), engine, tmp_path)
    before = {**bench.model, "metadata": {**bench.model["metadata"]}}
    bench.run()
    assert [(verb, where[0]) for verb, where in bench.cluster.writes] == [
        ("patch", "Job"),
        ("patch", "NetworkPolicy"),
        ("delete", "Job"),
        ("patch", "ModelDeployment"),
    ]
    assert bench.model["spec"] == before["spec"]
    assert set(bench.model["metadata"]["annotations"]) - set(before["metadata"].get("annotations") or {}) == {
        ANNOTATION
    }
    assert set(BY_KIND) >= {"Job", "NetworkPolicy", "ModelDeployment"}
    assert issubclass(BenchmarkFailed, HermeticError)
