"""The operator's image is made from the installed packages: what it lacks shows when it is imported as its user."""

from __future__ import annotations

import pytest

from testbed.images.oci import write_archive
from testbed.images.recipes import operator_image
from testbed.node.real_node import REPOSITORY

LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
IMPORT = "import getpass, kopf, kubernetes.aio, hermetic; print(getpass.getuser(), hermetic.__file__)"


@pytest.fixture(scope="module")
def image(node, tmp_path_factory):
    image = operator_image("hermetic", REPOSITORY / "operator" / "hermetic")
    archive = tmp_path_factory.mktemp("images") / "operator.tar"
    write_archive(archive, [image])
    node.import_images(archive)
    return image


def test_the_operator_and_its_packages_load_in_its_own_image_as_a_plain_user(start_pod, image):
    container = {"image": image.by_digest, "command": ["python3", "-c", IMPORT], "securityContext": LOCKED}

    pod = start_pod("operator", container, restartPolicy="Never").until("jsonpath={.status.phase}=Succeeded")

    assert pod.kubectl("logs", pod.name) == "hermetic /opt/site-packages/hermetic/__init__.py\n"


def test_the_image_brings_no_development_tools(start_pod, image):
    names = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    container = {"image": image.by_digest, "command": ["python3", "-c", names], "securityContext": LOCKED}

    pod = start_pod("inventory", container, restartPolicy="Never").until("jsonpath={.status.phase}=Succeeded")

    found = set(pod.kubectl("logs", pod.name).lower().split())
    assert {"hermetic", "kopf", "kubernetes", "pydantic"} <= found
    assert found.isdisjoint({"pytest", "mypy", "ruff", "pip", "setuptools", "hypothesis"})
