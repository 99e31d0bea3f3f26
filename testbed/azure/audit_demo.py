"""`make audit-demo`: the reference estate behind a local stand-in for Azure, audited as a user would audit it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from testbed.azure.reference_estate import reference_estate
from testbed.azure.server import ArmStandIn
from testbed.errors import BedError

REPOSITORY = Path(__file__).resolve().parents[2]
REPORT = REPOSITORY / "build" / "audit-demo.html"
SNAPSHOT = REPORT.with_suffix(".json")
FAILED = 1


def main(arguments: list[str]) -> int:
    """Prints the findings, and the path of the HTML report. 0 when the audit found the egress paths of the estate."""
    if arguments:
        raise BedError("audit-demo takes no arguments")
    REPORT.parent.mkdir(exist_ok=True)
    estate = reference_estate()
    with ArmStandIn(estate) as arm:
        _say("Azure is simulated at its HTTP boundary; the estate is the public reference deployment, from its facts")
        command = [
            "hermetic",
            "audit",
            "--azure",
            estate.cluster,
            "--out",
            str(REPORT),
            "--save-snapshot",
            str(SNAPSHOT),
        ]
        _say(" ".join(command))
        program = str(Path(sys.executable).parent / "hermetic")
        environment = {**os.environ, "HERMETIC_ARM_TOKEN": arm.token, "NO_PROXY": "127.0.0.1"}
        ended = subprocess.run([program, *command[1:], "--arm-endpoint", arm.url], env=environment, check=False)
    if ended.returncode != FAILED:
        raise BedError(f"the audit ended with {ended.returncode}: the egress paths of this estate were not found")
    _say(f"exit code {ended.returncode}: there are egress paths. The report, one file that fetches nothing: {REPORT}")
    _say(f"the same estate again, with a policy, exceptions or another format: {program} audit --snapshot {SNAPSHOT}")
    return 0


def _say(sentence: str) -> None:
    print(f"== {sentence}", flush=True)
