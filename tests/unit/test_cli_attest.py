"""`hermetic attest` as scripts meet it: exit codes, one reason, JSON; and files as they are brought in."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.api.kubernetes_yaml import dump
from hermetic.audit.attestation.chain_findings import ChainFinding
from hermetic.audit.attestation.custom_resource import as_object
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import authenticate
from hermetic.cli.attest.files import load_signing_key, read_attestation, write_attestation
from hermetic.cli.audit.signing import this_tool
from hermetic.cli.options import PASSPHRASE_VARIABLE
from hermetic.errors import InputError, KeyUnusable, Unreachable
from hermetic.signing.envelope import Envelope
from tests.attestations import (
    CLUSTER,
    OTHER_CLUSTER,
    SUBNET,
    a_finding,
    a_p256_key,
    a_report,
    an_ed25519_key,
    an_excepted_finding,
    pem_of,
    provenance,
    public_pem_of,
    signed,
    trust,
)
from tests.commandline import Ran, hermetic, hermetic_process

DOCS = Path(__file__).resolve().parents[2] / "docs"
CHAPTER = (DOCS / "cli.md").read_text(encoding="utf-8").split("\n## hermetic attest\n")[1].split("\n## ")[0]
KEY = an_ed25519_key()


def an_hour_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


def fresh(*findings: dict[str, Any], **report: Any) -> tuple[Envelope, dict[str, Any]]:
    """Signed now, observed an hour ago; and the report."""
    report = a_report(*findings, observed=an_hour_ago(), **report)
    return signed(KEY, report, now=datetime.now(UTC)), report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the public key, and an attestation that counts in its two forms."""
    envelope, report = fresh()
    (tmp_path / "platform.pub").write_text(public_pem_of(KEY.key))
    (tmp_path / "report.json").write_text(json.dumps(report, indent=2))
    write_attestation(tmp_path / "a.yaml", envelope)
    write_attestation(tmp_path / "a.json", envelope)
    return tmp_path


def verify(folder: Path, file: str = "a.yaml", *options: str, **process: Any) -> Ran:
    return hermetic("attest", "verify", folder / file, "--public-key", folder / "platform.pub", *options, **process)


@pytest.mark.parametrize("file", ["a.yaml", "a.json"])
def test_an_attestation_that_counts_ends_with_0_and_says_what_it_says(folder: Path, file: str) -> None:
    ran = verify(folder, file, "--cluster", CLUSTER, "--report", str(folder / "report.json"))
    assert (ran.code, ran.err) == (0, "")
    assert "authentic, and valid until" in ran.out.splitlines()[0]
    for text in ("verdict    Pass", "1 Pass", CLUSTER, KEY.public.keyid, "number 1, the first one", "that was given"):
        assert text in ran.out


def test_the_covered_places_and_the_policy_are_shown(folder: Path) -> None:
    printed = verify(folder).out
    assert f"  pool       gpu: {SUBNET}\n" in printed
    assert f"  subnet     {SUBNET} (10.1.0.0/24)\n" in printed
    assert "  policy     no policy file\n" in printed
    assert json.loads(verify(folder, "a.yaml", "-o", "json").out)["coverage"]["subnets"][0]["id"] == SUBNET


def test_the_digest_of_the_policy_and_provisioned_subnets_are_shown(folder: Path) -> None:
    digest, about = "sha256:" + "0a" * 32, provenance()
    pools = [{"name": "gpu", "subnets": [], "scaleSets": [], "nodeImage": "AKSUbuntu-2204-202610.1"}]
    report = a_report(observed=an_hour_ago(), coverage={"pools": pools, "subnets": [], "provisionedSubnets": [SUBNET]})
    of_policy = replace(about, inputs=about.inputs.model_copy(update={"policy": digest}))
    write_attestation(folder / "a.yaml", signed(KEY, report, about=of_policy, now=datetime.now(UTC)))
    printed = verify(folder).out
    assert f"  policy     {digest}\n" in printed
    assert "  pool       gpu, image AKSUbuntu-2204-202610.1: no subnet named\n" in printed
    assert f"  provisions {SUBNET}: node auto provisioning makes nodes here\n" in printed


