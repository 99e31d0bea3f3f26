"""`python -m testbed demo`: from `kubectl apply` of a ModelDeployment to a private endpoint that answers.

Ends after success with DEMO_EXIT=1; otherwise it leaves everything up until Ctrl-C and prints what to try.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.demo.canary import promote_a_canary
from testbed.demo.environment import DemoEnvironment, demo_environment
from testbed.demo.estate import HERMETIC
from testbed.demo.gpus import checked_gpus
from testbed.demo.models import condition, expect, hermetic, only, statuses
from testbed.demo.narration import chapter, show, watch_phases
from testbed.demo.weights import verified_weights
from testbed.installation import REPOSITORY, wait_for

SERVED = ("vllm-azure-files", "sglang-azure-files", "nim-model-store", "baked-image", "image-volume")
LLAMA = "llama-3-1-8b"
LOAD_SECONDS = 75
NAT_GATEWAY = "nat_gateway_on_the_gpu_subnet"
PASSED, FAILED = 0, 1
DEFAULT_DENY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "default-deny", "namespace": "inference"},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
}
"""As docs/first-model.md has it. Without, a pod that outlives its deleted model has no policy and closes the gate."""
MOST_LINES = 40


def main(arguments: list[str]) -> int:
    """Run the demo; returns the exit code."""
    if arguments:
        print(__doc__)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="hermetic-demo-") as folder, demo_environment(Path(folder)) as demo:
        _run(demo)
        if os.environ.get("DEMO_EXIT") != "1":
            _leave_open(demo)
    return 0


def _run(demo: DemoEnvironment) -> None:
    chapter("What is simulated here; everything else is real")
    for stand_in in demo.stand_ins:
        show(stand_in)
    if demo.node is None:
        show(f"left out without a real node: {', '.join(part.without_node for part in STORY if part.without_node)}")
    for part in STORY:
        if demo.node is not None or not part.without_node:
            part.tell(demo)


def _check_installation(demo: DemoEnvironment) -> None:
    last_line = hermetic(demo, "check", "--installed").splitlines()[-1]
    show(f"hermetic check --installed: {last_line}")
    expect(last_line.startswith("Pass"))


def _hold_back(demo: DemoEnvironment) -> None:
    chapter("An EgressAudit and six deployments are applied. No attestation is there: nothing is started")
    demo.kubectl.apply(demo.jump_box.egress_audit(demo.probe_image))
    demo.kubectl("create", "namespace", "inference")
    demo.kubectl("label", "namespace", "inference", "pod-security.kubernetes.io/enforce=restricted")
    demo.kubectl.apply(DEFAULT_DENY)
    for name in (*SERVED, "refused"):
        demo.kubectl.apply(demo.estate.sample(name))
    held = {"IsolationEvidenceMissing", "RegistryNotAllowed"}
    expect(watch_phases(lambda: statuses(demo), lambda phases: len(phases) == 6 and set(phases.values()) <= held))
    pods = demo.kubectl.json("get", "pods", "-n", "inference")["items"]
    show(f"pods in namespace inference: {len(pods)}; 'hermetic status {LLAMA}' prints:")
    print(hermetic(demo, "status", LLAMA, "-n", "inference"))


def _open_the_gate(demo: DemoEnvironment) -> None:
    chapter("From the jump box, the simulated Azure is audited, and the signed result is imported into the cluster")
    _import_evidence(demo, PASSED)
    show("the probe runs from every pool, the cluster's own objects are evaluated, and the gate opens")

    def settled(seen: dict[str, str]) -> bool:
        return sum(reason == "Serving" for reason in seen.values()) == len(SERVED)

    expect(watch_phases(lambda: statuses(demo), settled, 240))
    print(demo.kubectl("get", "egressaudit,mdep", "-A"))
    show(f"WeightsVerified of {LLAMA}: {condition(demo, LLAMA, 'WeightsVerified')['message']}")
    show("EXCEPTED are findings that the EgressAudit of the demo accepts, because this machine is not Azure")


def _import_evidence(demo: DemoEnvironment, expected: int) -> None:
    code, output, attestation = demo.jump_box.audit()
    _show(output)
    show(f"exit code {code}; kubectl apply -f {attestation.name}")
    expect(code == expected)
    demo.kubectl("create", "-f", str(attestation))


def _show(output: str) -> None:
    """The first lines, and how many more there are."""
    lines = [line for line in output.splitlines() if line.strip()]
    print("\n".join(lines[:MOST_LINES]))
    if len(lines) > MOST_LINES:
        print(f"... ({len(lines) - MOST_LINES} more lines)")


def _ask(demo: DemoEnvironment) -> None:
    url = _endpoint(demo)
    chapter(f"An OpenAI chat call from a machine of the virtual network, through the internal load balancer: {url}")
    question = {"model": "meta/llama-3.1-8b-instruct", "messages": [{"role": "user", "content": "Are you private?"}]}
    # kube-proxy learns of a new address within a second or two; a client would try again as well
    patiently = ("curl", "-sS", "--max-time", "20", "--retry", "10", "--retry-delay", "1", "--retry-connrefused")
    body = ("-H", "Content-Type: application/json", "-d", json.dumps(question))
    answer = json.loads(demo.from_client(*patiently, *body, f"{url}/chat/completions"))
    show(f"answer: {answer['choices'][0]['message']['content']}")


def _roll_under_load(demo: DemoEnvironment) -> None:
    chapter("A rolling update while about 80 requests a second come in, each on a connection of its own")
    url, report = _endpoint(demo), {}
    load = (sys.executable, str(REPOSITORY / "testbed" / "load.py"), url, "--model", "meta/llama-3.1-8b-instruct")

    def send() -> None:
        report.update(json.loads(demo.from_client(*load, "--seconds", str(LOAD_SECONDS), timeout=LOAD_SECONDS + 60)))

    sender = threading.Thread(target=send)
    sender.start()
    patch = {"spec": {"engine": {"vllm": {"maxModelLength": 4096}}}}
    demo.kubectl("patch", "mdep", LLAMA, "-n", "inference", "--type=merge", "-p", json.dumps(patch))
    expect(watch_phases(lambda: only(demo, LLAMA), _rolled_out(demo), 150))
    sender.join()
    lost = sum(report["lost"].values())
    show(f"sent {report['sent']}, answered {report['answered']}, lost {lost} {report['lost'] or ''}")
    expect(lost == 0)


def _lose_isolation(demo: DemoEnvironment) -> None:
    chapter("A NAT gateway is attached. The next audit finds it: what runs keeps serving, nothing new starts")
    demo.jump_box.plant(NAT_GATEWAY)
    _import_evidence(demo, FAILED)
    expect(watch_phases(lambda: statuses(demo), lambda phases: _all_but_refused(phases) == {"IsolationBroken"}))
    pods = demo.kubectl.json("get", "pods", "-n", "inference")["items"]
    show(f"pods in namespace inference, still running: {len(pods)}")


def _regain_isolation(demo: DemoEnvironment) -> None:
    chapter("The NAT gateway is taken off again. The next audit passes, and the gate opens")
    demo.jump_box.take_back()
    _import_evidence(demo, PASSED)
    expect(watch_phases(lambda: statuses(demo), lambda phases: _all_but_refused(phases) == {"Serving"}))


def _delete(demo: DemoEnvironment) -> None:
    chapter("One deployment is deleted, and leaves nothing but its data")
    demo.kubectl("delete", "mdep", "llama-3-1-8b-nim", "-n", "inference", "--wait=true")
    chosen = "--selector=hermetic.dev/modeldeployment=llama-3-1-8b-nim"
    kinds = "deployments,services,serviceaccounts,networkpolicies,persistentvolumeclaims,pods"

    def left() -> list[Any]:
        namespaced = demo.kubectl.json("get", kinds, "-n", "inference", chosen)["items"]
        return [*namespaced, *demo.kubectl.json("get", "persistentvolumes", chosen)["items"]]

    wait_for("nothing left", lambda: not left(), timeout=180)
    show("left of it in the cluster: 0 objects; its folder on the share is untouched")


@dataclass(frozen=True)
class Part:
    """One part of the story. `without_node` names what is left out where kwok simulates the nodes; "" for nothing."""

    tell: Callable[[DemoEnvironment], None]
    without_node: str = ""


STORY = (
    Part(_check_installation, "the check of the installation"),
    Part(_hold_back),
    Part(_open_the_gate),
    Part(_ask, "the chat call"),
    Part(_roll_under_load, "the rolling update under load"),
    Part(promote_a_canary, "the promotion of a canary"),
    Part(verified_weights, "weights that are verified"),
    Part(checked_gpus, "GPUs that are checked"),
    Part(_lose_isolation),
    Part(_regain_isolation),
    Part(_delete),
)
"""In this order. Each part leaves the models as it finds them, but for what `_delete` deletes at the end."""


def _leave_open(demo: DemoEnvironment) -> None:
    kubeconfig = demo.kubectl.kubeconfig
    chapter("Everything stays up until Ctrl-C. To try next, in another terminal:")
    print(f"  export KUBECONFIG={kubeconfig}")
    print(f"  {demo.kubectl.program} get mdep -A -o wide")
    print(f"  {HERMETIC} status -A")
    print(f"  {HERMETIC} explain IsolationEvidenceMissing")
    if demo.node is not None:
        print(f"  {' '.join(demo.node.printed['client'])} curl -s {_endpoint(demo)}/models")
    sys.stdout.flush()
    try:
        signal.pause()
    except KeyboardInterrupt:
        show("ending")


def _rolled_out(demo: DemoEnvironment) -> Any:
    def done(_: dict[str, str]) -> bool:
        item = only(demo, LLAMA)[0]
        conditions = {c["type"]: c for c in item["status"]["conditions"]}
        return bool(
            item["status"]["observedGeneration"] == item["metadata"]["generation"]
            and conditions["Ready"]["status"] == "True"
            and conditions["Ready"]["observedGeneration"] == item["metadata"]["generation"]
        )

    return done


def _all_but_refused(seen: dict[str, str]) -> set[str]:
    return {reason for name, reason in seen.items() if name != "registry-not-allowed"}


def _endpoint(demo: DemoEnvironment) -> str:
    return str(only(demo, LLAMA)[0]["status"]["endpoint"]["url"])
