"""The real HorizontalPodAutoscaler controller scales a model by its queue; the metrics adapter is a stand-in.

In one test the queue is that of an engine that a real Prometheus scrapes, by the rule of the page.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.custom_metrics import MetricsAdapter, PrometheusAdapter
from testbed.engine import vllm_environment
from testbed.engine.local import running, unpack
from testbed.errors import ApiError, CannotRunError
from testbed.fleet import Pool, add_nodes
from testbed.images.model import stage_model
from testbed.installation import CONFIGURATION, OperatorProcess, install, operator_kubeconfig
from testbed.kubectl import Kubectl
from testbed.programs import module_folder, programs
from testbed.prometheus import Prometheus
from tests.controlplane.deployments import Deployments
from tests.controlplane.test_tenant_rights import a_tenant
from tests.documented import ROOT
from tests.scenarios import Manifest, a_baked_model, changed, reporting

# The controller looks every 15 seconds by default (kube-controller-manager, --horizontal-pod-autoscaler-sync-period).
OFTEN = ("--horizontal-pod-autoscaler-sync-period=1s",)
NAMESPACE = "inference"
METRIC = "vllm:num_requests_waiting"
BOUNDS = {"minReplicas": 1, "maxReplicas": 3, "queuedRequests": 5}
REFUSED = re.escape("spec.replicas: must be absent with `autoscaling`")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCALER = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/llama"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[Deployments]:
    """A namespace of a cluster whose autoscaler looks every second, with the operator and five GPU nodes."""
    folder = tmp_path_factory.mktemp("autoscaling")
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    with ControlPlane(Settings(extra_controller_manager_args=OFTEN)) as plane, contextlib.ExitStack() as ends:
        api, kubectl = Api(plane.kubeconfig), Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        install(kubectl)
        api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        add_nodes(api, Pool("gpu"), 5)
        kubeconfig = operator_kubeconfig(api, plane.kubeconfig, folder / "operator.kubeconfig")
        operator = OperatorProcess(folder, kubeconfig, CONFIGURATION, "operator")
        component_logs["autoscaled"] = operator.component.log
        ends.callback(component_logs.pop, "autoscaled", None)
        ends.callback(operator.stop)
        operator.start()
        yield Deployments(api, kubectl, NAMESPACE, operator)


@pytest.fixture
def model(home: Deployments) -> Iterator[Deployments]:
    """One model that is autoscaled and started without evidence."""
    home.apply(a_model())
    home.until("llama", "ServingNotEnforced")
    yield home
    home.api.delete(f"{home.collection}/llama")
    home.wait("all gone", lambda: home.workload("llama") is None and not home.pods("llama"))


def a_model(**spec: Any) -> Manifest:
    return reporting(a_baked_model("llama", endpoint={}, drainSeconds=0, autoscaling=BOUNDS, **spec))


def replicas(home: Deployments) -> tuple[int, int]:
    """Of the ModelDeployment, as the autoscaler wrote it, and of the Deployment."""
    workload = home.workload("llama") or {}
    return home.get("llama")["spec"]["replicas"], workload["spec"]["replicas"]


def reason_of_the_scaler(home: Deployments, kind: str) -> str:
    conditions = home.api.get(SCALER).get("status", {}).get("conditions") or ()
    return next((condition["reason"] for condition in conditions if condition["type"] == kind), "")


def test_queue_adds_pods_and_the_missing_adapter_is_named_before(model: Deployments, tmp_path: Path) -> None:
    missing = model.until("llama", "QueueMetricUnavailable", "AutoscalerActive")
    assert "no custom metrics API (custom.metrics.k8s.io) registered" in missing["message"]
    assert model.condition("llama")["status"] == "True", "it serves with the pods that it has"

    with MetricsAdapter(model.api, tmp_path, "another_metric"):
        named = "could not find the metric"
        model.wait("the metric is named", lambda: named in model.condition("llama", "AutoscalerActive")["message"])

    with MetricsAdapter(model.api, tmp_path, METRIC) as adapter:
        model.until("llama", "QueueObserved", "AutoscalerActive")
        adapter.value = 20
        model.wait("every pod that may be added", lambda: replicas(model) == (3, 3))
        model.until("llama", "ServingNotEnforced")
        assert "more than `maxReplicas`" in model.condition("llama", "AutoscalerActive")["message"]
        _keeps_its_size_without_a_queue(model, adapter)
        _manifest_is_applied_again_without_a_change(model)
        _growth_waits_behind_a_closed_gate(model, adapter)


def _keeps_its_size_without_a_queue(model: Deployments, adapter: MetricsAdapter) -> None:
    """For half an hour: the controller reports the window."""
    adapter.value = 0
    model.wait("the window", lambda: reason_of_the_scaler(model, "AbleToScale") == "ScaleDownStabilized")
    assert replicas(model) == (3, 3)


def _manifest_is_applied_again_without_a_change(model: Deployments) -> None:
    """The field `replicas` belongs to the autoscaler: a manifest without it takes nothing away."""
    model.apply(a_model())
    assert replicas(model) == (3, 3)
    fields = {
        entry["manager"]: entry.get("fieldsV1", {}).get("f:spec", {})
        for entry in model.get("llama")["metadata"]["managedFields"]
    }
    assert "f:replicas" not in fields["tests"]


def _growth_waits_behind_a_closed_gate(model: Deployments, adapter: MetricsAdapter) -> None:
    """There is no evidence: with Enforce no pod is added, and one that goes may go."""
    model.change("llama", autoscaling={**BOUNDS, "maxReplicas": 2}, isolation={"enforcement": "Enforce"})
    model.wait("two pods", lambda: replicas(model) == (2, 2))
    model.change("llama", autoscaling={**BOUNDS, "maxReplicas": 5})
    adapter.value = 20
    condition = model.until("llama", "GrowthHeld", "AutoscalerActive")
    model.wait("the autoscaler asks for all", lambda: replicas(model)[0] == 5)
    assert replicas(model) == (5, 2)
    assert "the Deployment keeps 2" in condition["message"]


def of_the_page(name: str) -> Any:
    """The YAML that docs/serving.md gives under this name."""
    page = (ROOT / "docs" / "serving.md").read_text()
    (text,) = re.findall(rf"```yaml\n# {re.escape(name)}\n(.*?)```", page, re.DOTALL)
    return yaml.safe_load(text)


@contextlib.contextmanager
def an_engine(folder: Path) -> Iterator[int]:
    """The port of an engine that has one request at a time, with vLLM's page of metrics; an answer takes a minute."""
    stage_model(folder / "model")
    (folder / "model" / "stand-in.json").write_text(json.dumps({"seconds_per_token": 0.3}))
    arguments = ["serve", str(folder / "model"), "--port", "0", "--served-model-name", "llama", "--max-num-seqs", "1"]
    environment = {**vllm_environment("0.32.0"), "HOME": str(folder), "USER": "hermetic"}
    with running(unpack(folder / "image"), "usr/local/bin/vllm", arguments, environment) as engine:
        yield engine.port


