"""`hermetic bench` before a Job is made: the models and the labels that it refuses, with a fix."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermetic.api.field_types import is_label
from hermetic.cli.bench.command import command as bench
from hermetic.cli.bench.job import BENCHMARK_LABEL, pod_labels
from hermetic.cli.bench.planned import plan_benchmark
from hermetic.errors import BenchmarkFailed, InputError
from hermetic.sizing.facts_file import as_json
from tests.corpus.manifests import changed
from tests.golden.benchmarks import LOAD, admitting, live, objects_of, shape
from tests.model_configs import LLAMA_8B, LLAMA_8B_BYTES, facts
from tests.scenarios import Manifest, a_nim_model, a_share_model, an_sglang_model

NAMESPACE = "inference"


SHORT = facts(LLAMA_8B | {"max_position_embeddings": 1024}, LLAMA_8B_BYTES)
LIMITED = {"vllm": {**a_share_model()["spec"]["engine"]["vllm"], "maxModelLength": 1000}}
REFUSED = {
    "NIM": (a_nim_model(), InputError, "NVIDIA documents no benchmark"),
    "SGLang with TLS": (
        admitting(an_sglang_model(), tls={"secretName": "tls"}),
        InputError,
        "verifies certificates with public authorities only",
    ),
    "more tokens than the model has": (
        admitting(changed(a_share_model(), {"spec.weights.facts": as_json(SHORT)})),
        InputError,
        "are 1152 tokens, and the model takes 1024",
    ),
    "too many tokens": (
        admitting(a_share_model(engine=LIMITED)),
        InputError,
        "are 1152 tokens, and the model takes 1000",
    ),
    "no client at all": (a_share_model(), InputError, "does not admit the pod of the benchmark"),
    "clients of other labels": (
        admitting(a_share_model(), allowedClients=[{"podSelector": {"matchLabels": {"app": "chat"}}}]),
        InputError,
        "--client-label app=chat",
    ),
    "clients of another namespace": (
        admitting(
            a_share_model(),
            allowedClients=[{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "chat"}}}],
        ),
        InputError,
        "does not admit the pod of the benchmark",
    ),
    "a namespace by a label that nobody read": (
        admitting(a_share_model(), allowedClients=[{"namespaceSelector": {"matchLabels": {"team": "search"}}}]),
        InputError,
        "does not admit the pod of the benchmark",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_that_cannot_be_benchmarked_is_refused_with_the_reason_and_a_fix(case: str) -> None:
    manifest, kind, message = REFUSED[case]
    with pytest.raises(kind) as refused:
        plan_benchmark(live(manifest), LOAD, {})
    assert message in refused.value.message
    assert refused.value.fix


ADMITTED = {
    "the label of the benchmark": ([{"podSelector": {"matchLabels": {BENCHMARK_LABEL: "llama"}}}], {}),
    "every pod of the namespace": ([{"podSelector": {}}], {}),
    "every namespace": ([{"namespaceSelector": {}}], {}),
    "the namespace by its name": (
        [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}],
        {},
    ),
    "the labels of a client": (
        [{"podSelector": {"matchLabels": {"app": "other"}}}, {"podSelector": {"matchLabels": {"app": "chat"}}}],
        {"app": "chat"},
    ),
}


@pytest.mark.parametrize("case", ADMITTED)
def test_a_closed_network_policy_that_admits_the_pod_is_enough(case: str) -> None:
    clients, labels = ADMITTED[case]
    objects = live(admitting(a_share_model(), allowedClients=clients))
    benchmark = plan_benchmark(objects, LOAD, labels)
    worn = objects_of(benchmark)[0]["spec"]["template"]["metadata"]["labels"]
    assert worn == pod_labels(benchmark.pod.owner, labels)


@pytest.mark.parametrize("others", [[], [{"podSelector": {"matchLabels": {"app": "chat"}}}]])
def test_the_patch_that_the_fix_names_admits_the_benchmark_and_keeps_the_clients(others: list[Manifest]) -> None:
    manifest = admitting(a_share_model(), allowedClients=others)
    with pytest.raises(InputError) as refused:
        plan_benchmark(live(manifest), LOAD, {})
    kind, text = refused.value.fix.split("--type ")[1].split(" --patch ")
    patch = json.loads(text.strip("'"))
    if kind == "merge":
        clients = patch["spec"]["endpoint"]["allowedClients"]
    else:
        (operation,) = patch
        assert (operation["op"], operation["path"]) == ("add", "/spec/endpoint/allowedClients/-")
        clients = [*others, operation["value"]]
    assert (kind == "merge") == (not others), "a merge patch replaces the list"
    assert plan_benchmark(live(admitting(a_share_model(), allowedClients=clients)), LOAD, {})


def test_a_pod_with_the_labels_of_a_client_gets_no_requests_of_that_client() -> None:
    benchmark = plan_benchmark(live(admitting(a_share_model())), LOAD, {"app": "chat"})
    pod = objects_of(benchmark)[0]["spec"]["template"]["spec"]
    assert pod["readinessGates"], "without a gate that never opens, a Service of the client sends requests to the pod"


def test_what_no_waiting_changes_is_refused_before_a_model_that_does_not_serve() -> None:
    for manifest in (a_nim_model(), a_share_model()):
        with pytest.raises(InputError):
            plan_benchmark(replace(live(manifest, pods=0), workload=None, service=None), LOAD, {})


@pytest.mark.parametrize("part", ["pods", "workload", "service", "ready"])
def test_a_model_that_does_not_serve_is_not_benchmarked(part: str) -> None:
    objects = live(shape("share"))
    unready = replace(objects.report, ready=replace(objects.report.ready, truth="False", reason="Unschedulable"))
    objects = {
        "pods": live(shape("share"), pods=0),
        "workload": replace(objects, workload=None),
        "service": replace(objects, service=None),
        "ready": replace(objects, report=unready),
    }[part]
    with pytest.raises(BenchmarkFailed, match="does not serve") as refused:
        plan_benchmark(objects, LOAD, {})
    assert refused.value.fix == "hermetic status llama --namespace inference"


LABELS = {
    "app=chat": True,
    "app=": True,
    "example.com/app=chat-1.x_y": True,
    f"{'a' * 63}={'v' * 63}": True,
    f"{'.'.join(['d' * 62] * 4)}/{'a' * 63}=x": True,
    "app": False,
    "=chat": False,
    "app=chat=1": False,
    "app=-chat": False,
    "app=chat_": False,
    "app=a b": False,
    "app=chat\n": False,
    "-app=chat": False,
    "app-=chat": False,
    "/app=chat": False,
    "example.com/=chat": False,
    "example.com/team/app=chat": False,
    "Example.com/app=chat": False,
    "example..com/app=chat": False,
    f"{'a' * 64}=chat": False,
    f"app={'v' * 64}": False,
    f"{'.'.join(['d' * 63] * 4)}/app=x": False,
}
"""Whether Kubernetes accepts them: kubernetes.io/docs/concepts/overview/working-with-objects/labels, "Syntax and
character set". A prefix has 253 characters at most."""


@pytest.mark.parametrize("text", [text for text in LABELS if "=" in text])
def test_client_label_is_accepted_where_kubernetes_accepts_it(text: str) -> None:
    key, _, value = text.partition("=")
    assert is_label(key, value) == LABELS[text]


@pytest.mark.parametrize("text", [text for text, is_valid in LABELS.items() if not is_valid])
def test_client_label_that_kubernetes_refuses_is_refused_before_a_request(text: str) -> None:
    with pytest.raises(InputError, match="Kubernetes does not accept it") as refused:
        bench.main(["llama", "--client-label", text], standalone_mode=False)
    assert refused.value.fix == "--client-label app=chat"


def test_client_label_of_hermetic_is_refused() -> None:
    with pytest.raises(InputError, match="are Hermetic's own"):
        bench.main(["llama", "--client-label", "hermetic.dev/model=llama"], standalone_mode=False)
