"""The user in these figures: applies objects over open connections, as fast as the API server takes them."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
import urllib.parse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from bench.workload import API, Manifest, is_settled
from testbed.api import APPLY, Access, Api
from testbed.errors import ApiError

CONNECTIONS = 4
QUERY = "fieldManager=bench&force=true"


def apply_all(
    kubeconfig: Path, namespace: str, manifests: Sequence[Manifest], *, per_second: float | None = None
) -> None:
    """Server-side apply of all, in order, over a few connections at once. Raises ApiError when one is refused.

    With `per_second` each waits for its time.
    """
    pacing = Pacing(per_second)
    shares = [list(enumerate(manifests))[start::CONNECTIONS] for start in range(CONNECTIONS)]
    access = Access.of(kubeconfig)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        # list(): an error in a thread is raised here
        list(pool.map(lambda share: _apply_some(access, namespace, share, pacing), shares))


class Pacing:
    """Lets the n-th request begin n / `per_second` seconds after this was made; at once with None."""

    def __init__(self, per_second: float | None) -> None:
        self._per_second = per_second
        self._began = time.monotonic()

    def wait_for_turn(self, number: int) -> None:
        """Wait until the request with this number may begin; the first one has the number 0."""
        if self._per_second is not None:
            time.sleep(max(0.0, self._began + number / self._per_second - time.monotonic()))


def _apply_some(access: Access, namespace: str, manifests: Sequence[tuple[int, Manifest]], pacing: Pacing) -> None:
    address = urllib.parse.urlsplit(access.server)
    connection = http.client.HTTPSConnection(
        address.hostname or "", address.port or 443, context=access.tls, timeout=60
    )
    headers = {"Content-Type": APPLY, "Accept": "application/json", "User-Agent": "bench"}
    with contextlib.closing(connection):
        for number, manifest in manifests:
            pacing.wait_for_turn(number)
            path = f"{API}/namespaces/{namespace}/modeldeployments/{manifest['metadata']['name']}?{QUERY}"
            connection.request("PATCH", path, json.dumps(manifest), headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status >= 300:
                raise ApiError(answer.status, "", body.decode(errors="replace")[:500])


class Settling:
    """Watches one namespace from its creation on, and notes when each ModelDeployment was first seen serving."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._path = api, f"{API}/namespaces/{namespace}/modeldeployments"
        self._moments: dict[str, float] = {}
        self._changed = threading.Condition()
        self._over = False

    def __enter__(self) -> Self:
        listed = self._api.get(self._path)
        self._note(listed["items"])
        threading.Thread(target=self._follow, args=(listed["metadata"]["resourceVersion"],), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True

    def wait_for(self, models: int, timeout: float) -> float:
        """Wait until this many serve; returns when the last of them did, seconds since the epoch."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._moments) >= models, timeout):
                raise TimeoutError(f"{len(self._moments)} of {models} models serve after {timeout:.0f} s")
            return max(self._moments.values())

    def _follow(self, version: str) -> None:
        while not self._over:
            try:
                for event in self._api.watch(self._path, version, seconds=30):
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._note([event["object"]])
            except (OSError, ApiError):
                if self._over:
                    return
                raise

    def _note(self, objects: list[dict[str, Any]]) -> None:
        with self._changed:
            for live in objects:
                if is_settled(live):
                    self._moments.setdefault(live["metadata"]["name"], time.time())
            self._changed.notify_all()
