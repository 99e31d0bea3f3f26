"""The models of the demo as a viewer sees them: statuses, conditions, and what the command line prints."""

from __future__ import annotations

import subprocess
from typing import Any

from testbed.demo.environment import DemoEnvironment
from testbed.demo.estate import HERMETIC
from testbed.demo.narration import watch_phases
from testbed.errors import BedError

NAMESPACE = "inference"


def statuses(demo: DemoEnvironment) -> list[dict[str, Any]]:
    """Every ModelDeployment with its conditions. A program for each poll would take a third of a core."""
    models: list[dict[str, Any]] = demo.api.get("/apis/hermetic.dev/v1alpha1/modeldeployments")["items"]
    return models


def only(demo: DemoEnvironment, name: str) -> list[dict[str, Any]]:
    """The one of this name, if it is there."""
    return [item for item in statuses(demo) if item["metadata"]["name"] == name]


def condition(demo: DemoEnvironment, name: str, kind: str) -> dict[str, Any]:
    """One of its conditions."""
    conditions = {condition["type"]: condition for condition in only(demo, name)[0]["status"]["conditions"]}
    chosen: dict[str, Any] = conditions[kind]
    return chosen


def until(demo: DemoEnvironment, name: str, reason: str) -> None:
    """Show its phases until Ready has this reason."""
    expect(watch_phases(lambda: only(demo, name), lambda phases: phases.get(name) == reason))


def expect(happened: bool) -> None:
    """End the demo with an error where it did not go as it should."""
    if not happened:
        raise BedError("the demo did not go as it should; what was last seen is above")


def delete(demo: DemoEnvironment, name: str) -> None:
    """Delete a deployment, and wait until it is gone."""
    demo.kubectl("delete", "mdep", name, "-n", NAMESPACE, "--wait=true")


def hermetic(demo: DemoEnvironment, *arguments: str) -> str:
    """What the command line prints about the cluster of the demo."""
    command = [HERMETIC, *arguments, "--kubeconfig", str(demo.kubectl.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
