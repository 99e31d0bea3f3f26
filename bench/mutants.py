"""`python -m bench.mutants [--count N] [--seed S]`: how many seeded mistakes in decisions each layer of tests finds.

A mutant is one small change of the product (bench/mutations.py) in what decides: the search for egress paths, the
plan of a deployment, the evaluation of checks. A run of all layers under coverage records which tests reach each line.
Then each mutant is run against the tests of each layer that reach its line, at most `--tests` of a layer, drawn by the
seed. A layer finds a mutant if one of its tests fails or exceeds its time limit; HERMETIC_TEST_PATIENCE=6 makes these
limits six times as long, for a busy machine. Mutants run in copies of the checkout, without the tests that fail there
before a mutant is planted.

The result goes to bench/results/mutants.json and to docs/figures.md. A mutant that no layer finds is listed: either a
test is missing, or the change makes no difference.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from coverage import CoverageData

from bench import results
from bench.machine import load_average
from bench.mutations import Mutant, mutants_of
from bench.report import write_page
from testbed.processes import PATIENCE_VARIABLE

REPOSITORY = Path(__file__).resolve().parent.parent
PRODUCT = Path("operator/hermetic")
TARGETS = {
    "egress": (PRODUCT / "audit/rules", PRODUCT / "audit/scope", PRODUCT / "audit/egress"),
    "plan": (PRODUCT / "plan",),
    "evaluation": (
        PRODUCT / "audit/evaluation/check_findings.py", PRODUCT / "audit/result/derived_findings.py",
        PRODUCT / "audit/result/private_subnets.py", PRODUCT / "audit/verdict",
    ),
}  # fmt: skip
# A test belongs to the first layer that has its file.
LAYERS: dict[str, tuple[str, ...]] = {
    "decision tables": ("tests/unit/test_decision_cases*.py", "tests/unit/test_egress_*.py"),
    "planted paths": ("tests/unit/test_checks_against_plants.py",),
    "unit, the plan": (
        "tests/unit/test_plan_*.py",
        "tests/unit/test_gates.py",
        "tests/unit/test_isolation.py",
        "tests/unit/test_drift*.py",
        "tests/unit/test_status.py",
    ),
    "unit, checks": ("tests/unit/test_checks_*.py", "tests/unit/test_audit_*.py"),
    "unit": ("tests/unit/test_*.py",),
    "textbook estates": ("tests/property/test_textbook_*.py",),
    "topologies": ("tests/property/test_audit_topologies.py",),
    "properties": ("tests/property/test_*.py",),
    "golden": ("tests/golden/test_*.py",),
    "controller": ("tests/controller/test_*.py",),
}
WORKERS = 2
MOST_FILES_AT_ONCE = 60
"""Of a layer under coverage: several runs of its files take turns with those of other layers."""
PATIENCE = float(os.environ.get(PATIENCE_VARIABLE, "1"))
SECONDS_OF_A_TEST, SECONDS_OF_A_MUTANT = 60 * PATIENCE, 600 * PATIENCE
Covering = Mapping[str, list[str]]
"""Ids of tests by layer."""


@dataclass(frozen=True)
class Outcome:
    """Which layers reach the line of a mutant, and which of them find it."""

    group: str
    mutant: Mutant
    reaching: tuple[str, ...]
    finding: tuple[str, ...]


def layer_files(root: Path = REPOSITORY) -> dict[str, list[str]]:
    """The test files of each layer, as paths from the root; each file in one layer."""
    assigned: set[str] = set()
    files: dict[str, list[str]] = {}
    for layer, patterns in LAYERS.items():
        paths = (str(path.relative_to(root)) for pattern in patterns for path in sorted(root.glob(pattern)))
        files[layer] = [path for path in paths if path not in assigned]
        assigned |= set(files[layer])
    return files


def draw_mutants(count: int, seed: int, root: Path = REPOSITORY) -> list[tuple[str, Mutant]]:
    """`count` mutants with their groups, as many of each group as possible."""
    random = Random(seed)
    drawn: list[tuple[str, Mutant]] = []
    for position, (group, paths) in enumerate(TARGETS.items()):
        mutants = _mutants_below(root, paths)
        share = (count + position) // len(TARGETS)
        drawn += [(group, mutant) for mutant in random.sample(mutants, min(share, len(mutants)))]
    return drawn


@cache
def _mutants_below(root: Path, paths: tuple[Path, ...]) -> list[Mutant]:
    return [mutant for file in _python_files(root, paths) for mutant in mutants_of(file, (root / file).read_text())]


def _python_files(root: Path, paths: Iterable[Path]) -> list[str]:
    files = ([root / path] if path.suffix else sorted((root / path).rglob("*.py")) for path in paths)
    return [str(file.relative_to(root)) for group in files for file in group]


def record_coverage(folder: Path, layers: Sequence[str], seed: int) -> dict[str, CoverageData]:
    """Which test reaches which line, by layer; SystemExit where pytest cannot run. Failing tests are left out later."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    paths = (REPOSITORY / path for group in TARGETS.values() for path in group)
    include = ",".join(str(path if path.suffix else path / "*") for path in paths)

    def record(run: tuple[str, int, list[str]]) -> CoverageData:
        layer, number, files = run
        data = folder / f"{layer.replace(' ', '-')}-{number}.coverage"
        recorded = CoverageData(str(data))
        if data.is_file():
            recorded.read()
            return recorded
        command = [
            sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--include={include}",
            "-m", "pytest", "-q", "-n", "0", "-p", "bench.mutants_plugin", "-p", "no:cacheprovider",
            "-o", f"timeout={SECONDS_OF_A_TEST}", "--replay", str(seed), *files,
        ]  # fmt: skip
        started = time.monotonic()
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if done.returncode not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            raise SystemExit(f"pytest cannot run the tests of the layer {layer}\n{done.stdout[-3000:]}")
        summary = done.stdout.strip().rpartition("\n")[2]
        _print_step(f"coverage of {layer}, {len(files)} files: {time.monotonic() - started:.0f} s; {summary}")
        recorded.read()
        return recorded

    runs = [(layer, number, files) for layer in layers for number, files in enumerate(parts_of(layer_files()[layer]))]
    merged = {layer: CoverageData(no_disk=True) for layer in layers}
    with ThreadPoolExecutor(WORKERS) as pool:
        for (layer, _, _), recorded in zip(runs, pool.map(record, runs), strict=True):
            merged[layer].update(recorded)
    return merged


