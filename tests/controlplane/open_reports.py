"""The kinds of OpenReports on a cluster, for as long as a test wants them: other tests run without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from testbed.api import Api
from testbed.kubectl import Kubectl
from testbed.openreports import definitions
from testbed.served import wait_until_served

OUR_OPTION = Path(__file__).resolve().parents[2] / "manifests/openreports/clusterreports.openreports.io.yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTER_REPORTS = "/apis/openreports.io/v1alpha1/clusterreports"


def our_definitions() -> list[dict[str, Any]]:
    """The kind as the option of the manifests brings it."""
    return [yaml.safe_load(OUR_OPTION.read_text(encoding="utf-8"))]


@contextmanager
def open_reports_served(api: Api, kubectl: Kubectl, crds: list[dict[str, Any]] | None = None) -> Iterator[None]:
    """Inside, ClusterReport can be written, by the project's own kinds unless others are given.

    Raises CannotRunError without Go.
    """
    crds = definitions() if crds is None else crds
    names = [crd["metadata"]["name"] for crd in crds]
    for crd in crds:
        api.create(CRDS, crd)
    try:
        kubectl("wait", "--for=condition=Established", "--timeout=30s", *(f"crd/{name}" for name in names))
        wait_until_served(api, CLUSTER_REPORTS)
        yield
    finally:
        for name in names:
            api.delete(f"{CRDS}/{name}")
        kubectl("wait", "--for=delete", "--timeout=30s", *(f"crd/{name}" for name in names))