def ask(port: int) -> None:
    """A request that is open until the engine ends."""
    body = {"model": "llama", "messages": [{"role": "user", "content": "?"}], "max_tokens": 200, "ignore_eos": True}
    headers = {"Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    with contextlib.suppress(OSError):
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=90).close()


def test_queue_of_an_engine_that_prometheus_scrapes_adds_pods_by_the_rule_of_the_page(
    model: Deployments, tmp_path: Path
) -> None:
    """Of 13 requests one is computed and 12 wait, which is more than `queuedRequests` for each of two pods."""
    (pod,) = (pod["metadata"]["name"] for pod in model.pods("llama"))
    with contextlib.ExitStack() as ends:
        port = ends.enter_context(an_engine(tmp_path))
        prometheus = Prometheus(tmp_path, f"127.0.0.1:{port}", labels={"namespace": NAMESPACE, "pod": pod})
        ends.callback(prometheus.stop)
        prometheus.start()
        (rule,) = of_the_page("rules.custom of prometheus-adapter")
        ends.enter_context(PrometheusAdapter(model.api, tmp_path, prometheus, rule))
        model.until("llama", "QueueObserved", "AutoscalerActive")
        assert replicas(model) == (1, 1)

        clients = [threading.Thread(target=ask, args=(port,), daemon=True) for _ in range(13)]
        for client in clients:
            client.start()
        model.wait("three pods", lambda: replicas(model) == (3, 3))
        (sample,) = prometheus.query(METRIC)
        assert (sample["metric"]["pod"], sample["value"][1]) == (pod, "12")


