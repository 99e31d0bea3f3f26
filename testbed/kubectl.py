"""kubectl as tests and the demo use it: one cluster, text or JSON out, manifests in as dicts."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import BedError

Manifest = dict[str, Any]


class KubectlError(BedError):
    """kubectl ended with an error; the message is what it said."""


@dataclass(frozen=True)
class Kubectl:
    """`kubectl("get", "pods")` returns what it prints; `namespace`, when set, is the default one."""

    program: Path
    kubeconfig: Path
    namespace: str | None = None
    timeout: float = 60.0

    def __call__(self, *arguments: str, stdin: str | Manifest | list[Manifest] | None = None) -> str:
        """Raises KubectlError with kubectl's own words. A list on stdin becomes a List of its members."""
        scope = () if self.namespace is None else ("--namespace", self.namespace)
        command = [str(self.program), "--kubeconfig", str(self.kubeconfig), *scope, *arguments]
        done = subprocess.run(
            command, input=_text(stdin), capture_output=True, text=True, timeout=self.timeout, check=False
        )
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments: str, stdin: str | Manifest | list[Manifest] | None = None) -> Any:
        """The same with `--output json`, decoded."""
        return json.loads(self(*arguments, "--output", "json", stdin=stdin))

    def apply(self, *manifests: Manifest) -> str:
        """Server-side apply under a manager of its own, as a GitOps tool would."""
        return self("apply", "--server-side", "--field-manager=tests", "--filename=-", stdin=list(manifests))

    def within(self, namespace: str) -> Kubectl:
        """The same kubectl with another default namespace."""
        return Kubectl(self.program, self.kubeconfig, namespace, self.timeout)


def _text(stdin: str | Manifest | list[Manifest] | None) -> str | None:
    if isinstance(stdin, list):
        stdin = {"apiVersion": "v1", "kind": "List", "items": stdin}
    return json.dumps(stdin) if isinstance(stdin, dict) else stdin
