"""The two judges: pydantic, as `hermetic validate` asks it, and a real API server, over one connection."""

from __future__ import annotations

import functools
import http.client
import json
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import ValidationError

from hermetic.api.modeldeployment import ModelDeployment
from hermetic.api.validation_errors import FieldError, problems_of
from testbed.api import Access
from tests.corpus.manifests import Manifest

CRDS = Path(__file__).resolve().parents[2] / "crds"
CRD_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COLLECTION = "/apis/hermetic.dev/v1alpha1/namespaces/default/modeldeployments"
STRICT_DRY_RUN = "?dryRun=All&fieldValidation=Strict"


def verdict_of_pydantic(manifest: Manifest) -> tuple[FieldError, ...]:
    """Nothing where the manifest is accepted."""
    try:
        ModelDeployment.model_validate(manifest)
    except ValidationError as refusal:
        return problems_of(refusal, ModelDeployment)
    return ()


@dataclass(frozen=True)
class Answer:
    """What the API server says to one request."""

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    def messages_about(self, path: str) -> str:
        """Every cause at this field, or the whole message where the server names no causes (unknown fields)."""
        causes = self.body.get("details", {}).get("causes", [])
        at_path = [cause["message"] for cause in causes if cause.get("field") == path]
        return "\n".join(at_path) if causes else self.message if f'"{path}"' in self.message else ""


class Judge:
    """One kept connection to the API server: 150 questions take a second, not a minute."""

    def __init__(self, kubeconfig: Path) -> None:
        access = Access.of(kubeconfig)
        address = urllib.parse.urlsplit(access.server)
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port or 443, context=access.tls, timeout=30
        )
        self._headers = {"Accept": "application/json"}
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"

    @functools.cached_property
    def minor_version(self) -> int:
        """34 for Kubernetes 1.34."""
        return int(self.ask("GET", "/version").body["minor"].rstrip("+"))

    def create(self, manifest: Manifest) -> Answer:
        """Asks without keeping: strict about unknown fields, as kubectl is."""
        return self.ask("POST", COLLECTION + STRICT_DRY_RUN, manifest)

    def install_crds(self) -> list[Answer]:
        """Server-side applies crds/ and returns when every kind is served; the answers to the applies."""
        manifests = [
            yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CRDS.glob("*.hermetic.dev.yaml"))
        ]
        paths = [f"{CRD_COLLECTION}/{manifest['metadata']['name']}" for manifest in manifests]
        query = "?fieldManager=tests&force=true&fieldValidation=Strict"
        answers = [
            self.ask("PATCH", path + query, manifest, content="application/apply-patch+yaml")
            for path, manifest in zip(paths, manifests, strict=True)
        ]
        deadline = time.monotonic() + 30
        while not all(self._is_established(path) for path in paths):
            assert time.monotonic() < deadline, f"CRDs are not established: {[answer.message for answer in answers]}"
            time.sleep(0.05)
        return answers

    def _is_established(self, path: str) -> bool:
        conditions = self.ask("GET", path).body.get("status", {}).get("conditions") or []
        return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)

    def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, content: str = "application/json"
    ) -> Answer:
        headers = {**self._headers, "Content-Type": content}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        with self._connection.getresponse() as response:
            warnings = tuple(response.headers.get_all("Warning") or ())
            return Answer(response.status, json.loads(response.read()), warnings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
