"""The image that ships, on a real node: what it holds runs under Pod Security `restricted`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from hermetic.audit.attestation.custom_resource import as_object
from shipping.wheels import PLACE
from testbed.images.oci import write_archive
from testbed.images.recipes import operator_image
from tests.attestations import a_report, an_ed25519_key, public_pem_of, signed
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
IMPORT = "import getpass, kopf, hermetic; print(getpass.getuser(), hermetic.__file__)"


@pytest.fixture(scope="module")
def image(node, tmp_path_factory):
    image = operator_image()
    archive = tmp_path_factory.mktemp("images") / "operator.tar"
    write_archive(archive, [image])
    node.import_images(archive)
    return image


@pytest.fixture
def restricted(kubectl, namespace):
    """The namespace of the test, in which the API server refuses every pod that Pod Security `restricted` refuses."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    return namespace


@pytest.fixture
def said_in(start_pod, image, restricted):  # noqa: ARG001
    """Runs a pod of the image to its end and returns what it wrote."""

    def run(name, volumes=(), **container):
        container = {"image": image.by_digest, "securityContext": LOCKED, **container}
        pod = start_pod(name, container, restartPolicy="Never", volumes=list(volumes))
        pod.until("jsonpath={.status.phase}=Succeeded")
        return pod.kubectl("logs", pod.name)

    return run


def test_the_operator_and_its_packages_load_in_its_own_image_as_a_plain_user(said_in):
    output = said_in("operator", command=["python3", "-c", IMPORT])

    assert output == f"hermetic /{PLACE}/hermetic/__init__.py\n"


def test_the_image_brings_no_development_tools(said_in):
    names = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"

    distributions = set(said_in("inventory", command=["python3", "-c", names]).lower().split())

    assert {"hermetic", "kopf", "pydantic"} <= distributions
    assert distributions.isdisjoint({"pytest", "mypy", "ruff", "pip", "setuptools", "hypothesis", "kubernetes"})


def test_the_command_is_there_by_its_name(said_in):
    assert "attest" in said_in("help", command=["hermetic"], args=["--help"])


def test_an_attestation_is_verified_in_the_image(said_in, kubectl, namespace):
    key = an_ed25519_key()
    report = a_report(observed=datetime.now(UTC) - timedelta(hours=1))
    files = {
        "a.json": json.dumps(as_object(signed(key, report, now=datetime.now(UTC)))),
        "platform.pub": public_pem_of(key.key),
    }
    kubectl.within(namespace).apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "signed", "namespace": namespace}, "data": files}
    )

    output = said_in(
        "verify",
        args=["attest", "verify", "/signed/a.json", "--public-key", "/signed/platform.pub"],
        volumeMounts=[{"name": "signed", "mountPath": "/signed"}],
        volumes=[{"name": "signed", "configMap": {"name": "signed"}}],
    )

    assert "authentic, and valid until" in output.splitlines()[0]
