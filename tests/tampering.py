"""Everything that can be done to a signed attestation by who holds no trusted private key."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from hermetic.signing.canonical_json import canonical
from hermetic.signing.envelope import Envelope, signed_bytes
from hermetic.signing.keys import SigningKey
from hermetic.signing.signatures import ED25519_BYTES, P256_ORDER, sign
from tests.attestations import CLUSTER, OBSERVED, a_report

ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493
OTHER_VALUES = ("", "x", 0, 1, 7, -1, True, False, None, [], {}, "Pass", "Fail", "sealed", "2026-11-21T11:00:00Z")


@dataclass(frozen=True)
class Target:
    """The attestation to tamper with, others of the same signers, and a key of the tamperer's own."""

    envelope: Envelope
    envelopes: tuple[Envelope, ...]
    own_key: SigningKey
    random: Random


Tampering = Callable[[Target], bytes]


def written(envelope: dict[str, Any]) -> bytes:
    return canonical(envelope) + b"\n"


def with_payload(envelope: Envelope, payload: bytes) -> bytes:
    return Envelope(payload, envelope.keyid, envelope.signature).as_bytes()


def with_signature(envelope: Envelope, signature: bytes) -> bytes:
    return Envelope(envelope.payload, envelope.keyid, signature).as_bytes()


def changed_bytes(content: bytes, random: Random) -> bytes:
    """One to four edits: a bit turned, a byte replaced, added, removed or doubled."""
    edited = bytearray(content)
    for _ in range(random.randint(1, 4)):
        offset = random.randrange(max(len(edited), 1))
        match random.randrange(5):
            case 0:
                edited[offset] ^= 1 << random.randrange(8)
            case 1:
                edited[offset] = random.randrange(256)
            case 2:
                edited.insert(offset, random.randrange(256))
            case 3:
                del edited[offset]
            case _:
                edited[offset:offset] = edited[offset : offset + random.randint(1, 32)]
    return bytes(edited)


def file_bytes(at: Target) -> bytes:
    return changed_bytes(at.envelope.as_bytes(), at.random)


def payload_bytes(at: Target) -> bytes:
    return with_payload(at.envelope, changed_bytes(at.envelope.payload, at.random))


def signature_bytes(at: Target) -> bytes:
    return with_signature(at.envelope, changed_bytes(at.envelope.signature, at.random) or b"\0")


def keyid_characters(at: Target) -> bytes:
    keyid = changed_bytes(at.envelope.keyid.encode(), at.random).decode("latin-1")
    return Envelope(at.envelope.payload, keyid, at.envelope.signature).as_bytes()


def truncated(at: Target) -> bytes:
    match at.random.randrange(3):
        case 0:
            content = at.envelope.as_bytes()
            return content[: at.random.randrange(len(content) - 1)]
        case 1:
            return with_payload(at.envelope, at.envelope.payload[: at.random.randrange(1, len(at.envelope.payload))])
        case _:
            return with_signature(
                at.envelope, at.envelope.signature[: at.random.randrange(1, len(at.envelope.signature))]
            )


def swapped_parts(at: Target) -> bytes:
    """Payload, key and signature of up to three different attestations."""
    payload, keyid, signature = (at.random.choice(at.envelopes) for _ in range(3))
    return Envelope(payload.payload, keyid.keyid, signature.signature).as_bytes()


def spliced_files(at: Target) -> bytes:
    """The beginning of one file and the end of another, cut anywhere."""
    envelope, other = (at.random.choice(at.envelopes).as_bytes() for _ in range(2))
    return envelope[: at.random.randrange(len(envelope))] + other[at.random.randrange(len(other)) :]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    field_paths = [path] if path else []
    if isinstance(value, dict):
        field_paths += [field_path for key in value for field_path in places(value[key], (*path, key))]
    elif isinstance(value, list):
        field_paths += [field_path for number, item in enumerate(value) for field_path in places(item, (*path, number))]
    return field_paths


def edited_fields(at: Target) -> bytes:
    """A field of the statement replaced, removed or added, and all written anew in canonical form."""
    statement = json.loads(at.envelope.payload)
    for _ in range(at.random.randint(1, 3)):
        *path, last = at.random.choice(places(statement))
        within: Any = statement
        for step in path:
            within = within[step]
        match at.random.randrange(3):
            case 0:
                within[last] = at.random.choice(OTHER_VALUES)
            case 1:
                del within[last]
            case _ if isinstance(within, dict):
                within[at.random.choice(("note", "verdict", "exception", last))] = at.random.choice(OTHER_VALUES)
            case _:
                within.insert(last, at.random.choice(OTHER_VALUES))
    return with_payload(at.envelope, canonical(statement))


def what_a_liar_wants(at: Target) -> bytes:
    """Edits with a purpose, consistent in themselves: a report that passes, a later end, another cluster."""
    statement = json.loads(at.envelope.payload)
    predicate = statement["predicate"]
    for lie in at.random.sample(range(4), at.random.randint(1, 4)):
        match lie:
            case 0:
                predicate["report"] = a_report(observed=OBSERVED + timedelta(seconds=at.random.randrange(3600)))
                predicate["observedAt"] = predicate["report"]["startedAt"]
            case 1:
                predicate["expiresAt"] = f"2026-11-2{at.random.randrange(2, 9)}T10:00:00Z"
            case 2:
                other = CLUSTER + str(at.random.randrange(99))
                predicate["scope"]["clusterArmId"] = predicate["report"]["cluster"] = statement["subject"][0][
                    "name"
                ] = other
            case _:
                predicate["sequence"] += at.random.randint(1, 9)
    return with_payload(at.envelope, canonical(statement))


