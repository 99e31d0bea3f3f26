"""Types of values that several fields share: each bounded, each with a message for what it refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Network, ip_network
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_snake
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from hermetic.api.ip_ranges import PRIVATE_IPV4, is_private
from hermetic.api.quantities import parse_quantity
from hermetic.api.rules import Rule

CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
REFERENCE = (
    r"^[a-z0-9]+([.-][a-z0-9]+)*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
    r"@sha256:[a-f0-9]{64}$"
)
# Never finer than a thousandth: the API server rounds such a quantity up, and it would always differ from the spec.
QUANTITY = r"^([0-9]+m|[0-9]+(\.[0-9]{1,3})?(k|Ki|M|Mi|G|Gi|T|Ti)?)$"

_INT64 = range(-(2**63), 2**63)
_PREFIX_LENGTH = re.compile(r"/(0|[1-9][0-9]{0,2})\Z")


def matches(pattern: str, message: str) -> Rule:
    """The whole string matches an RE2 pattern (also valid in Python)."""
    compiled = re.compile(pattern)
    return Rule(
        cel=f"self.matches({_raw(pattern)})", message=message, holds=lambda text: compiled.fullmatch(text) is not None
    )


def dns_name(message: str, first: str = "[a-z0-9]") -> Rule:
    """DNS labels in lower case with '.' between them; `first` is the pattern of the first character."""
    return matches(rf"^{first}([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", message)


def _raw(pattern: str) -> str:
    return "r'" + pattern + "'"


def _is_relative_path(text: str) -> bool:
    parts = text.split("/")
    return text == text.strip() and not CONTROL_CHARACTER.search(text) and not {"", ".", ".."} & set(parts)


def _is_absolute_path(text: str) -> bool:
    return text.startswith("/") and _is_relative_path(text[1:])


def _is_private_address(text: str) -> bool:
    return ":" not in text and is_private(text)


def _is_narrow_range(text: str) -> bool:
    if not _PREFIX_LENGTH.search(text):
        return False
    try:
        network = ip_network(text)
    except ValueError:
        return False
    mapped = isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None
    return network.prefixlen > 0 and not mapped


_PATH_PARTS = "split('/').exists(part, part == '' || part == '.' || part == '..')"
_CLEAN = r"self.matches(r'^[^\x00-\x1f\x7f]*$') && self.trim() == self"

PinnedImage = Annotated[
    str,
    StringConstraints(min_length=1, max_length=512),
    matches(REFERENCE, "must be an image pinned by digest: registry/repository@sha256:<64 lower-case hex digits>"),
]


def _pem(description: str, label: str) -> Rule:
    """The PEM of something public: it has a block of this label, and nothing private."""
    begin = f"-----BEGIN {label}-----"
    return Rule(
        cel=f"self.contains('{begin}') && !self.contains('PRIVATE')",
        message=f"must be {description} ('{begin}'); no private key belongs in the cluster",
        holds=lambda pem: begin in pem and "PRIVATE" not in pem,
    )


PublicKeyPem = Annotated[str, StringConstraints(max_length=2048), _pem("a PEM public key", "PUBLIC KEY")]
CertificatePem = Annotated[str, StringConstraints(max_length=8192), _pem("a certificate in PEM", "CERTIFICATE")]
RelativePath = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1024),
    Rule(
        cel=f"{_CLEAN} && !self.{_PATH_PARTS}",
        message="must be a relative path without empty, '.' or '..' parts, control characters or outer spaces",
        holds=_is_relative_path,
    ),
]
AbsolutePath = Annotated[
    str,
    StringConstraints(min_length=2, max_length=1024),
    Rule(
        cel=f"{_CLEAN} && self.startsWith('/') && !self.substring(1).{_PATH_PARTS}",
        message="must be an absolute path without empty, '.' or '..' parts, control characters or outer spaces",
        holds=_is_absolute_path,
    ),
]
DnsLabel = Annotated[
    str,
    StringConstraints(min_length=1, max_length=63),
    matches(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit",
    ),
]
ObjectName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    dns_name("must be the name of an object in the same namespace: lower-case letters, digits, '-' and '.'"),
]
HostName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    dns_name("must be a host name or an IPv4 address in lower case, without scheme or port"),
]
PrivateAddress = Annotated[
    str,
    StringConstraints(min_length=7, max_length=15),
    Rule(
        cel="isIP(self) && ["
        + ", ".join(f"'{net}'" for net in PRIVATE_IPV4)
        + "].exists(net, cidr(net).containsIP(self))",
        message="must be a private IPv4 address (" + ", ".join(PRIVATE_IPV4) + ")",
        holds=_is_private_address,
    ),
]
SourceRange = Annotated[
    str,
    StringConstraints(min_length=1, max_length=43),
    Rule(
        cel="isCIDR(self) && cidr(self) == cidr(self).masked() && cidr(self).prefixLength() > 0",
        message="must be a CIDR without host bits, such as '10.0.0.0/8'; the whole internet ('/0') is not accepted",
        holds=_is_narrow_range,
    ),
]


def _as_text(value: Any) -> Any:
    """A JSON integer as the text of a quantity; what the API server does not accept as an integer is unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and value in _INT64 else value


