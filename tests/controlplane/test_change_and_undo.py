"""docs/change-and-undo.md, typed as it is there: restarts, changes and undos, with the pods that serve meanwhile.

Machines are simulated (kwok): pods of an image `slow-start` serve after three seconds, those of `image-pull-back-off`
never. Every event of the pods is read again after a change, so that no moment with fewer serving pods is missed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hermetic.api.condition_updates import is_true
from testbed.api import Api
from testbed.installation import CONFIGURATION, REPOSITORY, OperatorProcess, operator_kubeconfig
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments
from tests.install_page import commands, documented
from tests.renderings import SHARES
from tests.scenarios import Manifest

NAME = "llama-3-1-8b"
PAGE = "docs/change-and-undo.md"
ENGINE, WEIGHTS, ONE_SECOND = "Another release of the engine", "Other weights", "Restart"
REPLICAS = 2
PROMISED = {"Replace": REPLICAS - 1, "Surge": REPLICAS}
"""The pods that serve at any moment of a change, as the page says."""
MOST_PODS = {"Replace": REPLICAS, "Surge": REPLICAS + 1}
SECTIONS = {ENGINE: ("spec", "engine", "vllm"), WEIGHTS: ("spec", "weights"), ONE_SECOND: ("spec",)}
HERMETIC = '#!/bin/sh\nexec {python} -m hermetic "$@"\n'


@dataclass(frozen=True)
class Pods:
    """The pods of a namespace at one moment, by name."""

    by_name: dict[str, Manifest]

    @property
    def serving(self) -> set[str]:
        """The uids of those that get requests."""
        return {
            pod["metadata"]["uid"]
            for pod in self.by_name.values()
            if is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]
        }

    @property
    def live(self) -> int:
        return sum("deletionTimestamp" not in pod["metadata"] for pod in self.by_name.values())

    @property
    def versions(self) -> dict[str, str]:
        return {name: pod["metadata"]["resourceVersion"] for name, pod in self.by_name.items()}


@dataclass(frozen=True)
class Team:
    """A team with its namespace, the file of its model, and the two programs of the page."""

    home: Deployments
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "llama.yaml"

    def type(self, *lines: str, **filled_in: str) -> str:
        """Runs lines of the page in a shell; returns what they print. A command that fails fails the test."""
        script = "\n".join(lines).replace("-n inference", f"-n {self.home.namespace}")
        for name, value in filled_in.items():
            script = re.sub(rf"\b{name}\b", value, script)
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'tools'}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.home.kubectl.kubeconfig),
        }
        shell = ["bash", "-eu", "-o", "pipefail", "-c", script]
        done = subprocess.run(
            shell, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=150
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def type_section(self, heading: str, **filled_in: str) -> str:
        return self.type(*commands(heading, REPOSITORY / PAGE), **filled_in)

    def edit(self, heading: str, mode: str | None = None, **fields: str) -> None:
        """Writes the fields that the page shows into the file; with a mode, the image is one that kwok treats so."""
        text = documented(PAGE, heading).replace("ROOT_DIGEST", "5e" * 32).replace("DIGEST", "22" * 32)
        manifest = yaml.safe_load(self.file.read_text())
        part = manifest
        for key in SECTIONS[heading]:
            part = part[key]
        part.update({**yaml.safe_load(text), **fields})
        written = yaml.safe_dump(manifest)
        self.file.write_text(written if mode is None else written.replace("vllm-openai", f"failure-{mode}"))

    def template(self) -> str:
        """The digest of the pod template, by the command of the page."""
        (line,) = (line for line in commands("Undo", REPOSITORY / PAGE) if "pod-template" in line)
        return self.type(line)

    def volumes(self) -> set[str]:
        """The PersistentVolumes that claims of the namespace are for."""
        claims = self.home.api.get(f"/api/v1/namespaces/{self.home.namespace}/persistentvolumeclaims")["items"]
        return {claim["spec"]["volumeName"] for claim in claims}

    def pods(self) -> tuple[Pods, str]:
        """The pods, and the version of their list."""
        listed = self.home.api.get(f"/api/v1/namespaces/{self.home.namespace}/pods")
        by_name = {pod["metadata"]["name"]: pod for pod in listed["items"]}
        return Pods(by_name), listed["metadata"]["resourceVersion"]

    def moments_since(self, pods: Pods, version: str) -> list[Pods]:
        """The pods after each event from an earlier list up to now."""
        moments, now = [pods], self.pods()[0].versions
        if pods.versions == now:
            return moments
        for event in self.home.api.watch(f"/api/v1/namespaces/{self.home.namespace}/pods", version, seconds=60):
            name, by_name = event["object"]["metadata"]["name"], dict(moments[-1].by_name)
            if event["type"] == "DELETED":
                del by_name[name]
            else:
                by_name[name] = event["object"]
            moments.append(Pods(by_name))
            if moments[-1].versions == now:
                return moments
        raise AssertionError("the watch ended before the present pods were reached")

    def serving_column(self) -> str:
        """What `kubectl get` prints below SERVING."""
        header, row = self.type(f"kubectl get mdep {NAME} -n inference").splitlines()
        return row[header.index("SERVING") :].split()[0]


@pytest.fixture(scope="module")
def hermetic(
    installed: None,  # noqa: ARG001
    api: Api,
    cluster: Path,
    tmp_path_factory: pytest.TempPathFactory,
    component_logs: dict[str, Path],
) -> Iterator[OperatorProcess]:
    """The operator for every namespace, with an image that verifies weights."""
    folder = tmp_path_factory.mktemp("hermetic")
    integrity = {"verifiers": [f"contoso.azurecr.io/hermetic@sha256:{'ab' * 32}"]}
    settings = {**CONFIGURATION, "shares": SHARES, "integrity": integrity}
    process = OperatorProcess(folder, operator_kubeconfig(api, cluster, folder / "operator.kubeconfig"), settings)
    component_logs["hermetic"] = process.component.log
    process.start()
    yield process
    process.stop()
    del component_logs["hermetic"]


@pytest.fixture
def team(served: Deployments, kubectl: Kubectl, tmp_path: Path) -> Team:
    """README's model with two replicas on an earlier release, with the tools of the page and no model yet."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "kubectl").symlink_to(kubectl.program)
    (tools / "hermetic").write_text(HERMETIC.format(python=sys.executable))
    (tools / "hermetic").chmod(0o755)
    manifest = yaml.safe_load(documented("README.md", "The first model"))
    manifest["metadata"]["namespace"] = served.namespace
    manifest["spec"] |= {"replicas": REPLICAS, "endpoint": {}, "isolation": {"enforcement": "Report"}}
    (tmp_path / "llama.yaml").write_text(yaml.safe_dump(manifest))
    return Team(served, tmp_path)


