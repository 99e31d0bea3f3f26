"""A bundle that is changed in any place is refused with a reason: never accepted, never an exception."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.entries import MANIFEST, SIGNATURE
from hermetic.weights.sealing import Trust
from hermetic.weights.signatures import public_key
from hermetic.weights.statement import read_header
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import Tree
from hermetic.weights.verification import Verified, verify
from hermetic.weights.workers import Limits
from tests.commandline import hermetic
from tests.weights import a_model, keys

MANIFEST_REASONS = {
    WeightsReason.MANIFEST_INVALID, WeightsReason.SIGNATURE_INVALID, WeightsReason.WRONG_KEY,
    WeightsReason.CERTIFICATE_UNTRUSTED, WeightsReason.TOO_MUCH,
}  # fmt: skip


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trust, bytes]:
    folder = tmp_path_factory.mktemp("tampering")
    model = a_model(folder / "model", shards=1, size=2**10)
    private, public = keys(folder)
    assert hermetic("manifest", model).code == 0
    assert hermetic("sign", model, "--key", private).code == 0
    return model, Trust((public_key("public", public.read_bytes()),)), (model / SIGNATURE).read_bytes()


def found(model: Path, trust: Trust, bundle: bytes) -> Verified:
    (model / SIGNATURE).write_bytes(bundle)
    with Tree(model) as tree:
        return verify(tree, trust, Limits(threads=1))


def flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) - 3)]


def doubled(content: bytes, chance: random.Random) -> bytes:
    at, size = chance.randrange(len(content)), chance.randrange(1, 200)
    return content[:at] + content[at : at + size] + content[at:]


def without(content: bytes, chance: random.Random) -> bytes:
    at, size = chance.randrange(len(content) - 10), chance.randrange(1, 200)
    return content[:at] + content[at + size :]


@pytest.mark.parametrize("change", [flipped, cut, doubled, without])
def test_a_bundle_that_was_changed_is_refused(
    signed: tuple[Path, Trust, bytes], change: Callable[[bytes, random.Random], bytes]
) -> None:
    model, trust, bundle = signed
    assert found(model, trust, bundle).is_right
    chance = random.Random(change.__name__)
    for _ in range(60):
        tampered = change(bundle, chance)
        verified = found(model, trust, tampered)
        if verified.is_right:  # only where the bundle says the same: blanks, tlogEntries, keyid
            assert json.loads(tampered)["dsseEnvelope"]["payload"] == json.loads(bundle)["dsseEnvelope"]["payload"]
            assert (
                json.loads(tampered)["dsseEnvelope"]["signatures"][0]["sig"]
                == (json.loads(bundle)["dsseEnvelope"]["signatures"][0]["sig"])
            )
        else:
            assert {finding.reason for finding in verified.findings} <= MANIFEST_REASONS, verified.findings


HOSTILE: dict[str, Callable[[dict], object]] = {  # type: ignore[type-arg]
    "a path up": lambda statement: statement["predicate"]["resources"][0].update(name="../etc/passwd:0:5"),
    "an absolute path": lambda statement: statement["predicate"]["resources"][0].update(name="/etc/passwd:0:5"),
    "an empty name": lambda statement: statement["predicate"]["resources"][0].update(name=""),
    "no range": lambda statement: statement["predicate"]["resources"][0].update(name="config.json"),
    "a backward range": lambda statement: statement["predicate"]["resources"][0].update(name="config.json:9:3"),
    "a huge range": lambda statement: statement["predicate"]["resources"][0].update(name="config.json:0:" + "9" * 4000),
    "half a digest": lambda statement: statement["predicate"]["resources"][0].update(digest="ab" * 16),
    "a digest with blanks": lambda statement: statement["predicate"]["resources"][0].update(digest="ab " * 32),
    "another algorithm": lambda statement: statement["predicate"]["resources"][0].update(algorithm="md5"),
    "another field": lambda statement: statement["predicate"]["resources"][0].update(extra=1),
    "no resources": lambda statement: statement["predicate"].update(resources=[]),
    "resources that are none": lambda statement: statement["predicate"].update(resources={"a": 1}),
    "an unknown method": lambda statement: statement["predicate"]["serialization"].update(method="tensors"),
    "a shard size of nothing": lambda statement: statement["predicate"]["serialization"].update(shard_size=0),
    "a broken shard size": lambda statement: statement["predicate"]["serialization"].update(shard_size=1.5),
    "an endless shard size": lambda statement: statement["predicate"]["serialization"].update(shard_size=1e308),
    "weights left out": lambda statement: statement["predicate"]["serialization"].update(ignore_paths=["config.json"]),
    "everything left out": lambda statement: statement["predicate"]["serialization"].update(ignore_paths=["."]),
    "two subjects": lambda statement: statement["subject"].append(statement["subject"][0]),
    "another root": lambda statement: statement["subject"][0]["digest"].update(sha256="00" * 32),
    "another statement": lambda statement: statement.update(_type="https://in-toto.io/Statement/v0.1"),
    "another predicate": lambda statement: statement.update(predicateType="https://slsa.dev/provenance/v1"),
    "an entry twice": lambda statement: statement["predicate"]["resources"].append(
        statement["predicate"]["resources"][-1]
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_manifest_is_invalid(name: str, tmp_path: Path) -> None:
    """Without a signature: what is in it must be refused by itself."""
    model = a_model(tmp_path / "model", shards=1, size=2**10)
    assert hermetic("manifest", model).code == 0
    statement = json.loads((model / MANIFEST).read_text())
    HOSTILE[name](statement)
    (model / MANIFEST).write_text(json.dumps(statement))
    with Tree(model) as tree:
        verified = verify(tree, Trust(), Limits(threads=1))
    assert WeightsReason.MANIFEST_INVALID in {finding.reason for finding in verified.findings}, verified.findings


TEXTS = {
    "empty": b"",
    "brace": b"{",
    "list": b"[]",
    "null": b"null",
    "object": b"{}",
    "twice": b'{"a":1,"a":2}',
    "deep": b'{"predicate":{"resources":[' + b"[" * 10**5,
    "deeper": b"{" * 10**6,
    "no UTF-8": b"\xff\xfe",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_no_statement_is_said_so(text: bytes) -> None:
    with pytest.raises(NotJsonError):
        read_header([text[at : at + 1000] for at in range(0, len(text), 1000)])
