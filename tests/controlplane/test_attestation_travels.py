"""Evidence that was carried in by kubectl is, byte for byte, what was signed; a real API server keeps it so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermetic.audit.attestation.custom_resource import as_object, from_object, name_of
from hermetic.audit.attestation.signing import COMPACT_ABOVE
from hermetic.cli.attest.files import write_attestation
from hermetic.signing.envelope import Envelope
from testbed.kubectl import Kubectl, KubectlError
from testbed.processes import wait_until
from tests.attestations import a_finding, a_p256_key, a_report, an_ed25519_key, public_pem_of, signed
from tests.commandline import hermetic_process
from tests.corpus.verdicts import Judge

pytestmark = pytest.mark.sampled(6, of="signed reports on a real API server")

KEY = an_ed25519_key()


@pytest.fixture(scope="module")
def cluster_with_crds(cluster: Path, kubectl: Kubectl) -> Kubectl:
    with Judge(cluster) as server:
        server.install_crds()
        wait_until("eattest", lambda: "eattest" in kubectl("api-resources", "--api-group=hermetic.dev"), ())
    return kubectl


@pytest.fixture
def carried_in(cluster_with_crds: Kubectl, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Writes the file, has kubectl take it with the options, and returns the object's name."""
    names: list[str] = []

    def carry(envelope: Envelope, *options: str) -> str:
        file = tmp_path / "attestation.yaml"
        write_attestation(file, envelope)
        names.append(name_of(envelope))
        cluster_with_crds(*options, "--filename", str(file))
        return names[-1]

    yield carry
    for name in set(names):
        cluster_with_crds("delete", "eattest", name, "--ignore-not-found")


def fresh(*findings: dict[str, Any], key=KEY, **report: Any) -> Envelope:
    now = datetime.now(UTC)
    return signed(key, a_report(*findings, observed=now - timedelta(minutes=5), **report), now=now)


def many(count: int, verdict: str) -> list[dict[str, Any]]:
    return [a_finding(verdict, resource=f"/nic/{number}", message="é" * 200) for number in range(count)]


@pytest.mark.parametrize("key", [KEY, a_p256_key()], ids=["Ed25519", "P-256"])
@pytest.mark.parametrize("verb", [["apply"], ["apply", "--server-side"], ["create"]], ids=" ".join)
def test_what_comes_back_is_what_was_signed(key, verb, carried_in, cluster_with_crds: Kubectl, tmp_path: Path) -> None:
    envelope = fresh(key=key)
    name = carried_in(envelope, *verb)
    assert from_object(cluster_with_crds.json("get", "eattest", name)) == envelope
    (tmp_path / "platform.pub").write_text(public_pem_of(key.key))
    for form in ("yaml", "json"):
        printed = cluster_with_crds("get", "eattest", name, "--output", form)
        public_key = ("--public-key", tmp_path / "platform.pub")
        ran = hermetic_process("attest", "verify", "-", *public_key, stdin=printed.encode())
        assert (ran.code, ran.err) == (0, "")


def test_a_whole_report_is_small_enough_for_any_apply(carried_in, cluster_with_crds: Kubectl) -> None:
    envelope = fresh(*many(190, "Pass"))
    assert COMPACT_ABOVE * 0.8 < len(envelope.payload) <= COMPACT_ABOVE
    name = carried_in(envelope, "apply")
    assert from_object(cluster_with_crds.json("get", "eattest", name)) == envelope


def test_the_largest_one_needs_server_side_apply_or_create(carried_in, cluster_with_crds: Kubectl) -> None:
    envelope = fresh(*many(800, "Fail"), verdict="Fail")
    assert len(envelope.payload) > 600_000
    with pytest.raises(KubectlError, match="Too long"):
        carried_in(envelope, "apply")
    name = carried_in(envelope, "apply", "--server-side")
    assert from_object(cluster_with_crds.json("get", "eattest", name)) == envelope


def test_applying_it_again_changes_nothing_and_another_in_its_place_is_refused(carried_in, cluster_with_crds) -> None:
    envelope = fresh()
    name = carried_in(envelope, "apply", "--server-side")
    version = cluster_with_crds.json("get", "eattest", name)["metadata"]["resourceVersion"]
    assert carried_in(envelope, "apply", "--server-side") == name
    assert cluster_with_crds.json("get", "eattest", name)["metadata"]["resourceVersion"] == version
    other = {**as_object(fresh(a_finding("Fail"), verdict="Fail")), "metadata": {"name": name}}
    with pytest.raises(KubectlError, match="immutable"):
        cluster_with_crds("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=other)


@pytest.mark.parametrize("signatures", [0, 2])
def test_an_envelope_of_no_or_two_signatures_is_not_even_taken(signatures: int, cluster_with_crds: Kubectl) -> None:
    manifest = as_object(fresh())
    manifest["spec"]["envelope"]["signatures"] *= signatures
    with pytest.raises(KubectlError, match=r"spec\.envelope\.signatures"):
        cluster_with_crds("create", "--filename=-", stdin=manifest)
