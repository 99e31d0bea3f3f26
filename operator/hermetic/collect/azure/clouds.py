"""The Azure clouds: management endpoint, authority, token scope and read quota of each."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from hermetic.errors import InputError

PUBLIC = "https://management.azure.com"


@dataclass(frozen=True, slots=True)
class Cloud:
    """One cloud. `authority` is a host name, "" for azure-identity's own settings.

    `reads_per_second` is what a subscription's bucket refills: 25 in Azure; 21Vianet still documents 12,000 an hour.
    """

    endpoint: str
    authority: str
    scope: str
    reads_per_second: float = 25.0

    @property
    def host(self) -> str:
        """Scheme, host in lower case and port, for comparison."""
        return origin_of(self.endpoint)

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the endpoint is on this machine: no proxy is used for it, and plain HTTP is allowed."""
        return _is_loopback(urlsplit(self.endpoint).hostname or "")


_KNOWN = (
    Cloud(PUBLIC, "login.microsoftonline.com", f"{PUBLIC}/.default"),
    Cloud(
        "https://management.usgovcloudapi.net",
        "login.microsoftonline.us",
        "https://management.core.usgovcloudapi.net/.default",
    ),
    Cloud(
        "https://management.chinacloudapi.cn",
        "login.chinacloudapi.cn",
        "https://management.chinacloudapi.cn/.default",
        reads_per_second=12_000 / 3600,
    ),
)


def cloud_of(endpoint: str = PUBLIC) -> Cloud:
    """The cloud of a management endpoint. One that is not in the table (Azure Stack) names its own token scope.

    Raises InputError for anything but an https URL of a host: a token is sent unencrypted only on this machine.
    """
    text = endpoint.strip().rstrip("/")
    try:
        origin = origin_of(text)
    except ValueError as error:
        raise InputError(f"--arm-endpoint {endpoint!r} is not a URL: {error}") from None
    parts = urlsplit(text)
    if parts.path or parts.query or parts.fragment or parts.username or not parts.hostname:
        raise InputError(f"--arm-endpoint {endpoint!r} must be scheme and host only, such as {PUBLIC}")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname)):
        raise InputError(f"--arm-endpoint {endpoint!r} must be https: the token would travel in the clear")
    known_cloud = next((cloud for cloud in _KNOWN if cloud.host == origin), None)
    return known_cloud or Cloud(text, "", f"{text}/.default")


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL in one form. Raises ValueError for an invalid port."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    port = parts.port if parts.port is not None else {"http": 80, "https": 443}.get(scheme, 0)
    host = (parts.hostname or "").lower()
    return f"{scheme}://{host}:{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
