"""Why a registry refused, as an error with its cause and what to do."""

from __future__ import annotations

import json
import re

import httpx

from hermetic.api.text import cut, one_line
from hermetic.errors import RegistryRefused

_LONGEST = 300
_AZURE = re.compile(r"(?P<name>[a-z0-9]+)(?:-[a-z0-9]+)?\.azurecr\.(?:io|cn|us)")
_FIXES = {
    400: "read the registry's own message; a proxy between here and the registry can change requests",
    403: "give the account the right to push (Azure: AcrPush, or Container Registry Repository Writer with ABAC), and "
    "run this where the registry's network rules let you in",
    404: "create the repository or project that --to and --prefix name, if this registry does not create it by itself, "
    "and check that the host is a registry",
    405: "unlock the tag or the repository; the registry refuses writing to it",
    409: "unlock the tag, or remove it: the registry refuses to overwrite it",
    412: "unlock the tag, or remove it: the registry refuses to overwrite it",
    413: "raise the limit for the size of requests of the proxy before the registry to 8 MiB or more "
    "(nginx: client_max_body_size)",
    429: "wait, and run the same command again; it continues where it stopped",
    500: "look into the registry's own log: a full disk ends like this; then run the same command again",
    507: "make space in the registry's storage, and run the same command again",
}
_DIGEST_INVALID = (
    "verify the file again: other bytes arrived than were verified, because the disk or a proxy changed them"
)
_OTHER = "look into the registry's own log, and run the same command again; it continues where it stopped"


def refusal(action: str, response: httpx.Response) -> RegistryRefused:
    """The error for an answer that is none of those expected."""
    host, status = response.request.url.netloc.decode(), response.status_code
    if 300 <= status < 400:
        return RegistryRefused(
            f"{host}: {action}: is redirected to {_target(response)}, which is not followed",
            fix="name the registry's own host with --to",
        )
    own_message = _own_message(response)
    fix = _FIXES.get(status, _OTHER) if "DIGEST_INVALID" not in own_message else _DIGEST_INVALID
    return RegistryRefused(f"{host}: {action}: {status} {response.reason_phrase}{own_message}", fix=fix)


def login_refusal(host: str, origin: str, response: httpx.Response | None = None) -> RegistryRefused:
    """The error for credentials that were not accepted, or that are missing (`origin` is "")."""
    answered = (
        f": {response.status_code} {response.reason_phrase}{_own_message(response)}" if response is not None else ""
    )
    fix = "give --username NAME and the password on standard input with --password-stdin"
    if (azure := _AZURE.fullmatch(host)) is not None:
        token = f"az acr login --name {azure['name']} --expose-token --query accessToken --output tsv"
        fix = f"{token} | hermetic bundle load FILE --to {host} --password-stdin"
    if not origin:
        return RegistryRefused(f"{host}: asks for a login, and no credentials for it were found{answered}", fix=fix)
    return RegistryRefused(f"{host}: refuses the credentials of {origin}{answered}", fix=fix)


def _target(response: httpx.Response) -> str:
    location = response.headers.get("Location", "")
    try:
        return httpx.URL(location).host or "another path"
    except httpx.InvalidURL:
        return "another place"


def _own_message(response: httpx.Response) -> str:
    """The registry's own words: "errors" of the distribution specification, section "Error Codes"."""
    try:
        match json.loads(response.content):
            case {"errors": [{"code": code, "message": message, **_other_fields}, *_other_errors]}:
                return f": {cut(one_line(f'{code}: {message}'), _LONGEST)}"
    except (ValueError, httpx.ResponseNotRead):
        pass
    return ""
