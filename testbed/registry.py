"""A registry of OCI artifacts on this machine: CNCF Distribution on a port of the loopback, by default with plain HTTP.

    with Registry(folder) as registry:
        digest = registry.push_manifests("hermetic/models", "latest", {"model.yaml": text})

`helm push`, source-controller and others use it by `registry.host`. It keeps what it holds in its folder.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import socket
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from testbed.certificates import Credential
from testbed.errors import ApiError
from testbed.images.layers import layer_of_files
from testbed.images.oci import MANIFEST, as_json, digest_of
from testbed.processes import Component, free_port, wait_until
from testbed.programs import programs

# What `flux push artifact` writes: https://fluxcd.io/flux/cheatsheets/oci-artifacts/#oci-artifact-specification
FLUX_CONFIG = "application/vnd.cncf.flux.config.v1+json"
FLUX_CONTENT = "application/vnd.cncf.flux.content.v1.tar+gzip"


USER, PASSWORD = "pusher", "let me push"
# bcrypt, the only form that the registry reads: https://distribution.github.io/distribution/about/configuration/#htpasswd
_HASHED = "$2b$05$abcdefghijklmnopqrstuuESDSlp7NPsmVNQ38pX/.6V1rhLJTWmC"


def htpasswd(folder: Path) -> dict[str, object]:
    """The `auth` of a registry that USER may use with PASSWORD."""
    file = folder / "htpasswd"
    file.write_text(f"{USER}:{_HASHED}\n")
    return {"htpasswd": {"realm": "registry", "path": str(file)}}


class Registry:
    """One registry and its folder.

    `tls` is its certificate. `auth` is the section of that name of its configuration, such as `htpasswd(folder)`.
    """

    def __init__(
        self, folder: Path, *, tls: Credential | None = None, auth: Mapping[str, object] | None = None
    ) -> None:
        self.host = f"127.0.0.1:{free_port()}"
        self._is_open = tls is None and auth is None
        settings = folder / "registry.json"
        document = self._settings(folder / "registry")
        if tls is not None:
            certificate, key = tls.write(folder, "registry")
            document["http"] = {"addr": self.host, "tls": {"certificate": str(certificate), "key": str(key)}}
        if auth is not None:
            document["auth"] = dict(auth)
        settings.write_text(json.dumps(document))
        program = programs("registry")["registry"]
        self.component = Component(
            "registry", [program, "serve", settings], folder / "registry.log", {"OTEL_TRACES_EXPORTER": "none"}
        )

    def __enter__(self) -> Self:
        self.component.start()
        wait_until("registry", self._answers, [self.component])
        return self

    def __exit__(self, *_: object) -> None:
        self.component.stop()

    def push_manifests(self, repository: str, tag: str, files: Mapping[str, str]) -> str:
        """Push files as `flux push artifact` does; returns the digest, which is the same for the same files."""
        content = gzip.compress(layer_of_files(files).tar, mtime=0)
        manifest = as_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": self._push_blob(repository, FLUX_CONFIG, b"{}"),
                "layers": [self._push_blob(repository, FLUX_CONTENT, content)],
            }
        )
        self._call("PUT", f"/v2/{repository}/manifests/{tag}", manifest, MANIFEST)
        return digest_of(manifest)

    def _push_blob(self, repository: str, media_type: str, content: bytes) -> dict[str, object]:
        digest = digest_of(content)
        upload = self._call("POST", f"/v2/{repository}/blobs/uploads/").getheader("Location", "")
        location = urllib.parse.urlsplit(upload)
        query = urllib.parse.urlencode([*urllib.parse.parse_qsl(location.query), ("digest", digest)])
        self._call("PUT", f"{location.path}?{query}", content)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def _call(
        self, method: str, path: str, body: bytes | None = None, content: str = "application/octet-stream"
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        try:
            connection.request(method, path, body, {"Content-Type": content})
            answer = connection.getresponse()
            answered = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise ApiError(answer.status, answer.reason, f"{method} {path}: {answered.decode(errors='replace')[:300]}")
        return answer

    def _answers(self) -> bool:
        if not self._is_open:
            host, _, port = self.host.partition(":")
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
                return True
            return False
        try:
            return self._call("GET", "/v2/").status == 200
        except OSError:
            return False

    def _settings(self, storage: Path) -> dict[str, object]:
        return {
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "http": {"addr": self.host},
            "storage": {"filesystem": {"rootdirectory": str(storage)}},
        }
