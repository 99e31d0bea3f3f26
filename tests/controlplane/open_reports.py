"""The kinds of OpenReports on a cluster, for as long as a test wants them: others tell what happens without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.api import Api
from testbed.errors import ApiError
from testbed.kubectl import Kubectl
from testbed.openreports import definitions
from testbed.processes import wait_until

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
        wait_until("ClusterReports", lambda: _is_listed(api), ())
        yield
    finally:
        for name in names:
            api.delete(f"{CRDS}/{name}")


def _is_listed(api: Api) -> bool:
    """Not while the API server is still making room for the kind: 404 first, 429 then."""
    try:
        api.get(CLUSTER_REPORTS)
    except ApiError as error:
        if error.status not in {404, 429}:
            raise
        return False
    return True
