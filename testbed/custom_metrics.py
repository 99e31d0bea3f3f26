"""A metrics adapter: one Pods metric in custom.metrics.k8s.io, by an APIService, as prometheus-adapter serves it.

Paths: kubernetes/design-proposals-archive, instrumentation/custom-metrics-api.md. Types:
k8s.io/metrics/pkg/apis/custom_metrics/v1beta2/types.go. A metric that the adapter does not have is answered 404, as
sigs.k8s.io/custom-metrics-apiserver does (pkg/provider/errors.go, NewMetricNotFoundError).
"""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from testbed.api import Api
from testbed.certificates import Authority
from testbed.errors import ApiError

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

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """Status and body for a GET of this path with its query."""
        request = urlsplit(path)
        if request.path == ROOT:
            return 200, self._resources()
        parts = unquote(request.path).removeprefix(f"{ROOT}/").split("/")
        match parts:
            case ["namespaces", namespace, "pods", "*", metric] if metric == self.metric:
                return 200, self._values(namespace, parse_qs(request.query).get("labelSelector", [""])[0])
            case ["namespaces", _, "pods", "*", metric]:
                return 404, _failure(f"the server could not find the metric {metric} for pods")
        return 404, _failure("the server could not find the requested resource")

    def _resources(self) -> dict[str, Any]:
        resource = {
            "name": f"pods/{self.metric}", "singularName": "", "namespaced": True, "kind": "MetricValueList",
            "verbs": ["get"],
        }  # fmt: skip
        return {
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}",
            "resources": [resource],
        }  # fmt: skip

    def _values(self, namespace: str, selector: str) -> dict[str, Any]:
        pods = self._api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)["items"]
        serving = [pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Running"]
        return {
            "kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {},
            "items": [self._value(namespace, pod) for pod in serving],
        }  # fmt: skip

    def _value(self, namespace: str, pod: str) -> dict[str, Any]:
        return {
            "describedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "/v1"},
            "metric": {"name": self.metric},
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": str(self.value),
        }

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


def _failure(message: str) -> dict[str, Any]:
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
        "message": message,
    }  # fmt: skip