def parts_of(files: list[str]) -> list[list[str]]:
    """The files in groups of at most `MOST_FILES_AT_ONCE`, each with files from all over the list."""
    count = -(-len(files) // MOST_FILES_AT_ONCE)
    return [files[number::count] for number in range(count)]


def covering_tests(coverage: Mapping[str, CoverageData], mutant: Mutant, limit: int, seed: int) -> dict[str, list[str]]:
    """At most `limit` tests of each layer that reach the line of a mutant; layers that do not reach it are absent."""
    covering: dict[str, list[str]] = {}
    for layer, data in coverage.items():
        contexts = data.contexts_by_lineno(str(REPOSITORY / mutant.file)).get(mutant.line, [])
        tests = sorted(context for context in contexts if context)
        if tests:
            random = Random(f"{seed} {mutant.file} {mutant.start}")
            covering[layer] = sorted(random.sample(tests, min(limit, len(tests))))
    return covering


def run_mutant(checkout: Path, mutant: Mutant, covering: Covering, seed: int) -> tuple[str, ...]:
    """The layers that find a mutant, which is planted into a copy of the checkout and taken out again."""
    if not covering:
        return ()
    file = checkout / mutant.file
    source, times = file.read_text(), file.stat()
    file.write_text(mutant.applied(source))
    try:
        code, answer = run_tests(checkout, covering, seed, SECONDS_OF_A_MUTANT)
    except subprocess.TimeoutExpired:
        return tuple(covering)
    finally:
        file.write_text(source)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # its byte code is valid again
    # a module that cannot be imported any more is found by every test that imports it
    cannot_start = code != 0 and not answer["collected"]
    return tuple(layer for layer in covering if cannot_start or layer in answer["failed"])


def failing_tests(checkout: Path, covering: Iterable[Covering], seed: int) -> set[str]:
    """The tests that fail in a copy of the checkout without a mutant: they would find every one.

    SystemExit where pytest cannot start: an id that it does not know would make each mutant look found.
    """
    tests = sorted({test for layers in covering for tests in layers.values() for test in tests})
    if not tests:
        return set()
    code, answer = run_tests(checkout, {test: [test] for test in tests}, seed, None)
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        raise SystemExit(f"pytest cannot run the tests in a copy of the checkout: exit code {code}")
    return set(answer["failed"])


def run_tests(checkout: Path, layers: Covering, seed: int, seconds: float | None) -> tuple[int, dict[str, Any]]:
    """The exit code of pytest in a copy of the checkout and the answer of its plugin; TimeoutExpired."""
    tests, answer = checkout / "mutant-tests.json", checkout / "mutant-answer.json"
    tests.write_text(json.dumps(layers))
    answer.unlink(missing_ok=True)
    environment = {
        **os.environ, "PYTHONPATH": f"{checkout / 'operator'}:{checkout}", "PYTHONDONTWRITEBYTECODE": "1",
        "HERMETIC_MUTANT_TESTS": str(tests), "HERMETIC_MUTANT_ANSWER": str(answer),
    }  # fmt: skip
    command = [
        sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "bench.mutants_plugin", "-p", "no:cacheprovider",
        "-o", f"timeout={SECONDS_OF_A_TEST}", "--replay", str(seed),
        *(test for layer in layers.values() for test in layer),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=False, timeout=seconds)
    answered = json.loads(answer.read_text()) if answer.is_file() else {"failed": {}, "collected": 0}
    return done.returncode, answered


def without_tests(covering: Covering, left_out: Collection[str]) -> dict[str, list[str]]:
    """The tests of each layer without some; layers without a test are absent."""
    remaining = {layer: [test for test in tests if test not in left_out] for layer, tests in covering.items()}
    return {layer: tests for layer, tests in remaining.items() if tests}


def copy_checkout(target: Path) -> Path:
    """A copy of the files that git tracks, as they are in the work tree, with the byte code that there is of them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / name).is_file():
            shutil.copy2(REPOSITORY / name, path)
    # Python takes byte code for a file of the same time and size: for each but the one that has a mutant.
    for folder in ("operator", "tests", "testbed", "bench"):
        for byte_code in (REPOSITORY / folder).rglob("__pycache__"):
            shutil.copytree(byte_code, target / byte_code.relative_to(REPOSITORY), dirs_exist_ok=True)
    return target


def figures_of(outcomes: list[Outcome], layers: Sequence[str] = tuple(LAYERS)) -> dict[str, Any]:
    """The scores: of each layer how many mutants it reaches and finds, how many no other finds; what nothing finds."""
    scores = {
        layer: {
            "reached": sum(layer in outcome.reaching for outcome in outcomes),
            "found": sum(layer in outcome.finding for outcome in outcomes),
            "onlyHere": sum(outcome.finding == (layer,) for outcome in outcomes),
        }
        for layer in layers
    }
    groups = {
        group: {
            "mutants": sum(outcome.group == group for outcome in outcomes),
            "found": sum(outcome.group == group and bool(outcome.finding) for outcome in outcomes),
        }
        for group in TARGETS
    }
    survivors = [
        {"file": outcome.mutant.file, "line": outcome.mutant.line, "change": outcome.mutant.description,
         "reached": bool(outcome.reaching)}
        for outcome in outcomes if not outcome.finding
    ]  # fmt: skip
    return {"layers": scores, "groups": groups, "survivors": survivors}


def measure(
    count: int, seed: int, limit: int, layers: Sequence[str] = tuple(LAYERS), recorded_in: Path | None = None
) -> dict[str, Any]:
    """Draw, run and count; seconds are those of the wall clock with two mutants at a time.

    What `recorded_in` has of a run that was ended, of the same commit and seed, is not recorded again.
    """
    drawn, started = draw_mutants(count, seed), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hermetic-mutants-") as name:
        folder = Path(name)
        coverage = record_coverage(recorded_in or folder, layers, seed)
        recorded = time.monotonic()
        tests = [covering_tests(coverage, mutant, limit, seed) for _, mutant in drawn]
        checkouts = [copy_checkout(folder / str(number)) for number in range(WORKERS)]
        left_out = failing_tests(checkouts[0], tests, seed)
        if left_out:
            _print_step(f"left out, since they fail in a copy of the checkout: {', '.join(sorted(left_out))}")
        tests = [without_tests(covering, left_out) for covering in tests]

        def run(number: int) -> list[Outcome]:
            return [
                _outcome(checkouts[number], drawn[position], tests[position], seed)
                for position in range(number, len(drawn), WORKERS)
            ]

        with ThreadPoolExecutor(WORKERS) as pool:
            outcomes = [outcome for part in pool.map(run, range(WORKERS)) for outcome in part]
    seconds = {"coverage": round(recorded - started), "mutants": round(time.monotonic() - recorded)}
    settings = {
        "date": datetime.now(UTC).date().isoformat(), "count": len(drawn), "seed": seed, "testsOfALayer": limit,
        "testsLeftOut": len(left_out), "layersLeftOut": [layer for layer in LAYERS if layer not in layers],
    }  # fmt: skip
    return {**settings, "seconds": seconds, **figures_of(outcomes, layers)}


def _outcome(checkout: Path, drawn: tuple[str, Mutant], covering: Covering, seed: int) -> Outcome:
    group, mutant = drawn
    started = time.monotonic()
    outcome = Outcome(group, mutant, tuple(covering), run_mutant(checkout, mutant, covering, seed))
    verdict = ", ".join(outcome.finding) or ("not found" if covering else "not reached")
    _print_step(f"{mutant.file}:{mutant.line} {mutant.description}: {verdict} ({time.monotonic() - started:.0f} s)")
    return outcome


def _print_step(message: str) -> None:
    print(f"mutants: {message}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Measure and write; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="mutants to draw (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="of mutants and of the tests' own samples (default: 1)")
    parser.add_argument("--tests", type=int, default=8, help="tests of a layer for one mutant, at most (default: 8)")
    parser.add_argument(
        "--layer", action="append", choices=LAYERS, help="try this layer alone, and without --save write no result"
    )
    parser.add_argument("--save", action="store_true", help="write the result of the layers that --layer names")
    parser.add_argument(
        "--coverage",
        type=Path,
        metavar="FOLDER",
        help="keep what tests reach in this folder, to run again after a stop",
    )
    options = parser.parse_args(arguments)
    load = load_average()
    layers = options.layer or tuple(LAYERS)
    figures = measure(options.count, options.seed, options.tests, layers, options.coverage)
    if options.layer and not options.save:
        print(json.dumps(figures, indent=2))
        return 0
    print(results.save("mutants", figures, load))
    write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
