"""checkov and kube-score find nothing in models and the chart but what docs/security.md explains.

Models are those of a platform with the options for policies: `modelMetadata`, `podUsers`, limits in the manifest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from hermetic.api.configuration import Configuration
from hermetic.collect.probe.job import ProbedNode, ProbePods, probe_job
from hermetic.kinds import THE_EGRESS_AUDIT
from hermetic.plan.desired_children import desired_children
from shipping.chart import CHART
from testbed.installation import REPOSITORY
from testbed.manifest_linters import LintFinding, checkov_findings, kube_score_findings
from testbed.programs import programs
from tests.renderings import RENDERINGS
from tests.sampled_groups import SHIPPING
from tests.scenarios import DIGEST, changed
from tests.snapshots import POLICY, a_snapshot, owner_of, spec_of

pytestmark = SHIPPING

HEADING = "## Linters of manifests"
PLATFORM = {
    "podUsers": [{"runAsUser": 10001, "runAsGroup": 10001, "namespaces": ["*"]}],
    "modelMetadata": {"labels": {"environment": "production"}, "annotations": {"example.com/contact": "platform"}},
    "integrity": {"verifiers": [f"contoso.azurecr.io/hermetic@sha256:{DIGEST}"]},
}
LIMITS = {"cpuLimit": "16", "memory": "200Gi", "ephemeralStorageLimit": "30Gi"}


def a_platforms_model(shape: str) -> str:
    """Every object of a model whose manifest has all limits, on a platform with PLATFORM."""
    policy = Configuration.model_validate({**POLICY.model_dump(by_alias=True, exclude_unset=True), **PLATFORM})
    manifest = changed(RENDERINGS[shape], resources=LIMITS, replicas=2)
    children = desired_children(spec_of(manifest), a_snapshot(owner_of(manifest), policy=policy))
    return yaml.safe_dump_all(children, sort_keys=False)


def the_chart() -> str:
    """The objects of the chart with its defaults and the addresses of an API server."""
    values = f"image.registry=contoso.azurecr.io,image.digest=sha256:{DIGEST},networkPolicy.apiServers={{10.0.0.4/32}}"
    command = [
        programs("helm")["helm"],
        "template",
        "hermetic",
        CHART,
        "--namespace",
        "hermetic-system",
        "--set",
        values,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def the_probe() -> str:
    """A Job of the egress probe in each network."""
    image = f"contoso.azurecr.io/hermetic@sha256:{DIGEST}"
    pods = ProbePods(namespace="hermetic-probe", image=image, audit=THE_EGRESS_AUDIT)
    node = ProbedNode("gpu", "nodes", "node-1")
    return yaml.safe_dump_all(probe_job(pods, node, "round1", host_network=host) for host in (False, True))


MANIFESTS: dict[str, Callable[[], str]] = {
    "vLLM": partial(a_platforms_model, "share"),
    "SGLang": partial(a_platforms_model, "sglang"),
    "NIM": partial(a_platforms_model, "nim-profile"),
    "operator": the_chart,
    "probe": the_probe,
}


def explained(linter: str) -> set[tuple[str, str]]:
    """(rule, where) of every row of the table in docs/security.md."""
    section = (
        (REPOSITORY / "docs" / "security.md")
        .read_text(encoding="utf-8")
        .partition(f"{HEADING}\n")[2]
        .partition("\n## ")[0]
    )
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row] for row in rows[1:]]
    assert all(reason for *_, reason in cells)
    return {
        (rule.strip("`"), location)
        for name, rule, locations, _ in cells
        if name == linter
        for location in locations.split(", ")
    }


def found(lint: Callable[[Path], set[LintFinding]], folder: Path) -> set[tuple[str, str]]:
    """(rule, where) of every finding of one linter in MANIFESTS."""
    findings = set()
    for location, manifests in MANIFESTS.items():
        file = folder / f"{location}.yaml"
        file.write_text(manifests(), encoding="utf-8")
        findings |= {(finding.rule, location) for finding in lint(file)}
    return findings


def test_checkov_finds_what_is_explained_and_nothing_else(tmp_path: Path) -> None:
    assert found(checkov_findings, tmp_path) == explained("checkov")


def test_kube_score_finds_what_is_explained_and_nothing_else(tmp_path: Path) -> None:
    assert found(kube_score_findings, tmp_path) == explained("kube-score")


@pytest.mark.parametrize(
    ("lint", "rule"), [(checkov_findings, "CKV_K8S_16"), (kube_score_findings, "container-security-context-privileged")]
)
def test_a_privileged_container_is_found(lint: Callable[[Path], set[LintFinding]], rule: str, tmp_path: Path) -> None:
    """The linters run, and read these manifests."""
    documents = list(yaml.safe_load_all(a_platforms_model("share")))
    deployment = next(document for document in documents if document["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["securityContext"]["privileged"] = True
    (tmp_path / "model.yaml").write_text(yaml.safe_dump_all(documents))
    assert rule in {finding.rule for finding in lint(tmp_path / "model.yaml")}