def test_an_attestation_of_an_earlier_release_says_that_it_lists_no_places(folder: Path) -> None:
    report = a_report(observed=an_hour_ago())
    del report["coverage"]
    write_attestation(folder / "a.yaml", signed(KEY, report, now=datetime.now(UTC)))
    assert "no pools and subnets are listed: an earlier release signed it" in verify(folder).out
    assert json.loads(verify(folder, "a.yaml", "-o", "json").out)["coverage"] is None


def test_what_was_not_compared_is_said(folder: Path) -> None:
    assert "(not compared: --cluster)" in verify(folder).out


def test_the_process_ends_the_same_way(folder: Path) -> None:
    options = ("--public-key", folder / "platform.pub")
    assert hermetic_process("attest", "verify", folder / "a.yaml", *options).code == 0
    assert hermetic_process("attest", "verify", folder / "a.yaml", *options, "--cluster", OTHER_CLUSTER).code == 1
    assert hermetic_process("attest", "verify", folder / "nothing", *options).code == 2
    from_stdin = hermetic_process("attest", "verify", "-", *options, stdin=(folder / "a.yaml").read_bytes())
    assert from_stdin.code == 0


def test_every_field_of_json_is_named_on_the_page(folder: Path) -> None:
    valid = json.loads(verify(folder, "a.yaml", "-o", "json").out)
    chain = folder / "chain"
    chain.mkdir()
    write_attestation(chain / "1.json", fresh()[0])
    ran = hermetic("attest", "chain", chain, "--public-key", folder / "platform.pub", "-o", "json")
    document_printed = json.loads(ran.out)
    named = [
        *valid,
        *valid["signedBy"],
        *valid["inputs"],
        *valid["tool"],
        *document_printed,
        *document_printed["attestations"][0],
    ]
    assert [field for field in named if f"`{field}`" not in CHAPTER] == []


def test_a_verdict_of_fail_is_valid_evidence_and_told(folder: Path) -> None:
    write_attestation(folder / "fail.yaml", fresh(a_finding("Fail"), verdict="Fail")[0])
    ran = verify(folder, "fail.yaml")
    assert ran.code == 0
    assert "verdict    Fail" in ran.out


def test_an_exception_that_has_ended_is_seen(folder: Path) -> None:
    write_attestation(folder / "ended.yaml", fresh(an_excepted_finding("2026-01-31"))[0])
    ran = verify(folder, "ended.yaml")
    assert "verdict    Fail  (signed as Pass; an exception has expired since)" in ran.out
    document = json.loads(verify(folder, "ended.yaml", "-o", "json").out)
    assert (document["verdict"], document["signedVerdict"]) == ("Fail", "Pass")


def test_a_large_report_says_what_was_left_out(folder: Path) -> None:
    envelope, report = fresh(*(a_finding(resource=f"/nic/{number}") for number in range(900)))
    write_attestation(folder / "large.yaml", envelope)
    (folder / "large.json").write_text(json.dumps(report))
    ran = verify(folder, "large.yaml", "--report", str(folder / "large.json"))
    assert ran.code == 0
    assert "left out   900 Pass and NotApplicable findings" in ran.out


def edited(folder: Path, old: str, new: str) -> Path:
    (folder / "edited.yaml").write_text((folder / "a.yaml").read_text().replace(old, new, 1))
    return folder


def test_a_refusal_is_one_error_with_its_reason_and_fix(folder: Path) -> None:
    ran = verify(folder, "a.yaml", "--cluster", OTHER_CLUSTER)
    assert (ran.code, ran.out) == (1, "")
    assert ran.errors[0].startswith(f"error: HRM-ATT-001: {folder / 'a.yaml'}: OtherCluster: about ")
    assert ran.fixes == [f"fix: {Refusal.OTHER_CLUSTER.remedy}"]


