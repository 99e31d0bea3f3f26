"""docs/install.md with Helm and then docs/first-model.md, typed as they are there, on an API server that has nothing.

The real helm and kubectl, real audits and signatures, enforcement as it is by default. Simulated are machines (kwok),
Azure, what probe pods find, and the pod of the operator: a process beside it runs with the configuration and the
ServiceAccount that the chart has installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from testbed import cloud_provider, probe_simulator
from testbed.aks_defaults import create_aks_defaults
from testbed.api import Api
from testbed.azure.server import ArmStandIn
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import CannotRunError
from testbed.fleet import Pool, add_nodes
from testbed.images.model import stage_model
from testbed.installation import REPOSITORY, OperatorProcess, operator_kubeconfig
from testbed.kubectl import Kubectl
from testbed.policies_in_force import wait_for_policies
from testbed.programs import programs
from tests.audits_by_command import a_stand_in
from tests.install_page import commands, manifest

PAGE = (REPOSITORY / "docs" / "first-model.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DIGEST = "sha256:" + "1" * 64
SHARE = "/mnt/models"
HERMETIC = """\
#!/bin/sh
case "$1 $2" in "audit --azure") set -- "$@" --arm-endpoint "$ARM";; esac
exec {python} -m hermetic "$@"
"""
SUBNET_LABEL = "kubernetes.azure.com/network-subnet"
AZ = '#!/bin/sh\necho "$CLUSTER_ID"\n'


@dataclass(frozen=True)
class Desk:
    """A machine with the tools of the page, a folder of the platform team, and a cluster."""

    home: Path
    plane: ControlPlane
    arm: ArmStandIn

    def type(self, *script: str) -> str:
        """Runs the lines in one shell; returns what they print, fails with it."""
        environment = {
            **os.environ,
            "PATH": f"{self.home.parent / 'tools'}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.plane.kubeconfig),
            "HOME": str(self.home.parent),
            "HERMETIC_ARM_TOKEN": self.arm.token,
            "ARM": self.arm.url,
            "CLUSTER_ID": self.arm.estate.cluster,
        }
        shell = ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(script).replace(SHARE, str(self.home / "share"))]
        done = subprocess.run(
            shell, cwd=self.home, env=environment, capture_output=True, text=True, check=False, timeout=200
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    try:
        program_paths = programs("kubernetes", "helm")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    home, tools = tmp_path / "home", tmp_path / "tools"
    for folder in (home, tools, home / "share"):
        folder.mkdir()
    for name in ("charts", "manifests", "crds"):
        (home / name).symlink_to(REPOSITORY / name)
    for name in ("kubectl", "helm"):
        (tools / name).symlink_to(program_paths[name])
    for name, text in {"hermetic": HERMETIC.format(python=sys.executable), "az": AZ}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    stage_model(home / "Llama-3.1-8B-Instruct")
    with a_stand_in() as arm, ControlPlane(Settings(audit_users=())) as plane, contextlib.ExitStack() as ends:
        api = Api(plane.kubeconfig)
        subscription = arm.estate.cluster.split("/")[2]
        add_nodes(
            api,
            Pool(
                "system", "Standard_D16s_v5", taints=(), labels={SUBNET_LABEL: "snet-system"}, subscription=subscription
            ),
        )
        add_nodes(api, Pool("gpu", labels={SUBNET_LABEL: "snet-gpu"}, subscription=subscription))
        create_aks_defaults(api)
        for player in (
            cloud_provider.component(plane.kubeconfig, tmp_path / "cloud-provider.log"),
            probe_simulator.component(plane.kubeconfig, tmp_path / "probe-simulator.log"),
        ):
            player.start()
            ends.callback(player.stop)
        yield Desk(home, plane, arm)


@contextlib.contextmanager
def operator_of_the_release(desk: Desk) -> Iterator[OperatorProcess]:
    """The operator with what the release has installed: its configuration and its account."""
    api, folder = Api(desk.plane.kubeconfig), desk.home.parent
    deployment = api.get("/apis/apps/v1/namespaces/hermetic-system/deployments/hermetic-operator")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (name,) = (volume["configMap"]["name"] for volume in volumes if "configMap" in volume)
    (text,) = api.get(f"/api/v1/namespaces/hermetic-system/configmaps/{name}")["data"].values()
    kubeconfig = operator_kubeconfig(api, desk.plane.kubeconfig, folder / "operator.kubeconfig")
    operator = OperatorProcess(folder, kubeconfig, yaml.safe_load(text))
    operator.start()
    try:
        yield operator
    finally:
        operator.stop()


def files() -> dict[str, str]:
    """The files of the page, by the name in their first line."""
    named = ((re.match(r"# (\S+\.yaml)\n", text), text) for language, text in BLOCKS if language == "yaml")
    return {name[1]: text for name, text in named if name}


def filled_in(text: str, desk: Desk, root_digest: str) -> str:
    """What a person puts in."""
    public = (desk.home / "platform.pub").read_text().strip().replace("\n", "\n      ")
    text = re.sub(r"PLATFORM_PUB.*", public, text.replace("CLUSTER_ARM_ID", desk.arm.estate.cluster))
    return text.replace("sha256:DIGEST", DIGEST).replace("ROOT_DIGEST", root_digest)


def script() -> list[str]:
    """The commands of the page but those that only Azure answers, and the call of the model, whose pod runs nothing."""
    lines = re.sub(r"\\\n\s*", "", "".join(text for language, text in BLOCKS if not language)).splitlines()
    return [line for line in lines if not line.startswith(("az ", "curl "))]


@pytest.mark.timeout(300)
def test_the_pages_lead_from_an_empty_cluster_to_a_ready_model(desk: Desk) -> None:
    installed = yaml.safe_load(manifest("With Helm").replace("sha256:DIGEST", DIGEST))
    (desk.home / "values.yaml").write_text(yaml.safe_dump(installed))
    desk.type(*(line for line in commands("With Helm") if line.startswith(("kubectl apply", "helm install"))))
    wait_for_policies(Kubectl(programs("kubernetes")["kubectl"], desk.plane.kubeconfig))
    written = files()
    values = yaml.safe_load(written["values.yaml"].replace("sha256:DIGEST", DIGEST))
    (desk.home / "values.yaml").write_text(yaml.safe_dump({**installed, **values}))
    (desk.home / "namespace.yaml").write_text(written["namespace.yaml"])
    before = next(number for number, line in enumerate(script()) if line.startswith("helm upgrade")) + 1
    keys = next(number for number, line in enumerate(script()) if "egress-audit.yaml" in line)

    root_digest = desk.type(*script()[:before]).split("digest: ")[1].split()[0]
    with operator_of_the_release(desk):
        desk.type(*script()[before:keys])
        for name in ("egress-audit.yaml", "llama.yaml"):
            (desk.home / name).write_text(filled_in(written[name], desk, root_digest))
        output = desk.type(*script()[keys:], 'echo "$URL"')

    assert "every image is named by digest and allowed here" in output
    assert re.search(r"isolation verified +yes", output), output
    assert re.search(r"weights verified +unknown +no pod has verified the weights yet", output), output
    assert re.fullmatch(r"http://10\.\d+\.\d+\.\d+:8000/v1", output.splitlines()[-1])
