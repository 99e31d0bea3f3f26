"""The YAML of docs/serving.md is accepted, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commandline import hermetic
from tests.install_page import documented
from tests.scenarios import DIGEST, a_share_model, changed

PAGE = "docs/serving.md"


@pytest.mark.parametrize("heading", ["A key for clients", "TLS", "Clients in the cluster, and Prometheus"])
def test_an_endpoint_of_the_page_is_valid(heading: str) -> None:
    endpoint = yaml.safe_load(documented(PAGE, heading))
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(changed(a_share_model(), endpoint=endpoint)))
    assert ran.code == 0, ran.err


def autoscaling_of_the_page() -> list[Any]:
    """The part of a spec, the PodMonitor, the rule of the metrics adapter, and the ScaledObject."""
    text = documented(PAGE, "Replicas and autoscaling")
    return [yaml.safe_load(part) for part in re.split(r"^# (?:podmonitor|rules|keda)\S*.*$", text, flags=re.MULTILINE)]


def test_autoscaling_of_the_page_is_valid_and_its_rule_is_of_the_metric_that_is_rendered() -> None:
    spec, monitor, (rule,), _ = autoscaling_of_the_page()
    ran = hermetic("render", "-f", "-", stdin=yaml.safe_dump(changed(a_share_model(), **spec)))
    assert ran.code == 0, ran.err
    children = {child["kind"]: child for child in yaml.safe_load_all(ran.out)}
    (metric,) = children["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert rule["seriesQuery"].startswith(metric["pods"]["metric"]["name"] + "{")

    pod, (endpoint,) = children["Deployment"]["spec"]["template"], monitor["spec"]["podMetricsEndpoints"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    ports = [port["name"] for container in pod["spec"]["containers"] for port in container["ports"]]
    assert ports == [endpoint["port"]]


def test_scaled_object_of_the_page_scales_the_model_and_never_to_zero() -> None:
    """Fields: keda.sh/docs, ScaledObject specification; a minReplicaCount that is absent is 0."""
    scaled_object = autoscaling_of_the_page()[3]["spec"]
    assert scaled_object["scaleTargetRef"]["kind"] == "ModelDeployment"
    assert scaled_object["minReplicaCount"] >= 1


def model_of(team: str, folder: str, address: str) -> dict[str, Any]:
    model = changed(a_share_model(), endpoint={"internalLoadBalancer": {"address": address}})
    model["metadata"]["namespace"] = team
    files = {"account": "contosomodels", "share": "models", "folder": folder}
    model["spec"]["weights"] = {"azureFiles": files, "integrity": {"digest": f"sha256:{DIGEST}"}}
    return model


@pytest.mark.parametrize(
    ("folder", "address", "reason"),
    [
        ("team-a/llama", "10.13.76.33", ""),
        ("team-b/llama", "10.13.76.33", "ShareNotAllowed"),
        ("team-a/llama", "10.13.76.41", "AddressNotAllowed"),
    ],
)
def test_a_team_may_use_what_is_its_own(tmp_path: Path, folder: str, address: str, reason: str) -> None:
    assert_validated(tmp_path, model_of("team-a", folder, address), reason)


@pytest.mark.parametrize(("team", "reason"), [("team-a", "TolerationNotAllowed"), ("team-b", "")])
def test_the_nodes_of_a_team_are_for_its_models(tmp_path: Path, team: str, reason: str) -> None:
    model = model_of(team, f"{team}/llama", "10.13.76.33" if team == "team-a" else "10.13.76.41")
    model["spec"]["accelerator"] = {"tolerations": [{"key": "dedicated", "value": "team-b"}]}
    assert_validated(tmp_path, model, reason)


def assert_validated(tmp_path: Path, model: dict[str, Any], reason: str) -> None:
    (tmp_path / "config.yaml").write_text(
        documented(PAGE, "Several teams").replace("sha256:DIGEST", f"sha256:{DIGEST}")
    )
    manifest = yaml.safe_dump(model)
    ran = hermetic("validate", "-f", "-", "--config", tmp_path / "config.yaml", stdin=manifest)
    assert ran.code == (2 if reason else 0), ran.err
    assert reason in ran.err
