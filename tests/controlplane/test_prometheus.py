"""A real Prometheus scrapes the operator, loads the shipped rules, and answers every shipped expression."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from testbed.processes import wait_until
from testbed.prometheus import Prometheus
from tests.observability import ALERTS, RULES, expressions
from tests.scenarios import a_share_model, reporting


@pytest.fixture
def prometheus(operator: OperatorProcess, tmp_path: Path) -> Iterator[Prometheus]:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(RULES))
    running = Prometheus(tmp_path, f"127.0.0.1:{operator.port}", rules)
    running.start()
    yield running
    running.stop()


def test_prometheus_scrapes_the_operator_and_answers_every_expression(
    operator: OperatorProcess, prometheus: Prometheus, kubectl: Kubectl, namespace: str
) -> None:
    def there(expression: str) -> bool:
        return bool(prometheus.query(expression))

    processes = [operator.component, prometheus.component]
    kubectl.within(namespace).apply(reporting(a_share_model()))
    wait_until("a scrape", lambda: there('up{job="hermetic"} == 1'), processes)
    wait_until("the Lease", lambda: there("hermetic_leader == 1"), processes)
    not_ready = 'hermetic_model_condition{condition="Ready",status="False"} >= 1'
    wait_until("the model", lambda: there(not_ready), processes)
    for expression in expressions():
        prometheus.query(expression)  # raises where Prometheus refuses it

    model = next(alert["expr"] for alert in ALERTS if alert["alert"] == "HermeticModelsNotReady")
    assert there(model), "pending: it fires after its time"
    wait_until("the alert", lambda: there('ALERTS{alertname="HermeticModelsNotReady"}'), processes)
    assert not there('ALERTS{alertname="HermeticNotRunning"}')
