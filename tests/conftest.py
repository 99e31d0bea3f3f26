"""The cluster that tests run against, and what they leave behind when they fail.

    cluster        path of an administrator's kubeconfig: HERMETIC_TEST_KUBECONFIG, or the embedded control plane
    controlplane   the embedded control plane itself, for tests that read its audit log or stop its parts
    namespace      a fresh namespace per test
    kubectl, api   two ways to talk to the cluster
    sample         what a run tries of a large enumeration (tests/sampling.py)

Under pytest-xdist every worker has a control plane of its own, so nothing cluster-wide is shared.
A skip is a failure when CI=true or HERMETIC_REQUIRE_ALL=1: a layer that silently stops running protects nothing.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# the test bed is a folder of this repository, not an installed package
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testbed.api import Api
from testbed.console import say
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import BedError, CannotRunError
from testbed.fault_proxy import SEED_VARIABLE
from testbed.kubectl import Kubectl
from testbed.programs import CONTROL_PLANE_FAMILIES, NODE_FAMILIES, OLDEST_KUBERNETES, programs
from tests import figures, namespaces, sampling

PROGRAMS_FOR = {
    "celcheck": ("celcheck",),
    "cluster": CONTROL_PLANE_FAMILIES,
    "cluster_of_its_own": (*CONTROL_PLANE_FAMILIES, "helm"),
    "controlplane": CONTROL_PLANE_FAMILIES,
    "fluxed": (*CONTROL_PLANE_FAMILIES, "helm", "flux", "registry"),
    "helm": ("helm", "kubernetes"),
    "node": NODE_FAMILIES,
}
LOG_LINES = 40
OLDEST = "--oldest-kubernetes"

_logs = pytest.StashKey[dict[str, Path]]()
_log_sizes = pytest.StashKey[dict[str, int]]()


def required() -> bool:
    """Whether every layer must run here."""
    return os.environ.get("CI", "").lower() in {"1", "true"} or os.environ.get("HERMETIC_REQUIRE_ALL") == "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "repeat what chance did in an earlier run: fault tests and the figures of samples print the seed"
    parser.addoption("--replay", metavar="SEED", help=help_text)
    parser.addoption(OLDEST, action="store_true", help="run the control plane of the oldest supported Kubernetes")
    sampling.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell starts what runs in the background deaf to it, and the programs of the tests would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # where the environment forbids to keep it, hundreds of processes would compile the product, each for itself
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.stash[_logs] = {}
    if seed := config.getoption("--replay"):
        os.environ[SEED_VARIABLE] = seed
    sampling.configure(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Gives a worker of pytest-xdist the seed of the samples, else each would draw its own."""
    node.workerinput[sampling.PROPERTY] = sampling.seed_of(node.config)


@pytest.hookimpl(trylast=True)  # what -k leaves out is no part of what there is
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = sampling.left_out(items, sampling.seed_of(config))
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collects no garbage meanwhile: thousands of tests are made, none is garbage, and each collection walks all."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds programs before the first test: a cold build takes longer than any test may."""
    gc.collect()
    gc.freeze()  # modules and thousands of tests live until the end: each full collection would walk them again
    if "hypothesis" in sys.modules:
        from tests.example_constants import fix_constants  # loads Hypothesis, which few tests need

        fix_constants()
    used = {name for item in session.items for name in _fixtures_of(item)}
    families = {family for name in used & PROGRAMS_FOR.keys() for family in PROGRAMS_FOR[name]}
    if session.config.getoption(OLDEST) and "kubernetes" in families:
        families.add(OLDEST_KUBERNETES)
    if not families or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            programs(*sorted(families))
        except BedError as error:
            # the fixture that needs them says it again, test by test
            say(str(error))


def _fixtures_of(item: pytest.Item) -> set[str]:
    """Without the parameters of the test: one called `cluster` needs no cluster."""
    given = getattr(getattr(item, "callspec", None), "params", {})
    return set(getattr(item, "fixturenames", ())) - set(given)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[_log_sizes] = {name: _size(log) for name, log in item.config.stash[_logs].items()}
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    report = yield
    if report.skipped and required() and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{reason} (a skip is a failure here: CI or HERMETIC_REQUIRE_ALL is set)"
    if report.failed:
        report.sections.extend(_log_sections(item))
    return report


def _log_sections(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """The end of what every component logged during this test."""
    before = item.stash.get(_log_sizes, {})
    for name, log in item.config.stash[_logs].items():
        if not log.is_file():
            continue
        with log.open("rb") as lines:
            lines.seek(before.get(name, 0))
            written = lines.read().decode(errors="replace").splitlines()
        if written:
            yield f"log of {name}", "\n".join(written[-LOG_LINES:])


def _size(log: Path) -> int:
    return log.stat().st_size if log.is_file() else 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures.show(terminalreporter)


@pytest.fixture
def sample(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> sampling.Sample:
    """`sample.of("tamperings", range(100_000), 5_000)`: all of them in CI."""
    return sampling.Sample(sampling.seed_of(request.config), request.node.nodeid, record_property, sampling.is_ci())


@pytest.fixture(scope="session")
def component_logs(pytestconfig: pytest.Config) -> dict[str, Path]:
    """Log files shown when a test fails, by name; fixtures that start a program add theirs."""
    return pytestconfig.stash[_logs]


@pytest.fixture(scope="session")
def controlplane(component_logs: dict[str, Path], pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """The embedded control plane, with the requests of all users in its audit log."""
    if os.environ.get("HERMETIC_TEST_KUBECONFIG"):
        pytest.skip("needs the embedded control plane, and HERMETIC_TEST_KUBECONFIG names another cluster")
    try:
        plane = ControlPlane(Settings(audit_users=(), oldest_kubernetes=pytestconfig.getoption(OLDEST)))
        plane.start()
    except CannotRunError as reason:
        pytest.skip(str(reason))
    logs = {component.name: component.log for component in plane.components}
    component_logs.update(logs)
    yield plane
    plane.stop()
    for name in logs:
        del component_logs[name]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Path:
    """Kubeconfig of an administrator of the cluster under test."""
    if existing := os.environ.get("HERMETIC_TEST_KUBECONFIG"):
        return Path(existing)
    plane: ControlPlane = request.getfixturevalue("controlplane")
    return plane.kubeconfig


@pytest.fixture(scope="session")
def kubectl(cluster: Path) -> Kubectl:
    """`kubectl("get", "nodes")`; `kubectl.json(...)`; `kubectl.within(namespace)(...)`."""
    try:
        return Kubectl(programs("kubernetes")["kubectl"], cluster)
    except CannotRunError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def api(cluster: Path) -> Api:
    """A plain JSON client, for tests that poll or count; cheaper than a process per question."""
    return Api(cluster)


@pytest.fixture
def make_namespace(request: pytest.FixtureRequest, api: Api) -> Iterator[Callable[[str], str]]:
    """Makes namespaces named after the test, with an optional suffix (as of a failure mode); empties them after."""
    slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")[:24].rstrip("-")
    made: list[str] = []

    def make(suffix: str = "") -> str:
        name = f"t-{slug}-{secrets.token_hex(3)}{suffix}"
        namespaces.make_namespace(api, name)
        made.append(name)
        return name

    yield make
    for name in made:
        namespaces.empty_namespace(api, name)


@pytest.fixture
def namespace(make_namespace: Callable[[], str]) -> str:
    """A fresh namespace with its default service account."""
    return make_namespace()
