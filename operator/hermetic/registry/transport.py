"""HTTP to one registry: requests with its credentials go to its own host, and redirects are never followed."""

from __future__ import annotations

import base64
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx

from hermetic import __version__
from hermetic.errors import InputError, RegistryRefused, Unreachable
from hermetic.registry.credentials import Credentials
from hermetic.registry.refusals import login_refusal, refusal

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # noqa: S105 - a token of RFC 9110
_PARAMETER = re.compile(rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_SCHEME = re.compile(rf"({_TOKEN})(?=[\s,]|$)(?!\s*=)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """A scheme in lower case, `bearer` or `basic`; where tokens are issued, and for which service."""

    scheme: str
    realm: str = ""
    service: str = ""


CONNECT_SECONDS, READ_SECONDS = 10.0, 120.0
ATTEMPTS = 5
LONGEST_WAIT = 60.0
"""Seconds between two attempts at most, also where the registry asks for more."""
LARGEST_ANSWER = 4 * 2**20
REPEATED = frozenset({408, 429, 500, 502, 503, 504})
"""Answers after which the same request is worth another attempt."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A registry: host with port, whether it has no TLS, and the other host that may issue tokens ("" for none)."""

    host: str
    plain_http: bool = False
    token_host: str = ""

    @property
    def url(self) -> httpx.URL:
        """Its root."""
        return httpx.URL(f"{'http' if self.plain_http else 'https'}://{self.host}")


class RegistryClient:
    """Sends requests to one registry, logs in where it asks for that, and repeats what can be repeated."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Credentials | None,
        client: httpx.Client,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint = endpoint
        self._credentials = credentials
        self._client = client
        self._pause = pause
        self._authorizations: dict[str, str] = {}

    def request(
        self,
        method: str,
        url: str,
        scope: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        attempts: int = ATTEMPTS,
    ) -> httpx.Response:
        """The answer to a request that may be repeated; `url` is a path or a Location of an earlier answer.

        Raises Unreachable where no answer comes, RegistryRefused for refused credentials. An answer of 429 or 5xx is
        returned when all attempts are used.
        """
        target = self._own(url)
        for attempt in range(1, attempts + 1):
            is_last = attempt == attempts
            try:
                response = self._logged_in(method, target, scope, {**(headers or {})}, content)
            except httpx.TransportError as error:
                if is_last or _is_untrusted(error):
                    raise _unreachable(self.endpoint.host, error) from None
                self.wait(attempt)
            else:
                if is_last or response.status_code not in REPEATED:
                    return response
                self.wait(attempt, response)
        raise AssertionError("at least one attempt is made")

    def wait(self, attempt: int, response: httpx.Response | None = None) -> None:
        """Pause after a failed attempt: as long as the answer asks for, else longer after each."""
        seconds = _retry_after(response) if response is not None else 0.0
        self._pause(min(seconds or float(2 ** (attempt - 1)), LONGEST_WAIT))

    def _own(self, url: str) -> httpx.URL:
        """The URL at this registry. A Location may be absolute, and behind a proxy have another scheme or port."""
        root = self.endpoint.url
        try:
            joined = root.join(url)
        except httpx.InvalidURL:
            raise RegistryRefused(f"{self.endpoint.host}: answers with a Location that is not a URL") from None
        if joined.host != root.host or joined.userinfo:
            raise RegistryRefused(
                f"{self.endpoint.host}: sends uploads to {joined.host}, which is not followed: the credentials are for "
                f"{self.endpoint.host}",
                fix="name the registry's own host with --to",
            )
        return joined.copy_with(scheme=root.scheme, port=root.port)

    def _logged_in(
        self, method: str, url: httpx.URL, scope: str, headers: dict[str, str], content: bytes
    ) -> httpx.Response:
        response = self._send(method, url, {**headers, **self._authorization(scope)}, content)
        if response.status_code != httpx.codes.UNAUTHORIZED:
            return response
        if (busy := self._log_in(response, scope)) is not None:
            return busy
        response = self._send(method, url, {**headers, **self._authorization(scope)}, content)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise login_refusal(self.endpoint.host, self._origin, response)
        return response

    @property
    def _origin(self) -> str:
        return self._credentials.origin if self._credentials is not None else ""

    def _authorization(self, scope: str) -> dict[str, str]:
        return {"Authorization": self._authorizations[scope]} if scope in self._authorizations else {}

    def _send(self, method: str, url: httpx.URL, headers: Mapping[str, str], content: bytes) -> httpx.Response:
        request = self._client.build_request(method, url, headers=headers, content=content)
        response = self._client.send(request, stream=True, follow_redirects=False)
        try:
            answer = bytearray()
            for piece in response.iter_bytes():
                answer += piece
                if len(answer) > LARGEST_ANSWER:
                    raise RegistryRefused(f"{self.endpoint.host}: an answer is larger than {LARGEST_ANSWER >> 20} MiB")
        finally:
            response.close()
        answered = response.headers.copy()
        answered.pop("Content-Encoding", None)
        return httpx.Response(response.status_code, headers=answered, content=bytes(answer), request=request)

    def _log_in(self, response: httpx.Response, scope: str) -> httpx.Response | None:
        """Log in as the answer asks; returns an answer where tokens are issued that is worth another attempt."""
        offered = challenges(response.headers.get_list("WWW-Authenticate"))
        bearer = next((challenge for challenge in offered if challenge.scheme == "bearer"), None)
        if bearer is not None:
            issued = self._ask_for_token(bearer, scope)
            if issued.status_code in REPEATED:
                return issued
            self._authorizations[scope] = f"Bearer {self._token_in(issued)}"
            return None
        if self._credentials is None or not any(challenge.scheme == "basic" for challenge in offered):
            raise login_refusal(self.endpoint.host, self._origin, response)
        self._authorizations[scope] = _basic(self._credentials)
        return None

    def _ask_for_token(self, challenge: Challenge, scope: str) -> httpx.Response:
        """Ask for a token: https://distribution.github.io/distribution/spec/auth/token/ and .../auth/oauth/.

        Azure takes a refresh token by the second: https://azure.github.io/acr/AAD-OAuth.html.
        """
        realm, credentials = self._realm(challenge), self._credentials
        parameters = {"service": challenge.service, "scope": scope}
        if credentials is not None and credentials.is_refresh_token:
            form = {"grant_type": "refresh_token", "client_id": "hermetic", "refresh_token": credentials.secret}
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            return self._send("POST", realm, headers, urlencode({**form, **parameters}).encode())
        headers = {"Authorization": _basic(credentials)} if credentials is not None else {}
        return self._send("GET", realm.copy_merge_params(parameters), headers, b"")

    def _token_in(self, issued: httpx.Response) -> str:
        if issued.status_code in {httpx.codes.BAD_REQUEST, httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise login_refusal(self.endpoint.host, self._origin, issued)
        if issued.status_code != httpx.codes.OK:
            raise refusal("issuing a token", issued)
        try:
            answer = issued.json()
        except ValueError:
            answer = None
        token = (answer.get("token") or answer.get("access_token")) if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise RegistryRefused(f"{self.endpoint.host}: {issued.request.url.host} answers without a token")
        return token

    def _realm(self, challenge: Challenge) -> httpx.URL:
        """Where tokens are issued: the registry itself or the host of --token-host, with TLS if the registry has it."""
        root = self.endpoint.url
        try:
            realm = httpx.URL(challenge.realm)
        except httpx.InvalidURL:
            raise RegistryRefused(f"{self.endpoint.host}: names no URL that issues tokens") from None
        if realm.host not in {root.host, self.endpoint.token_host} or realm.userinfo or not realm.host:
            raise RegistryRefused(
                f"{self.endpoint.host}: sends logins to {realm.host or 'no host'}, which gets no credentials",
                fix=f"--token-host {realm.host}, if tokens of this registry are issued there",
            )
        if realm.scheme not in {root.scheme, "https"}:
            raise RegistryRefused(f"{self.endpoint.host}: issues tokens without TLS, at {realm.host}")
        return realm


@contextmanager
def opened(
    endpoint: Endpoint, credentials: Credentials | None, authority: Path | None = None
) -> Iterator[RegistryClient]:
    """A client of the registry. `authority` is a PEM file that is trusted beside those of SSL_CERT_FILE or certifi.

    HTTPS_PROXY and NO_PROXY are used, as `skopeo` and `docker` use them. Raises InputError.
    """
    context = httpx.create_ssl_context()
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except FileNotFoundError:
            raise InputError(f"{authority}: No such file or directory", fix="name a file that exists") from None
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{authority}: {error}", fix="give certificates in PEM with --ca-file") from None
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    agent = {"User-Agent": f"hermetic/{__version__}", "Accept-Encoding": "identity"}
    with httpx.Client(headers=agent, timeout=timeout, verify=context, follow_redirects=False) as client:
        yield RegistryClient(endpoint, credentials, client)


def _basic(credentials: Credentials) -> str:
    """RFC 7617, in UTF-8."""
    return "Basic " + base64.b64encode(f"{credentials.username}:{credentials.secret}".encode()).decode()


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _is_untrusted(error: httpx.TransportError) -> bool:
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def _unreachable(host: str, error: httpx.TransportError) -> Unreachable:
    if _is_untrusted(error):
        return Unreachable(
            f"{host}: its certificate is not trusted: {error}",
            fix="--ca-file FILE with the certificate of the authority that issued it, in PEM",
        )
    if "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER_FAILURE" in str(error):
        return Unreachable(f"{host}: does not answer with TLS: {error}", fix="--plain-http, for a registry without TLS")
    return Unreachable(
        f"{host}: {type(error).__name__}: {error}".rstrip(": "),
        fix="check that the host is right and can be reached from here; then run the same command again",
    )


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
