"""Manifests as files, and the signature around one: which counts, and that what is read is what was signed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.bundle import SigstoreBundle, payload, payload_size, pre_authentication, read_bundle
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.statement import Header
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import Tree, WeightsStopped
from hermetic.weights.workers import Progress

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

    from hermetic.weights.signatures import TrustedSigner

LARGEST_BUNDLE = 4 * 2**30
_CHUNK = 2**18
_CHANGED = "it was changed while it was read"


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


@dataclass(frozen=True, slots=True)
class Seal:
    """A signature that counts: by this key, over content with this digest. `signer` is the name for messages."""

    key: EllipticCurvePublicKey
    digest: bytes
    signer: str

    def running(self) -> hashes.Hash:
        """The hash that gives the digest, to be updated with the content as it is read again."""
        from hermetic.weights.signatures import running_digest

        return running_digest(self.key)


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
        os.close(self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
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
        self._seal: Seal | None = None
        self._read = b""

    @property
    def signer(self) -> str:
        """Who signed it; "" unless a signature was checked."""
        return "" if self._seal is None else self._seal.signer

    def unseal(self, trust: Trust) -> WeightsFinding | None:
        """Checks the signature of a bundle; returns why it does not count, or None. Raises NotJsonError."""
        bundle = read_bundle(self._file.chunks())
        seal = seal_of(bundle, trust, lambda: self._signed(bundle), self._file.path)
        if not isinstance(seal, Seal):
            return seal
        self._bundle, self._seal = bundle, seal
        return None

    def unsealed_without_trust(self) -> None:
        """Takes the statement out of a bundle without checking the signature. Raises NotJsonError."""
        self._bundle = read_bundle(self._file.chunks())

    def pieces(self) -> Iterator[bytes]:
        """The statement. Raises NotJsonError at its end if it is not the content whose signature was checked.

        Without a signature: if it is not what was read the first time.
        """
        if self._bundle is None or self._seal is None:
            chunks = self._file.chunks() if self._bundle is None else payload(self._bundle, self._file.read)
            yield from self._unchanged(chunks)
            return
        digest = self._seal.running()
        for position, piece in enumerate(self._signed(self._bundle)):
            digest.update(piece)
            if position:
                yield piece
        if digest.finalize() != self._seal.digest:
            raise NotJsonError(_CHANGED)

    def _unchanged(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        if self._read:
            yield from unchanged(chunks, self._read)
            return
        digest = hashlib.sha256()
        yield from hashed(chunks, digest)
        self._read = digest.digest()

    def _signed(self, bundle: SigstoreBundle) -> Iterator[bytes]:
        """The signed bytes: the DSSE prefix, then the payload."""
        yield pre_authentication(payload_size(bundle, self._file.read))
        yield from payload(bundle, self._file.read)


def seal_of(
    bundle: SigstoreBundle, trust: Trust, signed: Callable[[], Iterable[bytes]], path: str
) -> Seal | WeightsFinding:
    """The signature of a bundle over `signed`, if it is one of a trusted signer; else why it does not count."""
    signers = _signers(bundle, trust)
    if isinstance(signers, WeightsFinding):
        return signers
    from hermetic.weights.signatures import digest_of, is_signed  # without a trusted key nothing of it is needed

    for key, name in signers:
        digest = digest_of(key, signed())
        if is_signed(key, bundle.signature, digest):
            return Seal(key, digest, name)
    names = " or ".join(name for _, name in signers)
    return WeightsFinding(WeightsReason.SIGNATURE_INVALID, path, f"a signature of {names}", "none of it")


def _signers(bundle: SigstoreBundle, trust: Trust) -> list[tuple[EllipticCurvePublicKey, str]] | WeightsFinding:
    """The trusted keys that may have signed the bundle, with their names: one that it names, or all of them.

    `trust` decides between keys and certificates.
    """
    if bundle.certificates:
        if not trust.roots:
            explanation = "a signature by certificate; --certificate-root names whom to trust"
            return WeightsFinding(WeightsReason.WRONG_KEY, "", "a signature of a trusted key", explanation)
        from hermetic.weights.certificates import key_of_chain  # loads more than all else that verifies

        assert trust.now is not None  # noqa: S101 - comes with the roots
        signer = key_of_chain(bundle.certificates, trust.roots, trust.now)
        return signer if isinstance(signer, WeightsFinding) else [signer]
    if named := [(signer.key, signer.name) for signer in trust.keys if bundle.hint in {signer.hint, ""}]:
        return named
    expected = ", ".join(signer.hint[:16] for signer in trust.keys) or "a signature by certificate"
    return WeightsFinding(WeightsReason.WRONG_KEY, "", expected, bundle.hint[:16] or "a signature by key")


def mismatch(header: Header, digest: str, path: str) -> WeightsFinding | None:
    """Why a manifest is not the one with this root digest; None where it is.

    The root digest is one over digests in the order of the names: in another order it would not say which file has
    which content.
    """
    if header.root != digest:
        return WeightsFinding(WeightsReason.ROOT_DIGEST_MISMATCH, path, digest, header.root)
    if not header.is_ordered:
        details = "entries in the order of their names", "another order: then the digest allows files to be exchanged"
        return WeightsFinding(WeightsReason.ROOT_DIGEST_MISMATCH, path, *details)
    return None


def hashed(chunks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    """The same chunks; the digest is that of all once the last one was taken."""
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def unchanged(chunks: Iterable[bytes], digest: bytes) -> Iterator[bytes]:
    """The same chunks. Raises NotJsonError at their end where they do not have this SHA-256."""
    read = hashlib.sha256()
    yield from hashed(chunks, read)
    if read.digest() != digest:
        raise NotJsonError(_CHANGED)
