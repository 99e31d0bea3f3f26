"""Keys that are what they should be, and everything that is not one."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hermetic.errors import KeyUnusable, SigningKeyUnusable
from hermetic.signing.keys import WEAK_POINTS, Algorithm, read_public_key, read_signing_key, trusted
from hermetic.signing.signatures import matches, must_be_well_formed, sign
from hermetic.weights.signatures import private_key
from tests.attestations import NOW, a_p256_key, an_ed25519_key, pem_of, public_pem_of

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


@pytest.mark.parametrize("key", [an_ed25519_key(), a_p256_key()], ids=["Ed25519", "P-256"])
def test_a_key_is_called_by_the_digest_of_its_der(key) -> None:
    der = key.public.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert key.public.keyid == "sha256:" + hashlib.sha256(der).hexdigest()
    assert read_public_key("again", public_pem_of(key.key)).keyid == key.public.keyid


@pytest.mark.parametrize("key", [an_ed25519_key(), a_p256_key()], ids=["Ed25519", "P-256"])
def test_the_same_message_has_the_same_signature(key) -> None:
    signatures = {sign(key, b"message") for _ in range(20)}
    assert len(signatures) == 1
    (signature,) = signatures
    must_be_well_formed(key.public.algorithm, signature)
    assert matches(key.public, b"message", signature)
    assert not matches(key.public, b"massage", signature)


def test_p256_signatures_have_their_lower_form_always() -> None:
    key = a_p256_key()
    for number in range(200):
        must_be_well_formed(Algorithm.P256, sign(key, b"%d" % number))


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048),
        ec.derive_private_key(7, ec.SECP384R1()),
        ec.derive_private_key(7, ec.SECP256K1()),
        ed448.Ed448PrivateKey.generate(),
        x25519.X25519PrivateKey.generate(),
    ],
    ids=["RSA", "P-384", "secp256k1", "Ed448", "X25519"],
)
def test_keys_of_other_algorithms_are_refused(key) -> None:
    with pytest.raises(KeyUnusable, match="another algorithm than Ed25519 or P-256"):
        read_public_key("k", public_pem_of(key))
    with pytest.raises(KeyUnusable, match="another algorithm than Ed25519 or P-256"):
        read_signing_key("k", pem_of(key))


def test_a_private_key_is_no_public_one_and_is_not_shown() -> None:
    pem = pem_of(an_ed25519_key().key)
    with pytest.raises(KeyUnusable, match="is a private key") as caught:
        read_public_key("k", pem)
    secret = pem.splitlines()[1]
    assert secret not in caught.value.message + caught.value.fix
    assert "SigningKey(sha256:" in repr(an_ed25519_key())
    assert secret not in repr(an_ed25519_key())


PEM = public_pem_of(an_ed25519_key().key)


@pytest.mark.parametrize(
    "pem",
    [
        "",
        "no key",
        PEM + PEM,
        PEM + "trailing",
        "leading" + PEM,
        PEM.replace("PUBLIC KEY", "CERTIFICATE"),
        PEM[:-30],
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\n" + "A" * 9000 + "\n-----END PUBLIC KEY-----\n",
    ],
)
def test_what_is_not_one_public_key_and_nothing_else_is_refused(pem: str) -> None:
    with pytest.raises(KeyUnusable):
        read_public_key("k", pem)


def test_an_encrypted_key_wants_its_passphrase() -> None:
    key = an_ed25519_key()
    pem = pem_of(key.key, b"secret")
    assert read_signing_key("k", pem, b"secret").public.keyid == key.public.keyid
    with pytest.raises(KeyUnusable, match="is encrypted, and no passphrase was given"):
        read_signing_key("k", pem)
    with pytest.raises(KeyUnusable, match="passphrase is wrong"):
        read_signing_key("k", pem, b"guess")
    with pytest.raises(KeyUnusable, match="is not encrypted"):
        read_signing_key("k", pem_of(key.key), b"secret")
    with pytest.raises(KeyUnusable, match="holds no private key"):
        read_signing_key("k", PEM)


def test_an_encrypted_key_for_weights_wants_its_passphrase() -> None:
    key = a_p256_key().key
    encrypted, plain = pem_of(key, b"secret").encode(), pem_of(key).encode()
    assert public_pem_of(private_key("k", encrypted, b"secret")) == public_pem_of(key)
    with pytest.raises(SigningKeyUnusable, match="is encrypted, and no passphrase was given") as refused:
        private_key("k", encrypted, None)
    assert "HERMETIC_SIGNING_PASSPHRASE" in refused.value.fix
    with pytest.raises(SigningKeyUnusable, match="passphrase is wrong"):
        private_key("k", encrypted, b"guess")
    with pytest.raises(SigningKeyUnusable, match="is not encrypted"):
        private_key("k", plain, b"secret")
    with pytest.raises(SigningKeyUnusable, match="holds no private key"):
        private_key("k", PEM.encode(), None)


def test_one_key_under_two_names_is_refused() -> None:
    public_key, other = (read_public_key(name, PEM, not_after=end) for name, end in (("a", None), ("b", NOW)))
    with pytest.raises(KeyUnusable, match="'a' and 'b' are the same key"):
        trusted([public_key, other])


def doubled(x: int, y: int) -> tuple[int, int]:
    """A point of the curve -x2 + y2 = 1 + d x2 y2, added to itself."""
    product = D * x * x * y * y % P
    return 2 * x * y * pow(1 + product, -1, P) % P, (y * y + x * x) * pow(1 - product, -1, P) % P


def x_of(y: int) -> int | None:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    if root * root % P != square:
        root = root * pow(2, (P - 1) // 4, P) % P
    return root if root * root % P == square else None


@pytest.mark.parametrize("y", sorted(WEAK_POINTS))
def test_points_of_small_order_are_no_keys(y: int) -> None:
    """Three doublings lead each of them to the neutral point: its 'signatures' depend on nothing secret."""
    x = x_of(y % P)
    assert x is not None
    point = (x, y % P)
    for _ in range(3):
        point = doubled(*point)
    assert point == (0, 1)
    for sign_of_x in (0, 1 << 255):
        raw = (y | sign_of_x).to_bytes(32, "little")
        pem = Ed25519PublicKey.from_public_bytes(raw).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        with pytest.raises(KeyUnusable, match="small order"):
            read_public_key("k", pem.decode())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize(
    "options", [["ed25519"], ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]], ids=["Ed25519", "P-256"]
)
def test_keys_are_made_as_the_page_says(options: list[str], tmp_path: Path) -> None:
    private, public = tmp_path / "platform.key", tmp_path / "platform.pub"
    run("genpkey", "-algorithm", *options, "-out", str(private))
    run("pkey", "-in", str(private), "-pubout", "-out", str(public))
    der = run("pkey", "-pubin", "-in", str(public), "-outform", "DER")
    key = read_signing_key("k", private.read_text())
    assert read_public_key("k", public.read_text()).keyid == key.public.keyid
    assert key.public.keyid == "sha256:" + hashlib.sha256(der).hexdigest()


def run(*arguments: str) -> bytes:
    return subprocess.run(["openssl", *arguments], capture_output=True, check=True, timeout=60).stdout