def another_key(at: Target) -> bytes:
    """Well signed, by an untrusted key: under its own id, or under that of a trusted one."""
    payload = at.random.choice(at.envelopes).payload
    if at.random.randrange(2):
        payload = changed_bytes(payload, at.random)
    signature = sign(at.own_key, signed_bytes(payload))
    keyid = at.random.choice((at.own_key.public.keyid, at.envelope.keyid))
    return Envelope(payload or b" ", keyid, signature).as_bytes()


def the_other_form(signature: bytes) -> bytes:
    """Other signatures that verify as well, made without a key: n - s of ECDSA, s + L of Ed25519."""
    if len(signature) == ED25519_BYTES:
        s = int.from_bytes(signature[32:], "little") + ED25519_ORDER
        return signature[:32] + s.to_bytes(32, "little")
    r, s = decode_dss_signature(signature)
    return encode_dss_signature(r, P256_ORDER - s)


def confused_algorithm(at: Target) -> bytes:
    """Signatures of other forms and lengths, a shared-secret code in their place, fields that name an algorithm."""
    match at.random.randrange(6):
        case 5:
            return with_signature(at.envelope, the_other_form(at.envelope.signature))
        case 0:
            return with_signature(
                at.envelope, at.random.randbytes(at.random.choice((1, 20, 32, 48, 63, 64, 65, 72, 128)))
            )
        case 1:
            r, s = (at.random.choice((0, 1, P256_ORDER - 1, P256_ORDER, at.random.getrandbits(256))) for _ in range(2))
            numbers = b"".join(b"\x02\x21\x00" + number.to_bytes(32, "big") for number in (r, s))
            return with_signature(at.envelope, b"\x30" + bytes([len(numbers)]) + numbers)
        case 2:
            return with_signature(at.envelope, bytes(at.random.choice((32, 64, 70))))
        case 3:
            fields = {
                **at.envelope.as_json(),
                at.random.choice(("alg", "algorithm", "typ")): at.random.choice(("none", "HS256", "")),
            }
            return written(fields)
        case _:
            fields = at.envelope.as_json()
            fields["signatures"][0][at.random.choice(("alg", "cert", "public_key"))] = "none"
            return written(fields)


def changed_envelope(at: Target) -> bytes:
    """The envelope's own fields: another type, more or fewer signatures, base64 of other alphabets, keys twice."""
    document = at.envelope.as_json()
    match at.random.randrange(6):
        case 0:
            document["payloadType"] = at.random.choice(
                ("application/json", "", document["payloadType"] + " ", document["payloadType"].upper())
            )
        case 1:
            document["signatures"] *= at.random.choice((0, 2, 3))
        case 2:
            document["signatures"].append(at.random.choice(at.envelopes).as_json()["signatures"][0])
        case 3:
            document["payload"] = at.random.choice(
                (document["payload"].rstrip("="), document["payload"] + "\n", document["payload"][:-4])
            )
        case 4:
            text = json.dumps(document)
            name, value = at.random.choice((("payload", document["payload"]), ("payloadType", "x"), ("signatures", [])))
            return f"{text[:-1]}, {json.dumps(name)}: {json.dumps(value)}}}".encode()
        case _:
            return json.dumps(document).encode() + at.random.choice(
                (b"{}", b"x", b"\0", b", {}", at.envelope.as_bytes())
            )
    if document == at.envelope.as_json():
        document["payload"] += "===="
    return written(document)


def duplicate_keys(at: Target) -> bytes:
    """A second value for a key of the payload, before or after the first."""
    payload = at.envelope.payload
    name = at.random.choice((b"verdict", b"predicate", b"report", b"expiresAt", b"clusterArmId"))
    start = at.random.choice([offset for offset in range(len(payload)) if payload[offset : offset + 1] == b"{"]) + 1
    again = b'"' + name + b'":"Pass",' * at.random.randint(1, 2)
    return with_payload(at.envelope, payload[:start] + again + payload[start:])


def other_writing(at: Target) -> bytes:
    """The same statement in other bytes: spaces, escapes, another order of keys, another encoding."""
    statement = json.loads(at.envelope.payload)
    payload: bytes = at.random.choice(
        (
            json.dumps(statement).encode(),
            json.dumps(statement, indent=at.random.randint(0, 8)).encode(),
            b"\xef\xbb\xbf" + at.envelope.payload,
            at.envelope.payload.decode().encode(at.random.choice(("utf-16", "utf-16-le", "utf-32"))),
            at.envelope.payload + at.random.choice((b" ", b"\n", b"\0")),
            at.envelope.payload.replace(b"s", b"\\u0073", at.random.randint(1, 5)),
        )
    )
    return with_payload(at.envelope, payload)


TAMPERERS: tuple[Tampering, ...] = (
    file_bytes,
    payload_bytes,
    signature_bytes,
    keyid_characters,
    truncated,
    swapped_parts,
    spliced_files,
    edited_fields,
    what_a_liar_wants,
    another_key,
    confused_algorithm,
    changed_envelope,
    duplicate_keys,
    other_writing,
)
