"""Simulates the egress probe on fake nodes: gives its pods the termination messages of a sealed machine.

    python -m testbed probe-simulator --kubeconfig FILE

kwok can end a pod, but runs no program in it. A pod with the label `app.kubernetes.io/component=egress-probe` on a
fake node ends here with a termination message: the program's answer on a sealed machine, to the questions
that the pod was given. Nothing was sent anywhere, so it is no evidence about anything but the code that reads it.

Annotations of a node, for tests:
    hermetic.test/egress: open     the first public address answers over TLS
    hermetic.test/egress: silent   the pods run and never end
    hermetic.test/egress: lossy    the packets of the first controls are lost: silence of the targets shows nothing
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from testbed.api import Api
from testbed.console import say
from testbed.errors import ApiError
from testbed.processes import Component

SELECTOR = "app.kubernetes.io/component=egress-probe"
QUESTIONS = "HERMETIC_PROBE"
EGRESS = "hermetic.test/egress"
PAUSE_SECONDS = 0.25
AZURE_DNS, CLUSTER_DNS, CLUSTER_ADDRESS = "168.63.129.16", "10.96.0.10", "10.96.0.1"
GATEWAY = "10.1.0.1 eth0"

Json = dict[str, Any]


class ProbeSimulator:
    """Finds probe pods that a scheduler has given to a fake node, and ends each once."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def run(self) -> None:
        """Works until the process ends."""
        while True:
            try:
                self.answer_all()
            except (ApiError, OSError, ValueError) as error:
                say(f"probe-simulator: trying again: {error}")
            time.sleep(PAUSE_SECONDS)

    def answer_all(self) -> None:
        """Answer every pod that waits; one whose node was removed stays as it is, and keeps no other waiting."""
        waiting = self._api.get("/api/v1/pods", labelSelector=SELECTOR, fieldSelector="status.phase=Pending")["items"]
        nodes = {node["metadata"]["name"]: node for node in self._api.get("/api/v1/nodes")["items"]} if waiting else {}
        for pod in waiting:
            node = nodes.get(pod["spec"].get("nodeName", ""))
            if node is None or pod["metadata"].get("deletionTimestamp"):
                continue
            annotations = node["metadata"].get("annotations", {})
            if annotations.get("kwok.x-k8s.io/node") == "fake" and annotations.get(EGRESS) != "silent":
                self._end(pod, answer(pod, node))

    def _end(self, pod: Json, answers: Json) -> None:
        meta, now = pod["metadata"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        container = pod["spec"]["containers"][0]
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
        ended["message"] = json.dumps(answers, separators=(",", ":"))
        images = {"name": container["name"], "image": container["image"], "imageID": container["image"]}
        over = {**images, "ready": False, "started": False, "restartCount": 0, "state": {"terminated": ended}}
        status = {"phase": "Succeeded", "startTime": now, "containerStatuses": [over]}
        try:
            self._api.merge(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status", {"status": status})
        except ApiError as error:
            if error.status not in {404, 409}:
                raise


def answer(pod: Json, node: Json) -> Json:
    """What the program would say on this machine, if it were sealed but for what its annotation says."""
    (document,) = (entry["value"] for entry in pod["spec"]["containers"][0]["env"] if entry["name"] == QUESTIONS)
    asked = json.loads(document)
    of_the_machine = bool(pod["spec"].get("hostNetwork"))
    own = [AZURE_DNS] if of_the_machine else [CLUSTER_DNS]
    servers = [*own, *(resolver for resolver in asked["resolvers"] if resolver not in own)]
    targets = ["e101/0" if ":" in address else "t" for _, _, address, _ in asked["targets"]]
    egress = node["metadata"].get("annotations", {}).get(EGRESS)
    if egress == "open":
        targets[0] = "s/5"
    controls = max(1, len(asked["controls"]))
    first_controls = ["t" if egress == "lossy" else "s/2"] * controls
    return {
        "v": 1,
        "run": asked["run"],
        "controls": [first_controls, ["s/2"] * controls],
        "targets": targets,
        "names": ["r2:;/4"] * len(asked["names"]),
        "dns": ["r2:;/3"] * len(servers),
        "known": ["r2:;/3"] * len(servers),
        "clusterName": ["r3:;/1" if of_the_machine else f"r0:{CLUSTER_ADDRESS};/1"] * len(own),
        "imds": ["o/1"] * 3 if asked["imds"] else [],
        "servers": servers,
        "metadata": _metadata(node) if asked["imds"] else {},
        "v4": [GATEWAY],
        "v6": [],
        "v6Addresses": [],
        "nameservers": own,
    }


def _metadata(node: Json) -> Json:
    """Of a machine without any public address, in the subscription that its provider id names."""
    match = re.match(r"azure:///subscriptions/([^/]+)/resourceGroups/([^/]+)/", node["spec"].get("providerID", ""))
    subscription, group = match.groups() if match else ("", "")
    named = {"subscriptionId": subscription, "resourceGroupName": group, "vmScaleSetName": "", "vmId": ""}
    return {"loadbalancer": [200, {"public": [], "outboundRules": 0}], "network": [200, []], "compute": [200, named]}


def component(kubeconfig: Path, log: Path) -> Component:
    """The stand-in as a program of its own, not yet started."""
    command = [sys.executable, "-m", "testbed", "probe-simulator", f"--kubeconfig={kubeconfig}"]
    return Component("probe-simulator", command, log, {"PYTHONPATH": str(Path(__file__).resolve().parents[1])})


def main(arguments: list[str]) -> int:
    """`python -m testbed probe-simulator`: runs until SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m testbed probe-simulator", description="a stand-in for probed machines"
    )
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster to serve")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    say("probe-simulator: a stand-in: answers the egress probe on fake nodes with what sealed machines would say")
    ProbeSimulator(Api(options.kubeconfig, "hermetic-probe-simulator")).run()
    return 0