def test_a_refusal_is_told_in_json_as_well(folder: Path) -> None:
    ran = verify(folder, "a.yaml", "--cluster", OTHER_CLUSTER, "-o", "json")
    document = json.loads(ran.out)
    assert ran.code == 1
    assert (document["valid"], document["refusal"], document["fix"]) == (
        False,
        "OtherCluster",
        Refusal.OTHER_CLUSTER.remedy,
    )
    assert "digest" not in document


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"", "Truncated"),
        (b"  \n", "Truncated"),
        (b"kind: Deployment\n", "Malformed"),
        (b"just text\n", "Malformed"),
        (b"a: b: c\n", "Malformed"),
        (b"\xff\xfe\x00", "Malformed"),
        (b"a: 1\n---\nb: 2\n", "Malformed"),
        (b"kind: a\nkind: b\n", "DuplicateKeys"),
        (b'{"payload": "x", "payload": "y"}', "DuplicateKeys"),
        (b"x" * 1_000_001, "Oversized"),
        (b"a: &a [1]\nb: [*a, *a]\n", "UnknownField"),
    ],
)
def test_whatever_a_file_holds_is_judged_not_tracebacked(folder: Path, content: bytes, refusal: str) -> None:
    (folder / "x.yaml").write_bytes(content)
    ran = verify(folder, "x.yaml", "-o", "json")
    assert ran.code == 1
    assert json.loads(ran.out)["refusal"] == refusal
    assert "Traceback" not in ran.err


def test_other_report_than_the_signed_one_is_refused(folder: Path) -> None:
    (folder / "other.json").write_text(json.dumps(a_report()))
    (folder / "fraction.json").write_text('{"a": 1.5}')
    ran = verify(folder, "a.yaml", "--report", str(folder / "other.json"))
    assert (ran.code, "OtherReport" in ran.err) == (1, True)
    assert verify(folder, "a.yaml", "--report", str(folder / "fraction.json")).code == 1
    assert verify(folder, "a.yaml", "--report", str(folder / "nothing")).code == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--cluster", "aks-gpu"],
        ["--cluster", ""],
        ["--public-key", "a.yaml"],
        ["--public-key", "platform.pub"],
        ["--public-key", "platform.pub@2026-02-30T00:00:00Z"],
        ["--frobnicate"],
    ],
)
def test_options_that_cannot_be_used_are_bad_input(folder: Path, options: list[str], monkeypatch) -> None:
    monkeypatch.chdir(folder)
    assert verify(folder, "a.yaml", *options).code == 2


def test_a_key_must_be_named_and_a_folder_is_no_file(folder: Path) -> None:
    assert hermetic("attest", "verify", folder / "a.yaml").code == 2
    assert hermetic("attest", "verify", folder, "--public-key", folder / "platform.pub").code == 2


@pytest.mark.parametrize(("missing", "code"), [("nothing.yaml", 2), ("no\0name", 4)])
def test_files_that_are_not_there_are_bad_input(folder: Path, missing: str, code: int) -> None:
    assert verify(folder, missing).code == code
    key = ("--public-key", missing)
    assert hermetic("attest", "verify", folder / "a.yaml", *key).code == code
    assert hermetic("attest", "chain", missing, "--public-key", folder / "platform.pub").code == code


def test_a_key_counts_until_its_end(folder: Path) -> None:
    for until, code in (("2999-01-01T00:00:00Z", 0), ("2026-01-01T00:00:00Z", 1)):
        dated = f"{folder / 'platform.pub'}@{until}"
        ran = hermetic("attest", "verify", folder / "a.yaml", "--public-key", dated)
        assert (ran.code, "KeyExpired" in ran.err) == (code, code == 1)


def a_chain_of_files(folder: Path, length: int) -> list[str]:
    chain = folder / "chain"
    chain.mkdir()
    last, digests = None, []
    for number in range(length):
        observed = an_hour_ago() - timedelta(hours=10 * (length - number))
        envelope = signed(KEY, a_report(observed=observed), now=observed + timedelta(minutes=5), previous=last)
        last = authenticate(envelope, trust(KEY))
        write_attestation(chain / f"{(number * 7) % 10}{'.json' if number % 2 else '.yaml'}", envelope)
        digests.append(envelope.digest)
    return digests


def chain(folder: Path, *options: str) -> Ran:
    return hermetic("attest", "chain", folder / "chain", "--public-key", folder / "platform.pub", *options)


def test_a_chain_is_intact_whatever_its_files_are_called(folder: Path) -> None:
    digests = a_chain_of_files(folder, 5)
    ran = chain(folder, "--head", digests[-1])
    assert (ran.code, ran.err) == (0, "")
    assert f"intact: 5 attestations, the newest is {digests[-1]}" in ran.out
    assert "only with --head" not in ran.out
    assert "only with --head" in chain(folder).out


