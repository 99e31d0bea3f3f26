"""The overlay of docs/install.md builds, and the page says what the image and the chart are."""

from __future__ import annotations

import yaml

from testbed.installation import REPOSITORY
from testbed.kubectl import Kubectl
from testbed.programs import programs
from tests.install_page import commands, manifest
from tests.pod_security import violations
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

DIGEST = "sha256:" + "1" * 64
API_SERVER = "10.1.0.200/32"


def test_the_overlay_names_the_image_by_digest(tmp_path):
    for folder in ("manifests", "crds"):
        (tmp_path / folder).symlink_to(REPOSITORY / folder)
    overlay = manifest("With kustomize").replace("sha256:DIGEST", DIGEST)
    overlay += manifest("The operator's network").replace("API_SERVER_CIDR", API_SERVER)
    (tmp_path / "kustomization.yaml").write_text(overlay)
    kubectl = Kubectl(programs("kubernetes")["kubectl"], tmp_path / "none")

    built = kubectl("kustomize", "--load-restrictor=LoadRestrictionsNone", str(tmp_path))

    manifests = [
        document for document in yaml.safe_load_all(built) if document["metadata"]["name"] == "hermetic-operator"
    ]
    (policy,) = (operator_manifest for operator_manifest in manifests if operator_manifest["kind"] == "NetworkPolicy")
    assert policy["spec"]["egress"][0]["to"] == [{"ipBlock": {"cidr": API_SERVER}}]
    (deployment,) = (operator_manifest for operator_manifest in manifests if operator_manifest["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"contoso.azurecr.io/hermetic@{DIGEST}"
    assert deployment["metadata"]["name"] in commands("With kustomize")[-1]


def test_every_make_target_of_the_page_is_one():
    targets = (REPOSITORY / "Makefile").read_text()
    made_targets = [line.split()[1] for line in commands("The image") if line.startswith("make ")]

    assert made_targets == ["image"]
    made_targets += [line.split()[1] for line in commands("The command line") if line.startswith("make ")]
    assert made_targets == ["image", "cli"]
    assert all(f"\n{target}:" in targets for target in made_targets)


def test_the_pod_that_proves_the_pull_is_restricted():
    pod = yaml.safe_load(manifest("What the cluster must have"))

    assert violations(pod["spec"]) == []
    assert pod["metadata"]["name"] in commands("What the cluster must have")[-1]
