"""The commands of the pages, typed as they are there: in a shell, against a real API server and the stand-in for Azure.

Each block runs in a folder that has the files its page names. What is put in: values for words in capitals, the
stand-in's address, and `az`, which answers with the cluster's id. A verdict (exit code 1 or 3 of an audit, a check or
a plan) is an answer; every other exit code but 0 ends the block.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.azure.server import ArmStandIn
from testbed.errors import CannotRunError
from testbed.images.model import stage_model
from testbed.installation import CONFIGURATION, REPOSITORY
from testbed.programs import programs
from tests import weights_layouts
from tests.audits_by_command import a_stand_in
from tests.controlplane.sealed_cluster import SealedCluster, sealed_cluster
from tests.documented import Block, blocks
from tests.install_page import documented

UNINSTALLS = "docs/operations.md#Uninstall-1"
TO_RUN = sorted(
    (block for block in blocks() if block.run_here), key=lambda command_block: command_block.name == UNINSTALLS
)
HERMETIC = """\
#!/bin/sh
case "$1 $2" in "audit --azure" | "audit --clusters") set -- "$@" --arm-endpoint "$ARM";; esac
{python} -m hermetic "$@" && exit
code=$?
case "$1$code" in audit1|audit3|check1|check3|plan1|plan3) exit 0;; esac
exit $code
"""
AZ = '#!/bin/sh\ncase "$1 $2" in "aks show") echo "$CLUSTER_ID";; *) echo "az $*: not here" >&2; exit 1;; esac\n'
DIGEST = "sha256:" + "3f1c" * 16
# Some models of the pages pin their weights.
INTEGRITY = {"verifiers": [f"contoso.azurecr.io/hermetic@{DIGEST}"], "minimumPolicy": "Off"}


@dataclass(frozen=True)
class Place:
    """Where the commands run: the tools they find, the files that every folder begins with, and the cluster."""

    tools: Path
    files: Path
    arm: ArmStandIn
    sealed: SealedCluster

    def typed(self, script: str) -> str:
        """The script with values in place of what a person fills in."""
        values = {
            r"/subscriptions/…/managedClusters/aks-gpu": self.arm.estate.cluster,
            r"\b(CLUSTER_ARM_ID|ID)\b": self.arm.estate.cluster,
            r"\bKEY\b": "platform.key",
            r"\bNAMESPACE\b": "inference",
            r" --head sha256:\.\.\.": f" --head {(self.files / 'head').read_text().strip()}",
            r"(?<!/mnt)/models/llama-3-1-8b\b": str(self.files / "models" / "llama-3-1-8b"),
            r"/mnt/models/llama-3-1-8b/fp8|(?<= )/weights\b|\./phi-4": "./model",
            r"/mnt/models/(llama-3-1-8b|phi-4|deepseek-v3)\b(?!/)": r"./staged-\1",
            r"\./(Llama-3\.1-8B-Instruct|DeepSeek-V3)": "./model",
            r"/dev/termination-log": "termination-log",
            r"/mnt/models/llama/fp8": "./model",
            r"(?<= )/models/llama-405b": "./model",
            r"/mnt/models/llama/adapters/support-de": "./adapter",
            r"/adapters/sql=sha256:9b2e\.\.\.": f"./adapter={(self.files / 'adapter-digest').read_text()}",
            r"sha256:9b2e\.\.\.": (self.files / "digest").read_text(),
            r"(hermetic verify \./model .*) platform\.pub": r"\1 weights.pub",
            r"^hermetic init ": "hermetic init --offline ",
            r"^make ": f"make -s -C {REPOSITORY} ",
            # It ends by Ctrl-C alone.
            r"^(hermetic status .* --watch)$": r"timeout --signal=INT 20 \1 || [ $? = 124 ]",
        }
        for pattern, value in values.items():
            script = re.sub(pattern, value, script, flags=re.MULTILINE)
        return script

    def back_up(self) -> None:
        """The file that docs/operations.md restores from: a model that is not there any more."""
        kubectl = self.sealed.kubectl.within("inference")
        kubectl("create", "--filename=-", stdin=(self.files / "llama.yaml").read_text().replace("llama-3-1-8b", "lost"))
        (self.files / "models.yaml").write_text(kubectl("get", "mdep", "--output=yaml"))
        kubectl("delete", "mdep", "lost")

    def run(self, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.files / "kubeconfig"),
            "HERMETIC_ARM_TOKEN": self.arm.token,
            "ARM": self.arm.url,
            "CLUSTER_ID": self.arm.estate.cluster,
            "CLUSTER": self.arm.estate.cluster,
            "GIT_CONFIG_GLOBAL": str(self.files / "gitconfig"),
            "COLUMNS": "160",
        }
        shell = ["bash", "-eu", "-o", "pipefail", "-c", script]
        return subprocess.run(
            shell, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[Place]:
    try:
        kubectl = programs("kubernetes")["kubectl"]
    except CannotRunError as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("documented")
    tools, files = folder / "tools", folder / "files"
    for new_folder in (tools, files):
        new_folder.mkdir()
    (tools / "kubectl").symlink_to(kubectl)
    for name, text in {"hermetic": HERMETIC.format(python=sys.executable), "az": AZ}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    with a_stand_in() as arm, sealed_cluster(folder, component_logs, integrity=INTEGRITY) as sealed:
        sealed.kubectl.apply(sealed.audit(cluster=arm.estate.cluster))
        sealed.kubectl("create", "namespace", "inference")
        command_place = Place(tools, files, arm, sealed)
        prepare(command_place)
        model = yaml.safe_load((files / "llama.yaml").read_text())
        sealed.kubectl.apply(model, {**model, "metadata": {**model["metadata"], "name": "llama"}})
        command_place.back_up()
        yield command_place


def prepare(place: Place) -> None:
    """The files that the pages name, the signed ones made by the commands of the pages."""
    files = place.files
    for name in ("manifests", "crds", "charts", "docs"):
        (files / name).symlink_to(REPOSITORY / name)
    model = documented("README.md", "The first model")
    (files / "llama.yaml").write_text(model)
    (files / "llama-405b.yaml").write_text(yaml.safe_dump(on_two_nodes(yaml.safe_load(model))))
    stage_model(files / "models" / "llama-3-1-8b")
    (files / "models" / "llama.yaml").write_text(model)
    (files / "config.yaml").write_text(yaml.safe_dump({**CONFIGURATION, "integrity": INTEGRITY}))
    (files / "policy.yaml").write_text("{}\n")
    (files / "clusters.txt").write_text(f"{place.arm.estate.cluster}\n")
    (files / "exceptions.yaml").write_text("exceptions: []\n")
    (files / "gitconfig").write_text("[user]\nname = a\nemail = a@contoso.example\n[init]\ndefaultBranch = main\n")
    for name in ("head", "digest", "adapter-digest"):
        (files / name).write_text("sha256:" + "0" * 64)
    stage_model(files / "model")
    weights_layouts.lora(files / "adapter")
    (files / "share").mkdir()
    kubeconfig = yaml.safe_load(place.sealed.plane.kubeconfig.read_text())
    kubeconfig["contexts"].append({**kubeconfig["contexts"][0], "name": "production"})
    (files / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    script = """
    openssl genpkey -algorithm ed25519 -out platform.key
    openssl pkey -in platform.key -pubout -out platform.pub
    openssl genpkey -algorithm ed25519 -out old.key
    openssl pkey -in old.key -pubout -out old.pub
    hermetic audit --azure ID --sign platform.key --attestation attestation.yaml
    hermetic audit --azure ID --save-snapshot estate.json --out report.json
    mkdir attestations && cp attestation.yaml attestations/
    hermetic attest verify attestation.yaml --public-key platform.pub -o json > verified.json
    openssl ecparam -name prime256v1 -genkey -noout -out platform.pem
    openssl ec -in platform.pem -pubout -out weights.pub
    hermetic manifest model -o json > manifest.json
    hermetic sign model --key platform.pem
    hermetic manifest adapter -o json > adapter.json
    hermetic sign adapter --key platform.pem
    openssl req -x509 -key platform.pem -out tls.crt -subj /CN=llama && cp platform.pem tls.key
    """
    done = place.run(place.typed(script), files)
    assert done.returncode == 0, done.stdout + done.stderr
    sources = {"head": "verified.json", "digest": "manifest.json", "adapter-digest": "adapter.json"}
    for name, source in sources.items():
        (files / name).write_text(json.loads((files / source).read_text())["digest"])


def on_two_nodes(model: dict[str, Any]) -> dict[str, Any]:
    """The first model with the fields of docs/multi-node.md."""
    fields = yaml.safe_load(documented("docs/multi-node.md", "In short").replace("sha256:…", DIGEST))["spec"]
    return {**model, "metadata": {"name": "llama-405b"}, "spec": {**model["spec"], **fields}}


@pytest.fixture
def folder(place: Place, tmp_path: Path) -> Path:
    """A copy of the files, under git with a remote."""
    home = tmp_path / "home"
    shutil.copytree(place.files, home, symlinks=True)
    script = """
    git init -q --bare ../remote.git
    git init -q . && git remote add origin ../remote.git
    mkdir evidence reports && cp attestation.yaml evidence/ && cp report.json reports/
    git add evidence policy.yaml && git commit -qm first && git push -qu origin main
    """
    done = place.run(script, home)
    assert done.returncode == 0, done.stderr
    return home


@pytest.mark.sampled(4)
@pytest.mark.parametrize("block", TO_RUN, ids=lambda command_block: command_block.name)
def test_the_commands_of_the_block_do_what_the_page_says(block: Block, place: Place, folder: Path) -> None:
    done = place.run(place.typed(block.run_here), folder)

    assert done.returncode == 0, f"{block.run_here}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
