"""`python -m testbed COMMAND`: one command per module, imported only when asked for."""

from __future__ import annotations

import sys

from testbed.commands import run

COMMANDS = {
    "programs": "testbed.programs",
    "run": "testbed.run",
    "controlplane": "testbed.controlplane",
    "cloud-provider": "testbed.cloud_provider",
    "gateway-controller": "testbed.gateway.controller",
    "probe-simulator": "testbed.probe_simulator",
    "azure": "testbed.azure.command",
    "azure-cli": "testbed.azure_cli.installing",
    "real-engine": "testbed.real_engine.installing",
    "audit-demo": "testbed.azure.audit_demo",
    "node": "testbed.node.command",
    "packages": "testbed.packages",
    "images": "testbed.images.command",
    "demo": "testbed.demo.walkthrough",
}


def main(arguments: list[str]) -> int:
    """Runs one command. Exit 2 for an unknown one, 1 when the test bed gave up, else what the command says."""
    return run("testbed", COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