def serve(team: Team, rollout: str) -> None:
    """The model serves with this strategy, and the team has done what stands before each change."""
    manifest = yaml.safe_load(team.file.read_text())
    manifest["spec"]["rollout"] = rollout
    team.file.write_text(yaml.safe_dump(manifest))
    team.type_section("Apply it, and wait")
    team.type_section("Before a change")


def assert_promised(moments: list[Pods], rollout: str) -> None:
    assert min(len(moment.serving) for moment in moments) >= PROMISED[rollout]
    assert max(moment.live for moment in moments) <= MOST_PODS[rollout]


@pytest.mark.parametrize(("heading", "rollout"), [(ENGINE, "Replace"), (WEIGHTS, "Surge")])
def test_a_change_keeps_the_promised_pods_and_its_undo_brings_the_template_back(
    team: Team, heading: str, rollout: str
) -> None:
    serve(team, rollout)
    template, volumes, (pods, version) = team.template(), team.volumes(), team.pods()
    team.edit(heading, mode="slow-start")
    team.type("kubectl apply -f llama.yaml")
    team.home.until(NAME, "RollingOut")
    team.home.until(NAME, "Serving" if rollout == "Surge" else "Unavailable", "Available")
    team.type_section("Apply it, and wait")

    assert_promised(team.moments_since(pods, version), rollout)
    after, version = team.pods()
    assert not pods.serving & after.serving
    assert team.template() != template
    assert team.serving_column() == f"{REPLICAS}/{REPLICAS}"
    is_other = heading == WEIGHTS
    team.home.wait("one volume", lambda: len(team.volumes()) == 1 and (team.volumes() != volumes) == is_other)

    assert team.type_section("Undo").endswith(template)
    assert_promised(team.moments_since(after, version), rollout)
    assert not after.serving & team.pods()[0].serving
    team.home.wait("the earlier volume", lambda: team.volumes() == volumes)
    assert {"RollingOut", "ServingNotEnforced"} <= {event["reason"] for event in team.home.events(NAME)}


