"""`hermetic images` on a real API server: the images of its models, of the probe and of the operator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from testbed.installation import REPOSITORY
from testbed.kubectl import Kubectl
from tests.commandline import hermetic_process
from tests.scenarios import a_baked_model


@pytest.mark.usefixtures("installed")
def test_the_images_of_a_cluster_are_listed_with_what_uses_them(
    kubectl: Kubectl, cluster: Path, namespace: str
) -> None:
    shipped = yaml.safe_load_all((REPOSITORY / "manifests" / "operator" / "deployment.yaml").read_text())
    deployment = next(manifest for manifest in shipped if manifest["kind"] == "Deployment")
    deployment["metadata"]["namespace"] = namespace
    deployment["spec"]["replicas"] = 0
    model = a_baked_model()
    kubectl.within(namespace).apply(model, deployment)

    ran = hermetic_process("images", "--kubeconfig", cluster, "-o", "json")

    assert ran.code == 0, ran.err
    printed_uses = {
        (use["kind"], use["name"]): image["image"]
        for image in json.loads(ran.out)["images"]
        for use in image["usedBy"]
        if use["namespace"] == namespace
    }
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert printed_uses == {
        ("ModelDeployment", "phi"): model["spec"]["engine"]["vllm"]["image"],
        ("Deployment", "hermetic-operator"): container["image"],
    }
