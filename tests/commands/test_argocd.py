"""Argo CD's health check, run by a real Lua 5.1, and what kubectl makes of the kustomization that holds it.

Argo CD runs a health check with gopher-lua, a Lua 5.1, as util/lua/lua.go of https://github.com/argoproj/argo-cd shows:
`obj` is the live object, the libraries are package, base, table and a reduced os, and the result is a table with
`status` and `message`. docs/operator-manual/health.md there names the key of the ConfigMap.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.plan.planning import plan
from hermetic.plan.status import status, status_unreadable
from testbed.debian_archive import unpacked
from testbed.installation import REPOSITORY
from testbed.programs import programs
from tests.controlplane.kstatus import kstatus
from tests.install_page import commands
from tests.scenarios import a_share_model
from tests.snapshots import NOW, a_snapshot, addressed, carried_out, children_of, evidence, owner_of, serving, spec_of
from tests.unit.test_audit_verdict import FINE, OPEN, inputs, status_with

SHIPPED = REPOSITORY / "manifests" / "argocd"
PAGE = REPOSITORY / "docs" / "argocd.md"
KEYS = {f"resource.customizations.health.hermetic.dev_{kind}" for kind in ("ModelDeployment", "EgressAudit")}
NOT_EVALUATED = "the operator has not evaluated this generation yet"
CLOSED_LIBRARIES = ("string", "math", "io", "debug", "coroutine")
HEALTH_OF_KSTATUS = {"InProgress": "Progressing", "Failed": "Degraded", "Current": "Healthy"}
# A health check sees `obj` alone, and prints nothing.
HARNESS = """
local check = assert(loadfile(arg[1]))
{closed}
for _, live in ipairs({objects}) do
  obj = live
  local health = check()
  print(health.status .. "\\t" .. health.message)
