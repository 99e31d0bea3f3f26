"""What a registry asks for with 401: the challenges of WWW-Authenticate (RFC 9110, section 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # noqa: S105 - a token of RFC 9110
_PARAMETER = re.compile(rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_SCHEME = re.compile(rf"({_TOKEN})(?=[\s,]|$)(?!\s*=)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """A scheme in lower case, `bearer` or `basic`; where tokens are issued, and for which service."""

    scheme: str
    realm: str = ""
    service: str = ""


def challenges(headers: Sequence[str]) -> list[Challenge]:
    """The challenges in the values of the header, in their order; what cannot be read is left out."""
    return [challenge for header in headers for challenge in _of_header(header)]


def _of_header(header: str) -> list[Challenge]:
    read, at, scheme, parameters = list[Challenge](), 0, "", dict[str, str]()
    while at < len(header):
        if (pair := _PARAMETER.match(header, at)) and scheme:
            parameters[pair[1].lower()] = re.sub(r"\\(.)", r"\1", pair[2]) if pair[2] is not None else pair[3]
            at = pair.end()
        elif name := _SCHEME.match(header, at):
            if scheme:
                read.append(_challenge(scheme, parameters))
            scheme, parameters, at = name[1], {}, name.end()
        elif header[at] in ", \t":
            at += 1
        else:
            break
    return [*read, _challenge(scheme, parameters)] if scheme else read


def _challenge(scheme: str, parameters: dict[str, str]) -> Challenge:
    return Challenge(scheme.lower(), parameters.get("realm", ""), parameters.get("service", ""))
