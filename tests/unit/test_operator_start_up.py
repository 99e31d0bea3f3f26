"""What a process of the operator loads before an audit is asked for."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import fields
from unittest.mock import Mock

import pytest

from hermetic.api.configuration import Configuration
from hermetic.controller.context import Shared
from hermetic.controller.http import serve_health
from hermetic.errors import ConfigurationInvalid
from tests.sampled_groups import LONG

LOADED = "import sys, hermetic.cli.run, hermetic.controller.composition; print(*sys.modules)"

LOADING = """
import asyncio, contextlib, sys
from hermetic.api.configuration import Configuration
from hermetic.controller.composition import assemble
from hermetic.controller.telemetry import Telemetry
from hermetic.kube.connection import Connection

async def nothing():
    return ""

async def main():
    parts = assemble(Configuration(), Connection("http://127.0.0.1:1", nothing), Telemetry())
    metadata = {"name": "cluster", "uid": "u", "resourceVersion": "1"}
    parts.operator.see({"kind": "EgressAudit", "metadata": metadata, "spec": {}}, gone=False)
    evaluating, turns = asyncio.ensure_future(parts.auditor.evaluate()), 0
    while not hasattr(sys.modules.get("hermetic.controller.audit_composition"), "assemble_audit"):
        await asyncio.sleep(0.001)
        turns += 1
    evaluating.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await evaluating
    await parts.api.close()
    print(turns)

asyncio.run(main())
"""


async def test_a_port_that_is_in_use_is_named_with_what_to_do() -> None:
    with socket.create_server(("", 0)) as held:
        port = held.getsockname()[1]
        with pytest.raises(ConfigurationInvalid, match=f"`httpPort` {port} cannot be listened on") as refused:
            await serve_health(port, failure=str, ready=lambda: True, metrics=bytes)
    assert "choose another `httpPort`" in refused.value.fix


def test_without_an_egress_audit_nothing_of_the_audit_is_loaded() -> None:
    """It is 20 MiB; `controller/lazy_auditor.py` puts it together at the first need."""
    loaded = set(
        subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "hermetic.controller.reconciler" in loaded
    assert not {"cryptography", "jinja2", "httpx", "hermetic.audit.evaluation", "hermetic.audit.checks"} & loaded


@LONG
def test_while_the_audit_is_loaded_everything_else_has_its_turn() -> None:
    """It takes a second, and more on a busy machine: the Lease must be renewed meanwhile."""
    turns = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True).stdout
    assert int(turns) > 20


def test_the_audit_in_the_cluster_is_told_what_the_configuration_allows() -> None:
    from hermetic.controller.audit_composition import assemble_audit

    found = {
        "registries": [{"host": "contoso.azurecr.io", "namespaces": ["*"]}],
        "allowedDnsServers": ["10.1.0.4"],
        "harmlessKinds": ["x.example.com/*"],
        "additionalPrivateRanges": ["192.0.2.0/24"],
        "trustedNodeAgents": [{"namespace": "gpu", "owner": "DaemonSet/agent", "image": "contoso.azurecr.io/agent"}],
        "probeNamespace": "probes",
    }
    others = {field.name: Mock() for field in fields(Shared)}
    auditor, _ = assemble_audit(
        Shared(**{**others, "configuration": Configuration.model_validate(found)}), Mock(), Mock()
    )

    assert auditor.policy.allowed_dns_servers == ("10.1.0.4",)
    assert auditor.policy.harmless_kinds == ("x.example.com/*",)
    assert auditor.policy.allowed_registries == ("contoso.azurecr.io",)
    assert auditor.policy.additional_private_ranges == ("192.0.2.0/24",)
    assert [one.owner for one in auditor.policy.trusted_node_agents] == ["DaemonSet/agent"]
    assert auditor.policy.hermetic_namespaces == ("hermetic-system", "probes")
