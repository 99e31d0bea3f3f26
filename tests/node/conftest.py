"""Everything in this folder runs on a real kubelet with containerd. What is not there is stood in for at its own
boundary: Azure Files by a CSI plug-in, GPUs by a device plug-in, the cloud's load balancers by a small controller.

    node           the running node: run programs on it (`inside`) or beside it (`from_client`), break its parts
    inside         `inside("curl", URL)` returns what the program printed
    start_pod      one-container pods, to look at the node from within
    share, share_volume                       a share of the test's own behind the CSI plug-ins, and a volume of it
    kubectl, api, namespace, make_namespace   as everywhere, on this node's cluster
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.csi.shares import AZURE_FILES, NFS
from testbed.errors import CannotRunError, ComponentError
from testbed.images.oci import Image, write_archive
from testbed.images.roots import busybox_layer
from testbed.kubectl import Kubectl, KubectlError, Manifest
from testbed.node.handle import RunningNode, running_node
from testbed.processes import wait_until
from tests.node.serving import deploy, estate, hermetic, share_model, weights

__all__ = ["deploy", "estate", "hermetic", "share_model", "weights"]

HERE = Path(__file__).resolve().parent
ACCOUNT = "contosomodels"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.node)


@pytest.fixture(scope="session")
def node(component_logs: dict[str, Path]) -> Iterator[RunningNode]:
    """One node for the whole session, with four GPUs."""
    try:
        with running_node() as running:
            logs = {f"node {log.stem}": log for log in running.log_files()}
            component_logs.update(logs)
            yield running
            for name in logs:
                del component_logs[name]
    except CannotRunError as reason:
        pytest.skip(str(reason))


# The cluster fixtures of the session, once more: those of the other folders belong to another cluster.


@pytest.fixture(scope="session")
def cluster(node: RunningNode) -> Path:
    return node.kubeconfig


@pytest.fixture(scope="session")
def kubectl(node: RunningNode) -> Kubectl:
    return node.kubectl


@pytest.fixture(scope="session")
def api(cluster: Path) -> Api:
    return Api(cluster)


@pytest.fixture
def inside(node: RunningNode) -> Callable[..., str]:
    """Runs a program on the node and returns its output; a failing one raises with what it said."""

    def run(*command: str) -> str:
        done = node.inside(*command)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    return run


@pytest.fixture
def share(node: RunningNode, namespace: str) -> Path:
    """A share of the account `contosomodels` that is the test's own: name it in volumes by `share.name`."""
    folder = node.shares / ACCOUNT / namespace
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def share_volume(kubectl: Kubectl, namespace: str, share: Path) -> Iterator[Callable[..., Manifest]]:
    """Makes a PersistentVolume and a claim of the test's own share, and returns the pod's volume `weights`.

    By default read-only is said in the mount options and the claim. Further attributes go to the driver.
    """
    name = f"weights-{namespace}"
    namespaces: list[str] = []

    def make(
        options: tuple[str, ...] = ("ro", "nconnect=4", "noresvport"),
        claim_read_only: bool = True,
        driver: str = AZURE_FILES,
        **attributes: str,
    ) -> Manifest:
        drivers = {
            AZURE_FILES: {
                "protocol": "nfs",
                "storageAccount": ACCOUNT,
                "shareName": share.name,
                "mountPermissions": "0",
            },
            NFS: {"server": ACCOUNT, "share": f"/{share.name}"},
        }
        csi = {
            "driver": driver,
            "volumeHandle": f"rg#{ACCOUNT}#{share.name}#{name}",
            "readOnly": True,
            "volumeAttributes": {**drivers[driver], **attributes},
        }
        kubectl.within(namespace).apply(_persistent_volume(name, namespace, options, csi), _claim(name))
        namespaces.append(name)
        return {"name": "weights", "persistentVolumeClaim": {"claimName": "weights", "readOnly": claim_read_only}}

    yield make
    for volume in namespaces:
        kubectl("delete", "persistentvolume", volume, "--wait=false")


def _persistent_volume(name: str, namespace: str, options: tuple[str, ...], csi: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": "weights"},
            "mountOptions": list(options),
            "csi": csi,
        },
    }


def _claim(volume: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "weights"},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "volumeName": volume,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


@pytest.fixture(scope="session")
def toolbox(node: RunningNode, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """An image with a shell and the usual small programs, given to the node while it runs."""
    return give_toolbox(node, tmp_path_factory.mktemp("images"))


def give_toolbox(node: RunningNode, folder: Path) -> Image:
    """Make the image in the folder, and give it to the node."""
    image = Image("contoso.azurecr.io/tools/toolbox", "1", (busybox_layer(),), command=("/bin/sleep", "3600"))
    archive = folder / "toolbox.tar"
    write_archive(archive, [image])
    node.import_images(archive)
    return image


@dataclass(frozen=True)
class Pod:
    """A pod of a test, asked by name."""

    name: str
    kubectl: Kubectl

    def until(self, condition: str, seconds: int = 60) -> Pod:
        """`Ready`, or `jsonpath=...` as kubectl wait takes it."""
        awaited = condition if "=" in condition else f"condition={condition}"
        patient = replace(self.kubectl, timeout=seconds + 10)
        try:
            patient("wait", f"pod/{self.name}", f"--for={awaited}", f"--timeout={seconds}s")
        except KubectlError as error:
            raise AssertionError("\n".join([str(error), *self.warnings()])) from error
        return self

    def shell(self, script: str) -> str:
        """Runs a shell script in the container; both outputs, whatever the exit status."""
        return self.kubectl("exec", self.name, "--", "sh", "-c", f"({script}) 2>&1 || true")

    def status(self) -> Any:
        return self.kubectl.json("get", "pod", self.name)["status"]

    def warnings(self) -> list[str]:
        """`Reason: message` of every warning event about the pod so far."""
        chosen = f"--field-selector=type=Warning,involvedObject.name={self.name}"
        events = self.kubectl.json("get", "events", chosen)["items"]
        return [f"{event['reason']}: {event['message']}" for event in events]

    def until_warned(self, *words: str, seconds: float = 60) -> str:
        """Waits for a warning that has all the words, and returns it."""
        warnings_seen: list[str] = []

        def warned() -> bool:
            warnings_seen[:] = self.warnings()
            return any(all(word in warning for word in words) for warning in warnings_seen)

        try:
            wait_until(f"a warning with {words}", warned, (), seconds)
        except ComponentError as error:
            raise AssertionError(f"{error}\nseen: {warnings_seen}") from error
        return next(warning for warning in warnings_seen if all(word in warning for word in words))


@pytest.fixture
def start_pod(kubectl: Kubectl, namespace: str, toolbox: Image) -> Callable[..., Pod]:
    """`start_pod("reader", container={...}, volumes=[...])`: one container of the toolbox image, on the real node.

    What is given is laid over the container and the pod's spec; nothing is waited for.
    """
    ours = kubectl.within(namespace)

    def start(name: str, container: Manifest | None = None, **spec: Any) -> Pod:
        ours.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
                "spec": {
                    "nodeSelector": {"hermetic.test/real": "true"},
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": False,
                    "containers": [
                        {
                            "name": "main",
                            "image": toolbox.by_digest,
                            "imagePullPolicy": "IfNotPresent",
                            **(container or {}),
                        }
                    ],
                    **spec,
                },
            }
        )
        return Pod(name, ours)

    return start
