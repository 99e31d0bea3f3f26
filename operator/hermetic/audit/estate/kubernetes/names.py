"""Which names and addresses are inside the cluster or its private networks. Anything unknown counts as outside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from hermetic.api import ip_ranges
from hermetic.api.ip_ranges import is_address

_LABEL = ".privatelink."

_PUBLIC = """
adf.azure.com agentsvc.azure-automation.net analysis.windows.net analytics.cosmos.azure.com
api.adu.microsoft.com api.azureml.ms attest.azure.net azconfig.io azure-api.net azure-automation.net
azure-devices-provisioning.net azure-devices.net azure.com azurecr.io azuredatabricks.net azurehdinsight.net
azurehealthcareapis.com azureiotcentral.com azurestaticapps.net azuresynapse.net azurewebsites.net batch.azure.com
blob.core.windows.net cassandra.cosmos.azure.com cognitiveservices.azure.com database.windows.net
datafactory.azure.net dev.azuresynapse.net developer.azure-api.net dfs.core.windows.net dicom.azurehealthcareapis.com
digitaltwins.azure.net directline.botframework.com documents.azure.com dp.kubernetesconfiguration.azure.com
eventgrid.azure.net fhir.azurehealthcareapis.com file.core.windows.net grafana.azure.com gremlin.cosmos.azure.com
guestconfiguration.azure.com his.arc.azure.com managedhsm.azure.net mariadb.database.azure.com media.azure.net
mongo.cosmos.azure.com mongocluster.cosmos.azure.com monitor.azure.com mysql.database.azure.com notebooks.azure.net
ods.opinsights.azure.com oms.opinsights.azure.com openai.azure.com pbidedicated.windows.net
postgres.cosmos.azure.com postgres.database.azure.com prod.migration.windowsazure.com purview.azure.com
purviewstudio.azure.com queue.core.windows.net redis.azure.net redis.cache.windows.net
redisenterprise.cache.azure.net search.windows.net service.signalr.net servicebus.windows.net services.ai.azure.com
siterecovery.windowsazure.com sql.azuresynapse.net table.core.windows.net table.cosmos.azure.com
tip1.powerquery.microsoft.com token.botframework.com ts.eventgrid.azure.net vaultcore.azure.net web.core.windows.net
webpubsub.azure.com workspace.azurehealthcareapis.com wvd.microsoft.com afs.azure.net
"""
_US_GOVERNMENT = """
adx.monitor.azure.us agentsvc.azure-automation.us api.ml.azure.us azconfig.azure.us azure-automation.us
azure-devices-provisioning.us azure-devices.us azurecr.us azurehdinsight.us azurewebsites.us
batch.usgovcloudapi.net blob.core.usgovcloudapi.net cognitiveservices.azure.us database.usgovcloudapi.net
dfs.core.usgovcloudapi.net documents.azure.us file.core.usgovcloudapi.net mariadb.database.usgovcloudapi.net
monitor.azure.us mysql.database.usgovcloudapi.net notebooks.usgovcloudapi.net ods.opinsights.azure.us
oms.opinsights.azure.us openai.azure.us postgres.database.usgovcloudapi.net queue.core.usgovcloudapi.net
redis.cache.usgovcloudapi.net search.windows.us servicebus.usgovcloudapi.net servicebus.windows.us
siterecovery.windowsazure.us table.core.usgovcloudapi.net vaultcore.usgovcloudapi.net web.core.usgovcloudapi.net
wvd.azure.us
"""
_CHINA = """
adf.azure.cn afs.azure.cn api.ml.azure.cn azconfig.azure.cn azure-automation.cn azure-devices-provisioning.cn
azure-devices.cn azurecr.cn azurehdinsight.cn batch.chinacloudapi.cn blob.core.chinacloudapi.cn
cassandra.cosmos.azure.cn chinacloudsites.cn cognitiveservices.azure.cn database.chinacloudapi.cn
datafactory.azure.cn dfs.core.chinacloudapi.cn documents.azure.cn eventgrid.azure.cn file.core.chinacloudapi.cn
gremlin.cosmos.azure.cn mariadb.database.chinacloudapi.cn mongo.cosmos.azure.cn monitor.azure.cn
mysql.database.chinacloudapi.cn notebooks.chinacloudapi.cn postgres.database.chinacloudapi.cn
queue.core.chinacloudapi.cn redis.cache.chinacloudapi.cn servicebus.chinacloudapi.cn signalr.azure.cn
table.core.chinacloudapi.cn table.cosmos.azure.cn vaultcore.azure.cn web.core.chinacloudapi.cn wvd.azure.cn
"""
# privatelink.REGION.…: one more label, assigned by Azure.
_BY_REGION = """
azmk8s.io azurecontainerapps.io azurestaticapps.net backup.windowsazure.com database.windows.net kusto.windows.net
prometheus.monitor.azure.com backup.windowsazure.us cx.aks.containerservice.azure.us database.usgovcloudapi.net
cx.prod.service.azk8s.cn kusto.windows.cn
"""

_ZONES = frozenset(f"{_PUBLIC} {_US_GOVERNMENT} {_CHINA}".split())
_REGIONAL_ZONES = frozenset(_BY_REGION.split())
# Without azure.com, whose zone is the one of the resource manager alone.
INSTANCE_DOMAINS = (_ZONES | _REGIONAL_ZONES) - {"azure.com"}
"""Domains of Azure's services: below them, or below a label of a region, are instances of any tenant."""
# Names of Azure outside the private link zones: of services that have such a zone, or of their sign-in.
_BESIDE = """
login.microsoftonline.com login.microsoftonline.us login.partner.microsoftonline.cn login.chinacloudapi.cn
sts.windows.net vault.azure.net vault.usgovcloudapi.net vault.azure.cn management.azure.com
management.usgovcloudapi.net management.chinacloudapi.cn
"""
_SERVICES = (_ZONES | frozenset(_BESIDE.split())) - {"azure.com"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*$")
_AUTHORITY = re.compile(r"[^\s'\"<>,;/]+")
_MARK = "://"
# Longer than any scheme, and than any host with credentials before it. A text may be one word of a megabyte.
_BEFORE, _AFTER = 64, 2048
_MOST = 256  # no host name is longer
# Clients read letters of any script and %XX in a host, and a colon without a port (RFC 3986, 3490).
_LETTER = r"(?:[A-Za-z0-9_]|[^\x00-\x7f]|%[0-9A-Fa-f]{2})"
_HOST = re.compile(rf"(?P<host>\[[0-9A-Fa-f:.]+\]|{_LETTER}((?:{_LETTER}|[.-])*{_LETTER})?\.?)(:\d*)?(?=[/?#]|$)")
_ONE_LABEL = re.compile(r"[a-z0-9_-]+")
# Text around "host:port": of options, lists, JSON and shells.
_BETWEEN = re.compile(r"[\s'\"<>,;=(){}|]+")
# A name whose last label has letters only: "llama-3.1:8" is a model.
_NAME = re.compile(r"([A-Za-z0-9_-]+\.)+[A-Za-z]{2,18}\.?")
_VARIABLE = re.compile(r"\$[({]?(\w+)[)}]?")
_PORT_OF_A_VARIABLE = re.compile(r":\$[({]?\w+[)}]?$")
# Schemes of internet services whose name is not a host: a bucket, a repository of a model hub.
_NO_HOSTS = frozenset({"s3", "s3a", "gs", "hf", "r2", "oss", "cos", "modelscope", "ngc", "wandb", "kaggle"})
# Schemes without another machine.
_LOCAL = frozenset({"file", "unix", "unixgram", "tokenizer", "inproc", "ipc", "jdbc", "data", "urn"})


def is_of_azure(name: str) -> bool:
    """Whether a name in lower case, without the last dot, belongs to a service of Azure.

    Such a name may resolve to a private endpoint: whether it does, and whose service it is, the Azure checks decide.
    """
    labels = name.split(".")
    endings = {".".join(labels[start:]) for start in range(len(labels))}
    return bool(endings & _SERVICES) or bool(endings & _REGIONAL_ZONES)


def is_of_private_link(name: str) -> bool:
    """Whether a name in lower case, without the last dot, is one of these zones or below it.

    Anyone can register a name with "privatelink" in it: only these zones are Microsoft's own.
    """
    _, label, zone = f".{name}".rpartition(_LABEL)
    return bool(label) and (zone in _ZONES or zone.partition(".")[2] in _REGIONAL_ZONES)


_INSIDE_THE_CLUSTER = (".svc", ".svc.cluster.local", ".cluster.local", ".pod.cluster.local")
# Names that no public resolver answers for: RFC 8375, 6762, 2606, 6761, and ICANN's reservation for private use.
_PRIVATE_ZONES = (".home.arpa", ".local", ".localhost", ".internal", ".test", ".invalid")


@lru_cache(maxsize=65536)
def leads_outside(text: str) -> bool:
    """Whether an address, or the text in its place, is not known to be inside: a host name may have any address."""
    return ip_ranges.leads_outside(text) if ip_ranges.is_address(text) else bool(text)


def is_inside(host: str) -> bool:
    """Whether a host name or address can only be of the cluster, of a private zone, or of a private network.

    The addresses that the host of a machine answers are not: see `ip_ranges.HOST_ADDRESSES`.
    """
    name = host.strip().strip("[]").rstrip(".").lower()
    if ip_ranges.is_address(name):
        return ip_ranges.is_inside(name)
    # Resolvers read numbers as an address, and do not ask DNS for them: 134744072 is 8.8.8.8.
    number = ip_ranges.parse_numbers(name)
    if not name or (number is not None and ip_ranges.leads_outside(str(number))):
        return False
    # A single-label name is completed by the cluster's search list; the internet has no such names. Other characters
    # are a pattern, or become dots when a client converts the name (%E3%80%82, RFC 3490).
    if "." not in name:
        return _ONE_LABEL.fullmatch(name) is not None
    return name.endswith((*_INSIDE_THE_CLUSTER, *_PRIVATE_ZONES)) or is_of_private_link(name)


def outside(text: str) -> Iterator[str]:
    """ "https://api.example.com" for every external URL in a text.

    A variable or an argument may contain a credential, in the URL itself too: only the scheme and the host are kept.
    """
    for scheme, authority in _urls(text):
        match = _HOST.match(authority)
        if scheme in _LOCAL or match is None:
            continue
        if scheme in _NO_HOSTS or is_outside(match["host"]):
            yield f"{scheme}://{match['host']}"


def addresses_outside(text: str) -> Iterator[str]:
    """What `outside` finds, and "api.example.com:443" for every external host with a port and without a scheme."""
    yield from outside(text)
    for word in _BETWEEN.split(text) if ":" in text else ():
        host, _, port = word.partition("/")[0].rpartition("@")[2].rpartition(":")
        if not port.isdigit() or len(host) >= _MOST:  # first: most words of a script have no port
            continue
        if (is_address(host.strip("[]")) or _NAME.fullmatch(host) is not None) and is_outside(host):
            yield f"{host}:{port}"


def addresses_of_variables(text: str, pod_variables: Collection[str] = ()) -> Iterator[str]:
    """ "https://$(HOST)" for every URL whose host is made of variables and may be external.

    `pod_variables` are variables whose value is one label or a private address.
    """
    for scheme, authority in _urls(text):
        host = _VARIABLE.sub(lambda match: "x" if match[1] in pod_variables else match[0], authority)
        is_composed = scheme not in _LOCAL and _VARIABLE.search(authority)
        if is_composed and (_VARIABLE.search(host) or host_outside(host)):
            yield f"{scheme}://{authority}"


def _urls(text: str) -> Iterator[tuple[str, str]]:
    """(Scheme, host and port as written) of every URL, in linear time."""
    at = text.find(_MARK)
    while at >= 0:
        after = at + len(_MARK)
        scheme = _SCHEME.search(text[max(0, at - _BEFORE) : at])
        authority = _AUTHORITY.match(text, after, after + _AFTER)
        if scheme is not None and authority is not None:
            host = _PORT_OF_A_VARIABLE.sub("", authority[0].rpartition("@")[2])
            yield scheme[0].lower().rpartition("+")[2], host
        at = text.find(_MARK, after)


def host_outside(text: str) -> str:
    """The host of "host", "host:port" or "host/path" without a scheme, where it is external; else ""."""
    if is_address(text.strip()):  # an IPv6 address without brackets has colons of its own
        return text.strip() if is_outside(text.strip()) else ""
    match = _HOST.match(text.strip())
    return match["host"] if match is not None and is_outside(match["host"]) else ""


def is_outside(host: str) -> bool:
    """Whether a host is external. Names of Azure's services are not: they may resolve to a private endpoint."""
    bare = host.strip("[]").rstrip(".").lower()
    if is_inside(bare):
        return False
    return is_address(bare) or not is_of_azure(bare)
