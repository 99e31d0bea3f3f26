"""The pods that carry the probe, where they run, and whose answers count."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.estate.questions import UnreadReason
from hermetic.collect.probe.job import ProbedNode, ProbePods, job_name, probe_job, probed_nodes
from hermetic.collect.probe.readings import expected_pods, read_round
from hermetic.collect.probe.running import IMAGE_POLICY, ProbeRounds
from hermetic.errors import Forbidden, NotFound, Rejected, ServerError
from hermetic.kinds import JOB, NODE, POD
from tests.fakes.clocks import HandClock
from tests.pod_security import violations
from tests.probe_runs import sealed

IMAGE = "contoso.azurecr.io/hermetic/hermetic@sha256:" + "a" * 64
PODS = ProbePods(namespace="hermetic-probe", image=IMAGE)
PROBED_NODE = ProbedNode("gpu", "nodes", "gpu-0")
RUN = "1767225600"


def pod_of(*, host_network: bool, pods: ProbePods = PODS, probed_node: ProbedNode = PROBED_NODE) -> dict:
    return probe_job(pods, probed_node, RUN, host_network=host_network)["spec"]["template"]["spec"]


# ---------------------------------------------------------------- manifests


def test_the_pod_in_the_pods_network_meets_the_restricted_standard():
    assert violations(pod_of(host_network=False)) == []


def test_the_pod_in_the_machine_s_network_breaks_nothing_but_that():
    assert violations(pod_of(host_network=True)) == ["hostNetwork is set"]


@pytest.mark.parametrize("host_network", [False, True])
def test_a_pod_gets_one_try_on_its_machine_and_leaves_nothing(host_network):
    job = probe_job(PODS, PROBED_NODE, RUN, host_network=host_network)["spec"]
    pod = job["template"]["spec"]
    container = pod["containers"][0]

    assert (job["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert job["ttlSecondsAfterFinished"] > 0
    assert job["activeDeadlineSeconds"] > 0
    assert pod["automountServiceAccountToken"] is False
    assert pod["tolerations"] == [{"operator": "Exists"}]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-0"]}]}
    assert container["resources"].keys() == {"requests", "limits"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_only_the_machine_s_pod_reads_its_metadata():
    asks_host_network = [
        json.loads(pod_of(host_network=host)["containers"][0]["env"][0]["value"])["imds"] for host in (False, True)
    ]

    assert asks_host_network == [False, True]


def test_the_machine_s_pod_may_have_a_namespace_of_its_own():
    apart = ProbePods(namespace="probes", host_namespace="host-probes", image=IMAGE)
    spaces = [probe_job(apart, PROBED_NODE, RUN, host_network=host)["metadata"]["namespace"] for host in (False, True)]

    assert spaces == ["probes", "host-probes"]


def test_no_value_of_a_manifest_is_expanded_by_kubernetes():
    assert "$(" not in json.dumps(probe_job(PODS, PROBED_NODE, RUN, host_network=True))


def test_a_job_s_name_fits_into_the_label_that_is_made_of_it():
    long = ProbedNode("p" * 60, "s" * 80, "n" * 253)
    names = {
        job_name(probed_node, "r" * 40, vantage) for probed_node in (long, PROBED_NODE) for vantage in ("host", "pod")
    }

    assert len(names) == 4
    assert max(map(len, names)) <= 63


# ---------------------------------------------------------------- probed nodes


def node(
    name: str, *, pool: str = "gpu", subnet: str = "nodes", ready: bool = True, age: int = 1, **labels: str
) -> dict:
    known_labels = {"kubernetes.azure.com/agentpool": pool, "kubernetes.azure.com/network-subnet": subnet, **labels}
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": f"2026-08-{30 - age:02}T00:00:00Z",
            "labels": {key: value for key, value in known_labels.items() if value},
        },
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}]},
    }


def test_every_pool_and_subnet_gets_the_machine_that_has_been_ready_longest():
    nodes = [
        node("gpu-1", age=1),
        node("gpu-2", age=9, ready=False),
        node("gpu-3", age=5),
        node("gpu-4", subnet="other"),
        node("sys-1", pool="system"),
    ]

    assert probed_nodes(nodes) == (
        ProbedNode("gpu", "nodes", "gpu-3"),
        ProbedNode("gpu", "other", "gpu-4"),
        ProbedNode("system", "nodes", "sys-1"),
    )


def test_a_pool_without_a_ready_machine_keeps_its_seat():
    assert probed_nodes([node("gpu-1", ready=False)]) == (ProbedNode("gpu", "nodes", "gpu-1"),)


def test_machines_without_labels_are_not_left_out():
    bare = {"metadata": {"name": "bare"}}
    karpenter = node("nap", pool="", subnet="", **{"karpenter.sh/nodepool": "auto"})

    assert probed_nodes([bare, karpenter]) == (
        ProbedNode("auto", "unnamed", "nap"),
        ProbedNode("unnamed", "unnamed", "bare"),
    )


# ---------------------------------------------------------------- answers


def answered(*, host_network: bool, message: str | None = None, ended: bool = True) -> dict:
    """A pod of the round, as the API server shows it."""
    job = probe_job(PODS, PROBED_NODE, RUN, host_network=host_network)
    name = job["metadata"]["name"]
    template = copy.deepcopy(job["spec"]["template"])
    questions = template["spec"]["containers"][0]["env"][0]["value"]
    line = json.dumps({**sealed(PODS.targets, host_network=host_network), "run": json.loads(questions)["run"]})
    terminated = {"exitCode": 0, "finishedAt": "2026-09-01T10:00:00Z", "message": line if message is None else message}
    return {
        "metadata": {
            "name": f"{name}-x1y2z",
            "namespace": "hermetic-probe",
            "labels": {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name},
        },
        "spec": {**template["spec"], "nodeName": "gpu-0"},
        "status": {
            "containerStatuses": [
                {"name": "probe", "state": {"terminated": terminated} if ended else {"running": {}}},
            ]
        },
    }


def look(*pods: dict, troubles: dict[str, str] | None = None):
    return read_round(PODS, RUN, [PROBED_NODE], pods, troubles or {})


def test_a_round_with_both_answers_is_whole():
    look_result = look(answered(host_network=False), answered(host_network=True))
    runs = [ProbeRun.read(body) for body in look_result.answer.bodies]

    assert (look_result.answer.problem, look_result.awaited) == (None, ())
    assert [(run.pool, run.subnet, run.node, run.host_network) for run in runs] == [
        ("gpu", "nodes", "gpu-0", False),
        ("gpu", "nodes", "gpu-0", True),
    ]
    assert {run.problem for run in runs} == {None}
    assert all(run.report.control_answered and run.evidence[0].sha256 for run in runs)


def test_a_pod_that_still_runs_is_awaited():
    look_result = look(answered(host_network=False), answered(host_network=True, ended=False))

    assert [awaited.host_network for awaited in look_result.awaited] == [True]
    assert look_result.answer.problem is not None
    assert "in the machine's network of gpu-0" in look_result.answer.problem.detail


def test_a_job_that_failed_is_awaited_no_more_and_says_why():
    name = job_name(PROBED_NODE, RUN, "host")
    look_result = look(answered(host_network=False), troubles={name: "DeadlineExceeded: too long"})

    assert look_result.awaited == ()
    assert look_result.answer.problem is not None
    assert look_result.answer.problem.reason is UnreadReason.UNAVAILABLE
    assert "DeadlineExceeded: too long" in look_result.answer.problem.detail


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod["spec"]["containers"][0].update(command=["true"]),
        lambda pod: pod["spec"]["containers"][0]["env"][0].update(value="{}"),
        lambda pod: pod["spec"]["containers"][0].update(name="other"),
        lambda pod: pod["spec"].update(nodeName="cpu-7"),
        lambda pod: pod["spec"].update(hostNetwork=False),
        lambda pod: pod["spec"]["containers"][0].update(image="other.example/image@sha256:" + "b" * 64),
        lambda pod: pod["spec"]["containers"][0]["env"].append({"name": "PYTHONPATH", "value": "/other"}),
        lambda pod: pod["spec"]["containers"][0].update(volumeMounts=[{"name": "v", "mountPath": "/usr/lib"}]),
        lambda pod: pod["spec"]["containers"].append({"name": "sidecar", "image": "sidecar"}),
        lambda pod: pod["spec"].update(initContainers=[{"name": "first"}]),
        lambda pod: pod["spec"].update(volumes=[{"name": "v", "emptyDir": {}}]),
        lambda pod: pod["spec"].update(dnsConfig={"nameservers": ["10.0.0.9"]}),
        lambda pod: pod["spec"].update(hostAliases=[{"ip": "10.0.0.9", "hostnames": ["example.com"]}]),
        lambda pod: pod["metadata"]["labels"].clear(),
        lambda pod: pod["spec"].clear(),
        lambda pod: pod["status"].clear(),
    ],
    ids=[
        "program",
        "questions",
        "container",
        "machine",
        "network",
        "image",
        "environment",
        "mount",
        "sidecar",
        "init",
        "volume",
        "resolver",
        "hosts",
        "labels",
        "no-spec",
        "no-status",
    ],
)
def test_a_pod_that_is_not_what_we_asked_for_answers_nothing(change):
    impostor = answered(host_network=True)
    change(impostor)
    look_result = look(answered(host_network=False), impostor)

    assert len(look_result.answer.bodies) == 1
    assert look_result.answer.problem is not None


@pytest.mark.parametrize("message", ["", "Traceback: no module named ssl", "{", '{"v": 1, "run": "older"}'])
def test_a_pod_that_ended_without_an_answer_is_a_run_that_cannot_be_read(message):
    look_result = look(answered(host_network=False), answered(host_network=True, message=message))
    (broken,) = [run for body in look_result.answer.bodies if (run := ProbeRun.read(body)).host_network]

    assert broken.problem is not None
    assert broken.problem.reason is UnreadReason.UNREADABLE


def test_what_a_pod_waits_for_is_told():
    waiting = answered(host_network=True)
    waiting["status"] = {
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}],
        "containerStatuses": [{"name": "probe", "state": {"waiting": {"reason": "ErrImagePull", "message": "denied"}}}],
    }
    look_result = look(answered(host_network=False), waiting)

    assert look_result.answer.problem is not None
    assert "0/3 nodes are available; ErrImagePull: denied" in look_result.answer.problem.detail


def test_no_machine_no_round():
    assert expected_pods(()) == ()
    assert read_round(PODS, RUN, [], [], {}).answer.bodies == ()


# ---------------------------------------------------------------- rounds


class ClusterWithPods:
    """An API server that runs what is applied: each Job's pod answers after some polls."""

    def __init__(self, *, answers_after: int = 0, refuses: Exception | None = None, fails: bool = False) -> None:
        self.jobs: dict[str, dict] = {}
        self.observations = 0
        self.answers_after, self.refuses, self.fails = answers_after, refuses, fails
        self.nodes = ["gpu-0"]

    async def apply(self, manifest: dict) -> dict:
        if self.refuses is not None and manifest["metadata"]["name"].endswith("host"):
            raise self.refuses
        return self.jobs.setdefault(manifest["metadata"]["name"], manifest)

    async def pages(self, kind, *, namespace=None, label_selector="", field_selector="") -> AsyncIterator:
        if kind is NODE:
            yield [node(name) for name in self.nodes if field_selector in ("", f"metadata.name={name}")], "1"
            return
        assert field_selector == ""
        assert f"hermetic.dev/probe-run={RUN}" in label_selector
        mine = [job for job in self.jobs.values() if job["metadata"]["namespace"] == namespace]
        if kind is POD:
            self.observations += 1
            ended = self.observations > self.answers_after
            pods = [answered(host_network=job["metadata"]["name"].endswith("host"), ended=ended) for job in mine]
            yield [] if self.fails else pods, "1"
        elif kind is JOB:
            failed = {
                "conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "late"}]
            }
            yield [{**job, "status": failed if self.fails else {}} for job in mine], "1"


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr("hermetic.collect.probe.running.POLL_SECONDS", 0.0)


