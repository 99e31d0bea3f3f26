"""Signs a folder: its manifest, as stored on the disk, in a bundle beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import SigningKeyUnusable, WeightsRefused
from hermetic.weights.bundle import material_of_certificates, material_of_key, pre_authentication, written_bundle
from hermetic.weights.entries import MANIFEST, NAMES, NOT_LISTED, SIGNATURE
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.listed_names import must_have_its_names
from hermetic.weights.manifests import write_whole
from hermetic.weights.sealing import ManifestFile, Trust, hashed, mismatch, unchanged
from hermetic.weights.signatures import digest_of, hint_of, sign
from hermetic.weights.statement import Header, read_entries, read_header
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import EntryKind, Tree, WeightsStopped
from hermetic.weights.verification import verify
from hermetic.weights.workers import Limits, Progress

Signer = tuple[EllipticCurvePrivateKey, Sequence[x509.Certificate]]
"""A private key, and its certificate with the chain below the root; no certificate: a signature by key."""


def sign_folder(
    tree: Tree, signer: Signer, digest: str, limits: Limits, on_progress: Callable[[Progress], None]
) -> str:
    """Writes `.hermetic/model.sig` and returns the root digest.

    With `digest` the manifest must have it, and the names that it covers, and files are not read; without, every file
    must match the manifest. Raises WeightsRefused, and SigningKeyUnusable where certificate and key do not match.
    """
    key, chain = signer
    if chain and chain[0].public_key() != key.public_key():
        raise SigningKeyUnusable(f"the first certificate is not one of the key {hint_of(key.public_key())[:16]}")
    if not digest:
        verified = verify(tree, Trust(), limits, on_progress)
        if not verified.is_right:
            raise WeightsRefused(verified.findings, f"{tree.root}: nothing was signed")
        digest = verified.root
    item = tree.lstat(MANIFEST)
    if item is None or item.kind is not EntryKind.FILE:
        reason = WeightsReason.MANIFEST_ABSENT if item is None else WeightsReason.MANIFEST_INVALID
        kind = "none" if item is None else item.kind.value
        raise WeightsRefused([WeightsFinding(reason, MANIFEST, "a file", kind)], str(tree.root))
    file = ManifestFile(tree, MANIFEST, Progress())
    try:
        root, read = _checked(tree, file, digest)
        pieces = sealed(lambda: unchanged(file.chunks(), read), file.size, key, chain)
        write_whole(tree.root / SIGNATURE, lambda opened: opened.writelines(pieces))
    except WeightsStopped as stopped:
        raise WeightsRefused([stopped.finding], f"{tree.root}: nothing was signed") from None
    except NotJsonError as error:
        finding = WeightsFinding(WeightsReason.MANIFEST_INVALID, MANIFEST, observed=str(error))
        raise WeightsRefused([finding], f"{tree.root}: nothing was signed") from None
    finally:
        file.close()
    return root


def _checked(tree: Tree, file: ManifestFile, digest: str) -> tuple[str, bytes]:
    """The root digest, and the SHA-256 of the manifest that has it. Raises WeightsStopped and NotJsonError.

    Others who write to the share can rewrite all of the manifest that the root digest does not cover.
    """
    read = hashlib.sha256()
    header = read_header(hashed(file.chunks(), read))
    if (finding := _is_another(header, digest)) is not None:
        raise WeightsStopped(finding)
    method = header.serialization.method
    must_have_its_names(tree, read_entries(unchanged(file.chunks(), read.digest()), method), method)
    return header.root, read.digest()


def _is_another(header: Header, digest: str) -> WeightsFinding | None:
    """Why this is not the manifest with the root digest; the digest covers names through `names.json` alone."""
    if (finding := mismatch(header, digest, MANIFEST)) is not None:
        return finding
    if header.names_entry is None:
        return WeightsFinding(WeightsReason.NAMES_NOT_COVERED, NAMES, "an entry", "none")
    if uncovered_paths := set(header.serialization.ignore_paths) - NOT_LISTED:
        explanation = f"it leaves out {min(uncovered_paths)!r}, which the root digest does not cover"
        return WeightsFinding(WeightsReason.MANIFEST_INVALID, MANIFEST, observed=explanation)
    return None


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
    der = [certificate.public_bytes(Encoding.DER) for certificate in chain]
    material = material_of_certificates(der) if der else material_of_key(hint_of(public))
    yield from written_bundle(statement(), signature, material)
