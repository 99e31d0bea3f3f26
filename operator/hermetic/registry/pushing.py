"""Pushes blobs and manifests of one repository, and verifies them there.

What the registry has already is not sent again: an interrupted push continues, and a second one changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from hermetic.errors import BundleRefused, HermeticError, RegistryRefused, Unreachable
from hermetic.registry.refusals import refusal
from hermetic.registry.transport import ATTEMPTS, REPEATED, RegistryClient

_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"

CHUNK = 4 * 2**20
"""Bytes of one request. Larger ones meet limits of proxies; the Azure SDK for container registries sends 4 MiB too."""
LARGEST_CHUNK = 64 * 2**20
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_RESUMED = REPEATED | {httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE}
"""Answers to a chunk after which the registry is asked how much of the upload it has."""
_RANGE = re.compile(r"0-(\d+)")

Read = Callable[[int, int], bytes]
"""Reads from an offset at most as many bytes as named; fewer only at the end."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob to push: its digest, its bytes, and how they are read."""

    digest: str
    size: int
    read: Read


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest or index to push: its bytes, the tags that it gets, and the digest that it refers to ("" for none)."""

    content: bytes
    media_type: str
    tags: tuple[str, ...] = ()
    subject: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"


class Repository:
    """One repository of a registry."""

    def __init__(self, client: RegistryClient, name: str, actions: str = "pull,push") -> None:
        self._client = client
        self.name = name
        self._path = f"/v2/{name}"
        self._scope = f"repository:{name}:{actions}"

    def push_blob(self, blob: Blob) -> bool:
        """Push a blob; False where the registry has it already. Raises RegistryRefused, Unreachable, BundleRefused."""
        if self._has_blob(blob):
            return False
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._upload(blob)
                break
            except _SessionLost as lost:
                if attempt == ATTEMPTS:
                    raise refusal(f"uploading {blob.digest}", lost.response) from None
        return True

    def push_manifest(self, manifest: Manifest) -> None:
        """Push a manifest by its digest, then under each tag that does not name it yet."""
        for reference in (manifest.digest, *manifest.tags):
            if self.digest_of(reference) == manifest.digest:
                continue
            response = self._request(
                "PUT", f"{self._path}/manifests/{reference}", {"Content-Type": manifest.media_type}, manifest.content
            )
            _must_be(response, f"writing the manifest {self.name}:{reference}", httpx.codes.CREATED)
        if manifest.subject:
            self._list_referrer(manifest)

    def _list_referrer(self, manifest: Manifest) -> None:
        """Enter the manifest in the list of its subject's referrers, where the registry keeps none itself."""
        answer = self._request("GET", f"{self._path}/referrers/{manifest.subject}")
        if answer.status_code == httpx.codes.OK:
            return
        _must_be(answer, f"asking for the referrers of {manifest.subject}", httpx.codes.NOT_FOUND)
        url = f"{self._path}/manifests/{_referrers_tag(manifest.subject)}"
        present = self._request("GET", url, {"Accept": _INDEX_TYPE})
        index = present.content if present.status_code == httpx.codes.OK else b""
        entry = referrer_descriptor(manifest.content, manifest.media_type, manifest.digest)
        if (listed := with_referrer(index, entry)) != index:
            response = self._request("PUT", url, {"Content-Type": _INDEX_TYPE}, listed)
            _must_be(response, f"listing what refers to {manifest.subject}", httpx.codes.CREATED)

    def verify(self, manifest: Manifest, blobs: Sequence[Blob]) -> None:
        """Raises RegistryRefused unless the registry returns these bytes by digest and tags, and has every blob."""
        accept = {"Accept": manifest.media_type}
        for reference in (manifest.digest, *manifest.tags):
            response = self._request("GET", f"{self._path}/manifests/{reference}", accept)
            _must_be(response, f"reading back {self.name}:{reference}", httpx.codes.OK)
            if response.content != manifest.content:
                digest = f"sha256:{hashlib.sha256(response.content).hexdigest()}"
                raise self._other_bytes(f"{self.name}:{reference} is {digest}; {manifest.digest} was pushed")
        for blob in blobs:
            if not self._has_blob(blob):
                raise self._other_bytes(f"{self.name}: the blob {blob.digest} is missing after the push")

    def _upload(self, blob: Blob) -> None:
        response = self._request("POST", f"{self._path}/blobs/uploads/")
        _must_be(response, f"beginning the upload of {blob.digest}", httpx.codes.ACCEPTED)
        chunk = _chunk_size(response)
        if blob.size <= chunk:
            self._close(blob, _location(response), blob.read(0, blob.size))
            return
        location, sent = _location(response), 0
        while sent < blob.size:
            location, sent = self._send_chunk(blob, location, sent, chunk)
        self._close(blob, location, b"")

    def _send_chunk(self, blob: Blob, location: str, sent: int, size: int) -> tuple[str, int]:
        """Send one chunk; returns where to go on. A chunk is sent once: what arrived of it is asked for."""
        content = blob.read(sent, size)
        if not content:
            raise BundleRefused(f"{blob.digest} ends after {sent} of {blob.size} bytes")
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Range": f"{sent}-{sent + len(content) - 1}",
        }
        for attempt in range(1, ATTEMPTS + 1):
            response, failure = self._patch(blob, location, headers, content)
            if failure is None and response is not None:
                return _location(response), sent + len(content)
            if failure is not None and attempt == ATTEMPTS:
                raise failure
            self._client.wait(attempt, response)
            status = self._request("GET", location)
            if status.status_code != httpx.codes.NO_CONTENT:
                raise _SessionLost(status)
            location, arrived = _location(status), _arrived(status)
            if arrived != sent:
                return location, arrived
        raise AssertionError("the last attempt returns or raises")

    def _patch(
        self, blob: Blob, location: str, headers: dict[str, str], content: bytes
    ) -> tuple[httpx.Response | None, HermeticError | None]:
        """One chunk: the answer, if any, and the failure after which the registry is asked how much it has."""
        try:
            response = self._client.request(
                "PATCH", location, self._scope, headers=headers, content=content, attempts=1
            )
        except Unreachable as error:
            return None, error
        if response.status_code == httpx.codes.ACCEPTED:
            return response, None
        if response.status_code == httpx.codes.NOT_FOUND:
            raise _SessionLost(response)
        failure = refusal(f"uploading {blob.digest}", response)
        if response.status_code not in _RESUMED:
            raise failure
        return response, failure

    def _close(self, blob: Blob, location: str, content: bytes) -> None:
        """The last request of an upload. A repeated one finds no upload where the first succeeded unseen."""
        url = str(httpx.URL(location).copy_merge_params({"digest": blob.digest}))
        response = self._request("PUT", url, {"Content-Type": "application/octet-stream"}, content)
        if response.status_code == httpx.codes.CREATED or self._has_blob(blob):
            return
        if response.status_code == httpx.codes.NOT_FOUND:
            raise _SessionLost(response)
        raise refusal(f"uploading {blob.digest}", response)

    def _has_blob(self, blob: Blob) -> bool:
        """Whether the registry has the blob; one that redirects to its storage has it, and no redirect is followed."""
        response = self._request("HEAD", f"{self._path}/blobs/{blob.digest}")
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        if response.is_redirect:
            return True
        _must_be(response, f"asking for {blob.digest}", httpx.codes.OK)
        length = response.headers.get("Content-Length", str(blob.size))
        if length != str(blob.size):
            raise self._other_bytes(f"{self.name}: {blob.digest} has {length} bytes; it has {blob.size} here")
        return True

    def digest_of(self, reference: str) -> str:
        """The digest of a tag; "" where the registry does not have it. Raises RegistryRefused, Unreachable."""
        accept = {"Accept": ", ".join(MANIFEST_TYPES)}
        response = self._request("HEAD", f"{self._path}/manifests/{reference}", accept)
        if response.status_code == httpx.codes.NOT_FOUND:
            return ""
        _must_be(response, f"asking for {self.name}:{reference}", httpx.codes.OK)
        return str(response.headers.get("Docker-Content-Digest", ""))

    def _request(
        self, method: str, url: str, headers: dict[str, str] | None = None, content: bytes = b""
    ) -> httpx.Response:
        return self._client.request(method, url, self._scope, headers=headers, content=content)

    def _other_bytes(self, message: str) -> RegistryRefused:
        return RegistryRefused(
            f"{self._client.endpoint.host}/{message}",
            fix="run the same command again; if it ends like this again, the registry's storage is damaged",
        )


