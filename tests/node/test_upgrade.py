"""An upgrade from what the commit before ships to what this one ships, on a node of its own.

No pod is replaced, unless the changelog says so anew: then each is replaced once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shipping.operator_image import platform_image
from shipping.platforms import native_platform
from testbed.demo.estate import Estate
from testbed.errors import CannotRunError
from testbed.images.oci import Image, write_archive
from testbed.images.recipes import REGISTRY
from testbed.installation import CONFIGURATION, REPOSITORY, wait_for
from testbed.node.handle import RunningNode, running_node
from testbed.policies_in_force import wait_for_policies
from testbed.previous import Previous, previous
from testbed.programs import programs
from tests.install_page import commands
from tests.node.serving import SMALL
from tests.scenarios import a_baked_model, changed, reporting

SYSTEM, SPACE = "hermetic-system", "inference"
MODEL = "hermetic.dev/modeldeployment=phi"
ANNOUNCED = "are replaced once, by the rollout settings of each deployment"
"""What the upgrade part of the changelog says where a release changes what a pod is."""


@pytest.fixture(scope="module")
def earlier() -> Previous:
    return previous()


@pytest.fixture(scope="module")
def estate(earlier: Previous, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """The images of the samples and both images of the operator."""
    estate = Estate.prepare(tmp_path_factory.mktemp("estate"))
    write_archive(estate.archive, [*estate.images.values(), image_of(earlier)])
    return estate


@pytest.fixture(scope="module")
def own_node(estate: Estate) -> Iterator[RunningNode]:
    try:
        programs("helm")
        with running_node("--images", str(estate.archive)) as running:
            yield running
    except CannotRunError as reason:
        pytest.skip(str(reason))


def image_of(earlier: Previous) -> Image:
    name = f"{REGISTRY}/hermetic"
    return platform_image(name, native_platform(), "previous", exactly=False, source=earlier.source)


@pytest.fixture
def helm(own_node: RunningNode, tmp_path: Path) -> Callable[..., None]:
    """`helm("helm install", source, image)`: the command of the page, run in a checkout with this image."""

    def run(verb: str, source: Path, image: Image) -> None:
        registry, _, repository = image.repository.partition("/")
        config = {**CONFIGURATION, "isolation": {"minimumEnforcement": "Report"}}
        values = {"image": {"registry": registry, "repository": repository, "digest": image.digest}, "config": config}
        (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
        (command,) = (line for line in commands("With Helm") if line.startswith(verb))
        arguments = command.replace("values.yaml", str(tmp_path / "values.yaml")).split()
        environment = {"KUBECONFIG": str(own_node.kubeconfig), "HOME": str(tmp_path)}
        done = subprocess.run(
            [programs("helm")["helm"], *arguments[1:]], cwd=source, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@pytest.mark.timeout(900)  # two images of the operator are built and imported first
def test_upgrade_from_the_commit_before_replaces_only_announced_pods(
    own_node: RunningNode,
    estate: Estate,
    earlier: Previous,
    helm: Callable[..., None],
    record_property: Callable[[str, object], None],
) -> None:
    record_property("upgraded from", earlier.commit if earlier.differs else f"{earlier.commit}, the same release")
    kubectl, here = own_node.kubectl, own_node.kubectl.within(SPACE)
    old, new = image_of(earlier), estate.images[f"{REGISTRY}/hermetic"]
    kubectl("apply", "-f", str(earlier.source / "manifests/rbac/namespace.yaml"))
    helm("helm install", earlier.source, old)
    wait_for_policies(kubectl)
    assert operator_images(own_node) == {old.by_digest}
    kubectl("create", "namespace", SPACE)
    model = reporting(changed(a_baked_model(), resources=SMALL, drainSeconds=5, endpoint={}))
    here.apply(estate.with_digests(model))
    here("wait", "mdep/phi", "--for=condition=Ready", "--timeout=120s")
    before = pods_of(own_node)

    helm("helm upgrade", REPOSITORY, new)

    assert operator_images(own_node) == {new.by_digest}
    assert earlier.differs == (old.digest != new.digest)
    # What the new operator says of the model is of a generation that the earlier one has not seen.
    here("patch", "mdep/phi", "--type=merge", "--patch", '{"spec": {"replicas": 2}}')
    here("wait", "mdep/phi", "--for=condition=Ready", "--timeout=120s")
    after = wait_for("two pods of one template", lambda: two_pods_of_one_template(own_node))
    if announces(REPOSITORY) and not announces(earlier.source):
        assert not before.keys() & after.keys()
        assert not any(restarts for pod_state in after.values() for restarts in pod_state["restarts"])
    else:
        assert {name: after.get(name) for name in before} == before


def announces(source: Path) -> bool:
    """Whether the changelog of these sources says that an upgrade to them replaces pods."""
    return ANNOUNCED in " ".join((source / "CHANGELOG.md").read_text(encoding="utf-8").split())


def two_pods_of_one_template(node: RunningNode) -> dict[str, dict[str, Any]] | None:
    pods = pods_of(node)
    return pods if len(pods) == 2 and len({pod_state["template"] for pod_state in pods.values()}) == 1 else None


def pods_of(node: RunningNode) -> dict[str, dict[str, Any]]:
    """The model's pods by uid: the hash of their template, and how often their containers started again."""
    pods = node.kubectl.within(SPACE).json("get", "pods", f"--selector={MODEL}")["items"]
    return {
        pod["metadata"]["uid"]: {
            "template": pod["metadata"]["labels"]["pod-template-hash"],
            "restarts": [container_status["restartCount"] for container_status in pod["status"]["containerStatuses"]],
        }
        for pod in pods
        if pod["status"].get("containerStatuses")
    }


def operator_images(node: RunningNode) -> set[str]:
    """Of the operator's pods that are there to stay."""
    pods = node.kubectl.within(SYSTEM).json("get", "pods", "--selector=app.kubernetes.io/component=operator")["items"]
    return {pod["spec"]["containers"][0]["image"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
