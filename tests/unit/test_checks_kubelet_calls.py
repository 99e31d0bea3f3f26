"""Hosts in probes and lifecycle hooks: the kubelet calls them from its machine, where no network policy applies.

Sources: Kubernetes API, core/v1 HTTPGetAction and TCPSocketAction (host: defaults to the pod IP), GRPCAction (no host);
kubernetes.io/docs/concepts/security/pod-security-standards, baseline from 1.34 on (host probes and lifecycle hooks);
kubernetes.io/docs/concepts/workloads/pods/sidecar-containers (probes and hooks of init containers that restart always).
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.kubernetes.templates import Deployment
from hermetic.audit.model.findings import Severity, Verdict
from tests.kubernetes_estates import Manifest, container, findings, manifest, pod, sealed_cluster, verdicts

CHECK = "k8s-outside-endpoint"
HTTP, TCP = "httpGet", "tcpSocket"
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")
PLACES = ("containers", "initContainers", "ephemeralContainers")


def handled(hook: str, action: str, host: str | None, of: str = "containers") -> Manifest:
    """The spec of a pod with one probe or hook; in `of`, beside a container without one."""
    handler = {action: {"port": 8080, **({} if host is None else {"host": host})}}
    field = {"lifecycle": {hook: handler}} if hook in HOOKS else {hook: handler}
    sidecar = {"restartPolicy": "Always"} if of == "initContainers" else {}
    handled_container = container(name="handled", **field, **sidecar)
    if of == "containers":
        return {"containers": [handled_container]}
    return {"containers": [container()], of: [handled_container]}


def verdict(spec: Manifest) -> Verdict:
    (only,) = verdicts(CHECK, [*sealed_cluster(), pod("web", "team", spec=spec)]).values()
    return only


@pytest.mark.parametrize("of", PLACES)
@pytest.mark.parametrize("action", [HTTP, TCP])
@pytest.mark.parametrize("field", [*PROBES, *HOOKS])
def test_probe_or_hook_with_a_host_outside_fails(field: str, action: str, of: str) -> None:
    manifests = [*sealed_cluster(), pod("web", "team", spec=handled(field, action, "evil.example", of))]
    (finding,) = findings(CHECK, manifests)
    assert (finding.verdict, finding.severity, finding.reason) == (Verdict.FAIL, Severity.HIGH, "KubeletCallsOutside")
    assert finding.path_texts == ("v1/Pod team/web -> kubelet -> evil.example",)


@pytest.mark.parametrize(
    "host",
    [
        "203.0.113.9", "2001:4860:4860::8888", "[2001:4860:4860::8888]", "134744072", "0x08080808", "8.8.2056",
        "evil.example.", "EVIL.EXAMPLE", "web.team", "partner.svc.evil.example", "account.blob.core.windows.net",
        "168.63.129.16", "169.254.169.254", "64:ff9b::808:808", "evil.example:8080",
    ],
)  # fmt: skip
def test_host_outside_in_any_form_fails(host: str) -> None:
    assert verdict(handled("livenessProbe", HTTP, host)) is Verdict.FAIL


@pytest.mark.parametrize(
    "host",
    [None, "", "127.0.0.1", "localhost", "::1", "10.0.0.9", "fd00::9", "web.team.svc", "web.team.svc.cluster.local",
     "nas.corp.internal"],
)  # fmt: skip
def test_host_inside_or_none_passes(host: str | None) -> None:
    assert verdict(handled("livenessProbe", TCP, host)) is Verdict.PASS


@pytest.mark.parametrize("action", [{"grpc": {"port": 1, "service": "evil.example"}}, {"exec": {"command": ["true"]}}])
def test_handler_that_can_name_no_host_passes(action: Manifest) -> None:
    assert verdict({"containers": [container(livenessProbe=action)]}) is Verdict.PASS


def test_header_for_another_host_changes_no_address() -> None:
    get = {"port": 1, "httpHeaders": [{"name": "Host", "value": "evil.example"}]}
    assert verdict({"containers": [container(livenessProbe={HTTP: get})]}) is Verdict.PASS


def test_kubelet_does_not_ask_the_resolver_of_the_cluster_for_a_service_of_an_outer_name() -> None:
    """The node's own resolver has no name of a Service; the Service itself is a finding of another check."""
    service = manifest(Service, "partner", "team", spec={"type": "ExternalName", "externalName": "evil.example"})
    web = pod("web", "team", spec=handled("livenessProbe", HTTP, "partner"))
    manifests = [*sealed_cluster(), service, web]
    assert set(verdicts(CHECK, manifests).values()) == {Verdict.PASS}
    assert verdicts("k8s-externalname", manifests) == {"v1/Service team/partner": Verdict.FAIL}


def test_template_without_pods_fails_as_its_pods_would() -> None:
    spec: dict[str, Any] = {"replicas": 0, "template": {"spec": handled("preStop", HTTP, "evil.example")}}
    deployment = manifest(Deployment, "web", "team", spec=spec)
    assert verdicts(CHECK, [*sealed_cluster(), deployment]) == {"apps/v1/Deployment team/web": Verdict.FAIL}


@pytest.mark.parametrize("field", [*PROBES, *HOOKS])
def test_cache_keeps_hosts_of_probes_and_hooks(field: str) -> None:
    projection = projected(Pod, pod("web", "team", spec=handled(field, HTTP, "evil.example")))
    assert verdict(projection["spec"]) is Verdict.FAIL
