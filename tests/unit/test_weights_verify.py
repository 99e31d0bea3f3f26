"""`hermetic manifest`, `sign` and `verify`: right weights pass, and each damage has its reason and its file."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from hermetic.weights.entries import MANIFEST, NAMES, SIGNATURE
from hermetic.weights.signatures import private_key
from hermetic.weights.signing import sealed
from testbed.damaged_files import flip_a_bit
from testbed.processes import wait_until
from tests.commandline import Ran, hermetic
from tests.weights import Damage, a_certificate, a_model, keys

SHARD_SIZE = 2**20
NO_ROOT = 65534
SHARD = "model-00002-of-00003.safetensors"


def signed(folder: Path, key: Path, *options: str | Path, method: str = "shards") -> str:
    """Writes and signs the manifest of a folder; returns the root digest."""
    ran = hermetic("manifest", folder, "--method", method, "--shard-size", str(SHARD_SIZE), "-o", "json")
    assert ran.code == 0, ran.err
    digest = str(json.loads(ran.out)["digest"])
    ran = hermetic("sign", folder, "--key", key, *options)
    assert ran.code == 0, ran.err
    return digest


def verified(folder: Path, *options: str | Path) -> tuple[Ran, list[tuple[str, str]]]:
    """How `hermetic verify` ended, and reason and file of what it found."""
    ran = hermetic("verify", folder, *options, "-o", "json")
    findings = json.loads(ran.out)["findings"] if ran.out else []
    return ran, [(finding["reason"], finding["file"]) for finding in findings]


@pytest.fixture(params=["shards", "files"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A signed folder and the public key. Two shards are larger than a range."""
    folder = a_model(tmp_path / "model", size=300 * 2**10)
    private, public = keys(tmp_path)
    signed(folder, private, method=request.param)
    return folder, public


def test_right_weights_pass_by_key_by_digest_and_by_both(model: tuple[Path, Path]) -> None:
    folder, public = model
    ran, findings = verified(folder, "--public-key", public)
    assert (ran.code, findings) == (0, [])
    digest = json.loads(ran.out)["digest"]
    assert verified(folder, "--digest", digest)[0].code == 0
    assert verified(folder, "--public-key", public, "--digest", digest)[0].code == 0
    assert "not who made the manifest" in hermetic("verify", folder).err


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def replace_by_copy(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.move(path, copy)
    path.symlink_to(copy.name)


DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "one bit": (lambda folder: flip_a_bit(folder / SHARD), "DigestMismatch", SHARD),
    "one byte less": (lambda folder: os.truncate(folder / SHARD, (folder / SHARD).stat().st_size - 1), "", SHARD),
    "one byte more": (lambda folder: lengthen(folder / SHARD), "", SHARD),
    "to nothing": (lambda folder: os.truncate(folder / SHARD, 0), "", SHARD),
    "gone": (lambda folder: (folder / SHARD).unlink(), "FileMissing", SHARD),
    "another file": (lambda folder: (folder / "y.bin").write_bytes(b"x"), "FileNotListed", "y.bin"),
    "another empty file": (lambda folder: (folder / "a.jinja").write_bytes(b""), "FileNotListed", "a.jinja"),
    "an empty file gone": (lambda folder: (folder / "extra/empty.txt").unlink(), "FileMissing", "extra/empty.txt"),
    "a file in a new folder": (lambda folder: a_file(folder / "new" / "x.py"), "FileNotListed", "new/x.py"),
    "a pipe": (lambda folder: os.mkfifo(folder / "pipe"), "SpecialFile", "pipe"),
    "a pipe for a file": (lambda folder: ((folder / SHARD).unlink(), os.mkfifo(folder / SHARD)), "SpecialFile", SHARD),
    "a link out": (lambda folder: (folder / "x").symlink_to("/etc/hostname"), "LinkRefused", "x"),
    "a link to itself": (lambda folder: (folder / "x").symlink_to("x"), "LinkRefused", "x"),
    "a link for a file": (lambda folder: replace_by_copy(folder / SHARD), "LinkRefused", SHARD),
    "a folder for a file": (lambda folder: ((folder / SHARD).unlink(), (folder / SHARD).mkdir()), "FileMissing", SHARD),
    "no manifest": (lambda folder: (folder / SIGNATURE).unlink(), "ManifestAbsent", SIGNATURE),
    "half a signature": (lambda folder: os.truncate(folder / SIGNATURE, 900), "ManifestInvalid", SIGNATURE),
    "no names": (lambda folder: (folder / NAMES).unlink(), "FileMissing", NAMES),
    "other names": (lambda folder: flip_a_bit(folder / NAMES, 60), "DigestMismatch", NAMES),
}  # fmt: skip


