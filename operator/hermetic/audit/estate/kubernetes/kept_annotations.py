"""What is kept of annotations: whole manifests and secrets of users can be among them.

Those that make an ingress controller call a URL have the same names with every prefix: ingress-nginx lets it be chosen
(--annotations-prefix), and HAProxy Ingress has the same annotations. Source: kubernetes/ingress-nginx,
docs/user-guide/nginx-configuration/annotations.md. `auth-signin`, `permanent-redirect` and `temporal-redirect` are
followed by the client, `upstream-vhost` and `proxy-redirect-to` change headers: none of these is a destination.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.api.public_services import CLASS
from hermetic.audit.estate.kubernetes.mesh_config import OF_A_POD, addresses_of_a_proxy

MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
"""Kubernetes reads it before spec.mountOptions: MountOptionFromSpec in pkg/volume/util/util.go."""
# Only these prefixes are kept as written.
_AS_WRITTEN = (
    "service.beta.kubernetes.io/",
    "kubernetes.azure.com/",
    CLASS,
    "service.cilium.io/",
    "io.cilium/global-service",
    "appgw.ingress.kubernetes.io/",
    MOUNT_OPTIONS,
)
CALLED = ("/auth-url", "/mirror-target")
"""The controller sends each request, or a copy of it, to this URL."""
SNIPPETS = ("-snippet", "-snippets")
"""Directives of the proxy's own configuration, such as proxy_pass."""
BACKEND = "/default-backend"
"""A Service of the same namespace."""
REQUESTED = "$host"
"""In the place of a host: that of the request."""
ANY = "$"
"""In the place of a host: one that is not known."""
OTHERS = "(others)"
"""Stands for the directives of a snippet that may lead elsewhere."""
_OF_THE_REQUEST = re.compile(r"\$\{?(host|http_host|best_http_host|server_name)\}?(:[0-9]+)?")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]+)?(?=$|[/?#]|\$(request_)?uri\b|\$\{(request_)?uri\})")
# Directives that send nothing anywhere (nginx.org/en/docs/dirindex.html, openresty/headers-more-nginx-module).
_HARMLESS = re.compile(
    r"(more_(set|clear)_(input_)?headers|add_header|add_trailer|expires|proxy_(set|hide|pass)_header"
    r"|proxy_pass_request_(headers|body)|proxy_(connect|read|send)_timeout|proxy_(request_)?buffering"
    r"|proxy_buffers?(_size|_number)?|proxy_busy_buffers_size|proxy_http_version|proxy_cookie_(path|domain|flags)"
    r"|proxy_redirect|proxy_ignore_headers|proxy_intercept_errors|client_(max_body|body_buffer|header_buffer)_size"
    r"|client_(body|header)_timeout|large_client_header_buffers|send_timeout|keepalive_(timeout|requests)|chunked_\w+"
    r"|gzip\w*|brotli\w*|etag|if|return|rewrite|break|allow|deny|satisfy|limit_(req|conn|rate|except)\w*"
    r"|default_type|charset|underscores_in_headers|sub_filter\w*|log_not_found|auth_basic|internal|location"
    r"|port_in_redirect|absolute_redirect|server_name_in_redirect|server_tokens|http2_\w+|ssl_(protocols|ciphers|session_\w+)"
    r"|grpc_(set|hide)_header|grpc_(connect|read|send)_timeout|error_page)"
)
# As nginx splits its configuration: quotes and comments count at the beginning of a word only.
_WORD = re.compile(
    r"""(?P<comment>\#[^\n]*)|(?P<end>[;{}])
    |(?P<word>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?:\$\{|[^\s;{}])(?:\$\{|[^\s;{])*)""",
    re.DOTALL | re.VERBOSE,
)
# Variables of the controller's own configuration that decide where a request goes.
_DECIDING = ("$target", "$proxy", "$balancer", "$service", "$namespace", "$best")


def kept(annotations: Mapping[Any, Any]) -> dict[str, Any]:
    """The annotations that a check reads; of a URL the host, of a snippet whether it may lead elsewhere."""
    return {str(key): _kept(str(key), value) for key, value in annotations.items() if _is_read(str(key))}


def _is_read(key: str) -> bool:
    return key.startswith(_AS_WRITTEN) or key.endswith((*CALLED, *SNIPPETS, BACKEND)) or key == OF_A_POD


def _kept(key: str, value: Any) -> Any:
    if not isinstance(value, str) or key.startswith(_AS_WRITTEN):
        return value
    if key == OF_A_POD:
        return addresses_of_a_proxy(value)
    if key.endswith(CALLED):
        return _host(value) if value.strip() else ""
    return _unread(value) if key.endswith(SNIPPETS) else value


def _host(url: str) -> str:
    scheme, mark, remainder = url.strip().partition("://")
    authority = re.split(r"[/?#]", remainder, maxsplit=1)[0]
    if not mark or "$" in scheme or not remainder:
        return ANY
    if _OF_THE_REQUEST.fullmatch(authority):
        return REQUESTED
    match = _HOST.match(remainder.rpartition("@")[2] if "@" in authority else remainder)
    return match[1] if match is not None else ANY


def _unread(snippet: str) -> str:
    """ "" where every directive is one that sends nothing anywhere."""
    return "" if all(_is_harmless(*tokens) for tokens in _statements(snippet)) else OTHERS


def _is_harmless(name: str, first: str = "", *_arguments: str) -> bool:
    if name == "access_log":
        return first == "off"
    if name == "set":
        return not first.strip("\"'").startswith(_DECIDING)
    return _HARMLESS.fullmatch(name) is not None


def _statements(snippet: str) -> Iterator[list[str]]:
    tokens: list[str] = []
    for match in _WORD.finditer(snippet):
        if match["word"]:
            tokens.append(match["word"])
        elif match["end"] and tokens:
            yield tokens
            tokens = []
    if tokens:
        yield tokens