def test_a_chain_that_lost_its_middle_or_its_end_is_broken(folder: Path) -> None:
    digests = a_chain_of_files(folder, 5)
    (folder / "chain" / "8.yaml").unlink()
    assert "HeadMissing" in chain(folder, "--head", digests[-1]).err
    assert chain(folder).code == 0, "the end is seen only by who knows it"
    (folder / "chain" / "7.json").unlink()
    ran = chain(folder, "-o", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["intact"]) == (1, False)
    assert [(finding["finding"], finding["breaks"]) for finding in document["findings"]] == [("Gap", True)]
    assert ran.errors == [
        f"error: HRM-ATT-005: {folder / 'chain' / '4.yaml'}: Gap: number 2 is missing between 0.yaml and it"
    ]


def test_whatever_else_lies_in_the_folder_of_a_chain_is_told(folder: Path) -> None:
    a_chain_of_files(folder, 2)
    (folder / "chain" / "report.json").write_text("{}")
    (folder / "chain" / "README.md").write_text("no attestation")
    ran = chain(folder)
    assert ran.code == 1
    assert len(ran.errors) == 1
    assert "report.json: Refused: Malformed" in ran.errors[0]


def test_a_folder_without_attestations_and_a_head_that_is_none_are_bad_input(folder: Path) -> None:
    (folder / "chain").mkdir()
    assert chain(folder).code == 2
    write_attestation(folder / "chain" / "a.yaml", fresh()[0])
    assert chain(folder, "--head", "latest").code == 2
    assert hermetic("attest", "chain", folder / "a.yaml", "--public-key", folder / "platform.pub").code == 2


@pytest.mark.parametrize("name", [*Refusal, *ChainFinding], ids=str)
def test_every_word_is_explained(name: Refusal | ChainFinding) -> None:
    ran = hermetic("explain", name.value)
    output = " ".join(ran.out.split())
    assert ran.code == 0
    assert name.meaning in output
    assert name.remedy in output
    assert f"| `{name.value}` |" in (DOCS / "reasons.md").read_text(encoding="utf-8")


# Files


def test_what_is_written_is_read_again(folder: Path) -> None:
    envelope = fresh()[0]
    for file in (folder / "x.json", folder / "x.yaml", folder / "x"):
        write_attestation(file, envelope)
        assert read_attestation(str(file)) == envelope
    assert json.loads((folder / "x.json").read_bytes()) == envelope.as_json()
    assert yaml.safe_load((folder / "x").read_text()) == as_object(envelope)


def test_what_kubectl_prints_is_read(folder: Path) -> None:
    """With what the API server adds, in JSON and in YAML."""
    envelope = fresh()[0]
    fields = {"f:spec": {".": {}, "f:envelope": {".": {}, "f:payload": {}}}}
    live = as_object(envelope)
    live["metadata"] |= {"uid": "u", "generation": 1, "managedFields": [{"manager": "kubectl", "fieldsV1": fields}]}
    (folder / "live.json").write_text(json.dumps(live, indent=4))
    (folder / "live.yaml").write_text(dump(live))
    assert verify(folder, "live.json").code == 0
    assert verify(folder, "live.yaml").code == 0


def test_a_place_that_cannot_be_written_is_not_reachable(folder: Path) -> None:
    with pytest.raises(Unreachable):
        write_attestation(folder / "no" / "such" / "folder.yaml", fresh()[0])


@pytest.mark.parametrize("key", [KEY, a_p256_key()], ids=["Ed25519", "P-256"])
def test_signing_keys_are_read_with_and_without_a_passphrase(folder: Path, key, monkeypatch) -> None:
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)
    (folder / "plain.key").write_text(pem_of(key.key))
    (folder / "secret.key").write_text(pem_of(key.key, b"open sesame"))
    assert load_signing_key(folder / "plain.key").public.keyid == key.public.keyid
    with pytest.raises(KeyUnusable):
        load_signing_key(folder / "secret.key")
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "open sesame")
    assert load_signing_key(folder / "secret.key").public.keyid == key.public.keyid
    with pytest.raises(InputError):
        load_signing_key(folder / "nothing.key")
    (folder / "binary.key").write_bytes(os.urandom(64))
    with pytest.raises(KeyUnusable):
        load_signing_key(folder / "binary.key")


def test_the_tool_is_known_by_its_files() -> None:
    tool = this_tool()
    assert (tool.name, tool) == ("hermetic", this_tool())
    assert len(tool.digest) == 71
