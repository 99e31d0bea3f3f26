"""Models as tests make them: real safetensors files, keys, and folders that are damaged in one way."""

from __future__ import annotations

import ctypes
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID
from safetensors import TensorSpec, serialize_file

KIB = 2**10


def a_shard(path: Path, tensors: int = 4, size: int = 64 * KIB, seed: int = 0) -> dict[str, int]:
    """One safetensors file of tensors of `size` bytes each; returns their names and sizes."""
    content = random.Random(seed)
    names = {f"model.layers.{seed}.{number}.weight": size for number in range(tensors)}
    buffers = {name: ctypes.create_string_buffer(content.randbytes(size), size) for name in names}
    tensor_of = {name: _tensor(buffers[name], size) for name in names}
    serialize_file(tensor_of, str(path), {"format": "pt"})
    return names


def _tensor(content: ctypes.Array[ctypes.c_char], size: int) -> TensorSpec:
    return TensorSpec(dtype="uint8", shape=[size], data_ptr=ctypes.addressof(content), data_len=size)


def a_model(folder: Path, shards: int = 3, size: int = 64 * KIB) -> Path:
    """A folder as it comes from a hub: shards with their index, configuration, tokenizer, and an empty file."""
    folder.mkdir(parents=True)
    names = [f"model-{number + 1:05d}-of-{shards:05d}.safetensors" for number in range(shards)]
    tensors = {name: a_shard(folder / name, size=size, seed=number) for number, name in enumerate(names)}
    weight_map = {tensor: name for name, tensor_sizes in tensors.items() for tensor in tensor_sizes}
    total = sum(sum(tensor_sizes.values()) for tensor_sizes in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    (folder / "tokenizer.json").write_text('{"model": {"vocab": {"ä": 0}}}')
    (folder / "extra").mkdir()
    (folder / "extra" / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "extra" / "empty.txt").write_text("")
    return folder


def keys(folder: Path, name: str = "platform", curve: ec.EllipticCurve | None = None) -> tuple[Path, Path]:
    """Files of a private key and its public half."""
    key = ec.generate_private_key(curve or ec.SECP256R1())
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(pem_of(key))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def a_certificate(
    folder: Path, *, days: tuple[int, int] = (-1, 30), signs: bool = True, authority: bool = True
) -> tuple[Path, Path, Path]:
    """Files of a key, its certificate, and the root that issued it; `days` from now, begin and end of the validity."""
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    root = _issued("root", root_key, "root", (now - timedelta(900), now + timedelta(900)))
    root = root.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    leaf = _issued("signer", key, "root", (now + timedelta(days[0]), now + timedelta(days[1])))
    leaf = leaf.add_extension(_usage(signs), critical=True)
    files = folder / "signer.pem", folder / "signer.crt", folder / "root.crt"
    files[0].write_bytes(pem_of(key))
    files[1].write_bytes(leaf.sign(root_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    files[2].write_bytes(root.sign(root_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    return files


def _issued(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: str, valid: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    def named(common_name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])

    builder = x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issuer))
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(valid[0]).not_valid_after(valid[1])


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs, content_commitment=False, key_encipherment=not signs, data_encipherment=False,
        key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and its content; of a link, where it leads."""
    content_of = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            content_of[str(path.relative_to(folder))] = str(path.readlink()).encode()
        elif path.is_file():
            content_of[str(path.relative_to(folder))] = path.read_bytes()
    return content_of


Damage = Callable[[Path], object]