class _SessionLost(Exception):
    """The registry no longer has the upload: it begins anew."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def _must_be(response: httpx.Response, action: str, status: int) -> None:
    if response.status_code != status:
        raise refusal(action, response)


def _location(response: httpx.Response) -> str:
    location = response.headers.get("Location", "")
    if not location:
        raise RegistryRefused(f"{response.request.url.host}: answers an upload without a Location")
    return str(location)


def _chunk_size(response: httpx.Response) -> int:
    smallest = response.headers.get("OCI-Chunk-Min-Length", "")
    return min(max(CHUNK, int(smallest)), LARGEST_CHUNK) if smallest.isascii() and smallest.isdigit() else CHUNK


def _arrived(status: httpx.Response) -> int:
    """Bytes of an upload that the registry has, by its Range."""
    matched = _RANGE.fullmatch(status.headers.get("Range", "").removeprefix("bytes="))
    return int(matched[1]) + 1 if matched is not None and matched[1] != "0" else 0


def _referrers_tag(subject: str) -> str:
    """The tag that lists what refers to a digest."""
    return subject.replace(":", "-", 1)


def referrer_descriptor(content: bytes, media_type: str, digest: str) -> dict[str, Any]:
    """The entry of a manifest in such a list: artifact type and annotations are those of the manifest."""
    manifest = json.loads(content)
    artifact_type = manifest.get("artifactType") or (manifest.get("config") or {}).get("mediaType", "")
    annotations = manifest.get("annotations")
    return {
        "mediaType": media_type,
        "digest": digest,
        "size": len(content),
        **({"artifactType": artifact_type} if artifact_type else {}),
        **({"annotations": annotations} if annotations else {}),
    }


def with_referrer(index: bytes, entry: Mapping[str, Any]) -> bytes:
    """The index with the entry; the same bytes where it has it. `index` is empty where there is none."""
    entries: list[Any] = []
    if index:
        try:
            listed = json.loads(index)
        except ValueError:
            listed = {}
        entries = listed.get("manifests") or [] if isinstance(listed, dict) else []
    if any(isinstance(present, dict) and present.get("digest") == entry["digest"] for present in entries):
        return index
    document = {"schemaVersion": 2, "mediaType": _INDEX_TYPE, "manifests": [*entries, dict(entry)]}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
