"""Models behind Gateways: rendered by the operator, routed by the real Envoy to pods of a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from testbed import openai_client
from testbed.certificates import Authority
from testbed.demo.estate import Estate, overlay
from testbed.gateway.on_node import ALLOWED, NAME, NAMESPACE, NodeGateway, allowed, node_gateway
from testbed.gateway.traffic import Traffic, answered_by, weigh
from testbed.installation import REPOSITORY, wait_for
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode
from tests.gateway_objects import a_listener, a_secret, with_tls
from tests.node.serving import Model
from tests.scenarios import Manifest, a_baked_model

Deploy = Callable[..., Model]
pytestmark = pytest.mark.timeout(900)
MODEL = "meta/llama-3.1-8b-instruct"
LOAD_SECONDS = 600.0
"""The longest that a load lasts; it ends with what it is to show."""
ROUTED = {"gateway": {"name": NAME, "namespace": NAMESPACE}}
WITH_TLS = "secure"
HOSTS = ("models.contoso.internal", "models.lab.internal")


@pytest.fixture(scope="module")
def gateway(
    node: RunningNode,
    estate: Estate,
    hermetic: Kubectl,
    kubectl: Kubectl,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NodeGateway]:
    """The Gateway, and the operator that allows it."""
    folder = tmp_path_factory.mktemp("gateway")
    with node_gateway(node, folder) as running:
        ours = overlay(
            estate,
            folder / "install",
            isolation={"minimumEnforcement": "Report"},
            integrity={"minimumPolicy": "Off"},
            gateways=[*ALLOWED, allowed(WITH_TLS)],
        )
        kubectl("apply", "--server-side", "--kustomize", str(REPOSITORY / "manifests" / "gateways"))
        kubectl("apply", "--server-side", "--kustomize", str(ours))
        hermetic("rollout", "status", "deployment/hermetic-operator", "--timeout=180s")
        yield running


def routed(name: str, model: str = MODEL, /, **gateway: Any) -> Manifest:
    """The smallest deployment, behind the Gateway."""
    endpoint = {"gateway": {**ROUTED["gateway"], **gateway}}
    return a_baked_model(name, model={"name": model}, endpoint=endpoint)


def until_routed(model: Model) -> str:
    """Wait until the model serves and its endpoint is private; returns its URL, with /v1."""
    model.until_reason("Serving")

    def url() -> str | None:
        private = model.condition("EndpointPrivate")
        return str(model.manifest()["status"]["endpoint"]["url"]) if private.get("status") == "True" else None

    return str(wait_for(f"a private endpoint of {model.name}", url))


def test_three_models_are_asked_at_one_url_by_the_client_of_openai(
    gateway: NodeGateway, deploy: Deploy, node: RunningNode
) -> None:
    names = [f"contoso/{name}" for name in ("small", "middle", "large")]
    models = [deploy(routed(name.split("/")[1], name)) for name in names]
    urls = [until_routed(model) for model in models]
    assert urls == [f"http://{gateway.address}/{model.namespace}/{model.name}/v1" for model in models]

    script = ("-c", openai_client.ASK_BY_HEADER, f"http://{gateway.address}/v1", *names)
    client = node.from_client(str(openai_client.python()), *script)
    assert client.stdout.splitlines() == [f"{name} ['{name}'] True" for name in names], client.stderr


class Trusting:
    """A machine outside the cluster that resolves host names to a Gateway and trusts one authority."""

    def __init__(self, node: RunningNode, folder: Path, address: str, authority: Authority) -> None:
        self._node, self._hosts, self._authority = node, folder / "hosts", folder / "authority.crt"
        folder.mkdir()
        self._hosts.write_text("".join(f"{address} {name}\n" for name in HOSTS))
        self._authority.write_bytes(authority.certificate)

    def run(self, *command: str) -> CompletedProcess[str]:
        """Run a program that finds the names in /etc/hosts, and the authority where Python looks for it."""
        resolving = ("unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc/hosts && shift && exec "$@"', "sh")
        trusting = ("env", f"SSL_CERT_FILE={self._authority}")
        return self._node.from_client(*resolving, str(self._hosts), *trusting, *command)

    def status_of(self, url: str) -> str:
        """The status of an answer; 000 where no connection comes about."""
        quietly = ("--silent", "--max-time", "5", "--output", "/dev/null", "--write-out", "%{http_code}")
        return self.run("curl", "--cacert", str(self._authority), *quietly, url).stdout

    def until_it_answers(self, url: str) -> None:
        wait_for(f"an answer at {url}", lambda: self.status_of(f"{url}/models") == "200")


def secured(gateway: NodeGateway, authority: Authority) -> str:
    """The address of a Gateway with plain HTTP, and with TLS at two ports, each for a host name of its own."""
    listeners = [a_listener()]
    for host, port in zip(HOSTS, (443, 8443), strict=True):
        secret = a_secret(host, NAMESPACE, authority.server(host, [host]))
        body = {"metadata": {"name": host}, "type": secret["type"], "data": secret["data"]}
        gateway.api.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", body)
        listeners.append(with_tls(f"https-{port}", host, port, hostname=host))
    return gateway.add(WITH_TLS, listeners)


def test_the_client_of_openai_asks_by_https_at_a_listener_that_ends_tls(
    gateway: NodeGateway, deploy: Deploy, node: RunningNode, tmp_path: Path
) -> None:
    """The URL of the status is the one that it uses; the certificate is that of the name; plain HTTP serves neither."""
    authority = Authority("contoso")
    address = secured(gateway, authority)
    client = Trusting(node, tmp_path / "client", address, authority)
    models = [deploy(routed(f"tls-{number}", name=WITH_TLS, hostname=host)) for number, host in enumerate(HOSTS)]
    urls = [until_routed(model) for model in models]
    first, second = (f"{model.namespace}/{model.name}/v1" for model in models)
    assert urls == [f"https://{HOSTS[0]}/{first}", f"https://{HOSTS[1]}:8443/{second}"]
    for url in urls:
        client.until_it_answers(url)
        ran = client.run(str(openai_client.python()), "-c", openai_client.ASK_BY_HEADER, url, MODEL)
        assert ran.stdout == f"{MODEL} ['{MODEL}'] True\n", ran.stderr

    stranger = Trusting(node, tmp_path / "stranger", address, Authority("another"))
    assert stranger.status_of(f"{urls[0]}/models") == "000", "the client trusts another authority"
    assert client.status_of(f"http://{HOSTS[0]}/{first}/models") == "404", "plain HTTP leads to no model"


def test_a_rolling_update_behind_the_gateway_loses_no_request(
    gateway: NodeGateway,  # noqa: ARG001
    deploy: Deploy,
    node: RunningNode,
) -> None:
    """Envoy keeps its connections to the pods, and learns a second late that a pod ends."""
    model = deploy(routed("rolled"), replicas=2, drainSeconds=10)
    url = until_routed(model)
    traffic = Traffic(node, url, MODEL, seconds=LOAD_SECONDS, rate=50)
    patch = '{"spec":{"engine":{"vllm":{"maxModelLength":2048}}}}'
    model.kubectl("patch", "mdep", model.name, "--type=merge", "--patch", patch)
    model.until_reason("Serving", timeout=180)
    pods = ("get", "pods", f"--selector=hermetic.dev/modeldeployment={model.name}")
    wait_for("the end of the earlier pods", lambda: len(model.kubectl.json(*pods)["items"]) == 2)
    traffic.end()
    report = traffic.report()
    assert report["lost"] == {}
    assert report["answered"] == report["sent"] > 0


def member(name: str, weight: int) -> Manifest:
    """A member of the group 'chat'."""
    return routed(name, group="chat", weight=weight)


def test_a_promotion_by_edits_of_weights_loses_no_request(
    gateway: NodeGateway, deploy: Deploy, node: RunningNode, kubectl: Kubectl
) -> None:
    """The members have one URL; each step is waited for by what the canary answers."""
    stable, canary = deploy(member("stable", 100)), deploy(member("canary", 0))
    url = until_routed(stable)
    assert until_routed(canary) == url == f"http://{gateway.address}/{stable.namespace}/chat/v1"
    ours = kubectl.within(stable.namespace)
    assert answered_by(node, ours, "canary") == 0

    traffic = Traffic(node, url, MODEL, seconds=LOAD_SECONDS, rate=50)
    for weight in (10, 50, 100):
        enough = answered_by(node, ours, "canary") + 20
        weigh(ours, {"canary": weight, "stable": 100 - weight})
        wait_for("answers of the canary", partial(_has_answered, node, ours, enough))
    before = answered_by(node, ours, "stable")
    assert traffic.is_running
    traffic.end()
    report = traffic.report()
    assert report["lost"] == {}
    assert report["answered"] == report["sent"] > 0
    # nothing but the requests that were on their way
    assert answered_by(node, ours, "stable") - before < report["sent"] / 10


def _has_answered(node: RunningNode, kubectl: Kubectl, number: int) -> bool:
    return answered_by(node, kubectl, "canary") >= number
