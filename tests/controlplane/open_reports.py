"""The kinds of OpenReports on a cluster, for as long as a test wants them: others tell what happens without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.api import Api
from testbed.kubectl import Kubectl
from testbed.openreports import definitions
from testbed.served import wait_until_served

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTER_REPORTS = "/apis/openreports.io/v1alpha1/clusterreports"


@contextmanager
def open_reports_served(api: Api, kubectl: Kubectl) -> Iterator[None]:
    """Inside, ClusterReport and Report can be written. Raises CannotRunError without Go."""
    crds = definitions()
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
