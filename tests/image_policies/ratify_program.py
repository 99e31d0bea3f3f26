"""Ratify, by the objects of manifests/image-policies, where no host but this machine answers."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from testbed.installation import REPOSITORY
from testbed.programs import programs
from tests.shipping.signature_programs import NO_ONE, REGISTRY

FOLDER = REPOSITORY / "manifests" / "image-policies"
# What Ratify's own chart makes beside keys and verifiers; the registry of the tests speaks plain HTTP.
STORE_AND_POLICY: tuple[dict[str, Any], ...] = (
    {"kind": "Store", "metadata": {"name": "store-oras"}, "spec": {"name": "oras", "parameters": {"useHttp": True}}},
    {
        "kind": "Policy",
        "metadata": {"name": "ratify-policy"},
        "spec": {"type": "config-policy", "parameters": {"artifactVerificationPolicies": {"default": "all"}}},
    },
)


def filled_in(name: str, host: str, keys: Mapping[str, Path]) -> str:
    """A file of the folder with this registry, and with the file in the place of each `PUT ... HERE`."""
    text = (FOLDER / name).read_text(encoding="utf-8").replace(REGISTRY, host)
    for placeholder, key in keys.items():
        block = re.compile(rf"^( *)-----BEGIN [A-Z ]+-----\n *PUT {re.escape(placeholder)} HERE\n.*\n", re.MULTILINE)
        (indent,) = block.findall(text)
        text = block.sub(textwrap.indent(key.read_text(), indent), text)
    assert "HERE" not in text
    return text


def ratify_results(folder: Path, objects: str, *images: str) -> list[dict[str, Any]]:
    """What Ratify answers about each image: `isSuccess`, where it is true, and `verifierReports`."""
    more = yaml.safe_dump_all(
        {"apiVersion": "config.ratify.deislabs.io/v1beta1", **document} for document in STORE_AND_POLICY
    )
    (folder / "objects.yaml").write_text(f"{objects}\n---\n{more}")
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME"), str(folder / "home"))
    environment = {"PATH": "/usr/bin", **homes, **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), NO_ONE)}
    command = [programs("ratify")["ratify"], "objects.yaml", *images]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["image"] for answer in answers] == list(images)
    return [answer["result"] for answer in answers]