def without_nulls(value: Any) -> Any:
    """The object without entries that are null: the API server takes them for absent."""
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


Quantity = Annotated[
    str,
    BeforeValidator(_as_text),
    StringConstraints(max_length=20),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": 20}),
    Rule(
        cel=f"type(self) == int ? self >= 0 : self.matches({_raw(QUANTITY)})",
        message="must be a quantity such as '16Gi', '1500Mi' or '4'",
        holds=lambda text: re.fullmatch(QUANTITY, text) is not None,
    ),
]


def at_most(most: str) -> Rule:
    """A quantity of at most this value: the API server caps larger ones, and pods would always differ from the spec."""
    number = parse_quantity(most)
    return Rule(
        cel=f"type(self) == int ? self <= {int(number)} : "
        f"(!isQuantity(self) || quantity(self).compareTo(quantity('{most}')) <= 0)",
        message=f"must be at most {most}",
        holds=lambda text: parse_quantity(text) <= number,
    )


Timestamp = Annotated[AwareDatetime, Field(strict=False)]
LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
LabelKey = Annotated[
    str,
    StringConstraints(min_length=1, max_length=316),
    matches(LABEL_KEY, "must be a label key such as 'sku' or 'example.com/sku'"),
]
LabelValue = Annotated[
    str,
    StringConstraints(max_length=63),
    matches(
        LABEL_VALUE,
        "must be letters, digits, '-', '_' or '.', starting and ending with a letter or digit, or be empty",
    ),
]
LABEL_KEYS = Rule(
    cel=f"self.all(key, key.size() <= 316 && key.matches({_raw(LABEL_KEY)}))",
    message="must have label keys such as 'team' or 'example.com/team': at most 63 letters, digits, '-', '_' or "
    "'.' after an optional DNS name and '/'",
    holds=lambda labels: all(len(key) <= 316 and re.fullmatch(LABEL_KEY, key) for key in labels),
)


def is_label(key: str, value: str) -> bool:
    """Whether Kubernetes accepts the label: 253 characters at most before the '/' of the key, 63 after it, 63 in all of
    the value (kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set).
    """
    has_form = re.fullmatch(LABEL_KEY, key) is not None and re.fullmatch(LABEL_VALUE, value) is not None
    return has_form and len(key.rpartition("/")[0]) <= 253 and len(value) <= 63


Labels = Annotated[dict[str, LabelValue], Field(max_length=16), LABEL_KEYS, BeforeValidator(without_nulls)]
Namespaces = Annotated[
    list[Annotated[str, matches(r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "must be a namespace, or '*' for every one")]],
    Field(min_length=1, max_length=256),
]

KindOfAGroup = Annotated[
    str,
    StringConstraints(max_length=320),
    matches(
        r"^[a-z0-9][-a-z0-9.]*/(\*|[A-Za-z][A-Za-z0-9]*)$",
        "must be an API group and a kind such as 'example.com/Widget', or 'example.com/*' for all of a group",
    ),
]
Repository = Annotated[
    str,
    StringConstraints(max_length=255),
    matches(
        r"^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?$",
        "must be a repository or the first parts of one, such as 'nim' or 'vllm/vllm-openai'",
    ),
]


def name_of(metadata: dict[str, Any]) -> str:
    """The name of an object, or its generateName with five characters in place of those that the API server adds."""
    name = metadata.get("name") or f"{metadata.get('generateName', '')}xxxxx"
    return name if isinstance(name, str) else ""


@dataclass(frozen=True)
class ListOf:
    """How server-side apply merges a list, and which of its items may not appear twice."""

    kind: Literal["atomic", "set", "map"]
    keys: tuple[str, ...]

    def check(self, items: list[Any]) -> list[Any]:
        """Return the items, or raise on every one that repeats an earlier one, as the API server does."""
        if self.kind == "atomic":
            return items
        identities = [tuple(getattr(item, to_snake(key)) for key in self.keys) or item for item in items]
        repeated = [index for index, identity in enumerate(identities) if identity in identities[:index]]
        if repeated:
            raise ValidationError.from_exception_data(
                "list", [_duplicate(index, _in_words(identities[index])) for index in repeated]
            )
        return items

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        described = {**handler(schema), "x-kubernetes-list-type": self.kind}
        return {**described, "x-kubernetes-list-map-keys": list(self.keys)} if self.keys else described


def list_of(kind: Literal["atomic", "set", "map"], *keys: str) -> ListOf:
    """How server-side apply merges a list: "atomic", "set", or "map" with the keys of its items."""
    return ListOf(kind, keys)


def _duplicate(index: int, shown: str) -> InitErrorDetails:
    problem = PydanticCustomError("duplicate", "must not stand here twice")
    return InitErrorDetails(type=problem, loc=(index,), input=shown)


def _in_words(identity: Any) -> str:
    return ", ".join(map(str, identity)) if isinstance(identity, tuple) else str(identity)