def test_scaled_object_of_the_page_has_the_fields_of_keda(home: Deployments) -> None:
    """The definition is that of KEDA; its controller is not here."""
    bases = module_folder("github.com/kedacore/keda/v2", "keda") / "config" / "crd" / "bases"
    home.api.create(DEFINITIONS, yaml.safe_load((bases / "keda.sh_scaledobjects.yaml").read_text()))
    scaled_objects = f"/apis/keda.sh/v1alpha1/namespaces/{NAMESPACE}/scaledobjects"
    home.wait("the kind", lambda: _is_served(home.api, scaled_objects))
    sample = of_the_page("keda.yaml")
    created = home.api.create(f"{scaled_objects}?fieldValidation=Strict&dryRun=All", sample)
    assert created["spec"] == sample["spec"]
    sample["spec"]["minReplicas"] = 1
    with pytest.raises(ApiError, match="unknown field"):
        home.api.create(f"{scaled_objects}?fieldValidation=Strict&dryRun=All", sample)
    home.api.delete(f"{DEFINITIONS}/scaledobjects.keda.sh")


def _is_served(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError as error:
        if error.status not in (404, 429):
            raise
        return False
    return True


def test_tenant_takes_no_label_off_the_autoscaler(model: Deployments, tmp_path: Path) -> None:
    """The operator finds its children by their labels."""
    tenant = a_tenant(model.api, model.kubectl.kubeconfig, NAMESPACE, tmp_path / "kubeconfig")

    def refusal() -> str:
        with pytest.raises(ApiError) as refused:
            tenant.merge(SCALER, {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}})
        return "" if refused.value.status == 403 else str(refused.value)

    assert "metadata.labels" in model.wait("the rights of a tenant", refusal)


@pytest.mark.parametrize(
    ("stored", "manager"),
    [({"replicas": 3}, "tests"), ({"replicas": 1}, "flux")],
    ids=["another number", "the default"],
)
def test_manifest_that_sets_replicas_beside_autoscaling_is_refused(
    home: Deployments, stored: dict[str, int], manager: str
) -> None:
    path = f"{home.collection}/refused"
    manifest = changed(a_model(), **stored)
    manifest["metadata"]["name"] = "refused"
    with pytest.raises(ApiError, match=REFUSED):
        home.api.apply(path, manifest, manager)


def test_write_of_replicas_is_refused_and_the_subresource_scale_is_not(model: Deployments) -> None:
    path = f"{model.collection}/llama"
    with pytest.raises(ApiError, match=REFUSED):
        model.api.merge(path, {"spec": {"replicas": 3}})
    model.api.merge(f"{path}/scale", {"spec": {"replicas": 0}})
    model.until("llama", "AutoscalerPaused", "AutoscalerActive")
    model.api.merge(path, {"spec": {"autoscaling": None, "replicas": 2}})
    model.wait("no autoscaler", lambda: model.child("autoscaling/v2", "horizontalpodautoscalers", "llama") is None)


def test_autoscaling_is_added_to_a_model_that_had_replicas(home: Deployments) -> None:
    """The number leaves the manifest in the same apply."""
    fixed = reporting(a_baked_model("moved", endpoint={}, drainSeconds=0, replicas=2))
    home.apply(fixed)
    moved = changed(fixed, autoscaling={**BOUNDS, "minReplicas": 2})
    with pytest.raises(ApiError, match=REFUSED):
        home.api.apply(f"{home.collection}/moved", moved, "tests")
    del moved["spec"]["replicas"]
    home.apply(moved)
    home.wait("still two", lambda: (home.workload("moved") or {}).get("spec", {}).get("replicas") == 2)
    home.api.delete(f"{home.collection}/moved")
