"""docs/audit.md and the sample EgressAudit say what the program takes: their examples are read by the real readers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from hermetic.api.egressaudit import EgressAudit
from hermetic.audit.checks.registry import PAGES
from hermetic.audit.estate.kubernetes.all_kinds import BY_TYPE
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.policy.declarations import Policy
from hermetic.cli.audit.command import command
from hermetic.cli.audit.files import read_exceptions, read_policy
from hermetic.cli.audit.probe import probe_pods
from hermetic.signing.keys import read_public_key
from tests.commandline import hermetic
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
SAMPLE = ROOT / "manifests" / "samples" / "egress-audit.yaml"
BLOCKS = re.findall(r"^```[a-z]*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def block(begins: str) -> str:
    """The one example that begins so."""
    (candidate,) = (candidate for candidate in BLOCKS if candidate.startswith(begins))
    return str(candidate)


def test_the_policy_shown_is_one_and_has_every_key(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(block("# policy.yaml"))
    policy = read_policy(file, "filtered")
    assert policy.model_fields_set == set(Policy.model_fields) - {"attested_private", "audited_at"}


def test_the_exceptions_shown_are_some(tmp_path: Path) -> None:
    file = tmp_path / "exceptions.yaml"
    file.write_text(block("# exceptions.yaml"))
    assert len(read_exceptions(file, PAGES).exceptions) == 2


def test_every_option_in_an_example_is_one() -> None:
    options = {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}
    typed = [line for text_block in BLOCKS for line in re.findall(r"hermetic audit (.*(?:\\\n.*)*)", text_block)]
    assert typed
    assert {option for line in typed for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", line)} <= options


def test_the_role_of_the_cluster_lists_exactly_what_is_asked() -> None:
    role = yaml.safe_load(block("apiVersion: rbac.authorization.k8s.io/v1"))
    allowed = {(group, kind) for rule in role["rules"] for group in rule["apiGroups"] for kind in rule["resources"]}
    permissions = {("/".join(type_name.split("/")[:-2]), type_name.split("/")[-1]) for type_name in BY_TYPE}
    assert allowed == permissions | {("hermetic.dev", "egressaudits")}
    assert all(rule["verbs"] == ["list"] for rule in role["rules"])
    # ConfigMaps are listed everywhere: pods of any namespace take variables from them.
    assert not any(rule.get("resourceNames") for rule in role["rules"])


@pytest.mark.parametrize("reason", UnreadReason)
def test_every_reason_why_something_was_not_seen_is_answered(reason: UnreadReason) -> None:
    assert f"| `{reason}` |" in PAGE


@pytest.mark.parametrize("page", ["audit.md", "cli.md", "checks.md", "first-audit.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for file, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        target = ROOT / "docs" / (file or page)
        assert target.exists(), file
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}, (
                anchor
            )


# ------------------------------------------------------------------ the sample


def spec_of(text: str) -> dict[str, Any]:
    return dict(EgressAudit.model_validate(yaml.safe_load(text)).spec.model_dump(by_alias=True))


def test_the_sample_is_valid_and_can_be_used_as_it_stands() -> None:
    assert hermetic("validate", "-f", SAMPLE).code == 0
    spec = yaml.safe_load(SAMPLE.read_text())["spec"]
    (key,) = spec["trustedKeys"]
    assert read_public_key(key["name"], key["publicKey"]).keyid.startswith("sha256:")
    assert probe_pods("hermetic-probe", None, spec["probe"]).image == spec["probe"]["image"]


def test_the_exception_that_the_sample_has_as_a_comment_is_one(tmp_path: Path) -> None:
    text = SAMPLE.read_text()
    begins = text.index("  # exceptions:\n")
    file = tmp_path / "egress-audit.yaml"
    file.write_text(text[:begins] + re.sub(r"(?m)^  # ", "  ", text[begins:]))
    assert hermetic("validate", "-f", file).code == 0
    (exception,) = spec_of(file.read_text())["exceptions"]
    assert exception["check"] in PAGES
