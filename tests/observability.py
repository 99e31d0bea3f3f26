"""What is shipped for Prometheus and Grafana."""

from __future__ import annotations

import json
from collections.abc import Iterator

import yaml

from testbed.installation import REPOSITORY

SHIPPED = REPOSITORY / "manifests" / "observability"
RULES = yaml.safe_load((SHIPPED / "prometheusrule.yaml").read_text())["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((SHIPPED / "grafana" / "hermetic.json").read_text())


def expressions() -> Iterator[str]:
    """Every expression of an alert or a panel."""
    yield from (alert["expr"] for alert in ALERTS)
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
