"""docs/first-audit.md, followed from an empty folder to a signed Pass on textbook estates, the cluster's side too.

The page's commands run in a real shell. `hermetic` there is this release, sent to the stand-in for Azure and, by a
kubeconfig, to one for the API server; `az` answers what the page asks it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hermetic.audit.checks.registry import PAGES
from testbed.azure.server import ArmStandIn
from testbed.textbook import TEXTBOOK, TextbookEstate, own
from testbed.textbook.api_server import ApiServerStandIn
from testbed.textbook.estates import EFFECTIVE_RULES
from tests.audits_by_command import environment_for
from tests.sampled_groups import LONG

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "first-audit.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([a-z]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ESTATE = TEXTBOOK["own-registry-private-link"]
SHOWN = (
    "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-net/providers/Microsoft.Network"
    "/virtualNetworks/vnet-gpu/subnets/snet-nodes"
)


def programs(folder: Path, arm: ArmStandIn) -> None:
    """`hermetic` and `az`, as the page's shell finds them."""
    profile = " --profile filtered" if arm.estate.profile == "filtered" else ""
    endpoint = f'case "$1 $2" in "audit --azure") set -- "$@" --arm-endpoint {arm.url}{profile};; esac\n'
    scripts = {
        "hermetic": f'#!/bin/sh\n{endpoint}exec {sys.executable} -m hermetic "$@"\n',
        "az": f"#!/bin/sh\necho {arm.estate.cluster}\n",
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def followed(estate: TextbookEstate, home: Path, script: list[str]) -> subprocess.CompletedProcess[str]:
    """What a shell says to these commands, in this folder, with the estate behind both sockets."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the page's key, and is not here")
    tools = home.parent / "tools"
    tools.mkdir()
    with ArmStandIn(estate.azure) as arm, ApiServerStandIn(estate.manifests, tools) as api:
        programs(tools, arm)
        path = {"PATH": f"{tools}:{os.environ['PATH']}", "KUBECONFIG": str(api.kubeconfig)}
        shell = ["/bin/sh", "-c", "\n".join(["set -eu", *script])]
        environ = {**os.environ, **environment_for(arm), **path}
        return subprocess.run(shell, check=False, cwd=home, env=environ, capture_output=True, text=True, timeout=300)


def commands() -> list[str]:
    """The page's commands, block by block."""
    return [text for language, text in BLOCKS if language != "yaml"]


@LONG
@pytest.mark.timeout(400)
def test_the_page_leads_from_an_empty_folder_to_a_signed_pass(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name, text in _files():
        (home / name).write_text(text.replace(SHOWN, ESTATE.node_subnet).replace("contoso.azurecr.io", own.REGISTRY))
    ran = followed(ESTATE, home, commands())
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Unknown  aks-inference" in ran.stdout
    assert "\nPass  aks-inference" in f"\n{ran.stdout}"
    assert "Fail  the cluster of the kubeconfig" in ran.stdout
    assert "\nPass  the cluster of the kubeconfig" in f"\n{ran.stdout}"
    assert "not tied to an API server" not in ran.stderr
    assert {path.name for path in home.iterdir()} >= {
        "first.html", "first-cluster.html", "second.html", "second-cluster.html", "attestation.yaml", "platform.pub"
    }  # fmt: skip


def covering() -> list[str]:
    """Estates that together need every exception of all estates."""
    chosen, covered = [], set[tuple[str, str]]()
    for name, estate in sorted(TEXTBOOK.items(), key=lambda named_estate: -len(named_estate[1].exceptions)):
        needed = {(exception["check"], exception["resource"]) for exception in estate.exceptions}
        if needed - covered:
            chosen.append(name)
            covered |= needed
    return chosen


WITH_EXCEPTIONS = covering()


@pytest.mark.timeout(400)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WITH_EXCEPTIONS)
def test_with_the_exceptions_that_the_page_explains_the_others_are_signed_too(name: str, tmp_path: Path) -> None:
    estate, home = TEXTBOOK[name], tmp_path / "home"
    home.mkdir()
    (home / "policy.yaml").write_text(yaml.safe_dump(estate.policy_file))
    (home / "exceptions.yaml").write_text(yaml.safe_dump(estate.exceptions_file))
    look, *sign = commands()
    ran = followed(estate, home, [look.partition("\n")[0], *sign])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "\nPass  " in f"\n{ran.stdout}"
    assert (home / "attestation.yaml").exists()


def test_the_page_explains_each_exception_with_the_resources_that_it_accepts() -> None:
    shown = {
        (exception["check"], exception["resource"])
        for exception in yaml.safe_load(dict(_files())["exceptions.yaml"])["exceptions"]
    }
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    beside = replace(TEXTBOOK["managed-network-none"], exceptions=(EFFECTIVE_RULES,))
    for estate in (*TEXTBOOK.values(), beside):
        for exception in estate.exceptions_file["exceptions"]:
            check, resource = exception["check"], exception["resource"]
            row = any(f"`{check}`" in line and _of_the_row(line, resource) for line in rows)
            assert row or (check, resource) in shown, (estate.name, check, resource)


def _of_the_row(line: str, resource: str) -> bool:
    globs = re.findall(r"`([^`]*[/*][^`]*)`", line.split("|")[1])
    return any(resource == glob or resource.endswith(glob.lstrip("*")) for glob in globs)


def test_what_the_page_accepts_is_what_the_textbook_estates_need() -> None:
    shown = {exception["check"] for exception in yaml.safe_load(dict(_files())["exceptions.yaml"])["exceptions"]}
    needed = {exception["check"] for estate in TEXTBOOK.values() for exception in estate.exceptions_file["exceptions"]}
    assert shown <= needed
    assert all(f"`{check}`" in PAGE for check in needed)
    keys = {key for estate in TEXTBOOK.values() for key in estate.policy_file}
    assert all(f"`{key}`" in PAGE or f"{key}:" in PAGE for key in keys)


def test_every_check_that_the_page_names_is_one() -> None:
    named = set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", PAGE))
    check_names = {name for name in named if name.split("-")[0] in {page.split("-")[0] for page in PAGES}}
    assert check_names
    assert {name for name in check_names if name not in PAGES} <= {"gpu-resources", "gpu-operator"}


def _files() -> list[tuple[str, str]]:
    return [(text.partition("\n")[0].removeprefix("# "), text) for language, text in BLOCKS if language == "yaml"]