@pytest.mark.parametrize("rollout", ["Replace", "Surge"])
def test_a_change_that_never_starts_leaves_the_earlier_pods_and_its_undo_does_not_touch_them(
    team: Team, rollout: str
) -> None:
    serve(team, rollout)
    template, (pods, version) = team.template(), team.pods()
    team.edit(ENGINE, mode="image-pull-back-off")
    team.type("kubectl apply -f llama.yaml")

    assert team.home.until(NAME, "ImagePullFailed")["status"] == "False"
    team.home.until(NAME, "Serving" if rollout == "Surge" else "ImagePullFailed", "Available")
    assert team.serving_column() == f"{PROMISED[rollout]}/{REPLICAS}"
    shown, events = (team.type(line) for line in commands("A change that does not start", REPOSITORY / PAGE))
    assert "ImagePullFailed" in shown
    assert "ImagePullFailed" in events
    remaining = team.pods()[0].serving
    assert len(remaining) == PROMISED[rollout]
    assert remaining <= pods.serving

    assert team.type_section("Undo").endswith(template)
    moments = team.moments_since(pods, version)
    assert_promised(moments, rollout)
    assert remaining <= moments[-1].serving
    assert len(moments[-1].serving) == REPLICAS


def test_a_change_that_the_operator_refuses_and_its_undo_touch_no_pod(team: Team) -> None:
    serve(team, "Replace")
    template, (pods, version) = team.template(), team.pods()
    team.edit(ENGINE, version="0.1.0")
    team.type("kubectl apply -f llama.yaml")

    assert team.home.until(NAME, "EngineVersionUnsupported")["status"] == "False"
    assert team.home.condition(NAME, "Stalled")["status"] == "True"
    assert team.home.condition(NAME, "Available")["status"] == "True"
    assert team.serving_column() == f"{REPLICAS}/{REPLICAS}"
    assert team.type_section("Undo").endswith(template)
    assert {frozenset(moment.serving) for moment in team.moments_since(pods, version)} == {frozenset(pods.serving)}


def test_a_restart_keeps_the_other_pods_serving_and_the_template(team: Team) -> None:
    serve(team, "Surge")
    template, (pods, version) = team.template(), team.pods()
    for pod in pods.by_name:
        team.type_section("Restart", POD=pod)
        team.home.wait("its successor serves", lambda: len(team.pods()[0].serving) == REPLICAS)
    assert min(len(moment.serving) for moment in team.moments_since(pods, version)) == REPLICAS - 1
    assert not pods.serving & team.pods()[0].serving

    deleted, version = team.pods()
    (restart,) = re.findall(r"`(kubectl rollout restart [^`]*)`", (REPOSITORY / PAGE).read_text())
    team.type(restart, f"kubectl rollout status deployment/{NAME} -n inference")
    team.home.wait("only new pods", lambda: not deleted.serving & team.pods()[0].serving)
    assert_promised(team.moments_since(deleted, version), "Surge")
    assert team.template() == template

    restarted, version = team.pods()
    team.edit(ONE_SECOND)
    team.type_section("Apply it, and wait")
    assert_promised(team.moments_since(restarted, version), "Surge")
    assert not restarted.serving & team.pods()[0].serving
    assert team.type_section("Undo").endswith(template)