def a_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("x")


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_told_by_reason_and_file(model: tuple[Path, Path], damage: str) -> None:
    folder, public = model
    change, reason, file = DAMAGES[damage]
    change(folder)
    ran, findings = verified(folder, "--public-key", public)
    assert ran.code == 1
    # a manifest by files lists no sizes
    expected = reason or ("SizeMismatch" if "shards" in (folder / MANIFEST).read_text()[:200] else "DigestMismatch")
    assert (expected, file) in findings
    assert ran.errors[0].startswith("error: HRM-WGT-001: ")


def test_a_file_that_is_repaired_in_place_passes_again(model: tuple[Path, Path]) -> None:
    folder, public = model
    flip_a_bit(folder / SHARD)
    assert verified(folder, "--public-key", public)[1] == [("DigestMismatch", SHARD)]
    flip_a_bit(folder / SHARD)
    assert verified(folder, "--public-key", public)[0].code == 0


@pytest.mark.parametrize("option", ["--digest", "--timeout", "--stall"])
def test_what_a_script_left_empty_is_no_laxer_question(model: tuple[Path, Path], option: str) -> None:
    """`--digest "$DIGEST"` without the variable would compare the folder with its own manifest, and end with 0."""
    folder, public = model
    empty = "" if option == "--digest" else "nan"
    assert hermetic("verify", folder, "--public-key", public, option, empty).code == 2
    if option == "--digest":
        assert hermetic("sign", folder, "--key", keys(folder.parent)[0], option, empty).code == 2


def test_a_damaged_file_is_told_with_both_digests(model: tuple[Path, Path]) -> None:
    folder, public = model
    flip_a_bit(folder / "config.json")
    finding = json.loads(hermetic("verify", folder, "--public-key", public, "-o", "json").out)["findings"][0]
    assert finding["expected"].startswith("sha256:")
    assert finding["found"].startswith("sha256:")
    assert finding["expected"] != finding["found"]


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda curve: curve.name)
def test_every_curve_of_the_format_signs(tmp_path: Path, curve: ec.EllipticCurve) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    private, public = keys(tmp_path, curve=curve)
    signed(folder, private)
    assert verified(folder, "--public-key", public)[0].code == 0
    assert verified(folder, "--public-key", keys(tmp_path, "other", curve)[1])[1] == [("WrongKey", "")]


def test_one_of_several_keys_is_enough(model: tuple[Path, Path], tmp_path: Path) -> None:
    folder, public = model
    other = keys(tmp_path, "other")[1]
    assert verified(folder, "--public-key", other)[1] == [("WrongKey", "")]
    assert verified(folder, "--public-key", other, "--public-key", public)[0].code == 0


def test_a_signature_of_another_manifest_does_not_count(model: tuple[Path, Path]) -> None:
    """Payload and signature are taken from two bundles of one key."""
    folder, public = model
    bundle = json.loads((folder / SIGNATURE).read_text())
    statement = base64.b64decode(bundle["dsseEnvelope"]["payload"])
    changed = statement.replace(b"tokenizer.json", b"tokenizer.jsom")
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(changed).decode()
    (folder / SIGNATURE).write_text(json.dumps(bundle))
    assert verified(folder, "--public-key", public)[1] == [("SignatureInvalid", SIGNATURE)]


