"""Signs manifests, and checks whether a signature is one of a trusted signer: the bundle as a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.bundle import (
    SigstoreBundle,
    material_of_certificates,
    material_of_key,
    payload,
    payload_size,
    pre_authentication,
    read_bundle,
    written_bundle,
)
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.signatures import (
    TrustedSigner,
    digest_of,
    hint_of,
    is_signed,
    key_of_chain,
    running_digest,
    sign,
)
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import Tree, WeightsStopped
from hermetic.weights.workers import Progress

LARGEST_BUNDLE = 4 * 2**30
_CHUNK = 2**18


@dataclass(frozen=True, slots=True)
class Trust:
    """The signatures that count: by one of the keys, or by a certificate with a chain to one of the roots at `now`.

    `digest` is the pinned root digest, "sha256:..." or "".
    """

    keys: tuple[TrustedSigner, ...] = ()
    roots: tuple[x509.Certificate, ...] = ()
    digest: str = ""
    now: datetime | None = None

    @property
    def wants_signature(self) -> bool:
        """Whether a manifest without a signature is refused."""
        return bool(self.keys or self.roots)


class ManifestFile:
    """A file that is read several times, in pieces: a manifest, or a bundle around one."""

    def __init__(self, tree: Tree, path: str, progress: Progress) -> None:
        self._tree, self.path, self._progress = tree, path, progress
        self._descriptor = tree.open(path)
        self.size = os.fstat(self._descriptor).st_size
        if self.size > LARGEST_BUNDLE:
            raise WeightsStopped(
                WeightsFinding(WeightsReason.TOO_MUCH, path, f"at most {LARGEST_BUNDLE} bytes", f"{self.size}")
            )

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes from an offset."""
        content = self._tree.read(self._descriptor, self.path, offset, size)
        self._progress.steps += 1
        return content

    def chunks(self) -> Iterator[bytes]:
        """The whole file, in pieces."""
        offset = 0
        while chunk := self.read(offset, _CHUNK):
            offset += len(chunk)
            yield chunk


class WeightsStatement:
    """A statement that can be read several times: from a file of its own, or from a signed bundle.

    Every reading of a signed one is compared with the content whose signature was checked.
    """

    def __init__(self, file: ManifestFile) -> None:
        self._file = file
        self._bundle: SigstoreBundle | None = None
        self._key: EllipticCurvePublicKey | None = None
        self._digest = b""
        self.signer = ""

    def unseal(self, trust: Trust) -> WeightsFinding | None:
        """Checks the signature of a bundle; returns why it does not count, or None. Raises NotJsonError."""
        bundle = read_bundle(self._file.chunks())
        found = _signers(bundle, trust)
        if isinstance(found, WeightsFinding):
            return found
        for key, name in found:
            digest = digest_of(key, self._signed(bundle))
            if is_signed(key, bundle.signature, digest):
                self._bundle, self._key, self._digest, self.signer = bundle, key, digest, name
                return None
        names = " or ".join(name for _, name in found)
        return WeightsFinding(WeightsReason.SIGNATURE_INVALID, self._file.path, f"a signature of {names}", "none of it")

    def unsealed_without_trust(self) -> None:
        """Takes the statement out of a bundle without checking the signature. Raises NotJsonError."""
        self._bundle = read_bundle(self._file.chunks())

    def pieces(self) -> Iterator[bytes]:
        """The statement. Raises NotJsonError at its end if it is not the content whose signature was checked."""
        if self._bundle is None:
            yield from self._file.chunks()
            return
        if self._key is None:
            yield from payload(self._bundle, self._file.read)
            return
        digest = running_digest(self._key)
        for place, piece in enumerate(self._signed(self._bundle)):
            digest.update(piece)
            if place:
                yield piece
        if digest.finalize() != self._digest:
            raise NotJsonError("it was changed while it was read")

    def _signed(self, bundle: SigstoreBundle) -> Iterator[bytes]:
        """The signed bytes: the DSSE prefix, then the payload."""
        yield pre_authentication(payload_size(bundle, self._file.read))
        yield from payload(bundle, self._file.read)


def _signers(bundle: SigstoreBundle, trust: Trust) -> list[tuple[EllipticCurvePublicKey, str]] | WeightsFinding:
    """The trusted keys that may have signed the bundle, with their names: one that it names, or all of them.

    `trust` decides between keys and certificates.
    """
    if bundle.certificates:
        if not trust.roots:
            what = "a signature by certificate; --certificate-root names whom to trust"
            return WeightsFinding(WeightsReason.WRONG_KEY, "", "a signature of a trusted key", what)
        assert trust.now is not None  # noqa: S101 - comes with the roots
        key = key_of_chain(bundle.certificates, trust.roots, trust.now)
        if isinstance(key, WeightsFinding):
            return key
        return [(key, x509.load_der_x509_certificate(bundle.certificates[0]).subject.rfc4514_string())]
    if found := [(signer.key, signer.name) for signer in trust.keys if bundle.hint in {signer.hint, ""}]:
        return found
    expected = ", ".join(signer.hint[:16] for signer in trust.keys) or "a signature by certificate"
    return WeightsFinding(WeightsReason.WRONG_KEY, "", expected, bundle.hint[:16] or "a signature by key")


def sealed(
    statement: Callable[[], Iterable[bytes]],
    size: int,
    key: EllipticCurvePrivateKey,
    chain: Iterable[x509.Certificate] = (),
) -> Iterator[bytes]:
    """The bundle around a statement of `size` bytes, which is read twice. `chain`: the signer's certificate first."""
    public = key.public_key()

    def signed() -> Iterator[bytes]:
        yield pre_authentication(size)
        yield from statement()

    signature = sign(key, digest_of(public, signed()))
    der = [each.public_bytes(Encoding.DER) for each in chain]
    material = material_of_certificates(der) if der else material_of_key(hint_of(public))
    yield from written_bundle(statement(), signature, material)
