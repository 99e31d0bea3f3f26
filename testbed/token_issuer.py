"""The token endpoint of Azure Container Registry, in front of a registry that verifies its tokens.

As documented: GET with Basic (https://azure.github.io/acr/Token-BasicAuth.html), POST with a refresh token
(https://azure.github.io/acr/AAD-OAuth.html), both at /oauth2/token. Tokens are JWTs as CNCF Distribution checks them:
https://distribution.github.io/distribution/spec/auth/jwt/.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from testbed.certificates import Authority, Credential, write_private

ISSUER, SERVICE = "Azure Container Registry", "contoso.azurecr.io"


class TokenIssuer:
    """Issues tokens to a user with a password, and for a refresh token; `requests` are those that came."""

    def __init__(
        self, folder: Path, *, tls: Credential | None, refresh_token: str, user: str = "", password: str = ""
    ) -> None:
        authority = Authority("tokens")
        signer = authority.client("issuer")
        self._roots = write_private(folder / "tokens.crt", authority.certificate)
        self._certificate = x509.load_pem_x509_certificate(signer.certificate).public_bytes(Encoding.DER)
        key = load_pem_private_key(signer.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self._refresh_token = refresh_token
        self._basic = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode() if user else ""
        self.requests: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if tls is not None:
            certificate, private = tls.write(folder, "issuer")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, private)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.realm = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_address[1]}/oauth2/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def auth(self) -> dict[str, object]:
        """The section `auth` of a registry that takes these tokens."""
        token = {"realm": self.realm, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": str(self._roots)}
        return {"token": token}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def token(self, scope: str) -> str:
        """A token for `repository:NAME:ACTIONS`."""
        kind, name, actions = scope.split(":")
        now = int(time.time())
        claims = {
            "iss": ISSUER, "sub": "pusher", "aud": SERVICE,
            "exp": now + 300, "nbf": now - 60, "iat": now, "jti": str(now),
            "access": [{"type": kind, "name": name, "actions": actions.split(",")}],
        }  # fmt: skip
        header = {"typ": "JWT", "alg": "ES256", "x5c": [base64.b64encode(self._certificate).decode()]}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        numbers = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encoded(b''.join(number.to_bytes(32, 'big') for number in numbers))}"

    def answer(self, authorization: str, form: dict[str, list[str]], *, is_post: bool) -> tuple[int, dict[str, object]]:
        """Status and body for a request."""
        if is_post:
            accepted = form.get("grant_type") == ["refresh_token"] and form.get("refresh_token") == [
                self._refresh_token
            ]
        else:
            accepted = bool(self._basic) and authorization == self._basic
        if not accepted or form.get("service") != [SERVICE]:
            return 401, {
                "errors": [
                    {
                        "code": "UNAUTHORIZED",
                        "message": "authentication required, visit https://aka.ms/acr/authorization",
                    }
                ]
            }
        return 200, {"access_token": self.token(form["scope"][0])}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(parse_qs(urlsplit(self.path).query), is_post=False)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._reply(parse_qs(body), is_post=True)

            def _reply(self, form: dict[str, list[str]], *, is_post: bool) -> None:
                authorization = self.headers.get("Authorization", "")
                issuer.requests.append((self.command, authorization))
                status, document = issuer.answer(authorization, form, is_post=is_post)
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
