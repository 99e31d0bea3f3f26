"""Addresses, networks and Secrets that an endpoint may not have."""

from __future__ import annotations

from tests.corpus.cases import BALANCER, CIDR, ENDPOINT, OBJECT_NAME, PRIVATE, REQUIRED, UNKNOWN, Invalid, case
from tests.corpus.manifests import changed, vllm_on_azure_files


def _range(what: str, network: str) -> Invalid:
    base = changed(vllm_on_azure_files(), {f"{BALANCER}.allowedSourceRanges": ["10.0.0.0/8"]})
    return case(f"source range {what}", f"{BALANCER}.allowedSourceRanges[0]", network, CIDR, rows=(39,), base=base)


def _gateway(mistake: str, field: str, value: str, says: str) -> Invalid:
    base = changed(vllm_on_azure_files(), {ENDPOINT: {"gateway": {"name": "models"}}})
    return case(f"{field} of a gateway {mistake}", f"{ENDPOINT}.gateway.{field}", value, says, base=base)


PATH = "must be '/' or a path such as '/team-a/chat'"
HOST = "must be a host name in lower case that begins with a letter, without scheme, port or '*'"
ENDPOINTS = (
    case(
        "gateway beside a load balancer",
        f"{ENDPOINT}.gateway",
        {"name": "models"},
        "must set at most one of `internalLoadBalancer` and `gateway`",
    ),
    case(
        "TLS of the pods behind a gateway",
        ENDPOINT,
        {"gateway": {"name": "models"}, "tls": {"secretName": "a"}},
        "must not be set with `gateway`: the gateway ends TLS at its listener",
        blames=f"{ENDPOINT}.tls",
    ),
    case("gateway without a name", ENDPOINT, {"gateway": {}}, **REQUIRED, blames=f"{ENDPOINT}.gateway.name"),
    case(
        "group without a weight",
        ENDPOINT,
        {"gateway": {"name": "models", "group": "chat"}},
        "must be set together with `weight`",
        blames=f"{ENDPOINT}.gateway.group",
    ),
    case(
        "weight without a group",
        ENDPOINT,
        {"gateway": {"name": "models", "weight": 10}},
        "must be set together with `weight`",
        blames=f"{ENDPOINT}.gateway.group",
    ),
    case(
        "weight above the whole",
        ENDPOINT,
        {"gateway": {"name": "models", "group": "chat", "weight": 101}},
        "must be less than or equal to 100",
        server_says="should be less than or equal to 100",
        blames=f"{ENDPOINT}.gateway.weight",
        prints="101",
    ),
    _gateway("with capitals", "name", "Models", "must be the name of a Gateway"),
    _gateway("in two parts", "namespace", "a.b", "must be a DNS label"),
    _gateway("with a port", "hostname", "models.internal:443", HOST),
    _gateway("of every name", "hostname", "*.contoso.internal", HOST),
    _gateway("that is an address", "hostname", "10.0.0.1", HOST),
    _gateway("without a '/'", "path", "chat", PATH),
    _gateway("with a '/' at the end", "path", "/team-a/", PATH),
    _gateway("that goes up", "path", "/team-a/../team-b", PATH),
    _gateway("with an escape", "path", "/team-a/%2e%2e/team-b", PATH),
    _gateway("with an empty part", "path", "//team-b", PATH),
    _gateway("with a parameter", "path", "/team-a;x", PATH),
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