def test_a_digest_alone_covers_the_names(model: tuple[Path, Path]) -> None:
    """The root digest of the format is one over contents: without names.json a renamed file would pass."""
    folder, public = model
    digest = json.loads(hermetic("verify", folder, "--public-key", public, "-o", "json").out)["digest"]
    (folder / SIGNATURE).unlink()
    manifest = folder / MANIFEST
    manifest.write_text(manifest.read_text().replace('"tokenizer.json', '"tokenizes.json'))
    (folder / "tokenizer.json").rename(folder / "tokenizes.json")
    assert verified(folder)[1] == verified(folder, "--digest", digest)[1] == [("FileNotListed", NAMES)]
    manifest.write_text(manifest.read_text().replace(f'"{NAMES}', '".hermetic/names.jsom'))
    (folder / NAMES).rename(folder / ".hermetic" / "names.jsom")
    assert verified(folder, "--digest", digest)[1] == [("NamesNotCovered", NAMES)]


def test_a_manifest_whose_names_the_digest_does_not_cover_is_not_signed_by_it(tmp_path: Path) -> None:
    """Else who may write to the share renames files in the manifest before it is signed, and the digest is the same."""
    folder, (private, _) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    assert hermetic("manifest", folder).code == 0
    digest = json.loads((folder / MANIFEST).read_text())["subject"][0]["digest"]["sha256"]
    renamed = (folder / MANIFEST).read_text().replace(f'"{NAMES}', '".hermetic/names.jsom')
    (folder / MANIFEST).write_text(renamed.replace('"tokenizer.json', '"tokenizes.json'))
    ran = hermetic("sign", folder, "--key", private, "--digest", f"sha256:{digest}")
    assert (ran.code, f"NamesNotCovered: {NAMES}" in ran.err) == (1, True)
    assert not (folder / SIGNATURE).exists()


def test_compile_caches_that_a_manifest_leaves_out_are_refused(tmp_path: Path) -> None:
    """Other tools may leave `.hermetic` out, and an engine executes what is in its caches."""
    folder, (private, public) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    assert hermetic("manifest", folder, "--method", "files").code == 0
    statement = json.loads((folder / MANIFEST).read_text())
    predicate = statement["predicate"]
    predicate["serialization"]["ignore_paths"] = [".hermetic"]
    predicate["resources"] = [
        signed_resource
        for signed_resource in predicate["resources"]
        if not signed_resource["name"].startswith(".hermetic/")
    ]
    digests = b"".join(bytes.fromhex(signed_resource["digest"]) for signed_resource in predicate["resources"])
    statement["subject"][0]["digest"]["sha256"] = hashlib.sha256(digests).hexdigest()
    a_signature_of(folder, statement, private)
    assert verified(folder, "--public-key", public)[0].code == 0
    planted = ".hermetic/caches/vllm-0.32.0-H100-80GB-tp1-pp1/linked/triton/x/kernel.py"
    (folder / planted).parent.mkdir(parents=True)
    (folder / planted).write_text("import os")
    assert verified(folder, "--public-key", public)[1] == [("FileNotListed", planted)]


def a_signature_of(folder: Path, statement: object, private: Path) -> None:
    content = json.dumps(statement).encode()
    key = private_key("key", private.read_bytes(), None)
    (folder / SIGNATURE).write_bytes(b"".join(sealed(lambda: [content], len(content), key)))


