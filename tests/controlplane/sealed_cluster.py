"""A cluster of its own that reaches Pass: every check of the cluster passes, and the probe is simulated.

Verdicts are about a whole cluster, so other tests' objects must not meet them: this is another control plane than the
session's. Attestations are really signed and really verified. Stood in for are machines (kwok), the load balancer, and
what probe pods say (`testbed.probe_simulator`).
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from hermetic.api.configuration import Configuration
from hermetic.audit.attestation.custom_resource import as_object
from hermetic.cli.installation import ACCOUNT, Installation
from testbed import cloud_provider, probe_simulator
from testbed.aks_defaults import create_aks_defaults
from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import ApiError, CannotRunError, ComponentError
from testbed.fault_proxy import FaultProxy
from testbed.fleet import Pool, add_nodes
from testbed.installation import CONFIGURATION, OperatorProcess, install, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.programs import programs
from tests.attestations import a_finding, a_report, an_ed25519_key, provenance, public_pem_of, signed
from tests.controlplane.deployments import Deployments, applied
from tests.renderings import SHARES
from tests.scenarios import Manifest, an_egress_audit

AUDITS = "/apis/hermetic.dev/v1alpha1/egressaudits"
AUDIT = f"{AUDITS}/cluster"
ATTESTATIONS = "/apis/hermetic.dev/v1alpha1/egressattestations"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
KEY = an_ed25519_key()
IMAGE = "contoso.azurecr.io/hermetic/hermetic@sha256:" + "a" * 64
# The subscription is that of the fleet's machines: the probe compares the two.
CLUSTER = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-gpu"
    "/providers/Microsoft.ContainerService/managedClusters/aks-gpu"
)
GPU_NODES = 6
EVALUATION = "evaluate the egressaudit"
"""The key of the work queue under which the EgressAudit is evaluated, as log lines name it."""
VERDICT = re.compile(r"^hermetic_isolation_verdict\{.*\} 1", re.MULTILINE)


@dataclass
class SealedCluster:
    """One cluster, one operator; evidence is brought as people bring it.

    proxies: the one between the operator and the API server, where the cluster was started with one.
    """

    plane: ControlPlane
    api: Api
    kubectl: Kubectl
    operator: OperatorProcess
    nodes: list[str]
    installation: Installation
    proxies: tuple[FaultProxy, ...] = ()

    # ------------------------------------------------------------------ what people bring

    def audit(self, **spec: Any) -> Manifest:
        """The EgressAudit, not yet applied."""
        keys = [{"name": KEY.public.name, "publicKey": public_pem_of(KEY.key)}]
        probe = {"image": IMAGE, "targets": {"storageAddresses": ["198.51.100.30"]}}
        spec_fields = {"cluster": CLUSTER, "trustedKeys": keys, "probe": probe, **spec}
        return an_egress_audit(**{key: value for key, value in spec_fields.items() if value is not None})

    def apply_audit(self, **spec: Any) -> None:
        """Apply the EgressAudit with these fields."""
        applied(self.api, AUDITS, self.audit(**spec))

    def attestation(
        self,
        *findings: dict[str, Any],
        age: timedelta = timedelta(),
        lasts: timedelta = timedelta(days=1),
        ahead: timedelta = timedelta(),
        **how: Any,
    ) -> Manifest:
        """An attestation of this cluster, signed now, not yet applied. Each is of a later second than the last.

        ahead: by how much the clock of the jump box is ahead.
        """
        now = datetime.now(UTC) + ahead
        cluster = how.pop("cluster", CLUSTER)
        about = provenance(cluster, how.pop("ca", self.ca_fingerprint), how.pop("uid", self.kube_system_uid))
        report = a_report(*findings, observed=now - age, cluster=cluster, **how.pop("says", {}))
        return as_object(signed(how.pop("key", KEY), report, about=about, now=now, valid_for=lasts, **how))

    def attest(self, *findings: dict[str, Any], **how: Any) -> str:
        """Apply a new attestation in the place of all others; returns its name."""
        older_names = [attestation["metadata"]["name"] for attestation in self.api.get(ATTESTATIONS)["items"]]
        while (manifest := self.attestation(*findings, **how))["metadata"]["name"][:23] in {
            o[:23] for o in older_names
        }:
            time.sleep(0.1)  # of the same second: neither would be the newer one
        applied(self.api, ATTESTATIONS, manifest)
        for name in older_names:
            self.api.delete(f"{ATTESTATIONS}/{name}")
        return str(manifest["metadata"]["name"])

    def open_gate(self) -> None:
        """Everything that it takes, and wait for it."""
        self.apply_audit()
        self.attest()
        self.until("Pass")

    def forget(self) -> None:
        """Take away all evidence."""
        for old_attestation in self.api.get(ATTESTATIONS)["items"]:
            self.api.delete(f"{ATTESTATIONS}/{old_attestation['metadata']['name']}")
        with contextlib.suppress(ApiError):
            self.api.delete(AUDIT)
        # A round that the operator still holds would count for the next test's audit of the same targets.
        self.wait("verdict forgotten", lambda: not VERDICT.search(self.operator.metrics()))
        jobs = JOBS.format(self.installation.configuration.probe_namespace)
        self.api.delete(f"{jobs}?propagationPolicy=Background")

    @property
    def proxy(self) -> FaultProxy:
        """Between the operator and the API server; it passes everything on until faults are injected."""
        (proxy,) = self.proxies
        return proxy

    # ------------------------------------------------------------------ what is seen

    @property
    def ca_fingerprint(self) -> str:
        """As a jump box reads it from its kubeconfig."""
        der = load_pem_x509_certificate(self.plane.authority).public_bytes(Encoding.DER)
        return f"sha256:{hashlib.sha256(der).hexdigest()}"

    @property
    def kube_system_uid(self) -> str:
        uid: str = self.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
        return uid

    @property
    def status(self) -> dict[str, Any]:
        """Of the EgressAudit."""
        audit_status: dict[str, Any] = self.api.get(AUDIT).get("status") or {}
        return audit_status

    def condition(self, kind: str = "Ready") -> dict[str, Any]:
        return next((condition for condition in self.status.get("conditions", ()) if condition["type"] == kind), {})

    def until(self, verdict: str, reason: str = "", timeout: float = 60.0) -> dict[str, Any]:
        """Wait until the present generation has this verdict, and Ready this reason; returns the status."""

        def status_of_the_generation() -> dict[str, Any] | None:
            live = self.api.get(AUDIT)
            audit_status: dict[str, Any] = live.get("status") or {}
            if (
                audit_status.get("observedGeneration") != live["metadata"]["generation"]
                or audit_status.get("verdict") != verdict
            ):
                return None
            ready = next(condition for condition in audit_status["conditions"] if condition["type"] == "Ready")
            return audit_status if reason in ("", ready["reason"]) else None

        try:
            status: dict[str, Any] = self.wait(f"verdict {verdict} {reason}", status_of_the_generation, timeout)
        except ComponentError as late:
            raise AssertionError(f"{self.status.get('verdict')}: {self.status.get('message')}") from late
        return status

    def wait(self, what: str, poll: Callable[[], Any], timeout: float = 60.0) -> Any:
        return wait_for(what, poll, self.operator, timeout)

    def at_rest(self) -> None:
        """Wait until the probe's last round has ended, and an evaluation after it had nothing left to write."""

        def settled() -> bool:
            steps = [
                line.get("result", line["event"])
                for line in self.operator.log_lines()
                if line["event"] in {"probe started", "probe ended"}
                or (line["event"] == "reconcile" and line["name"] == EVALUATION)
            ]
            rounds = [step for step in steps if step in {"probe started", "probe ended"}]
            return rounds[-1:] == ["probe ended"] and steps[-1] == "unchanged"

        self.wait("rest", settled, 90)

    def events(self, reason: str) -> list[Manifest]:
        """Events about the EgressAudit."""
        events = self.api.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
        return [event for event in events if event["reason"] == reason and event["regarding"]["kind"] == "EgressAudit"]

    # ------------------------------------------------------------------ namespaces

    def namespace(self, name: str = "") -> Deployments:
        """A namespace that is closed like every other, watched by the operator; `name` is of one that is there."""
        if not name:
            name = f"inference-{secrets.token_hex(3)}"
            self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        self.api.create(f"/apis/networking.k8s.io/v1/namespaces/{name}/networkpolicies", DENY)
        self.wait("account", lambda: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        return Deployments(self.api, self.kubectl, name, self.operator)


DENY = {"metadata": {"name": "default-deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}


@contextlib.contextmanager
def sealed_cluster(
    folder: Path,
    logs: dict[str, Path],
    *,
    account: str = "",
    module: tuple[str, ...] = ("hermetic",),
    proxied: bool = False,
    **configuration: Any,
) -> Iterator[SealedCluster]:
    """Everything started; the operator runs as its ServiceAccount, and there is no evidence yet.

    With an `account` the rights are those of `hermetic rbac` for it and this configuration. `module`: of the operator's
    process, as `OperatorProcess` takes it. `proxied`: the operator reaches the API server through a fault proxy.
    """
    settings = {**CONFIGURATION, "shares": SHARES, **configuration}
    installation = Installation(Configuration.model_validate(settings), account or ACCOUNT)
    with ControlPlane(Settings(audit_users=())) as plane, contextlib.ExitStack() as ends:
        api, kubectl = Api(plane.kubeconfig), Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        install(kubectl, installation if account else None)
        nodes = add_nodes(api, Pool("gpu"), GPU_NODES)
        create_aks_defaults(api)
        components = [
            cloud_provider.component(plane.kubeconfig, folder / "cloud-provider.log"),
            probe_simulator.component(plane.kubeconfig, folder / "probe-simulator.log"),
        ]
        for component in components:
            component.start()
            ends.callback(component.stop)
        tokens = f"/api/v1/namespaces/{installation.namespace}/serviceaccounts/{installation.account}/token"
        proxies = (ends.enter_context(FaultProxy(plane)),) if proxied else ()
        server, file = next((proxy.server for proxy in proxies), None), folder / "operator.kubeconfig"
        kubeconfig = operator_kubeconfig(api, plane.kubeconfig, file, server, tokens=tokens)
        operator = OperatorProcess(folder, kubeconfig, settings, "sealed-operator", module)
        named = {
            f"sealed-{component.name}": component.log
            for component in (*plane.components, *components, operator.component)
        }
        logs.update(named)
        ends.callback(lambda: [logs.pop(name, None) for name in named])
        ends.callback(operator.stop)
        operator.start()
        sealed = SealedCluster(plane, api, kubectl, operator, nodes, installation, proxies)
        sealed.wait("policy engine", lambda: _agents(api) >= len(nodes))
        yield sealed


def _agents(api: Api) -> int:
    pods = api.get("/api/v1/namespaces/kube-system/pods", labelSelector="k8s-app=cilium")["items"]
    ready = {"type": "Ready", "status": "True"}.items()
    return sum(
        any(ready <= condition.items() for condition in pod.get("status", {}).get("conditions", ())) for pod in pods
    )


@pytest.fixture(scope="module")
def sealed_module(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[SealedCluster]:
    """The sealed cluster of a module."""
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    with sealed_cluster(tmp_path_factory.mktemp("sealed"), component_logs) as cluster:
        yield cluster


@pytest.fixture
def sealed(sealed_module: SealedCluster) -> Iterator[SealedCluster]:
    """The module's sealed cluster without any evidence, before and after."""
    sealed_module.forget()
    yield sealed_module
    sealed_module.forget()


__all__ = ["AUDIT", "CLUSTER", "KEY", "SealedCluster", "a_finding", "sealed", "sealed_cluster", "sealed_module"]