async def test_a_round_is_started_once_however_often_it_is_started():
    cluster = ClusterWithPods()
    probing = ProbeRounds(cluster, PODS)
    for _ in range(3):
        assert await probing.start(RUN, [PROBED_NODE]) == {}

    assert len(cluster.jobs) == 2
    assert (await probing.read(RUN, [PROBED_NODE])).answer.problem is None


@pytest.mark.usefixtures("at_once")
async def test_a_whole_round_waits_for_every_pod():
    cluster = ClusterWithPods(answers_after=3)
    probing = ProbeRounds(cluster, PODS)
    answer = await probing.whole_round(RUN, probed_nodes(await probing.nodes()), HandClock(step=60), patience=600)

    assert (len(answer.bodies), answer.problem) == (2, None)


@pytest.mark.usefixtures("at_once")
async def test_patience_ends():
    answer = await ProbeRounds(ClusterWithPods(answers_after=10**6), PODS).whole_round(
        RUN, [PROBED_NODE], HandClock(step=60), patience=300
    )

    assert (answer.bodies, bool(answer.problem)) == ((), True)


@pytest.mark.parametrize("refusal", [Forbidden("quota", status=403), NotFound("no namespace", status=404)])
async def test_a_vantage_that_is_refused_is_missing_and_named(refusal):
    cluster = ClusterWithPods(refuses=refusal)
    answer = await ProbeRounds(cluster, PODS).whole_round(RUN, [PROBED_NODE], HandClock(step=60))

    assert len(answer.bodies) == 1
    assert answer.problem is not None
    assert refusal.message in answer.problem.detail


