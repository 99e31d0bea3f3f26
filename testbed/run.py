"""`make run KUBECONFIG=FILE [CONFIG=FILE]`: the operator from this checkout, against a cluster of your own.

Applies CRDs, rights and admission policies as an installation does, and runs `hermetic run` with a token of the
operator's ServiceAccount, so that it may do what the manifests grant and nothing more. The kubeconfig must be an
administrator's. Without a configuration it runs with that of the test bed, which allows the registries and shares of
the samples and starts models without evidence of isolation. SIGTERM and SIGINT end it; the applied objects stay.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

import yaml

from testbed.api import Api
from testbed.console import say
from testbed.errors import BedError
from testbed.installation import CONFIGURATION, install, operator_kubeconfig
from testbed.kubectl import Kubectl
from testbed.processes import bound_to_us, free_port
from testbed.programs import programs

VERIFIER = f"contoso.azurecr.io/hermetic/hermetic@sha256:{'9b1c' * 16}"
"""Named by pods of models that pin their weights, such as the samples; no simulated node runs it."""


def run_operator(kubeconfig: Path, config: Path | None) -> int:
    """Install, run the operator in the foreground, and return its exit code; BedError where installing fails."""
    with tempfile.TemporaryDirectory(prefix="hermetic-run-") as name:
        folder = Path(name)
        # kubectl renders beside the kubeconfig that it is given: in the temporary folder, not beside the user's
        administrator = folder / "administrator.kubeconfig"
        administrator.touch(mode=0o600)
        administrator.write_bytes(kubeconfig.read_bytes())
        say("applying CRDs, rights and admission policies")
        install(Kubectl(programs("kubernetes")["kubectl"], administrator))
        account = operator_kubeconfig(Api(administrator), administrator, folder / "operator.kubeconfig")
        command = [sys.executable, "-m", "hermetic", "run", "--config", str(config or _configuration(folder))]
        say("running the operator; Ctrl+C ends it")
        with subprocess.Popen(bound_to_us(command), env={**os.environ, "KUBECONFIG": str(account)}) as operator:
            return _exit_code(operator)


def _configuration(folder: Path) -> Path:
    file = folder / "config.yaml"
    integrity = {**CONFIGURATION["integrity"], "verifiers": [VERIFIER]}
    file.write_text(yaml.safe_dump({**CONFIGURATION, "integrity": integrity, "httpPort": free_port()}))
    return file


def _exit_code(operator: subprocess.Popen[bytes]) -> int:
    """Waits for the operator; a signal to end is passed on, and the operator then finishes its writes."""

    def passed_on(_number: int, _frame: FrameType | None) -> None:
        operator.terminate()

    signal.signal(signal.SIGTERM, passed_on)
    while True:
        try:
            return operator.wait()
        except KeyboardInterrupt:
            operator.terminate()


def main(arguments: list[str]) -> int:
    """Parse, run; returns the operator's exit code."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of an administrator of the cluster")
    parser.add_argument("--config", type=Path, help="the operator's configuration; default: one for the samples")
    options = parser.parse_args(arguments)
    for file in filter(None, (options.kubeconfig, options.config)):
        if not file.is_file():
            raise BedError(f"{file}: no such file; `make controlplane` prints the kubeconfig of a cluster to try with")
    return run_operator(options.kubeconfig, options.config)
