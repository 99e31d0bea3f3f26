"""A report becomes a file that can be carried in, the next one of its chain; or nothing is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermetic.audit.attestation.chain import verify_chain
from hermetic.audit.attestation.envelope import Envelope
from hermetic.audit.attestation.verification import Expected, verify
from hermetic.cli.attestation_files import PASSPHRASE_VARIABLE, read_attestation
from hermetic.cli.signing import Signing, digest_of, sign_to_file
from hermetic.cli.tool import this_tool
from hermetic.errors import AttestationRefused, HermeticError, KeyUnusable, ReportUnusable, Unreachable
from tests.attestations import (
    CLUSTER,
    OTHER_CLUSTER,
    a_p256_key,
    a_report,
    an_ed25519_key,
    pem_of,
    provenance,
    public_pem_of,
    trust,
)

OLD, NEW = an_ed25519_key(), a_p256_key()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)
    for name, key in (("old", OLD), ("new", NEW)):
        (tmp_path / f"{name}.key").write_text(pem_of(key.key))
        (tmp_path / f"{name}.pub").write_text(public_pem_of(key.key))
    return tmp_path


def signing(folder: Path, key: str, file: str, previous: str | None = None, *previous_keys: str) -> Signing:
    before = folder / previous if previous is not None else None
    return Signing(
        folder / f"{key}.key", folder / file, before, tuple(f"{folder / each}.pub" for each in previous_keys)
    )


def sign(asked: Signing, hours_ago: float = 1, cluster: str = CLUSTER, **report) -> Envelope:
    now = datetime.now(UTC)
    about = provenance(cluster)
    told = a_report(observed=now - timedelta(hours=hours_ago), cluster=cluster, **report)
    return sign_to_file(told, about.scope, about.inputs, asked, now)


def test_what_was_written_counts(folder: Path) -> None:
    envelope = sign(signing(folder, "old", "a.yaml"))
    assert read_attestation(str(folder / "a.yaml")) == envelope
    attestation = verify(envelope, trust(OLD), Expected(CLUSTER), datetime.now(UTC))
    assert attestation.predicate.tool == this_tool()


def test_a_chain_goes_on_under_a_new_key_that_knows_the_old_one(folder: Path) -> None:
    first = sign(signing(folder, "old", "1.yaml"), 3)
    with pytest.raises(AttestationRefused, match="UnknownKey"):
        sign(signing(folder, "new", "2.yaml", "1.yaml"), 2)
    assert not (folder / "2.yaml").exists()
    second = sign(signing(folder, "new", "2.yaml", "1.yaml", "old"), 2)
    third = sign(signing(folder, "new", "3.yaml", "2.yaml", "old", "new"), 1)
    chain = verify_chain([("1", first), ("2", second), ("3", third)], trust(OLD, NEW))
    assert chain.intact
    assert [told.finding.value for told in chain.told] == ["KeyChanged"]


@pytest.mark.parametrize(
    ("asked", "report", "error"),
    [
        ({"key": "nobody"}, {}, Unreachable),
        ({"previous": "nothing.yaml"}, {}, Unreachable),
        ({"previous": "old.pub"}, {}, AttestationRefused),
        ({"previous": "1.yaml"}, {"cluster": OTHER_CLUSTER}, AttestationRefused),
        ({"previous": "1.yaml"}, {"hours_ago": 4}, ReportUnusable),
        ({}, {"verdict": "Fail"}, ReportUnusable),
        ({"file": "no/such/folder.yaml"}, {}, Unreachable),
    ],
)
def test_what_cannot_be_signed_leaves_no_file(
    folder: Path, asked: dict, report: dict, error: type[HermeticError]
) -> None:
    sign(signing(folder, "old", "1.yaml"), 3)
    wanted = signing(folder, asked.get("key", "old"), asked.get("file", "2.yaml"), asked.get("previous"))
    with pytest.raises(error):
        sign(wanted, **report)
    assert not wanted.attestation.exists()


def test_a_public_key_does_not_sign(folder: Path) -> None:
    with pytest.raises(KeyUnusable):
        sign(Signing(folder / "old.pub", folder / "a.yaml"))


def test_inputs_are_called_by_their_digest() -> None:
    assert digest_of(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