async def test_a_job_that_failed_without_a_pod_hints_at_who_kept_it_out():
    answer = await ProbeRounds(ClusterWithPods(fails=True), PODS).whole_round(RUN, [PROBED_NODE], HandClock(step=60))

    assert answer.problem is not None
    assert "no pod was let in" in answer.problem.detail


async def test_pod_whose_job_was_removed_is_not_awaited():
    cluster = ClusterWithPods()
    probing = ProbeRounds(cluster, PODS)
    await probing.start(RUN, [PROBED_NODE])
    for name in list(cluster.jobs)[:1]:
        del cluster.jobs[name]
    state = await probing.read(RUN, [PROBED_NODE])

    assert (len(state.answer.bodies), state.awaited) == (1, ())
    assert state.answer.problem is not None
    assert "its Job was removed" in state.answer.problem.detail


async def test_pod_whose_node_was_removed_is_not_awaited():
    cluster = ClusterWithPods(answers_after=10**6)
    probing = ProbeRounds(cluster, PODS)
    await probing.start(RUN, [PROBED_NODE])
    assert len((await probing.read(RUN, [PROBED_NODE])).awaited) == 2
    cluster.nodes = ["gpu-01"]
    state = await probing.read(RUN, [PROBED_NODE])

    assert (state.answer.bodies, state.awaited) == ((), ())
    assert state.answer.problem is not None
    assert "in the machine's network of gpu-0: its node was removed" in state.answer.problem.detail


