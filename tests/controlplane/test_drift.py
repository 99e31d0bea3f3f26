"""A child that is deleted or edited by hand comes back or is corrected, and what is not ours stays as it is."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hermetic.kinds import BY_KIND
from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.write_counts import STATUS, AuditLog
from tests.renderings import RENDERINGS
from tests.scenarios import Manifest, a_baked_model, changed, reporting
from tests.snapshots import rendered

pytestmark = pytest.mark.sampled(12, of="drift")

PREFIX = "service.beta.kubernetes.io/azure-"
INTERNAL = f"{PREFIX}load-balancer-internal"
IDLE = f"{PREFIX}load-balancer-tcp-idle-timeout"

MODEL = a_baked_model("phi", replicas=2, endpoint={})
KINDS = tuple(rendered(MODEL))


def path(deployments: Deployments, kind: str, name: str = "phi") -> str:
    return BY_KIND[kind].path(deployments.namespace, name)


@pytest.fixture(scope="module")
def settled(hermetic: OperatorProcess, api: Api, kubectl: Kubectl, gpu_nodes: None) -> Iterator[Deployments]:  # noqa: ARG001
    """A deployment of two replicas that serves inside the cluster; the tests of this module edit it in turn."""
    with module_namespace(api, "drift") as namespace:
        deployments = Deployments(api, kubectl, namespace, hermetic)
        deployments.apply(reporting(MODEL))
        deployments.until("phi", "Serving")
        yield deployments


# ---------------------------------------------------------------------- deleted


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_that_is_deleted_comes_back(settled: Deployments, kind: str) -> None:
    before = settled.api.get(path(settled, kind))
    settled.api.delete(path(settled, kind))

    after = settled.wait(f"another {kind}", lambda: another(settled, kind, before))

    assert (
        after["metadata"]["annotations"]["hermetic.dev/intent"]
        == before["metadata"]["annotations"]["hermetic.dev/intent"]
    )
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    settled.until("phi", "Serving")


def another(deployments: Deployments, kind: str, before: Manifest) -> Manifest | None:
    live = deployments.api.get(path(deployments, kind))
    return live if live["metadata"]["uid"] != before["metadata"]["uid"] else None


# ---------------------------------------------------------------------- edited

Edit = Callable[[Manifest], object]


def engine(deployment: Manifest) -> Manifest:
    container: Manifest = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def offline_switched_off(deployment: Manifest) -> None:
    next(variable for variable in engine(deployment)["env"] if variable["name"] == "HF_HUB_OFFLINE")["value"] = "0"


EDITS: dict[str, tuple[str, Edit]] = {
    "egress to everywhere": ("NetworkPolicy", lambda live: live["spec"].update(egress=[{}])),
    "ingress from everywhere": ("NetworkPolicy", lambda live: live["spec"].update(ingress=[{}])),
    "no rule for egress": ("NetworkPolicy", lambda live: live["spec"].update(policyTypes=["Ingress"])),
    "a policy for other pods": (
        "NetworkPolicy", lambda live: live["spec"]["podSelector"]["matchLabels"].update(app="nobody"),
    ),
    "a service for other pods": ("Service", lambda live: live["spec"]["selector"].update(app="nobody")),
    "a budget for other pods": (
        "PodDisruptionBudget", lambda live: live["spec"]["selector"]["matchLabels"].update(app="nobody"),
    ),
    "a token in the pods": ("ServiceAccount", lambda live: live.update(automountServiceAccountToken=True)),
    "another image": ("Deployment", lambda live: engine(live).update(image="docker.io/vllm/vllm-openai:latest")),
    "the engine online": ("Deployment", offline_switched_off),
    "another argument": ("Deployment", lambda live: engine(live)["args"].append("--trust-remote-code")),
    "another size": ("Deployment", lambda live: live["spec"].update(replicas=3)),
    "no label of ours": ("Service", lambda live: live["metadata"]["labels"].pop("app.kubernetes.io/managed-by")),
    "no labels at all": ("NetworkPolicy", lambda live: live["metadata"]["labels"].clear()),
}  # fmt: skip


@pytest.mark.parametrize("edit_name", EDITS)
def test_an_edit_of_what_is_ours_is_undone(settled: Deployments, edit_name: str) -> None:
    # a deployment for each: the same child corrected three times in a minute would be a quarrel
    kind, edit = EDITS[edit_name]
    name = edit_name.replace(" ", "-")
    settled.apply(reporting(a_baked_model(name, replicas=2 if "budget" in edit_name else 0, endpoint={})))
    right = ours(settled.wait(f"the {kind}", lambda: settled.api.get(path(settled, kind, name))))

    replace(settled, kind, edit, name)

    settled.wait("the correction", lambda: ours(settled.api.get(path(settled, kind, name))) == right)


def replace(deployments: Deployments, kind: str, edit: Edit, name: str = "phi") -> Manifest:
    """`kubectl edit`: read, change, write back; again when somebody was quicker."""
    while True:
        live = deployments.api.get(path(deployments, kind, name))
        edit(live)
        try:
            return deployments.api.replace(path(deployments, kind, name), live)
        except ApiError as error:
            if error.status != 409:
                raise


def ours(live: Manifest) -> Manifest:
    """What matters of a child: labels, and everything but what controllers and the API server count."""
    fields = {key: value for key, value in live.items() if key not in ("metadata", "status")}
    return {**fields, "labels": live["metadata"].get("labels"), "owners": live["metadata"]["ownerReferences"]}


def test_what_others_add_stays_theirs(settled: Deployments) -> None:
    def by_somebody(live: Manifest) -> None:
        live["metadata"]["labels"]["team"] = "chat"
        live["metadata"]["annotations"]["note"] = "keep"
        live["metadata"]["ownerReferences"].append(
            {"apiVersion": "v1", "kind": "Namespace", "name": settled.namespace, "uid": uid_of_namespace(settled)}
        )

    def and_more(live: Manifest) -> None:
        by_somebody(live)
        live["spec"]["template"]["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/restartedAt"] = "now"

    for kind in KINDS:
        replace(settled, kind, and_more if kind == "Deployment" else by_somebody)
    settled.change("phi", drainSeconds=44, endpoint={"port": 8001})
    settled.until("phi", "Serving")

    for kind in KINDS:
        metadata = settled.api.get(path(settled, kind))["metadata"]
        assert (metadata["labels"]["team"], metadata["annotations"]["note"]) == ("chat", "keep")
        assert len(metadata["ownerReferences"]) == 2
    assert settled.api.get(path(settled, "Deployment"))["spec"]["template"]["metadata"]["annotations"]


def uid_of_namespace(deployments: Deployments) -> str:
    return str(deployments.api.get(f"/api/v1/namespaces/{deployments.namespace}")["metadata"]["uid"])


# ---------------------------------------------------------------------- strangers and rivals


@pytest.mark.parametrize("kind", ["ServiceAccount", "Service", "Deployment"])
def test_an_object_of_another_owner_is_named_and_never_overwritten(served: Deployments, kind: str) -> None:
    theirs = served.api.create(path(served, kind, ""), a_strangers(kind))

    served.apply(reporting(a_baked_model("phi", endpoint={})))
    condition = served.until("phi", "ChildNotOwned")

    assert f"{kind} 'phi' exists and is not owned" in condition["message"]
    live = served.api.get(path(served, kind))
    assert (live["metadata"].get("labels"), live.get("spec")) == (theirs["metadata"].get("labels"), theirs.get("spec"))
    assert "ownerReferences" not in live["metadata"]
    served.api.delete(path(served, kind))
    served.until("phi", "Serving")


def a_strangers(kind: str) -> Manifest:
    """An object of the name that we need, made by somebody who never heard of us."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    spec: Manifest = {
        "ServiceAccount": {},
        "Service": {"spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}},
        "Deployment": {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}},
    }[kind]
    return {"metadata": {"name": "phi"}, **spec}


