"""An EgressAudit on a cluster in memory: what users apply, and the kubelets that a test simulates for the probe."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from hermetic.audit.attestation.custom_resource import as_object
from hermetic.collect.probe.targets import Targets
from hermetic.signing.keys import SigningKey
from tests.attestations import CLUSTER, a_report, an_ed25519_key, public_pem_of, signed
from tests.controller.running import rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import START, VirtualClock, virtually
from tests.kubernetes_estates import sealed_cluster
from tests.probe_runs import SUBSCRIPTION, sealed
from tests.scenarios import an_egress_audit

AUDIT: Coordinates = ("EgressAudit", "", "cluster")
KEY = an_ed25519_key()
IMAGE = "contoso.azurecr.io/hermetic@sha256:" + "a" * 64
STORAGE = "198.51.100.30"
TARGETS = {"storageAddresses": [STORAGE]}

PUBLIC = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "shop", "namespace": "inference"},
    "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
    "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}},
}

Answers = Callable[[Manifest, dict[str, Any]], dict[str, Any]]


def public_pem(key: SigningKey) -> str:
    """The public half of a signing key, as `spec.trustedKeys` has it."""
    return public_pem_of(key.key)


def an_audit(**spec: Any) -> Manifest:
    """One that trusts KEY and probes every hour."""
    keys = [{"name": KEY.public.name, "publicKey": public_pem(KEY)}]
    spec_fields = {"cluster": CLUSTER, "trustedKeys": keys, "probe": {"image": IMAGE, "targets": TARGETS}}
    return an_egress_audit(**{**spec_fields, **spec})


def an_attestation(
    *findings: dict[str, Any], observed: datetime = START, lasts: timedelta = timedelta(days=1), **how: Any
) -> Manifest:
    """The EgressAttestation of an audit from outside, signed with KEY."""
    report = how.pop("report", None) or a_report(*findings, observed=observed, **how.pop("says", {}))
    key = how.pop("key", KEY)
    return as_object(signed(key, report, now=observed + timedelta(minutes=3), valid_for=lasts, **how))


def a_cluster(answer: Answers | None = None) -> ClusterInMemory:
    """A sealed cluster whose kubelets run the probe's pods as soon as their Jobs are there."""
    cluster = ClusterInMemory()
    for manifest in sealed_cluster():
        cluster.put(manifest)
    cluster.put(_mesh_settings())

    async def job_controller_and_kubelet(verb: str, where: Coordinates) -> None:
        if verb == "patch" and where[0] == "Job":
            run_pod_of(cluster, where, answer or (lambda _pod, answers: answers))

    cluster.done = job_controller_and_kubelet
    return cluster


def _mesh_settings() -> dict[str, Any]:
    """The cluster serves every kind that the audit reads, and so Istio's: its mesh is closed."""
    names = {"name": "istio", "namespace": "istio-system"}
    mesh = "outboundTrafficPolicy:\n  mode: REGISTRY_ONLY\n"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": names, "data": {"mesh": mesh}}


def run_pod_of(cluster: ClusterInMemory, where: Coordinates, answer: Answers) -> None:
    """The pod of a Job, over already. `answer` may change what a sealed machine says."""
    job = cluster.objects[where]
    template = copy.deepcopy(job["spec"]["template"])
    terms = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    template["spec"]["nodeName"] = terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{where[2]}-x", "namespace": where[1]}}
    pod["metadata"]["labels"] = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": where[2]}
    pod["spec"] = template["spec"]
    message = json.dumps(answer(pod, what_is_said(pod)))
    ended = {"exitCode": 0, "message": message, "finishedAt": f"{VirtualClock().now():%Y-%m-%dT%H:%M:%SZ}"}
    pod["status"] = {"phase": "Succeeded", "containerStatuses": [{"name": "probe", "state": {"terminated": ended}}]}
    cluster.put(pod)
    cluster.edit(where, lambda live: live.update(status={"conditions": [{"type": "Complete", "status": "True"}]}))


def what_is_said(pod: Manifest) -> dict[str, Any]:
    """By a sealed machine, to the questions that the pod was given."""
    questions = json.loads(pod["spec"]["containers"][0]["env"][0]["value"])
    answers = sealed(Targets(storage_addresses=(STORAGE,)), host_network=bool(pod["spec"].get("hostNetwork")))
    documents = {**answers["metadata"]}
    if documents:
        documents["compute"] = [200, {**documents["compute"][1], "subscriptionId": SUBSCRIPTION}]
    return {**answers, "run": questions["run"], "metadata": documents}


def open_way(_pod: Manifest, document: dict[str, Any]) -> dict[str, Any]:
    """The first public address answers."""
    return {**document, "targets": ["s/5", *document["targets"][1:]]}


def status(cluster: ClusterInMemory) -> dict[str, Any]:
    """Of the EgressAudit; {} before there is one."""
    audit_status: dict[str, Any] = cluster.objects[AUDIT].get("status") or {}
    return audit_status


def condition(cluster: ClusterInMemory, kind: str = "Ready") -> tuple[str, str]:
    """(status, reason)."""
    candidate = next(
        (candidate for candidate in status(cluster).get("conditions", ()) if candidate["type"] == kind), {}
    )
    return candidate.get("status", ""), candidate.get("reason", "")


def rounds(cluster: ClusterInMemory) -> list[str]:
    """The rounds of the probe that were begun, in their order."""
    return list(dict.fromkeys(job["metadata"]["labels"]["hermetic.dev/probe-run"] for job in cluster.of_kind("Job")))


def without_rounds(cluster: ClusterInMemory) -> None:
    """The finished Jobs of the probe are gone, with what they said."""
    for job in cluster.of_kind("Job"):
        cluster.remove("Job", job["metadata"]["namespace"], job["metadata"]["name"])


def writes(cluster: ClusterInMemory) -> int:
    """How often the status was written."""
    return cluster.writes.count(("patch status", AUDIT))


def announced(cluster: ClusterInMemory) -> list[tuple[str, str]]:
    """(type, reason) of every Event about the EgressAudit."""
    return [(event["type"], event["reason"]) for event in cluster.events if event["regarding"]["kind"] == "EgressAudit"]


def passing(scenario: Callable[[ClusterInMemory], Awaitable[None]], *, lasts: timedelta = timedelta(days=1)) -> None:
    """Run the scenario on a cluster whose audit says Pass."""

    async def scenario_run() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation(lasts=lasts))
        cluster.put(an_audit())
        async with running(cluster):
            await rest(10)
            assert (status(cluster)["verdict"], condition(cluster)) == ("Pass", ("True", "IsolationProven"))
            await scenario(cluster)

    virtually(scenario_run)
