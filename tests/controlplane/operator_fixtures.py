"""Fixtures for tests that run the operator; imported by this folder's conftest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.installation import CONFIGURATION, OperatorProcess, install, operator_kubeconfig
from testbed.kubectl import Kubectl

StartOperator = Callable[..., OperatorProcess]


@pytest.fixture(scope="session")
def installed(kubectl: Kubectl) -> None:
    """CRDs, RBAC and admission policies, applied as a user would."""
    install(kubectl)


@pytest.fixture
def start_operator(
    installed: None,  # noqa: ARG001
    api: Api,
    cluster: Path,
    namespace: str,
    tmp_path: Path,
    component_logs: dict[str, Path],
) -> Iterator[StartOperator]:
    """`start_operator(**configuration)`: the operator as its ServiceAccount, watching this test's namespace.

    `server=` puts a proxy in front of the API server. Only one can lead at a time.
    """
    running: list[OperatorProcess] = []

    def start(*, server: str | None = None, wait: bool = True, **configuration: Any) -> OperatorProcess:
        name = f"operator-{len(running)}"
        kubeconfig = operator_kubeconfig(api, cluster, tmp_path / f"{name}.kubeconfig", server)
        settings = {**CONFIGURATION, "watchNamespaces": [namespace], **configuration}
        process = OperatorProcess(tmp_path, kubeconfig, settings, name)
        running.append(process)
        component_logs[name] = process.component.log
        if wait:
            process.start()
        return process

    yield start
    for process in running:
        process.stop()
        component_logs.pop(process.name, None)


@pytest.fixture
def operator(start_operator: StartOperator) -> OperatorProcess:
    """The operator with its default configuration, ready."""
    return start_operator()
