"""The pod of docs/install.md that proves the pull: a node that has no image of Hermetic, and a registry that it asks.

The registry runs where the node's containerd reaches it, on the node's own loopback, with plain HTTP. Its image came by
the skopeo command of the page.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from shipping.layout import layout_files, write_tar
from testbed.errors import CannotRunError
from testbed.images.oci import Image
from testbed.images.recipes import REGISTRY, operator_image
from testbed.installation import wait_for
from testbed.kubectl import KubectlError
from testbed.node.handle import RunningNode, running_node
from testbed.processes import Component, wait_until
from testbed.programs import programs
from testbed.registry import Registry
from testbed.skopeo import skopeo
from tests.install_page import commands, manifest

SECTION = "What the cluster must have"
NAMED = f"{REGISTRY}/hermetic@sha256:DIGEST"


@pytest.fixture(scope="module")
def bare_node() -> Iterator[RunningNode]:
    """A node that no image was given to."""
    try:
        programs("registry")
        with running_node() as running:
            yield running
    except CannotRunError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def image() -> Image:
    return operator_image()


@pytest.fixture(scope="module")
def repository(bare_node: RunningNode, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Name of the repository that holds the image, as the node asks for it."""
    folder = tmp_path_factory.mktemp("registry")
    write_tar(folder / "dist" / "hermetic.tar", layout_files(image))
    with Registry(folder) as registry:
        (line,) = (line for line in commands("The image") if line.startswith("skopeo "))
        arguments = shlex.split(line.replace(REGISTRY, registry.host).replace("dist/", f"{folder}/dist/"))
        skopeo("copy", "--dest-tls-verify=false", *arguments[2:])
    beside = registry_on(bare_node, folder)
    beside.start()
    wait_until("registry", lambda: bare_node.inside("curl", "-sf", f"http://{registry.host}/v2/").returncode == 0, ())
    yield f"{registry.host}/hermetic"
    beside.stop()


def registry_on(node: RunningNode, folder: Path) -> Component:
    """The registry of this folder, in the namespaces of the node; what is left of it ends with the node."""
    command = [*node.printed["enter"], programs("registry")["registry"], "serve", folder / "registry.json"]
    return Component("registry", command, folder / "registry-on-the-node.log", {"OTEL_TRACES_EXPORTER": "none"})


def test_the_pod_of_the_page_proves_the_pull(bare_node: RunningNode, image: Image, repository: str) -> None:
    kubectl = bare_node.kubectl
    assert image.digest not in images_of(bare_node)
    apply, wait, delete = (line.split()[1:] for line in commands(SECTION)[-3:])

    kubectl(*apply[:-1], "-", stdin=manifest(SECTION).replace(NAMED, f"{repository}@{image.digest}"))

    kubectl(*wait)
    assert "HRM-NET-001" in kubectl("logs", "hermetic-pull", "-n", "default")
    assert any("Successfully pulled image" in message for message in said_of_the_pod(bare_node))
    assert image.digest in images_of(bare_node)
    kubectl(*delete)


def test_it_does_not_succeed_where_the_registry_has_no_such_image(bare_node: RunningNode, repository: str) -> None:
    apply, wait, delete = (line.split()[1:] for line in commands(SECTION)[-3:])
    absent = "sha256:" + "1" * 64

    bare_node.kubectl(*apply[:-1], "-", stdin=manifest(SECTION).replace(NAMED, f"{repository}@{absent}"))

    wait_for(
        "the failure",
        lambda: any(absent in message and "not found" in message for message in said_of_the_pod(bare_node)),
    )
    with pytest.raises(KubectlError, match="timed out"):
        bare_node.kubectl(*(word.replace("5m", "1s") for word in wait))
    bare_node.kubectl(*delete)


def images_of(node: RunningNode) -> str:
    """What containerd has, as ctr lists it."""
    return node.inside(node.printed["ctr"], "--namespace=k8s.io", "images", "list").stdout


def said_of_the_pod(node: RunningNode) -> list[str]:
    """The messages of its Events."""
    chosen = "--field-selector=involvedObject.name=hermetic-pull"
    return [event["message"] for event in node.kubectl.json("get", "events", "-n", "default", chosen)["items"]]