def test_a_rival_is_outwaited_not_outwritten(served: Deployments, controlplane: ControlPlane) -> None:
    served.apply(reporting(a_baked_model("phi", endpoint={})))
    served.until("phi", "Serving")
    log = AuditLog.from_now_on(controlplane.audit_log, served.namespace)
    over = threading.Event()
    rival = threading.Thread(target=insisting, args=(served, over))
    rival.start()
    try:
        condition = served.until("phi", "DriftContested")
    finally:
        over.set()
        rival.join()

    assert "Deployment 'phi' is changed back as often as it is corrected" in condition["message"]
    assert Counter(log.writes())["deployments"] == 3
    assert served.api.get(path(served, "Deployment"))["metadata"]["labels"]["rival"] == "here"
    served.change("phi", replicas=2)  # what a person asks for is done all the same
    served.until("phi", "Serving")


def insisting(deployments: Deployments, over: threading.Event) -> None:
    """Another controller that wants seven seconds for pods to become ready, as often as it can."""
    while not over.is_set():
        patch = {"metadata": {"labels": {"rival": "here"}}, "spec": {"progressDeadlineSeconds": 7}}
        deployments.api.merge(path(deployments, "Deployment"), patch)
        over.wait(0.02)


# ---------------------------------------------------------------------- the public side


