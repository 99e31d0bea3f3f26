"""Addresses, networks and Secrets that an endpoint may not have."""

from __future__ import annotations

from tests.corpus.cases import BALANCER, CIDR, ENDPOINT, OBJECT_NAME, PRIVATE, REQUIRED, UNKNOWN, Invalid, case
from tests.corpus.manifests import changed, vllm_on_azure_files


def _range(what: str, network: str) -> Invalid:
    base = changed(vllm_on_azure_files(), {f"{BALANCER}.allowedSourceRanges": ["10.0.0.0/8"]})
    return case(f"source range {what}", f"{BALANCER}.allowedSourceRanges[0]", network, CIDR, rows=(39,), base=base)


ENDPOINTS = (
    case(
        "Secret of another namespace",
        f"{ENDPOINT}.tls",
        {"secretName": "other/tls"},
        OBJECT_NAME,
        blames=f"{ENDPOINT}.tls.secretName",
        prints="other/tls",
        rows=(21,),
    ),
    case(
        "Secret with dots",
        f"{ENDPOINT}.tls",
        {"secretName": "a..b"},
        OBJECT_NAME,
        blames=f"{ENDPOINT}.tls.secretName",
        prints="a..b",
        rows=(21,),
    ),
    case(
        "namespace of a Secret",
        f"{ENDPOINT}.tls",
        {"secretName": "a", "namespace": "b"},
        **UNKNOWN,
        blames=f"{ENDPOINT}.tls.namespace",
        rows=(21,),
    ),
    case(
        "key of a Secret upwards",
        f"{ENDPOINT}.apiKey",
        {"secretName": "a", "key": "../x"},
        "must be a key of a Secret",
        blames=f"{ENDPOINT}.apiKey.key",
        prints="../x",
        rows=(21,),
    ),
    case("Secret without a name", f"{ENDPOINT}.apiKey", {}, **REQUIRED, blames=f"{ENDPOINT}.apiKey.secretName"),
    case("annotations of the Service", f"{BALANCER}.annotations", {"a": "b"}, **UNKNOWN, rows=(37,)),
    _range("of the whole internet", "0.0.0.0/0"),
    _range("of the whole IPv6 internet", "::/0"),
    _range("with host bits", "10.0.0.1/8"),
    _range("without a length", "10.0.0.0"),
    _range("with a mask", "10.0.0.0/255.0.0.0"),
    _range("with a padded length", "10.0.0.0/08"),
    _range("with a padded octet", "010.0.0.0/8"),
    _range("in words", "private"),
    _range("of mapped addresses", "::ffff:10.0.0.0/104"),
    case(
        "source range twice",
        f"{BALANCER}.allowedSourceRanges",
        ["10.0.0.0/8", "10.0.0.0/8"],
        "must not stand here twice",
        server_says="Duplicate value",
        blames=f"{BALANCER}.allowedSourceRanges[1]",
        prints="10.0.0.0/8",
        rows=(39,),
    ),
    case("public address", f"{BALANCER}.address", "8.8.8.8", PRIVATE),
    case("address just outside", f"{BALANCER}.address", "172.32.0.1", PRIVATE),
    case("IPv6 address", f"{BALANCER}.address", "fd00::1", PRIVATE),
    case("address in words", f"{BALANCER}.address", "localhost", PRIVATE),
    case(
        "subnet by id",
        f"{BALANCER}.subnet",
        "/subscriptions/x/subnets/ilb",
        "must be the name of a subnet, not its resource id",
    ),
    case(
        "client without selector",
        f"{ENDPOINT}.allowedClients",
        [{}],
        "must set `namespaceSelector`, `podSelector` or both",
        blames=f"{ENDPOINT}.allowedClients[0]",
    ),
    case(
        "label key with a space",
        f"{ENDPOINT}.allowedClients",
        [{"podSelector": {"matchLabels": {"a b": ""}}}],
        "must have label keys such as 'team'",
        blames=f"{ENDPOINT}.allowedClients[0].podSelector.matchLabels",
    ),
)
