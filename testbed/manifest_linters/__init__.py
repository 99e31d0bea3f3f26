"""Linters of Kubernetes manifests: checkov from its Python package, kube-score from its Go module.

kube-linter is not here: the module proxy does not serve it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.locked_environment import LockedEnvironment
from testbed.programs import programs

HERE = Path(__file__).resolve().parent
ENVIRONMENT = LockedEnvironment("manifest-linters", HERE / "requirements.lock", "90 MB to fetch, a minute")
# Its rules are in the package; without these it asks its vendor for their descriptions.
OFFLINE = {"BC_SKIP_MAPPING": "TRUE", "CHECKOV_EXPERIMENTAL_PLATFORM": "FALSE"}
FLAWLESS = 10
"""The grade of kube-score for a check without a comment."""


@dataclass(frozen=True, order=True, slots=True)
class LintFinding:
    """One rule that one object breaks. `rule` is the linter's own id, `subject` is Kind/name."""

    linter: str
    rule: str
    subject: str


def checkov_findings(manifests: Path) -> set[LintFinding]:
    """Rules of the framework `kubernetes` that fail; the file must be understood, and at least one rule must pass."""
    python = ENVIRONMENT.installed() / "bin" / "python"
    command = [str(python), "-I", "-m", "checkov.main", "--framework", "kubernetes", "--compact", "--skip-download"]
    done = subprocess.run(
        [*command, "--output", "json", "--file", str(manifests)],
        env={**os.environ, **OFFLINE},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    summary = report["summary"]
    if summary["parsing_errors"] or not summary["passed"]:
        raise ValueError(f"checkov did not check {manifests}: {summary}\n{done.stderr[-2000:]}")
    failed = report["results"]["failed_checks"]
    return {LintFinding("checkov", check["check_id"], _kind_and_name(check["resource"])) for check in failed}


def _kind_and_name(resource: str) -> str:
    """'Deployment.inference.llama' as 'Deployment/llama'."""
    kind, _, name = resource.split(".", 2)
    return f"{kind}/{name}"


def kube_score_findings(manifests: Path) -> set[LintFinding]:
    """Checks of its default set with a comment; the file must be understood, and at least one must have none."""
    program = programs("kube-score")["kube-score"]
    command = [str(program), "score", "--output-format", "json", str(manifests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise ValueError(f"kube-score did not check {manifests}: {done.stderr[-2000:]}")
    graded = list(_graded(json.loads(done.stdout)))
    if all(grade < FLAWLESS for _, grade in graded):
        raise ValueError(f"kube-score found nothing to check in {manifests}")
    return {finding for finding, grade in graded if grade < FLAWLESS}


def _graded(scored: list[dict[str, Any]]) -> Iterator[tuple[LintFinding, int]]:
    for scored_object in scored:
        subject = f"{scored_object['type_meta']['kind']}/{scored_object['object_meta']['name']}"
        for check in scored_object["checks"] or ():
            if not check["skipped"]:
                yield LintFinding("kube-score", check["check"]["id"], subject), check["grade"]
