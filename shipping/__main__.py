"""`python -m shipping COMMAND`: makes what users receive."""

from __future__ import annotations

import sys

from testbed.commands import run

COMMANDS = {
    "bundle": "shipping.bundle",
    "chart": "shipping.chart",
    "cli": "shipping.command_line",
    "image": "shipping.image_command",
    "lock": "shipping.debian",
    "release": "shipping.release",
    "site": "shipping.site",
    "verify-release": "shipping.verify_release",
    "wheels": "shipping.wheels",
}


def main(arguments: list[str]) -> int:
    """Runs one command. Exit 2 for an unknown one, 1 when it gave up, else what the command says."""
    return run("shipping", COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
