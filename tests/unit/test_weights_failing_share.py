"""`hermetic verify` and `stage` as processes, on a mount that fails: they end in time, with a reason."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import CannotRunError
from testbed.faulty_share import HANGS, FaultyShare
from tests.commandline import Ran, hermetic, hermetic_process
from tests.weights import a_model

SHARD = "model-00002-of-00003.safetensors"


@pytest.fixture
def share(tmp_path: Path) -> Iterator[FaultyShare]:
    model = a_model(tmp_path / "model")
    assert hermetic("manifest", model).code == 0
    (tmp_path / "mounted").mkdir()
    try:
        with FaultyShare(model, tmp_path / "mounted") as share:
            yield share
    except CannotRunError as reason:
        pytest.skip(str(reason))


def verified(tmp_path: Path) -> Ran:
    return hermetic_process(
        "verify", tmp_path / "mounted", "--stall", "1.5", "--termination-log", tmp_path / "log", timeout=60
    )


def findings(tmp_path: Path) -> list[tuple[str, str]]:
    document = json.loads((tmp_path / "log").read_text())
    return [(finding["reason"], finding["file"]) for finding in document["findings"]]


@pytest.mark.usefixtures("share")
def test_a_mount_that_works_verifies(tmp_path: Path) -> None:
    assert (ran := verified(tmp_path)).code == 0, ran.err


@pytest.mark.parametrize("operation", ["open", "read"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_an_error_of_the_server_decides_nothing(share: FaultyShare, tmp_path: Path, operation: str, code: int) -> None:
    share.fault = lambda requested, path, offset: (
        code if (requested, path) == (operation, SHARD) and offset >= (2**17 if requested == "read" else 0) else 0
    )
    ran = verified(tmp_path)
    assert ran.code == 3
    assert ran.errors[0].startswith("error: HRM-WGT-002: ")
    assert findings(tmp_path) == [("ReadFailed", SHARD)]
    assert errno.errorcode[code] in ran.err


def test_a_block_that_cannot_be_read_is_not_staged_and_the_rest_is_kept(share: FaultyShare, tmp_path: Path) -> None:
    share.fault = lambda requested, path, offset: (
        errno.EIO if (requested, path) == ("read", SHARD) and offset >= 2**17 else 0
    )
    command = ("stage", tmp_path / "mounted", tmp_path / "llama", "-o", "json")
    ran = hermetic_process(*command)
    assert (ran.code, f"ReadFailed: {SHARD}: " in ran.err) == (1, True), ran.err
    assert not (tmp_path / "llama").exists()
    share.fault = lambda *_operation: 0
    ran = hermetic_process(*command)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out.splitlines()[-1])["bytesKept"] > 0
    assert hermetic("verify", tmp_path / "llama").code == 0


def test_a_handle_that_is_stale_once_is_opened_again(share: FaultyShare, tmp_path: Path) -> None:
    stale: list[str] = []

    def fault(operation: str, path: str, _offset: int) -> int:
        if (operation, path) == ("open", SHARD) and not stale:
            stale.append(path)
            return errno.ESTALE
        return 0

    share.fault = fault
    assert (ran := verified(tmp_path)).code == 0, ran.err
    assert stale


@pytest.mark.parametrize(
    ("operation", "path"),
    [("read", SHARD), ("open", SHARD), ("lookup", SHARD), ("opendir", "extra"), ("readdir", ""), ("getattr", "")],
)
def test_a_server_that_no_longer_answers_is_told_in_time(
    share: FaultyShare, tmp_path: Path, operation: str, path: str
) -> None:
    asked_for: list[str] = []

    def fault(asked: str, of: str, _offset: int) -> int:
        if (asked, of) == (operation, path):
            asked_for.append(of)
            return HANGS
        return 0

    share.fault = fault
    ran = verified(tmp_path)
    assert asked_for
    assert (ran.code, [reason for reason, _ in findings(tmp_path)]) == (3, ["ShareHangs"]), ran.err


@pytest.mark.parametrize(("operation", "path"), [("read", SHARD), ("open", SHARD), ("readdir", ""), ("getattr", "")])
def test_a_source_that_no_longer_answers_is_told_in_time_and_taken_up(
    share: FaultyShare, tmp_path: Path, operation: str, path: str
) -> None:
    share.fault = lambda requested, of, _offset: HANGS if (requested, of) == (operation, path) else 0
    command = ("stage", tmp_path / "mounted", tmp_path / "llama")
    ran = hermetic_process(*command, "--stall", "1.5", timeout=60)
    assert ran.code == 3, ran.err
    assert ran.errors[0].startswith("error: HRM-WGT-002: the source: was not staged: ShareHangs: ")
    assert not (tmp_path / "llama").exists()
    share.fault = lambda *_operation: 0
    assert (ran := hermetic_process(*command)).code == 0, ran.err
    assert hermetic("verify", tmp_path / "llama").code == 0


def test_a_destination_that_does_not_answer_is_told_in_time(share: FaultyShare, tmp_path: Path) -> None:
    share.fault = lambda requested, of, _offset: HANGS if (requested, of) == ("lookup", "llama") else 0
    ran = hermetic_process(
        "stage", a_model(tmp_path / "source"), tmp_path / "mounted" / "llama", "--stall", "1.5", timeout=60
    )
    assert ran.code == 1, ran.err
    assert ran.errors[0].startswith(f"error: HRM-WGT-004: {tmp_path}/mounted/llama: DestinationHangs: ")
