"""Owners and kinds of well-known public addresses, from the pages on which the owners publish them.

A firewall blocks addresses by kind: lists of public resolvers hold all of them together. Calls at addresses of one kind
therefore show less than as many calls at addresses of several kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address, ip_network

RESOLVER, TIME_SERVER, CDN, CODE_HOST, OFFICE = "public resolver", "time server", "CDN edge", "code host", "office"


@dataclass(frozen=True, slots=True)
class AddressOwner:
    """The owner of a public prefix, and the kind of service there."""

    prefix: str
    owner: str
    kind: str

    @property
    def serves_time(self) -> bool:
        """Whether the owner publishes an NTP service there: Cloudflare, for example, has it at other addresses."""
        return self.kind == TIME_SERVER


OWNERS = (
    # developers.cloudflare.com/1.1.1.1/ip-addresses
    AddressOwner("1.1.1.0/29", "Cloudflare", RESOLVER),
    AddressOwner("1.0.0.0/29", "Cloudflare", RESOLVER),
    AddressOwner("2606:4700:4700::/48", "Cloudflare", RESOLVER),
    # developers.google.com/speed/public-dns/docs/using
    AddressOwner("8.8.8.8/32", "Google", RESOLVER),
    AddressOwner("8.8.4.4/32", "Google", RESOLVER),
    AddressOwner("2001:4860:4860::/64", "Google", RESOLVER),
    # quad9.net/service/service-addresses-and-features
    AddressOwner("9.9.9.0/24", "Quad9", RESOLVER),
    AddressOwner("149.112.112.0/24", "Quad9", RESOLVER),
    AddressOwner("2620:fe::/48", "Quad9", RESOLVER),
    # opendns.com/setupguide
    AddressOwner("208.67.220.0/22", "OpenDNS", RESOLVER),
    # cloudflare.com/ips
    AddressOwner("104.16.0.0/13", "Cloudflare", CDN),
    # api.fastly.com/public-ip-list
    AddressOwner("151.101.0.0/16", "Fastly", CDN),
    # vercel.com/docs/domains/set-up-custom-domain
    AddressOwner("76.76.21.21/32", "Vercel", CDN),
    # api.github.com/meta, `web` and `pages`
    AddressOwner("140.82.112.0/20", "GitHub", CODE_HOST),
    AddressOwner("185.199.108.0/22", "GitHub", CODE_HOST),
    AddressOwner("192.30.252.0/22", "GitHub", CODE_HOST),
    # learn.microsoft.com/microsoft-365/enterprise/urls-and-ip-address-ranges, id 1
    AddressOwner("13.107.6.152/31", "Microsoft", OFFICE),
    AddressOwner("13.107.18.10/31", "Microsoft", OFFICE),
    AddressOwner("52.96.0.0/14", "Microsoft", OFFICE),
    AddressOwner("2620:1ec:4::152/127", "Microsoft", OFFICE),
    # tf.nist.gov/tf-cgi/servers.cgi
    AddressOwner("129.6.15.0/24", "NIST", TIME_SERVER),
    AddressOwner("132.163.96.0/24", "NIST", TIME_SERVER),
)
_NETWORKS = tuple((ip_network(owner.prefix), owner) for owner in OWNERS)


def owner_of(address: str) -> AddressOwner | None:
    """The owner of a literal IP address; None for an address that is not in the table. Raises ValueError for a name."""
    parsed = ip_address(address)
    return next((owner for network, owner in _NETWORKS if parsed in network), None)
