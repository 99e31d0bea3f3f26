"""Manifests behind a real socket, as an API server shows them: discovery and lists over TLS, by token.

Kubernetes API concepts (kubernetes.io/docs/reference/using-api/api-concepts): discovery by group and version, lists by
`fieldSelector=metadata.name=…`, and a Status with reason NotFound for a kind that is not served. Nothing is written.
"""

from __future__ import annotations

import json
import secrets
import ssl
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from testbed.certificates import Authority, write_kubeconfig
from testbed.textbook.objects import Manifest, plural

BUILT_IN = (
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "apps/v1",
    "batch/v1",
    "discovery.k8s.io/v1",
    "networking.k8s.io/v1",
    "storage.k8s.io/v1",
    "v1",
)


class ApiServerStandIn:
    """Serves these manifests from a thread of its own, until it is closed. `kubeconfig` is written into the folder."""

    def __init__(self, manifests: Iterable[Manifest], folder: Path) -> None:
        self._objects = [_stored(number, manifest) for number, manifest in enumerate(manifests, 1)]
        self.requests: list[str] = []
        self._token = secrets.token_urlsafe(24)
        authority = Authority("textbook")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.server("kube-apiserver", ["127.0.0.1"]).write(folder, "kube-apiserver"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        url = f"https://127.0.0.1:{self._server.server_port}"
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", url, authority.certificate, self._token)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, name="api-server-stand-in", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                allowed = self.headers.get("Authorization") == f"Bearer {stand_in._token}"
                status, body = stand_in._answer(self.path) if allowed else (401, _status(401, "Unauthorized"))
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's own name
                """Nothing on standard error."""

        return Handler

    def _answer(self, target: str) -> tuple[int, Manifest]:
        self.requests.append(target)
        url = urlsplit(target)
        parts = url.path.strip("/").split("/")
        if url.path == "/version":
            return 200, {"major": "1", "minor": "34"}
        if url.path == "/apis":
            return 200, {"kind": "APIGroupList", "groups": _groups(self._versions())}
        version, path = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        if version not in self._versions():
            return 404, _status(404, "NotFound")
        if not path:
            return 200, {"kind": "APIResourceList", "resources": self._resources(version)}
        return self._found(version, path, parse_qs(url.query).get("fieldSelector", [""])[0])

    def _found(self, version: str, parts: list[str], selector: str) -> tuple[int, Manifest]:
        namespace, path = (parts[1], parts[2:]) if parts[0] == "namespaces" and len(parts) > 2 else ("", parts)
        resource_names = {resource["name"] for resource in self._resources(version)}
        if path[0] not in resource_names and version not in BUILT_IN:
            return 404, _status(404, "NotFound")
        name = selector.removeprefix("metadata.name=") or "/".join(path[1:])
        items = [
            manifest
            for manifest in self._objects
            if manifest["apiVersion"] == version
            and plural(manifest["kind"]) == path[0]
            and namespace in {"", manifest["metadata"].get("namespace", "")}
            and name in {"", manifest["metadata"]["name"]}
        ]
        if len(path) > 1:
            return (200, items[0]) if items else (404, _status(404, "NotFound"))
        return 200, {"kind": "List", "apiVersion": version, "metadata": {"resourceVersion": "1000"}, "items": items}

    def _versions(self) -> list[str]:
        return sorted(
            {
                *BUILT_IN,
                *(manifest["apiVersion"] for manifest in self._objects),
                *(manifest for manifest, _ in self._defined()),
            }
        )

    def _defined(self) -> set[tuple[str, str]]:
        """Version and kind of every CustomResourceDefinition."""
        definitions = [manifest["spec"] for manifest in self._objects if manifest["kind"] == "CustomResourceDefinition"]
        return {
            (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            for spec in definitions
            for version in spec["versions"]
        }

    def _resources(self, version: str) -> list[Manifest]:
        shown = {(manifest["apiVersion"], manifest["kind"]) for manifest in self._objects} | self._defined()
        kinds = {kind for served, kind in shown if served == version}
        return [{"name": plural(kind), "kind": kind} for kind in sorted(kinds)]


def _stored(number: int, manifest: Manifest) -> Manifest:
    metadata = {"uid": f"00000000-0000-4000-8000-{number:012d}", "resourceVersion": str(number), **manifest["metadata"]}
    return {**manifest, "metadata": metadata}


def _groups(versions: Iterable[str]) -> list[Manifest]:
    groups: dict[str, list[Manifest]] = {}
    for version in versions:
        name, slash, bare = version.partition("/")
        if slash:
            groups.setdefault(name, []).append({"groupVersion": version, "version": bare})
    return [{"name": name, "versions": some} for name, some in groups.items()]


def _status(code: int, reason: str) -> Manifest:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "message": reason,
    }