end
"""

Health = tuple[str, str]


def lua_literal(value: Any) -> str:
    """A JSON value as Lua source; null is absent, as Argo CD decodes it."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"[{json.dumps(key)}]={lua_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ",".join(map(lua_literal, value)) + "}"
    return "nil" if value is None else json.dumps(value)


def healths(folder: Path, *objects: Mapping[str, Any]) -> list[Health]:
    """What the health check says of each object."""
    closed = "\n".join(f"{library} = nil" for library in CLOSED_LIBRARIES)
    script = folder / "harness.lua"
    script.write_text(HARNESS.format(closed=closed, objects=lua_literal(list(objects))), encoding="utf-8")
    program = unpacked(["lua5.1"]) / "usr/bin/lua5.1"
    ran = subprocess.run(
        [program, script, SHIPPED / "health.lua"], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    answers = [line.partition("\t") for line in ran.stdout.splitlines()]
    return [(health, message) for health, _, message in answers]


def live(object_status: Mapping[str, Any] | None, generation: int = 1) -> dict[str, Any]:
    metadata = {"name": "llama", "generation": generation}
    return {"metadata": metadata} if object_status is None else {"metadata": metadata, "status": object_status}


def a_condition(kind: str, truth: str) -> dict[str, Any]:
    return {"type": kind, "status": truth, "reason": f"Reason{kind}", "message": f"message of {kind}"}


def test_the_health_of_every_state_is_what_kstatus_says_of_it(tmp_path: Path) -> None:
    ready = (None, "True", "False", "Unknown")
    states = [
        live(
            {
                **({} if observed is None else {"observedGeneration": observed}),
                "conditions": [
                    *([] if truth is None else [a_condition("Ready", truth)]),
                    *([a_condition(beside, "True")] if beside and truth != "True" else []),
                ],
            },
            generation=3,
        )
        for observed, truth, beside in product((None, -1, 2, 3), ready, (None, "Reconciling", "Stalled"))
    ]

    answers = healths(tmp_path, *states)

    for state, (health, message) in zip(states, answers, strict=True):
        is_evaluated = state["status"].get("observedGeneration") == 3
        has_ready = any(condition["type"] == "Ready" for condition in state["status"]["conditions"])
        # kstatus calls an object without a status current; for Argo CD that is a model that nobody has looked at yet.
        expected = HEALTH_OF_KSTATUS[kstatus(state)] if is_evaluated and has_ready else "Progressing"
        assert health == expected, state
        assert message == ("ReasonReady: message of Ready" if is_evaluated and has_ready else NOT_EVALUATED)
    assert {health for health, _ in answers} == {"Healthy", "Degraded", "Progressing"}


@pytest.mark.parametrize("object_status", [None, {}, {"observedGeneration": -1}, {"conditions": []}])
def test_an_object_that_was_not_evaluated_is_progressing(tmp_path: Path, object_status: Any) -> None:
    assert healths(tmp_path, live(object_status)) == [("Progressing", NOT_EVALUATED)]


def a_model_status(verdict: str, replicas: int) -> dict[str, Any]:
    manifest = a_share_model()
    spec = spec_of(manifest)
    snapshot = a_snapshot(owner_of(manifest), children=children_of(manifest), evidence=evidence(verdict))
    snapshot = addressed(serving(snapshot, replicas), "10.13.76.40")
    decided = plan(spec, snapshot, NOW)
    return status(spec, carried_out(snapshot, decided), decided, (), NOW)


def test_the_status_that_the_operator_writes_of_a_model_has_the_health_of_the_page(tmp_path: Path) -> None:
    new = a_snapshot(owner_of(a_share_model()))
    decided = plan(spec_of(a_share_model()), new, NOW)
    starting = status(spec_of(a_share_model()), carried_out(new, decided), decided, (), NOW)
    unreadable = status_unreadable(new, 'a message with "quotes"\\ and a backslash', NOW)

    answers = healths(
        tmp_path, *map(live, (a_model_status("Pass", 1), starting, a_model_status("Fail", 1), unreadable))
    )

    assert [(health, message.partition(":")[0]) for health, message in answers] == [
        ("Healthy", "Serving"),
        ("Progressing", "Starting"),
        ("Degraded", "IsolationBroken"),
        ("Degraded", "SpecInvalid"),
    ]
    assert answers[-1][1].endswith('a message with "quotes"\\ and a backslash')


def test_the_status_that_the_operator_writes_of_an_egress_audit_has_the_health_of_the_page(tmp_path: Path) -> None:
    states = (
        status_with(inputs()),
        status_with(inputs(cluster_findings=(OPEN,))),
        status_with(inputs(), now=NOW + timedelta(days=8)),
        status_with(inputs(cluster_findings=(FINE,), probe=None)),
    )

    answers = healths(tmp_path, *(live(state, generation=3) for state in states))

    assert [health for health, _ in answers] == ["Healthy", "Degraded", "Degraded", "Progressing"]


def test_the_command_of_the_page_adds_the_health_check_of_both_kinds_and_no_other_key() -> None:
    (command,) = commands("The health check", PAGE)
    words = shlex.split(command)
    assert "--server-side" in words
    # The manager of an installation that was applied from the server side is `kubectl`: under that name the apply would
    # take the keys and labels away that this kustomization does not have.
    assert "--field-manager=hermetic-health" in words
    built = subprocess.run(
        [programs("kubernetes")["kubectl"], "kustomize", words[-1]],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    config_map = yaml.safe_load(built.stdout)

    assert config_map["metadata"] == {"name": "argocd-cm", "namespace": "argocd"}
    assert config_map.keys() == {"apiVersion", "kind", "metadata", "data"}
    assert config_map["data"] == dict.fromkeys(KEYS, (SHIPPED / "health.lua").read_text(encoding="utf-8"))


def test_the_page_explains_every_placeholder_of_the_applications() -> None:
    text = (SHIPPED / "applications.yaml").read_text(encoding="utf-8")
    placeholders = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", text))
    page = PAGE.read_text(encoding="utf-8")
    assert placeholders == {"REPOSITORY_URL", "OPERATOR_DIGEST", "API_SERVER_CIDR"}
    assert [name for name in placeholders if f"`{name}`" not in page] == []


def test_the_values_of_the_application_are_admitted_by_the_chart_and_write_the_network_policy(tmp_path: Path) -> None:
    text = (SHIPPED / "applications.yaml").read_text(encoding="utf-8")
    text = text.replace("OPERATOR_DIGEST", "1" * 64).replace("API_SERVER_CIDR", "10.1.0.4/32")
    applications = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in yaml.safe_load_all(text)}
    values = tmp_path / "values.yaml"
    source = applications["Application", "hermetic"]["spec"]["source"]
    values.write_text(yaml.safe_dump(source["helm"]["valuesObject"]))
    rendered = subprocess.run(
        [programs("helm")["helm"], "template", "hermetic", REPOSITORY / "charts/hermetic", "-n", "hermetic-system",
         "-f", values],
        capture_output=True, text=True, check=False, timeout=60, env={"HOME": str(tmp_path)},
    )  # fmt: skip
    assert rendered.returncode == 0, rendered.stderr

    policies = [m for m in yaml.safe_load_all(rendered.stdout) if m and m["kind"] == "NetworkPolicy"]

    assert [policy["spec"]["egress"][0]["to"] for policy in policies] == [[{"ipBlock": {"cidr": "10.1.0.4/32"}}]]
    chart = yaml.safe_load((REPOSITORY / "charts/hermetic/Chart.yaml").read_text())
    assert source["targetRevision"] == chart["version"]
    project = applications["AppProject", "models"]["spec"]
    assert project["namespaceResourceWhitelist"] == [{"group": "hermetic.dev", "kind": "ModelDeployment"}]
    assert project["clusterResourceWhitelist"] == []