@pytest.fixture
def without_policy(api: Api) -> Iterator[Callable[[], None]]:
    """Takes the admission policy for Services away; it is back when called, and after the test at the latest."""
    binding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    policy_binding = api.get(f"{binding}/hermetic-services")
    api.delete(f"{binding}/hermetic-services")
    del policy_binding["metadata"]["resourceVersion"], policy_binding["metadata"]["uid"]

    def back() -> None:
        if "hermetic-services" not in {item["metadata"]["name"] for item in api.get(binding)["items"]}:
            api.create(binding, policy_binding)

    yield back
    back()


def test_a_public_side_that_got_past_the_policy_is_taken_away(
    served: Deployments, without_policy: Callable[[], None]
) -> None:
    served.apply(reporting(a_baked_model("phi")))
    served.wait("the Service", lambda: served.child("v1", "services", "phi"))
    public = {f"{PREFIX}pip-name": "pip-1", f"{PREFIX}dns-label-name": "chat"}
    served.wait("the policy gone", lambda: accepted(served, public))
    without_policy()

    after = served.wait("the private side", lambda: private(served.api.get(path(served, "Service"))))

    assert after["metadata"]["annotations"][INTERNAL] == "true"


def accepted(deployments: Deployments, annotations: dict[str, str]) -> bool:
    """Whether the edit is let through: admission learns of a policy's end with a delay."""
    try:
        deployments.api.merge(path(deployments, "Service"), {"metadata": {"annotations": annotations}})
    except ApiError as error:
        if error.status != 422:
            raise
        return False
    return True


def private(service: Manifest) -> Manifest | None:
    annotations: dict[str, Any] = service["metadata"]["annotations"]
    return None if any("pip" in name or "dns-label" in name for name in annotations) else service


# ---------------------------------------------------------------------- at rest


def test_no_shape_that_can_be_rendered_drifts_by_itself(served: Deployments, controlplane: ControlPlane) -> None:
    """What the API server fills in is no drift: nobody touches these, and nobody corrects them."""
    for manifest in RENDERINGS.values():
        apply_without_pods(served, manifest)
    names = [manifest["metadata"]["name"] for manifest in RENDERINGS.values()]
    for name in names:
        served.until(name, "ScaledToZero")
    log = AuditLog.from_now_on(controlplane.audit_log, served.namespace)

    for name in names:
        for kind in ("Service", "Deployment", "NetworkPolicy", "ServiceAccount"):
            served.api.merge(path(served, kind, name), {"metadata": {"annotations": {"look": "again"}}})
    for name in names:
        served.change(name, drainSeconds=77)
        served.until(name, "ScaledToZero")

    children = [write for write in log.writes() if write != STATUS]
    assert children == ["deployments"] * len(names)


def apply_without_pods(deployments: Deployments, manifest: Manifest) -> None:
    """Scaled to zero: in the manifest, or through `/scale` where an autoscaler owns the number of pods."""
    if "autoscaling" not in manifest["spec"]:
        deployments.apply(reporting(changed(manifest, replicas=0)))
        return
    deployments.apply(reporting(manifest))
    scale = f"{deployments.collection}/{manifest['metadata']['name']}/scale"
    deployments.api.merge(scale, {"spec": {"replicas": 0}})