@pytest.mark.parametrize("location", [MANIFEST, SIGNATURE, "model.sig"])
@pytest.mark.parametrize(("kind", "make"), [("folder", Path.mkdir), ("special file", os.mkfifo)])
def test_a_manifest_that_is_no_file_is_refused(
    model: tuple[Path, Path], location: str, kind: str, make: Callable[[Path], object]
) -> None:
    """Not Unknown, which is tried again: reading again would not change it."""
    folder, public = model
    (folder / SIGNATURE).unlink()
    (folder / location).unlink(missing_ok=True)
    make(folder / location)
    options = () if location == MANIFEST else ("--public-key", public)
    ran, findings = verified(folder, *options)
    assert (ran.code, findings) == (1, [("ManifestInvalid", location)])
    assert json.loads(ran.out)["findings"][0]["found"] == kind
    if location == MANIFEST:
        ran = hermetic("sign", folder, "--key", keys(folder.parent)[0], "--digest", "sha256:" + 64 * "0")
        assert (ran.code, f"ManifestInvalid: {MANIFEST}: expected a file, found {kind}" in ran.err) == (1, True)


@pytest.mark.parametrize("end", [2**50, 10**17])
def test_numbers_of_a_manifest_cost_no_memory(tmp_path: Path, end: int) -> None:
    """A range of a petabyte in ranges of one byte, also where the file is as long: a file with a hole costs nothing."""
    folder = a_model(tmp_path / "model", shards=1)
    assert hermetic("manifest", folder).code == 0
    statement = json.loads((folder / MANIFEST).read_text())
    (entry,) = (
        signed_resource
        for signed_resource in statement["predicate"]["resources"]
        if signed_resource["name"].startswith("tokenizer.json")
    )
    entry["name"] = f"tokenizer.json:0:{end}"
    statement["predicate"]["serialization"]["shard_size"] = 1
    statement["predicate"]["resources"] = [entry]
    statement["subject"][0]["digest"]["sha256"] = hashlib.sha256(bytes.fromhex(entry["digest"])).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(statement))
    verify = (sys.executable, "-m", "hermetic", "verify", folder)

    def run() -> str:
        limit = resource.RLIMIT_AS, (2**30, 2**30)
        ran = subprocess.run(
            verify, capture_output=True, text=True, check=False, preexec_fn=lambda: resource.setrlimit(*limit)
        )
        return ran.stdout

    assert "SizeMismatch: tokenizer.json" in run()
    with contextlib.suppress(OSError):
        os.truncate(folder / "tokenizer.json", end)
        assert "ManifestInvalid" in run()


def test_another_digest_than_the_pinned_one_is_told_before_files_are_read(model: tuple[Path, Path]) -> None:
    folder, public = model
    other = "sha256:" + 64 * "0"
    ran, findings = verified(folder, "--public-key", public, "--digest", other)
    assert [reason for reason, _ in findings] == ["RootDigestMismatch"]
    assert json.loads(ran.out)["bytes"] == 0


@pytest.mark.parametrize(
    ("days", "signs", "reason"),
    [
        ((-1, 30), True, None),
        ((-30, -1), True, "CertificateExpired"),
        ((1, 30), True, "CertificateExpired"),
        ((-1, 30), False, "CertificateUntrusted"),
    ],
)
def test_certificates(tmp_path: Path, days: tuple[int, int], signs: bool, reason: str | None) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    key, certificate, root = a_certificate(tmp_path, days=days, signs=signs)
    signed(folder, key, "--certificate", certificate)
    ran, findings = verified(folder, "--certificate-root", root)
    assert [finding_reason for finding_reason, _ in findings] == ([] if reason is None else [reason])
    assert ran.code == (0 if reason is None else 1)


