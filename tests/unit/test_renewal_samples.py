"""docs/samples/renewal: the script does what docs/renewal.md says for every end of an audit; the schedules start it.

Shapes of the schedules: https://learn.microsoft.com/azure/devops/pipelines/yaml-schema/schedules-cron and
https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax. Units: systemd.timer(5) and
systemd.service(5).
"""

from __future__ import annotations

import configparser
import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from hermetic.cli import module_of
from tests.install_page import commands

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "docs" / "samples" / "renewal"
SCRIPT = SAMPLES / "renew-attestation.sh"
INSTALLED = "/usr/local/libexec/renew-attestation.sh"
PAGE = (ROOT / "docs" / "renewal.md").read_text(encoding="utf-8")
CLUSTER = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/aks"
# Each writes its arguments, one a line, and an empty line. `hermetic` writes an attestation where an audit would.
HERMETIC = """#!/bin/sh
printf '%s\\n' "$@" "" >> "$RECORD/hermetic"
while [ $# -gt 0 ]; do case $1 in --attestation) file=$2 ;; esac; shift; done
case $AUDIT_CODE in 0|1|3) echo "kind: EgressAttestation" > "$file" ;; esac
exit "$AUDIT_CODE"
"""
KUBECTL = """#!/bin/sh
printf '%s\\n' "$@" "" >> "$RECORD/kubectl"
case $1 in
  apply) exit "${APPLY_CODE:-0}" ;;
  get) i=1; while [ $i -le 7 ]; do echo "egressattestation.hermetic.dev/a$i"; i=$((i + 1)); done ;;
esac
"""


class JumpBox:
    """A folder with the settings, an archive, and programs that record how they were called."""

    def __init__(self, folder: Path) -> None:
        self.archive, self.record, self._programs = folder / "archive", folder / "record", folder / "bin"
        for directory in (self.archive, self.record, self._programs):
            directory.mkdir()
        for name, text in (("hermetic", HERMETIC), ("kubectl", KUBECTL)):
            (self._programs / name).write_text(text)
            (self._programs / name).chmod(0o755)
        self._settings = folder / "renewal.env"
        self._settings.write_text(
            f"CLUSTER={CLUSTER}\nSIGNING_KEY={folder}/platform.key\nINPUTS={folder}\nATTESTATIONS={self.archive}\n"
        )

    def renew(self, audit_code: int, **variables: str) -> int:
        environment = {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "RENEWAL_SETTINGS": str(self._settings),
            "RECORD": str(self.record),
            "AUDIT_CODE": str(audit_code),
            **variables,
        }
        ran = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False, timeout=60)
        return ran.returncode

    def calls(self, program: str) -> list[list[str]]:
        file = self.record / program
        return [call.splitlines() for call in file.read_text().split("\n\n") if call] if file.exists() else []

    @property
    def attestations(self) -> list[Path]:
        return sorted(self.archive.glob("*.yaml"))


@pytest.fixture
def jump_box(tmp_path: Path) -> JumpBox:
    return JumpBox(tmp_path)


@pytest.mark.parametrize(
    ("audit_code", "is_applied"), [(0, True), (1, True), (2, False), (3, False), (4, False), (127, False)]
)
def test_a_pass_and_a_fail_are_applied_and_nothing_else(jump_box: JumpBox, audit_code: int, is_applied: bool) -> None:
    assert jump_box.renew(audit_code) == audit_code

    verbs = [call[0] for call in jump_box.calls("kubectl")]
    assert verbs == (["apply", "get", "delete"] if is_applied else [])
    assert len(jump_box.attestations) == int(is_applied)
    if is_applied:
        assert jump_box.calls("kubectl")[0][-1] == str(jump_box.attestations[0])


def test_the_next_renewal_follows_the_newest_attestation_that_was_applied(jump_box: JumpBox) -> None:
    for name in ("2026-11-23T08-00-00Z", "2026-11-24T08-00-00Z"):
        (jump_box.archive / f"{name}.yaml").write_text("")
    (jump_box.archive / "newest-report.html").write_text("")

    jump_box.renew(3)
    jump_box.renew(0)

    followed = [call[call.index("--previous") + 1] for call in jump_box.calls("hermetic")]
    assert followed == [str(jump_box.archive / "2026-11-24T08-00-00Z.yaml")] * 2


def test_the_first_renewal_follows_no_attestation(jump_box: JumpBox) -> None:
    jump_box.renew(0)
    (call,) = jump_box.calls("hermetic")
    assert "--previous" not in call


def test_an_attestation_that_could_not_be_applied_stays_in_the_chain_and_the_run_fails(jump_box: JumpBox) -> None:
    assert jump_box.renew(0, APPLY_CODE="1") != 0
    assert len(jump_box.attestations) == 1
    assert [call[0] for call in jump_box.calls("kubectl")] == ["apply"]


def test_old_attestations_leave_the_cluster_and_the_newest_five_stay(jump_box: JumpBox) -> None:
    jump_box.renew(0)
    deleted = [call[1:] for call in jump_box.calls("kubectl") if call[0] == "delete"]
    assert deleted == [["egressattestation.hermetic.dev/a1", "egressattestation.hermetic.dev/a2"]]


