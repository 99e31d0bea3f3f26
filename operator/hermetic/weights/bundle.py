"""The Sigstore bundle of Model Signing v1.0: a DSSE envelope around the statement, read and written as a stream.

Only small parts are kept in memory: offsets of the payload, the signature, the key hint or the certificate chain.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hermetic.weights.streamed_json import JsonStream, NotJsonError

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
_CHUNK = 3 * 2**16
_MOST_CERTIFICATES = 16

Read = Callable[[int, int], bytes]
"""(offset, size) -> bytes of a file, fewer at its end."""


@dataclass(slots=True)
class SigstoreBundle:
    """The content of a bundle except its payload, which is Base64 from offset `start` to `end` in the file."""

    start: int = -1
    end: int = -1
    signature: bytes = b""
    hint: str = ""
    certificates: list[bytes] = field(default_factory=list)


def pre_authentication(size: int) -> bytes:
    """The bytes that are signed before a payload of `size` bytes (DSSE v1)."""
    return f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {size} ".encode()


def read_bundle(chunks: Iterable[bytes]) -> SigstoreBundle:
    """Parses a bundle. Raises NotJsonError unless it is of this kind with exactly one signature."""
    bundle = SigstoreBundle()
    stream = JsonStream(chunks)
    present_keys: set[str] = set()
    for key in stream.keys():  # noqa: SIM118 - no dictionary
        present_keys.add(key)
        if key == "dsseEnvelope":
            _read_envelope(stream, bundle)
            continue
        value = stream.value()
        if key == "mediaType" and value != MEDIA_TYPE:
            raise NotJsonError(f"it is not {MEDIA_TYPE}, but {str(value)[:100]}")
        if key == "verificationMaterial":
            _read_material(value, bundle)
    stream.finish()
    if missing := {"mediaType", "dsseEnvelope", "verificationMaterial"} - present_keys:
        raise NotJsonError(f"it has no '{min(missing)}'")
    if bundle.start < 0 or not bundle.signature:
        raise NotJsonError("its envelope has no payload or no signature")
    return bundle


def _read_envelope(stream: JsonStream, bundle: SigstoreBundle) -> None:
    is_in_toto = False
    for key in stream.keys():  # noqa: SIM118 - no dictionary
        if key == "payload":
            bundle.start, bundle.end = stream.span_of_text()
            continue
        value = stream.value()
        if key == "payloadType":
            is_in_toto = value == PAYLOAD_TYPE
        if key == "signatures":
            match value:
                case [{"sig": str(sig)}]:
                    bundle.signature = _from_base64(sig)
                case _:
                    raise NotJsonError("it does not have exactly one signature")
    if not is_in_toto:
        raise NotJsonError(f"the payload of its envelope is not {PAYLOAD_TYPE}")


def _read_material(value: Any, bundle: SigstoreBundle) -> None:
    match value:
        case {"publicKey": {"hint": str(hint)}}:
            bundle.hint = hint
        case {"x509CertificateChain": {"certificates": [*certificates]}} if len(certificates) <= _MOST_CERTIFICATES:
            bundle.certificates = [_certificate(certificate) for certificate in certificates]
        case {"publicKey": dict()}:
            pass  # the form of releases before 1.0, without a hint
        case _:
            raise NotJsonError("it is signed in a way that works only with the internet: neither key nor certificate")


def _certificate(value: Any) -> bytes:
    match value:
        case {"rawBytes": str(text)}:
            return _from_base64(text)
    raise NotJsonError("a certificate of its chain has no rawBytes")


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotJsonError("it holds invalid Base64") from None


def payload_size(bundle: SigstoreBundle, read: Read) -> int:
    """Bytes of the payload, by its length in Base64 and its padding."""
    size = bundle.end - bundle.start
    if size == 0 or size % 4:
        raise NotJsonError("its payload is not whole Base64")
    return size // 4 * 3 - read(bundle.end - 2, 2).count(b"=")


def payload(bundle: SigstoreBundle, read: Read) -> Iterator[bytes]:
    at = bundle.start
    while at < bundle.end:
        text = read(at, min(4 * _CHUNK // 3, bundle.end - at))
        if not text or len(text) % 4:
            raise NotJsonError("it was changed while it was read")
        yield _from_base64(text.decode("latin-1"))
        at += len(text)


def written_bundle(payload: Iterable[bytes], signature: bytes, material: dict[str, Any]) -> Iterator[bytes]:
    """The bytes of a bundle, in pieces."""
    yield f'{{"mediaType":"{MEDIA_TYPE}","verificationMaterial":{json.dumps(material)},'.encode()
    yield b'"dsseEnvelope":{"payload":"'
    buffer = b""
    for piece in payload:
        buffer += piece
        encoded_length = len(buffer) - len(buffer) % 3
        yield base64.b64encode(buffer[:encoded_length])
        buffer = buffer[encoded_length:]
    yield base64.b64encode(buffer)
    signed = base64.b64encode(signature).decode()
    yield f'","payloadType":"{PAYLOAD_TYPE}","signatures":[{{"sig":"{signed}","keyid":""}}]}}}}\n'.encode()


def material_of_key(hint: str) -> dict[str, Any]:
    """The verification material of a signature by key."""
    return {"publicKey": {"hint": hint}, "tlogEntries": []}


def material_of_certificates(chain: Iterable[bytes]) -> dict[str, Any]:
    """The verification material of a signature by certificate: DER, the signer's first."""
    certificates = [{"rawBytes": base64.b64encode(certificate).decode()} for certificate in chain]
    return {"x509CertificateChain": {"certificates": certificates}, "tlogEntries": []}
