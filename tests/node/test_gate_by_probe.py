"""From packets to the gate, in the three states of an estate: no route out, everything dropped, an egress path.

The operator runs as a pod, the probe's pods send real packets from a real node, the model is held back or served. Stood
in for is what lies beyond the node (see test_probe_pods.py), and the jump box: the attestation is signed here.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from hermetic.audit.attestation.custom_resource import as_object
from testbed.api import Api
from testbed.demo.estate import Estate
from testbed.errors import ComponentError
from testbed.images.oci import Image
from testbed.installation import wait_for
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode
from tests.attestations import CLUSTER, a_report, an_ed25519_key, provenance, public_pem_of, signed
from tests.node.serving import SMALL, Model
from tests.node.test_probe_pods import PUBLIC, a_way_back, beyond, dropping, open_way, probe_image
from tests.scenarios import a_baked_model, an_egress_audit, changed

__all__ = ["beyond", "probe_image"]

AUDIT = "/apis/hermetic.dev/v1alpha1/egressaudits/cluster"
KEY = an_ed25519_key()
# What this bed has not, and a cluster must have. No other check is excepted.
NOT_HERE = {
    "k8s-policy-engine-live": "the node runs no network policy engine",
    "wireserver": "the node does not keep pods from the host's channel, as the nodes of AKS do",
}


@pytest.fixture
def evidence(
    hermetic: Kubectl,  # noqa: ARG001 - the operator, as a pod
    node: RunningNode,
    api: Api,
    kubectl: Kubectl,
    probe_image: Image,
    beyond: None,  # noqa: ARG001
) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Brings all evidence and waits for a verdict; the first round of the probe is this test's own.

    Namespaces of other tests may still be on their way out, so the verdict is waited for.
    """
    kubectl("label", "node", node.name, "kubernetes.azure.com/network-subnet=nodes", "--overwrite")
    kubectl("delete", "jobs", "--all", "--namespace", "hermetic-probe", "--wait=true")

    def bring(verdict: str) -> dict[str, Any]:
        kubectl.apply(an_audit(probe_image), an_attestation(node, api))
        try:
            status: dict[str, Any] = wait_for(verdict, lambda: probed(api, verdict), timeout=90)
        except ComponentError as late:
            raise AssertionError(api.get(AUDIT).get("status")) from late
        return status

    yield bring
    kubectl("delete", "egressaudits,egressattestations", "--all")
    kubectl("label", "node", node.name, "kubernetes.azure.com/network-subnet-")


def an_audit(image: Image) -> dict[str, Any]:
    targets = {"publicAddresses": [*PUBLIC, "2001:db8:ff::1"], "storageAddresses": [PUBLIC[0]]}
    excepted = [
        {"check": check, "resource": "*", "reason": reason, "owner": "tests", "expires": "2099-12-31"}
        for check, reason in NOT_HERE.items()
    ]
    return an_egress_audit(
        cluster=CLUSTER,
        trustedKeys=[{"name": KEY.public.name, "publicKey": public_pem_of(KEY.key)}],
        probe={"image": image.by_digest, "targets": targets},
        exceptions=excepted,
    )


def an_attestation(node: RunningNode, api: Api) -> dict[str, Any]:
    config = yaml.safe_load(node.kubeconfig.read_text())
    pem = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
    der = load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    uid = api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    about = provenance(CLUSTER, f"sha256:{hashlib.sha256(der).hexdigest()}", uid)
    now = datetime.now(UTC)
    return as_object(signed(KEY, a_report(observed=now), about=about, now=now))


def probed(api: Api, verdict: str) -> dict[str, Any] | None:
    """The status, once a round of the probe is part of it and this its verdict."""
    status: dict[str, Any] = api.get(AUDIT).get("status") or {}
    has_ended = bool((status.get("evidence") or {}).get("probe"))
    return status if has_ended and status["verdict"] == verdict else None


def probe_messages(api: Api) -> list[str]:
    """What the audit finds of the probe's packets to the internet."""
    findings = (api.get(AUDIT).get("status") or {}).get("findings") or ()
    return [finding["message"] for finding in findings if finding["check"] == "probe-internet"]


@pytest.fixture
def model(
    estate: Estate, node: RunningNode, kubectl: Kubectl, api: Api, namespace: str
) -> Iterator[Callable[[], Model]]:
    """`model()`: another deployment that enforces isolation."""
    ours = kubectl.within(namespace)

    def apply() -> Model:
        name = f"phi-{secrets.token_hex(2)}"
        manifest = changed(a_baked_model(name, endpoint={}), resources=SMALL, drainSeconds=5)
        ours.apply(estate.with_digests(manifest))
        return Model(name, namespace, api, ours, node)

    yield apply
    ours("delete", "modeldeployments", "--all", "--wait=false")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", [lambda _: nullcontext(), dropping], ids=["no route", "dropped"])
def test_a_probe_that_nothing_answered_lets_the_gate_open(
    way: Callable[..., Any],
    node: RunningNode,
    evidence: Callable[[str], dict[str, Any]],
    model: Callable[[], Model],
) -> None:
    closed_model = model()
    closed_model.until_reason("IsolationEvidenceMissing")
    with a_way_back(node), way(node):
        evidence("Pass")
        closed_model.until_reason("Serving")


def test_an_egress_path_that_a_packet_found_keeps_the_gate_closed(
    node: RunningNode,
    evidence: Callable[[str], dict[str, Any]],
    model: Callable[[], Model],
    api: Api,
) -> None:
    with a_way_back(node), open_way(node):
        evidence("Fail")
        # The first Fail may be of another test's namespace, which is on its way out.
        wait_for("the finding of the probe", lambda: "198.51.100.1:443/tcp" in " ".join(probe_messages(api)))
        closed_model = model()
        closed_model.until_reason("IsolationBroken")
    workloads = api.get(f"/apis/apps/v1/namespaces/{closed_model.namespace}/deployments")["items"]
    assert workloads == []
