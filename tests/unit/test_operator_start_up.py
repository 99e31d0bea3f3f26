"""What a process of the operator loads before an audit is asked for."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, fields
from functools import cache
from unittest.mock import Mock

import pytest

from hermetic.api.configuration import Configuration
from hermetic.controller.context import Shared
from hermetic.controller.http import serving_health
from hermetic.errors import ConfigurationInvalid
from hermetic.kube.tls_buffers import READ_BUFFER_BYTES
from tests.sampled_groups import LONG

LOADED = """
import json, sys
from asyncio.sslproto import SSLProtocol
from hermetic.cli.run import command
from hermetic.errors import Unreachable
try:
    command.main([], standalone_mode=False)  # in a pod without a service account: it ends when all is loaded
except Unreachable:
    print(json.dumps({"modules": list(sys.modules), "tls_buffer": SSLProtocol.max_size}))
"""

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
    while not hasattr(sys.modules.get("hermetic.controller.audit.composition"), "assemble_audit"):
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
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigurationInvalid, match=f"`httpPort` {port} cannot be listened on") as refused:
            async with serving_health(port, failure=str, ready=lambda: True, metrics=bytes):
                pass
    assert "choose another `httpPort`" in refused.value.fix


def test_without_an_egress_audit_nothing_of_the_audit_is_loaded() -> None:
    """It is 20 MiB; `controller/audit/lazy_auditor.py` puts it together at the first need."""
    loaded = started_operator().modules
    assert {"hermetic.controller.reconciler", "kopf", "structlog"} <= loaded
    assert not {"cryptography", "jinja2", "httpx", "hermetic.audit.evaluation", "hermetic.audit.checks"} & loaded


def test_the_operator_loads_no_packages_that_others_import_for_features_it_lacks() -> None:
    """kopf imports the official client, with requests and oauthlib: 12 MiB. structlog imports rich: 3 MiB."""
    assert not {"kubernetes", "requests", "oauthlib", "urllib3", "rich", "pygments"} & started_operator().modules


def test_the_operator_limits_the_buffers_of_its_connections_before_it_opens_one() -> None:
    assert started_operator().tls_buffer == READ_BUFFER_BYTES


@dataclass(frozen=True)
class StartedOperator:
    """`hermetic run` when it looks for its API server: the modules that it has loaded, the bytes of a TLS buffer."""

    modules: frozenset[str]
    tls_buffer: int


@cache
def started_operator() -> StartedOperator:
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, env=environ)
    state = json.loads(done.stdout)
    return StartedOperator(frozenset(state["modules"]), state["tls_buffer"])


@LONG
def test_while_the_audit_is_loaded_everything_else_has_its_turn() -> None:
    """It takes a second, and more on a busy machine: the Lease must be renewed meanwhile."""
    turns = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True).stdout
    assert int(turns) > 20


def test_the_audit_in_the_cluster_is_told_what_the_configuration_allows() -> None:
    from hermetic.controller.audit.composition import assemble_audit

    settings = {
        "registries": [{"host": "contoso.azurecr.io", "namespaces": ["*"]}],
        "allowedDnsServers": ["10.1.0.4"],
        "harmlessKinds": ["x.example.com/*"],
        "additionalPrivateRanges": ["192.0.2.0/24"],
        "trustedNodeAgents": [{"namespace": "gpu", "owner": "DaemonSet/agent", "image": "contoso.azurecr.io/agent"}],
        "probeNamespace": "probes",
    }
    mocks = {field.name: Mock() for field in fields(Shared)}
    auditor, _ = assemble_audit(
        Shared(**{**mocks, "configuration": Configuration.model_validate(settings)}), Mock(), Mock()
    )

    assert auditor.policy.allowed_dns_servers == ("10.1.0.4",)
    assert auditor.policy.harmless_kinds == ("x.example.com/*",)
    assert auditor.policy.allowed_registries == ("contoso.azurecr.io",)
    assert auditor.policy.additional_private_ranges == ("192.0.2.0/24",)
    assert [agent.owner for agent in auditor.policy.trusted_node_agents] == ["DaemonSet/agent"]
    assert auditor.policy.hermetic_namespaces == ("hermetic-system", "probes")