def test_a_certificate_of_another_root_is_not_trusted(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    (tmp_path / "other").mkdir()
    key, certificate, _ = a_certificate(tmp_path)
    signed(folder, key, "--certificate", certificate)
    other = a_certificate(tmp_path / "other")[2]
    assert [reason for reason, _ in verified(folder, "--certificate-root", other)[1]] == ["CertificateUntrusted"]
    assert [reason for reason, _ in verified(folder, "--public-key", keys(tmp_path)[1])[1]] == ["WrongKey"]


def test_signing_reads_the_files_unless_the_digest_is_given(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    private, _ = keys(tmp_path)
    digest = signed(folder, private)
    flip_a_bit(folder / "config.json")
    ran = hermetic("sign", folder, "--key", private)
    assert ran.code == 1
    assert "DigestMismatch: config.json" in ran.err
    assert hermetic("sign", folder, "--key", private, "--digest", digest).code == 0
    other = hermetic("sign", folder, "--key", private, "--digest", "sha256:" + 64 * "0")
    assert "RootDigestMismatch" in other.err


def test_the_termination_message_is_small_and_names_the_file(model: tuple[Path, Path], tmp_path: Path) -> None:
    folder, public = model
    message = tmp_path / "message"
    hermetic("verify", folder, "--public-key", public, "--termination-log", message)
    assert json.loads(message.read_bytes())["verdict"] == "Pass"
    for number in range(200):
        (folder / f"{number:03d}-{'ü' * 100}").write_text("")
    flip_a_bit(folder / SHARD)
    hermetic("verify", folder, "--public-key", public, "--termination-log", message)
    document = json.loads(message.read_bytes())
    assert len(message.read_bytes()) <= 4096
    assert document["findings"][0]["reason"] == "FileNotListed"
    assert len(document["findings"]) + document["omitted"] == 201


def test_an_unwritable_termination_log_hides_nothing(model: tuple[Path, Path], tmp_path: Path) -> None:
    folder, public = model
    message = tmp_path / "nowhere" / "message"
    ran = hermetic("verify", folder, "--public-key", public, "--termination-log", message)
    assert ran.code == 0
    assert str(message) in ran.err


def test_links_of_a_cache_are_listed_where_asked_for(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "cache", shards=1)
    (folder / "blobs").mkdir()
    (folder / "tokenizer.json").rename(folder / "blobs" / "abc")
    (folder / "extra" / "tokenizer.json").symlink_to("../blobs/abc")
    refused = hermetic("manifest", folder)
    assert (refused.code, "LinkRefused: extra/tokenizer.json" in refused.err) == (1, True)
    assert hermetic("manifest", folder, "--links").code == 0
    assert verified(folder)[0].code == 0
    (folder / "extra" / "tokenizer.json").unlink()
    (folder / "extra" / "tokenizer.json").symlink_to("../config.json")
    assert ("SizeMismatch", "extra/tokenizer.json") in verified(folder)[1]


@pytest.mark.parametrize("name", [b"bad\xff", b"a:b"])
def test_a_name_that_a_manifest_cannot_list_is_refused(tmp_path: Path, name: bytes) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    Path(os.fsdecode(bytes(folder) + b"/" + name)).write_text("x")
    ran = hermetic("manifest", folder)
    assert ran.code == 1
    assert "NameRefused" in ran.err


def test_a_signature_without_a_hint_may_be_of_any_trusted_key(tmp_path: Path) -> None:
    """Releases of Model Signing before 1.0 do not say which key signed."""
    folder = a_model(tmp_path / "model", shards=1)
    private, public = keys(tmp_path)
    (_, other), (_, third) = keys(tmp_path, "other"), keys(tmp_path, "third")
    signed(folder, private)
    bundle = json.loads((folder / SIGNATURE).read_text())
    bundle["verificationMaterial"]["publicKey"] = {}
    (folder / SIGNATURE).write_text(json.dumps(bundle))
    assert verified(folder, "--public-key", other, "--public-key", public)[1] == []
    assert verified(folder, "--public-key", other, "--public-key", third)[1] == [("SignatureInvalid", SIGNATURE)]


@contextlib.contextmanager
def as_no_root(folder: Path, within: Path) -> Iterator[None]:
    """Root reads everything: inside the block the process is another user, who may read down to the folder."""
    if os.geteuid() != 0:
        yield
        return
    for parent in within.parents:
        if parent.is_relative_to(tempfile.gettempdir()) and parent != Path(tempfile.gettempdir()):
            parent.chmod(0o755)
    for parent in (within, *folder.rglob("*"), folder):
        os.chown(parent, NO_ROOT, NO_ROOT)
    os.seteuid(NO_ROOT)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_unreadable_file_is_told_as_a_mode(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    hermetic("manifest", folder)
    (folder / "config.json").chmod(0)
    with as_no_root(folder, tmp_path):
        assert verified(folder)[1] == [("ModeUnreadable", "config.json")]


def test_an_unreadable_folder_is_told_as_a_mode_in_the_termination_message_too(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    hermetic("manifest", folder)
    folder.chmod(0)
    with as_no_root(folder, tmp_path):
        ran = hermetic("verify", folder, "--termination-log", tmp_path / "message")
    assert (ran.code, "ModeUnreadable" in ran.err) == (1, True), ran.err
    assert "ModeUnreadable" in (tmp_path / "message").read_text()


def test_what_is_no_folder_of_weights_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    assert hermetic("verify", tmp_path / "nowhere").code == 2
    assert hermetic("verify", tmp_path / "file").code == 2
    assert "WeightsEmpty" in hermetic("manifest", tmp_path / "empty").err
    assert verified(tmp_path / "empty")[1] == [("ManifestAbsent", MANIFEST)]
    assert hermetic("verify", tmp_path, "--digest", "9b2e").code == 2


def test_the_files_of_a_manifest_are_readable_by_all(model: tuple[Path, Path]) -> None:
    folder, _ = model
    assert all(stat.S_IMODE((folder / path).stat().st_mode) == 0o644 for path in (MANIFEST, SIGNATURE, NAMES))


def test_keys_and_roots_are_taken_as_text_too(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    private, public = keys(tmp_path)
    _, other = keys(tmp_path, "other")
    signed(folder, private)
    assert verified(folder, "--public-key-pem", public.read_text())[1] == []
    ran = hermetic("verify", folder, "--public-key-pem", public.read_text(), "-o", "json")
    assert json.loads(ran.out)["signedBy"] == f"key {hashlib.sha256(public.read_bytes()).hexdigest()[:16]}"
    assert verified(folder, "--public-key-pem", other.read_text())[1] == [("WrongKey", "")]
    assert verified(folder, "--public-key-pem", other.read_text(), "--public-key", public)[1] == []
    unusable = hermetic("verify", folder, "--public-key-pem", "-----BEGIN PUBLIC KEY-----")
    assert unusable.code == 2
    assert "text 1 of --public-key-pem" in unusable.err


def test_a_report_ends_with_success_and_leaves_the_verdict_for_the_kubelet(tmp_path: Path) -> None:
    folder, message = a_model(tmp_path / "model", shards=1), tmp_path / "termination-log"
    hermetic("manifest", folder)
    flip_a_bit(folder / "model-00001-of-00001.safetensors", 4000)
    ran = hermetic("verify", folder, "--report-only", "--termination-log", message)
    assert ran.code == 0
    verdict = json.loads(message.read_text())
    assert (verdict["verdict"], verdict["findings"][0]["reason"]) == ("Fail", "DigestMismatch")


@pytest.mark.skipif(os.geteuid() != 0, reason="a process namespace of its own needs root")
def test_as_the_first_process_of_a_container_it_ends_on_sigterm(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    hermetic("manifest", folder, "--method", "files")
    shard = folder / "model-00001-of-00001.safetensors"
    os.truncate(shard, 2**42)  # sparse: more than can be hashed while the test runs
    command = ["unshare", "--pid", "--fork", sys.executable, "-m", "hermetic", "verify", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as outer:
        first = wait_for_child(outer.pid)
        wait_until("the shard is read", lambda: str(shard) in opened_by(first), (), 60)
        os.kill(first, signal.SIGTERM)
        assert outer.wait(timeout=60) == 128 + signal.SIGTERM


def wait_for_child(process: int) -> int:
    children = Path(f"/proc/{process}/task/{process}/children")
    wait_until("the process is there", lambda: bool(children.read_text()), (), 60)
    return int(children.read_text().split()[0])


def opened_by(process: int) -> set[str]:
    """The files that a process has open."""
    open_files = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            open_files.add(str(descriptor.readlink()))
    return open_files
