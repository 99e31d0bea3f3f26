"""What a process of the operator loads before anybody wants an audit."""

from __future__ import annotations

import subprocess
import sys

LOADED = "import sys, hermetic.cli.run, hermetic.controller.wiring; print(*sys.modules)"


def test_without_an_egress_audit_nothing_of_the_audit_is_loaded() -> None:
    """It is 20 MiB; `controller/judging.py` puts it together at the first need."""
    loaded = set(
        subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "hermetic.controller.reconciler" in loaded
    assert not {"cryptography", "jinja2", "httpx", "hermetic.audit.judging", "hermetic.audit.checks"} & loaded
