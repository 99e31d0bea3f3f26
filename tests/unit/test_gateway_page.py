"""The YAML of docs/gateway.md: its configuration allows its models, and its Gateway serves them at the page's URL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.api.configuration import Configuration
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import GatewayFacts
from hermetic.plan.status import status
from tests.commandline import hermetic
from tests.documented import ROOT
from tests.gateways import ADDRESS, a_report
from tests.scenarios import Manifest, a_baked_model
from tests.snapshots import NOW, POLICY, a_snapshot, carried_out, owner_of, reporting_of, serving, spec_of

TEXT = (ROOT / "docs" / "gateway.md").read_text()


def of_the_page(name: str) -> Any:
    """The YAML documents that the page gives under this name."""
    (text,) = re.findall(rf"```yaml\n# {re.escape(name)}\n(.*?)```", TEXT, re.DOTALL)
    documents = list(yaml.safe_load_all(text))
    return documents if len(documents) > 1 else documents[0]


def models_of_the_page() -> list[Manifest]:
    """The two of the canary, and the model of the first example; their weights are in the image."""
    endpoints = [(member["metadata"]["name"], member["spec"]["endpoint"]) for member in of_the_page("llama-v1.yaml")]
    endpoints.append(("llama", of_the_page("endpoint of llama.yaml")))
    models = [a_baked_model(name, endpoint=endpoint) for name, endpoint in endpoints]
    for model in models:
        model["metadata"]["namespace"] = "team-a"
    return models


def policy_of_the_page() -> dict[str, Any]:
    return {**POLICY.model_dump(by_alias=True, exclude_none=True, mode="json"), **of_the_page("config.yaml")}


def test_models_of_the_page_are_allowed_by_its_configuration(tmp_path: Path) -> None:
    configuration = tmp_path / "config.yaml"
    configuration.write_text(yaml.safe_dump(policy_of_the_page()))
    ran = hermetic(
        "validate", "-f", "-", "--config", str(configuration), stdin=yaml.safe_dump_all(models_of_the_page())
    )
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("port", "url"),
    [
        (443, "https://models.contoso.internal/team-a/llama/v1"),
        (8443, "https://models.contoso.internal:8443/team-a/llama/v1"),
    ],
)
def test_gateway_of_the_page_serves_its_model_at_the_url_of_the_page(port: int, url: str) -> None:
    gateway = of_the_page("gateway.yaml")
    gateway["spec"]["listeners"][0]["port"] = port
    gateway["status"] = {"addresses": [{"type": "IPAddress", "value": ADDRESS}]}
    model = models_of_the_page()[-1]
    spec, policy = spec_of(model), Configuration.model_validate(policy_of_the_page())
    snapshot = a_snapshot(owner_of(model, "team-a"), policy=policy, gateway=GatewayFacts(gateway))
    served = serving(carried_out(snapshot, plan(spec, snapshot, NOW)), 1)
    served = reporting_of(served, "HTTPRoute", {"parents": [a_report()]})
    computed = status(spec, served, plan(spec, served, NOW), (), NOW)
    assert computed["endpoint"] == {"url": url, "address": ADDRESS}
    assert f"`{url}`" in TEXT
