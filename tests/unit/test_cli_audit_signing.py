"""`hermetic audit --sign`: what is refused before any API is asked, and what comes out that a verifier takes.

Azure is stood in for at its HTTP boundary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.azure.server import ArmStandIn
from testbed.processes import wait_until
from tests.attestations import a_p256_key, an_ed25519_key, pem_of, public_pem_of
from tests.audits_by_command import a_stand_in, audit, environment, environment_for, report_in
from tests.commandline import Ran, hermetic
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

NAT = "nat_gateway_on_the_gpu_subnet"


@pytest.fixture(scope="module")
def arm() -> Iterator[ArmStandIn]:
    """An estate with one NAT gateway."""
    with a_stand_in(NAT) as started:
        yield started


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two keys, each as NAME.key and NAME.pub."""
    folder = tmp_path_factory.mktemp("keys")
    for name, key in (("ours", an_ed25519_key(1)), ("older", a_p256_key(2))):
        (folder / f"{name}.key").write_text(pem_of(key.key))
        (folder / f"{name}.pub").write_text(public_pem_of(key.key))
    return folder


@pytest.fixture(scope="module")
def snapshot(arm: ArmStandIn, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an audit saw a moment ago."""
    file = tmp_path_factory.mktemp("snapshot") / "estate.json"
    assert audit(arm, "--save-snapshot", file).code == 1
    return file


def signed(arm: ArmStandIn, keys: Path, to: Path, *more: str | Path, key: str = "ours") -> Ran:
    """One signed audit."""
    return audit(arm, "--sign", keys / f"{key}.key", "--attestation", to, *more)


def verified(keys: Path, file: Path, *, key: str = "ours") -> dict[str, Any]:
    """What `hermetic attest verify` says of it."""
    ran = hermetic("attest", "verify", file, "--public-key", keys / f"{key}.pub", "-o", "json")
    assert ran.code == 0, ran.err
    printed: dict[str, Any] = json.loads(ran.out)
    return printed


def test_what_is_signed_is_the_report_whatever_its_verdict(arm: ArmStandIn, keys: Path, tmp_path: Path) -> None:
    file, report = tmp_path / "attestation.yaml", tmp_path / "report.json"
    ran = signed(arm, keys, file, "--out", report)
    attestation = verified(keys, file)
    assert ran.code == 1
    assert ran.out.startswith("Fail  aks-inference\n")
    assert "number 1 of its chain" in ran.err
    text = report_in(report.read_text())
    assert (attestation["cluster"], attestation["verdict"], attestation["sequence"]) == (arm.estate.cluster, "Fail", 1)
    assert attestation["observedAt"] == text["startedAt"]
    arguments = ("attest", "verify", file, "--public-key", keys / "ours.pub", "--report", report)
    assert hermetic(*arguments).code == 0
    assert arm.token not in file.read_text()


def test_a_file_that_ends_in_json_is_a_bare_envelope(
    arm: ArmStandIn, keys: Path, snapshot: Path, tmp_path: Path
) -> None:
    file = tmp_path / "attestation.json"
    signed(arm, keys, file, "--snapshot", snapshot, key="older")
    assert set(json.loads(file.read_text())) == {"payloadType", "payload", "signatures"}
    assert verified(keys, file, key="older")["cluster"] == arm.estate.cluster


def test_a_snapshot_is_signed_as_old_as_it_is_without_a_request(
    arm: ArmStandIn, keys: Path, snapshot: Path, tmp_path: Path
) -> None:
    before = len(arm.requests)
    ran = signed(arm, keys, tmp_path / "a.yaml", "--snapshot", snapshot, "--out", tmp_path / "report.json")
    assert len(arm.requests) == before
    assert "a snapshot is evaluated without any request" in ran.err
    observed = verified(keys, tmp_path / "a.yaml")["observedAt"]
    assert observed == report_in((tmp_path / "report.json").read_text())["startedAt"]


def test_without_its_api_server_an_attestation_says_what_that_means(
    arm: ArmStandIn, keys: Path, tmp_path: Path
) -> None:
    ran = signed(arm, keys, tmp_path / "a.yaml")
    assert "the attestation is not tied to an API server (no kubeconfig at /nowhere/kubeconfig" in ran.err
    assert verified(keys, tmp_path / "a.yaml")["kubeSystemUid"] is None


def test_the_next_one_follows_also_where_the_key_was_changed(arm: ArmStandIn, keys: Path, tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    folder.mkdir()
    first, second = folder / "1.yaml", folder / "2.yaml"
    signed(arm, keys, first, key="older")
    late_enough(first, keys)
    ran = signed(arm, keys, second, "--previous", first, "--previous-key", keys / "older.pub")
    assert "number 2 of its chain" in ran.err, ran.err
    both = ("--public-key", keys / "older.pub", "--public-key", keys / "ours.pub")
    assert hermetic("attest", "chain", folder, *both).code == 0


def late_enough(file: Path, keys: Path) -> None:
    """Waits until an audit that begins now begins in another second than this one did."""
    began = datetime.fromisoformat(verified(keys, file, key="older")["observedAt"])
    wait_until("the next second", lambda: datetime.now(UTC).replace(microsecond=0) > began, ())


def refused(arm: ArmStandIn, ran: Ran, before: int, says: str) -> None:
    """A file that is not there and one that cannot be used are bad input, and no verdict."""
    assert (ran.code, ran.out, len(ran.errors), len(ran.fixes)) == (2, "", 1, 1)
    assert says in ran.errors[0]
    assert len(arm.requests) == before


def test_a_key_that_cannot_sign_is_reported_before_the_first_request(
    arm: ArmStandIn, keys: Path, tmp_path: Path
) -> None:
    before, to = len(arm.requests), ("--attestation", tmp_path / "a.yaml")
    refused(arm, audit(arm, "--sign", tmp_path / "none.key", *to), before, "none.key: No such file")
    refused(arm, audit(arm, "--sign", keys / "ours.pub", *to), before, "ours.pub")
    (tmp_path / "odd.key").write_bytes(b"\xff\xfe")
    refused(arm, audit(arm, "--sign", tmp_path / "odd.key", *to), before, "odd.key")


def test_a_previous_one_that_cannot_be_followed_is_bad_input_and_no_verdict(
    arm: ArmStandIn, keys: Path, snapshot: Path, tmp_path: Path
) -> None:
    first = tmp_path / "first.yaml"
    signed(arm, keys, first, "--snapshot", snapshot, key="older")
    before = len(arm.requests)

    def following(file: Path, *more: str | Path) -> Ran:
        return signed(arm, keys, tmp_path / "b.yaml", "--previous", file, *more)

    refused(arm, following(tmp_path / "none.yaml"), before, "none.yaml: No such file")
    refused(arm, following(first), before, "UnknownKey")
    refused(arm, following(first, "--previous-key", tmp_path / "none.pub"), before, "none.pub: No such file")
    (tmp_path / "odd.yaml").write_text("kind: Pod\n")
    refused(arm, following(tmp_path / "odd.yaml"), before, "odd.yaml")


def test_evidence_of_another_cluster_is_not_followed(
    arm: ArmStandIn, keys: Path, snapshot: Path, tmp_path: Path
) -> None:
    first = tmp_path / "first.yaml"
    signed(arm, keys, first, "--snapshot", snapshot)
    other = arm.estate.cluster + "-2"
    options = ("--sign", keys / "ours.key", "--attestation", tmp_path / "b.yaml", "--previous", first)
    before = len(arm.requests)
    with environment(**environment_for(arm)):
        ran = hermetic("audit", "--azure", other, "--arm-endpoint", arm.url, *options)
    refused(arm, ran, before, f"--previous is about {arm.estate.cluster}, not {other}")
    assert not (tmp_path / "b.yaml").exists()


def test_what_expires_when_is_said_in_hours(arm: ArmStandIn, keys: Path, snapshot: Path, tmp_path: Path) -> None:
    signed(arm, keys, tmp_path / "a.yaml", "--snapshot", snapshot, "--valid-hours", "2")
    attestation = verified(keys, tmp_path / "a.yaml")
    lasts = datetime.fromisoformat(attestation["expiresAt"]) - datetime.fromisoformat(attestation["observedAt"])
    assert lasts == timedelta(hours=2)
