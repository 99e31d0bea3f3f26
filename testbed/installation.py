"""Hermetic on a cluster: CRDs, RBAC and policies applied as a user would, and the operator run as its own account.

The operator runs as a process of this machine with the token of its ServiceAccount: what it may do is what the
manifests grant.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hermetic.cli.installation import Installation, rights
from testbed.api import Api
from testbed.certificates import write_private
from testbed.errors import ApiError, ComponentError
from testbed.json_lines import json_lines
from testbed.kubectl import Kubectl
from testbed.policies_in_force import wait_for_policies
from testbed.processes import Component, free_port, wait_until

REPOSITORY = Path(__file__).resolve().parent.parent
ACCOUNT = "system:serviceaccount:hermetic-system:hermetic-operator"
TOKENS = "/api/v1/namespaces/hermetic-system/serviceaccounts/hermetic-operator/token"

# What the samples use: one registry and two shares, for every namespace.
CONFIGURATION: dict[str, Any] = {
    "registries": [{"host": "contoso.azurecr.io", "namespaces": ["*"]}],
    "shares": [
        {"account": "contosomodels", "share": "models", "namespaces": ["*"]},
        {"account": "contosomodels", "share": "nim", "namespaces": ["*"]},
        {"server": "nfs.contoso.internal", "path": "/export/models", "namespaces": ["*"]},
    ],
    # Most tests are about something else than the proof of isolation; the gate's own set it back to Enforce.
    "isolation": {"minimumEnforcement": "Off"},
    # Nor about the verification of weights; the tests of that name a verifier, or leave this out.
    "integrity": {"minimumPolicy": "Off"},
}


def install(kubectl: Kubectl, installation: Installation | None = None) -> None:
    """Apply CRDs, RBAC and policies with kubectl, and wait until the CRDs are served and the policies in force.

    With an `installation` its rights are those that `hermetic rbac` prints for it; its namespaces are made first.
    """
    if installation is None:
        kubectl("apply", "--server-side", "--filename", _rendered(kubectl, "manifests/base"))
    else:
        kubectl("apply", "--server-side", "--filename", _rendered(kubectl, "crds"))
        for namespace in installation.configuration.watch_namespaces:
            kubectl("create", "namespace", namespace)
        kubectl.apply(*rights(installation))
    crds = [f"crd/{path.stem}" for path in (REPOSITORY / "crds").glob("*.hermetic.dev.yaml")]
    kubectl("wait", "--for=condition=Established", "--timeout=30s", *crds)
    wait_for_policies(kubectl)


def _rendered(kubectl: Kubectl, folder: str) -> str:
    rendered = kubectl("kustomize", str(REPOSITORY / folder))
    file = kubectl.kubeconfig.parent / "hermetic-install.yaml"
    file.write_text(rendered)
    return str(file)


def operator_kubeconfig(api: Api, admin: Path, path: Path, server: str | None = None, *, tokens: str = TOKENS) -> Path:
    """A kubeconfig that is the operator's ServiceAccount and nothing more; `server` may be a proxy's.

    `tokens` is the API path that gives tokens of another account.
    """
    token = api.create(tokens, {"spec": {"expirationSeconds": 36000}})["status"]["token"]
    config = yaml.safe_load(admin.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    if server is not None:
        config["clusters"][0]["cluster"]["server"] = server
    return write_private(path, json.dumps(config).encode())


@dataclass
class OperatorProcess:
    """One `hermetic run`, with its configuration, log and health port in a folder.

    module: what Python runs in the place of `hermetic`, with its first arguments; `testbed.moved_clock` for one.
    environment: more variables of the process.
    """

    folder: Path
    kubeconfig: Path
    configuration: dict[str, Any] = field(default_factory=lambda: dict(CONFIGURATION))
    name: str = "hermetic"
    module: tuple[str, ...] = ("hermetic",)
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = free_port()
        self.config_file = self.folder / f"{self.name}.yaml"
        # Tests count every reconcile, also those that change nothing.
        settings = {"log": {"level": "debug"}, **self.configuration, "httpPort": self.port}
        self.config_file.write_text(yaml.safe_dump(settings))
        self.component = Component(
            self.name,
            [sys.executable, "-m", *self.module, "run", "--config", self.config_file],
            self.folder / f"{self.name}.log",
            # The identity survives a restart, as that of a restarted container does.
            {
                "KUBECONFIG": str(self.kubeconfig),
                "POD_NAME": self.name,
                "POD_UID": str(self.folder),
                "PYTHONUNBUFFERED": "1",
                "USER": os.environ.get("USER", "hermetic"),
                **self.environment,
            },
        )

    def start(self, timeout: float = 60.0) -> None:
        """Start, and return when everything was listed."""
        self.component.start()
        wait_until("operator ready", self.ready, [self.component], timeout)

    def ready(self) -> bool:
        """Whether /readyz says yes."""
        return self._get("/readyz")[0] == 200

    def metrics(self) -> str:
        """The exposition text; "" of a process that ended. One that does not answer in time is asked again."""
        answers: list[str] = []

        def is_answered() -> bool:
            status, text = self._get("/metrics")
            answers.append(text)
            return status == 200 or self.component.exit_code is not None

        wait_until("metrics", is_answered, [])
        return answers[-1]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """End it; returns the exit code."""
        self.component.stop(how, timeout=15.0)
        return self.component.exit_code

    def log_lines(self) -> list[dict[str, Any]]:
        """Every structured line so far."""
        return json_lines(self.component.log)

    def _get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()


def wait_for(
    subject: str, poll: Callable[[], Any], operator: OperatorProcess | None = None, timeout: float = 60.0
) -> Any:
    """Call `poll` until it returns a true value, and return that value. A 404 of the API server counts as no value.

    If the operator dies, the wait ends with its log.
    """
    values: list[Any] = []

    def has_value() -> bool:
        try:
            value = poll()
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        if value:
            values.append(value)
        return bool(value)

    wait_until(subject, has_value, [operator.component] if operator else [], timeout)
    return values[-1]


__all__ = [
    "ACCOUNT",
    "CONFIGURATION",
    "ComponentError",
    "OperatorProcess",
    "install",
    "operator_kubeconfig",
    "wait_for",
]
