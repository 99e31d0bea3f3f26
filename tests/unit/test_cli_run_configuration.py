"""`hermetic run` starts with a configuration that is right, or ends with exit code 2 and says what is wrong where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hermetic.api.configuration import Configuration
from tests.commandline import hermetic


def test_print_config_shows_every_default() -> None:
    ran = hermetic("run", "--print-config")
    assert ran.code == 0
    printed = yaml.safe_load(ran.out)
    keys = {field.alias for field in Configuration.model_fields.values()}
    assert printed.keys() == keys, (
        "a key whose default is None is not printed: give it a default that says what it means"
    )
    assert Configuration.model_validate(printed) == Configuration()


def test_print_config_shows_what_the_file_changes(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("workers: 3\nshares: [{account: abc, share: models, namespaces: ['*']}]\n")
    ran = hermetic("run", "--config", tmp_path / "config.yaml", "--print-config", "-o", "json")
    printed = json.loads(ran.out)
    assert printed["workers"] == 3
    assert printed["shares"] == [{"account": "abc", "share": "models", "folders": [], "namespaces": ["*"]}]
    assert printed["resyncSeconds"] == 600


def test_what_is_printed_is_a_configuration_file(tmp_path: Path) -> None:
    first = hermetic("run", "--print-config").out
    (tmp_path / "config.yaml").write_text(first)
    assert hermetic("run", "--config", tmp_path / "config.yaml", "--print-config").out == first


def test_a_file_of_comments_is_every_default(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("# nothing is allowed\n")
    ran = hermetic("run", "--config", tmp_path / "config.yaml", "--print-config")
    assert ran.out == hermetic("run", "--print-config").out


H100 = "Standard_NC80adis_H100_v5"


@pytest.mark.parametrize(
    ("preflight", "field", "says"),
    [
        ("minimumPolicy: Maybe", "minimumPolicy", "must be 'Require', 'Warn' or 'Off'"),
        (f"floors: {{{H100}: {{peerGBs: 0}}}}", f"floors.{H100}.peerGBs", "must be greater than or equal to 1"),
        (f"floors: {{{H100}: {{hostGBs: -48}}}}", f"floors.{H100}.hostGBs", "must be greater than or equal to 1"),
        (f"floors: {{{H100}: {{memoryGBs: '48'}}}}", f"floors.{H100}.memoryGBs", "must be an integer"),
        (f"floors: {{{H100}: {{peerGbs: 230}}}}", f"floors.{H100}.peerGbs", "is not a field"),
        (f"floors: {{{H100}: {{}}}}", f"floors.{H100}", "must set at least one of"),
        ("floors: {Standard_NC80adi_H100_v5: {peerGBs: 9}}", "floors.Standard_NC80adi_H100_v5", "is not a VM size"),
        ("floors: {Standard_D16s_v5: {peerGBs: 9}}", "floors.Standard_D16s_v5", "is not a VM size"),
    ],
)
def test_floor_that_can_have_no_effect_refuses_the_configuration(
    tmp_path: Path, preflight: str, field: str, says: str
) -> None:
    (tmp_path / "config.yaml").write_text(f"preflight: {{{preflight}}}\n")
    ran = hermetic("run", "--config", tmp_path / "config.yaml", "--print-config")
    assert (ran.code, ran.out) == (2, "")
    assert f"preflight.{field}: " in ran.errors[0]
    assert says in ran.errors[0]


def test_slip_in_the_name_of_a_size_is_corrected(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("preflight: {floors: {Standard_NC80adi_H100_v5: {peerGBs: 230}}}\n")
    ran = hermetic("run", "--config", tmp_path / "config.yaml", "--print-config")
    assert f"fix: write '{H100}'" in ran.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("workers: 0\n", "config.yaml:1:1: workers: 0: must be greater than or equal to 1"),
        ("workers: '3'\n", 'config.yaml:1:1: workers: "3": must be an integer, without quotes'),
        ("\nregistries:\n- host: X\n", 'config.yaml:3:3: registries[0].host: "X": must be a registry host'),
        ("registries:\n- host: a.io\n", "config.yaml:2:3: registries[0].namespaces: is required"),
        ("registry: []\n", "config.yaml:1:1: registry: []: is not a field"),
        ("shares: [{account: abc, namespaces: ['*']}]\n", "config.yaml:1:10: shares[0]: "),
        ("workers: 1\nworkers: 2\n", "config.yaml:2:1: duplicate key 'workers' (first on line 1)"),
        ("workers: [1\n", "config.yaml:2:1: is not YAML: while parsing a flow sequence"),
        ("allowedDnsServers: [dns]\n", 'config.yaml:1:21: allowedDnsServers[0]: "dns": must be an IP address'),
        ("allowedDnsServers: ['::1%e']\n", 'config.yaml:1:21: allowedDnsServers[0]: "::1%e": must be an IP address'),
        ("harmlessKinds: [Widget]\n", 'config.yaml:1:17: harmlessKinds[0]: "Widget": must be an API group and a kind'),
        ("workers: .nan\n", "config.yaml:1:10: '.nan' is a number that JSON cannot represent"),
        ("volumes: {create: 'no'}\n", 'config.yaml:1:11: volumes.create: "no": must be true or false, without quotes'),
        ("workers: 1\n---\nworkers: 2\n", "config.yaml:3:1: must be one document, not 2"),
        ("- workers\n", 'config.yaml:1:1: ["workers"]: must be an object'),
    ],
)
def test_a_bad_file_ends_with_path_place_and_reason(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    ran = hermetic("run", "--config", tmp_path / "config.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert ran.errors[0].startswith(f"error: HRM-CFG-001: {tmp_path}/{says}")
    assert ran.fixes == ["fix: Correct the file; docs/configuration.md describes every key."]


def test_every_problem_of_the_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("workers: 0\nhttpPort: 80\n")
    (error,) = hermetic("run", "--config", tmp_path / "config.yaml").errors
    assert "workers: 0:" in error
    assert "httpPort: 80:" in error


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe")
    ran = hermetic("run", "--config", tmp_path / "config.yaml")
    assert ran.code == 2
    assert f"{tmp_path}/config.yaml" in ran.errors[0]
    assert ran.fixes == ["fix: save the file as UTF-8"]


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    ran = hermetic("run", "--config", tmp_path / "config.yaml")
    assert ran.code == 2
    assert ran.errors == [f"error: HRM-INP-001: {tmp_path}/config.yaml: No such file or directory"]


def test_no_cluster_is_told_as_not_reachable(tmp_path: Path) -> None:
    ran = hermetic("run", "--kubeconfig", tmp_path / "none")
    assert ran.code == 4
    assert ran.errors == [f"error: HRM-NET-001: no kubeconfig at {tmp_path}/none"]