async def test_answer_of_a_node_that_was_removed_since_counts():
    cluster = ClusterWithPods()
    probing = ProbeRounds(cluster, PODS)
    await probing.start(RUN, [PROBED_NODE])
    cluster.nodes = []

    assert (await probing.read(RUN, [PROBED_NODE])).answer.problem is None


async def test_what_may_pass_by_itself_is_for_the_caller():
    with pytest.raises(ServerError):
        await ProbeRounds(ClusterWithPods(refuses=ServerError("ill", status=503)), PODS).start(RUN, [PROBED_NODE])


async def test_an_image_that_the_api_server_does_not_know_yet_is_tried_again():
    """Its copy of the EgressAudit may be behind: what the policy says then is no answer of this round."""
    refusal = Rejected(f"ValidatingAdmissionPolicy '{IMAGE_POLICY}' denied request", status=422, reason="Invalid")
    with pytest.raises(Rejected):
        await ProbeRounds(ClusterWithPods(refuses=refusal), PODS).start(RUN, [PROBED_NODE])


def test_a_probe_of_an_audit_is_marked_as_its_own():
    of_the_audit = probe_job(replace(PODS, audit="cluster"), PROBED_NODE, RUN, host_network=True)
    of_a_person = probe_job(PODS, PROBED_NODE, RUN, host_network=True)
    assert of_the_audit["metadata"]["labels"]["hermetic.dev/egress-audit"] == "cluster"
    assert "hermetic.dev/egress-audit" not in of_a_person["metadata"]["labels"]


def test_the_policy_that_is_tried_again_is_one_that_is_installed():
    text = (Path(__file__).parents[2] / "manifests/policies/operator-allowed.yaml").read_text()
    assert f"name: {IMAGE_POLICY}\n" in text
