"""`python -m testbed COMMAND`: one command per module, imported only when asked for."""

from __future__ import annotations

import importlib
import sys

from testbed.errors import BedError

COMMANDS = {
    "programs": "testbed.programs",
    "controlplane": "testbed.controlplane",
    "cloud-provider": "testbed.cloud_provider",
    "probe-player": "testbed.probe_player",
    "azure": "testbed.azure.command",
    "audit-demo": "testbed.azure.audit_demo",
    "node": "testbed.node.command",
    "packages": "testbed.packages",
    "images": "testbed.images.command",
    "demo": "testbed.demo.play",
}


def main(arguments: list[str]) -> int:
    """Runs one command. Exit 2 for an unknown one, 1 when the test bed gave up, else what the command says."""
    if not arguments or arguments[0] not in COMMANDS:
        print(f"usage: python -m testbed {{{','.join(COMMANDS)}}} ...", file=sys.stderr)
        return 2
    command = importlib.import_module(COMMANDS[arguments[0]])
    try:
        return int(command.main(arguments[1:]))
    except BedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
