"""Metrics adapters: Pods metrics in custom.metrics.k8s.io, by an APIService, as prometheus-adapter serves them.

Paths: kubernetes/design-proposals-archive, instrumentation/custom-metrics-api.md. Types:
k8s.io/metrics/pkg/apis/custom_metrics/v1beta2/types.go. A metric that the adapter does not have is answered 404, as
sigs.k8s.io/custom-metrics-apiserver does (pkg/provider/errors.go, NewMetricNotFoundError).
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from testbed.api import Api
from testbed.certificates import Authority
from testbed.errors import ApiError
from testbed.prometheus import Prometheus

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
ROOT = f"/apis/{GROUP}/{VERSION}"
NAME, NAMESPACE = "custom-metrics", "kube-system"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"


class MetricsAdapter:
    """Serves the gauge `metric` with the same `value` for every pod that the selector matches, until it is left."""

    def __init__(self, api: Api, folder: Path, metric: str) -> None:
        self.metric, self.value = metric, 0
        self._api = api
        # The API server calls from threads of its own, and `Api` keeps a connection for each thread.
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        certificate, key = Authority("metrics").server("metrics", ["localhost"]).write(folder, "metrics")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        port = self._server.server_address[1]
        service = {"type": "ExternalName", "externalName": "localhost"}
        self._api.create(_SERVICES, {"metadata": {"name": NAME}, "spec": service})
        spec = {
            "group": GROUP, "version": VERSION, "groupPriorityMinimum": 100, "versionPriority": 200,
            "insecureSkipTLSVerify": True, "service": {"namespace": NAMESPACE, "name": NAME, "port": port},
        }  # fmt: skip
        self._api.create(_API_SERVICES, {"metadata": {"name": f"{VERSION}.{GROUP}"}, "spec": spec})
        return self

    def __exit__(self, *_: object) -> None:
        for path in (f"{_API_SERVICES}/{VERSION}.{GROUP}", f"{_SERVICES}/{NAME}"):
            with suppress(ApiError):
                self._api.delete(path)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def metrics(self) -> list[str]:
        """The names of all metrics."""
        return [self.metric]

    def measured(self, metric: str, namespace: str, pods: Sequence[str]) -> Mapping[str, float]:  # noqa: ARG002
        """The value of a metric for each of the pods that has it."""
        return dict.fromkeys(pods, float(self.value))

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """Status and body for a GET of this path with its query."""
        request = urlsplit(path)
        if request.path == ROOT:
            return 200, self._resources()
        parts = unquote(request.path).removeprefix(f"{ROOT}/").split("/")
        match parts:
            case ["namespaces", namespace, "pods", "*", metric] if metric in self.metrics():
                return 200, self._values(metric, namespace, parse_qs(request.query).get("labelSelector", [""])[0])
            case ["namespaces", _, "pods", "*", metric]:
                return 404, _failure(f"the server could not find the metric {metric} for pods")
        return 404, _failure("the server could not find the requested resource")

    def _resources(self) -> dict[str, Any]:
        kind = {"singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
        return {
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}",
            "resources": [{"name": f"pods/{metric}", **kind} for metric in self.metrics()],
        }  # fmt: skip

    def _values(self, metric: str, namespace: str, selector: str) -> dict[str, Any]:
        pods = self._api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)["items"]
        serving = [pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Running"]
        return {
            "kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {},
            "items": [
                {
                    "describedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "/v1"},
                    "metric": {"name": metric},
                    "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "value": f"{round(value * 1000)}m",
                }
                for pod, value in self.measured(metric, namespace, serving).items()
            ],
        }  # fmt: skip

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        adapter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:  # the name that http.server calls
                status, body = adapter.answer(self.path)
                encoded = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            def log_message(self, *_: object) -> None:
                return

        return Handler


class PrometheusAdapter(MetricsAdapter):
    """Serves what a rule of prometheus-adapter makes of the series of a Prometheus.

    Source: kubernetes-sigs/prometheus-adapter, docs/config.md (discovery by `seriesQuery`, association by
    `resources.overrides`, querying by `metricsQuery`). A rule with another field is refused with ValueError.
    """

    def __init__(self, api: Api, folder: Path, prometheus: Prometheus, rule: Mapping[str, Any]) -> None:
        if rule.keys() != {"seriesQuery", "resources", "metricsQuery"}:
            raise ValueError(f"a rule has seriesQuery, resources and metricsQuery, not {', '.join(rule)}")
        super().__init__(api, folder, "")
        self._prometheus, self._rule = prometheus, rule
        overrides: dict[str, dict[str, str]] = rule["resources"]["overrides"]
        self._labels = {override["resource"]: label for label, override in overrides.items()}

    def metrics(self) -> list[str]:
        return sorted({series["__name__"] for series in self._prometheus.series(self._rule["seriesQuery"])})

    def measured(self, metric: str, namespace: str, pods: Sequence[str]) -> Mapping[str, float]:
        label = self._labels["pod"]
        names = f'="{pods[0]}"' if len(pods) == 1 else f'=~"{"|".join(pods)}"'
        fields = {"Series": metric, "GroupBy": label}
        fields["LabelMatchers"] = f'{self._labels["namespace"]}="{namespace}",{label}{names}'
        query = str(self._rule["metricsQuery"])
        for name, value in fields.items():
            query = query.replace(f"<<.{name}>>", value)
        return {sample["metric"][label]: float(sample["value"][1]) for sample in self._prometheus.query(query)}


def _failure(message: str) -> dict[str, Any]:
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
        "message": message,
    }  # fmt: skip