@pytest.mark.parametrize("missing", ["CLUSTER", "SIGNING_KEY", "ATTESTATIONS", "INPUTS"])
def test_a_setting_that_is_missing_ends_the_run_before_the_audit(
    jump_box: JumpBox, tmp_path: Path, missing: str
) -> None:
    settings = tmp_path / "renewal.env"
    settings.write_text(re.sub(rf"^{missing}=.*\n", "", settings.read_text(), flags=re.MULTILINE))
    assert jump_box.renew(0) != 0
    assert jump_box.calls("hermetic") == []


def test_the_command_line_of_hermetic_accepts_every_call_of_the_script(jump_box: JumpBox) -> None:
    jump_box.renew(0)
    jump_box.renew(1, VALID_HOURS="168")
    for name, *arguments in jump_box.calls("hermetic"):
        command: click.Command = importlib.import_module(module_of(name)).command
        parsed = command.make_context(name, arguments).params
        assert parsed["azure"] == (CLUSTER,)
        assert parsed["sign"] is not None
        assert parsed["attestation"] is not None


def test_the_settings_of_the_sample_are_all_that_the_script_needs() -> None:
    names = re.findall(r"^(?:export )?(\w+)=", (SAMPLES / "renewal.env").read_text(), re.MULTILINE)
    needed = set(re.findall(r"\$\{(\w+):\?", SCRIPT.read_text()))
    assert needed <= set(names)
    assert "KUBECONFIG" in names


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string((SAMPLES / name).read_text(encoding="utf-8"))
    return parser


def test_the_timer_starts_the_service_every_eight_hours_and_after_a_time_without_power() -> None:
    timer, service = unit("hermetic-renewal.timer"), unit("hermetic-renewal.service")
    assert timer["Timer"]["OnCalendar"] == "*-*-* 00/8:00:00 UTC"
    assert timer["Timer"]["Persistent"] == "yes"
    assert "Unit" not in timer["Timer"], "without it a timer starts the service of its own name"
    assert service["Service"]["Type"] == "oneshot"
    assert service["Service"]["ExecStart"] == INSTALLED
    assert service["Service"]["RestartPreventExitStatus"].split() == ["1", "2"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_verifies_the_units(tmp_path: Path) -> None:
    for name in ("hermetic-renewal.timer", "hermetic-renewal.service"):
        text = (SAMPLES / name).read_text(encoding="utf-8").replace(INSTALLED, str(SCRIPT))
        (tmp_path / name).write_text(text)

    def verify() -> subprocess.CompletedProcess[str]:
        units = sorted(tmp_path.glob("hermetic-renewal.*"))
        return subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False, timeout=60
        )

    verified = verify()
    assert (verified.returncode, verified.stderr) == (0, "")
    broken = (tmp_path / "hermetic-renewal.timer").read_text().replace("00/8:00:00 UTC", "00/8:00:00 Mars")
    (tmp_path / "hermetic-renewal.timer").write_text(broken)
    assert verify().stderr != ""


def every_eight_hours(cron: str) -> bool:
    minute, hour, *days = cron.split()
    return minute.isdigit() and hour == "*/8" and days == ["*", "*", "*"]


def test_the_pipeline_of_azure_starts_the_script_without_a_commit() -> None:
    pipeline: dict[str, Any] = yaml.safe_load((SAMPLES / "azure-pipelines.yaml").read_text())
    (schedule,) = pipeline["schedules"]
    assert schedule.keys() <= {"cron", "displayName", "branches", "always", "batch"}
    assert every_eight_hours(schedule["cron"])
    assert schedule["always"] is True
    assert (pipeline["trigger"], pipeline["pr"]) == ("none", "none")
    assert "vmImage" not in pipeline["pool"], "an agent of Microsoft reaches neither the cluster nor the key"
    (job,) = pipeline["jobs"]
    assert [step["script"] for step in job["steps"] if "script" in step] == [INSTALLED]


def test_the_workflow_of_github_starts_the_script_on_the_jump_box_and_fetches_nothing() -> None:
    # YAML 1.1 reads the key `on` as true; GitHub reads it as text.
    workflow: dict[Any, Any] = yaml.safe_load((SAMPLES / "github-actions.yaml").read_text())
    (schedule,) = workflow[True]["schedule"]
    assert every_eight_hours(schedule["cron"])
    assert workflow["permissions"] == {}
    (job,) = workflow["jobs"].values()
    assert job["runs-on"][0] == "self-hosted"
    assert [step["run"] for step in job["steps"]] == [INSTALLED]
    assert not [step for step in job["steps"] if "uses" in step]


def test_the_commands_of_the_page_install_each_file_where_the_others_look_for_it() -> None:
    targets: dict[str, str] = {}
    for line in commands("Set up", ROOT / "docs" / "renewal.md"):
        words = line.split()
        sources = [ROOT / word for word in words if word.startswith("docs/")]
        assert [source for source in sources if not source.is_file()] == []
        into = words[words.index("-t") + 1] if "-t" in words else str(Path(words[-1]).parent)
        targets |= {source.name: f"{into}/{source.name}" for source in sources}
    assert targets.pop(SCRIPT.name) == INSTALLED
    assert targets.pop("renewal.env") in SCRIPT.read_text()
    assert set(targets.values()) == {f"/etc/systemd/system/hermetic-renewal.{kind}" for kind in ("service", "timer")}


def test_the_page_lists_every_file_of_the_samples() -> None:
    assert [file.name for file in SAMPLES.iterdir() if f"`{file.name}`" not in PAGE] == []
