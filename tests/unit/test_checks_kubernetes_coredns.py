"""Plug-ins of CoreDNS that lead elsewhere, in every file that CoreDNS or the cache of a node reads."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.kubernetes_estates import CLUSTER, findings, manifest, with_one

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
HIGH, MEDIUM = Severity.HIGH, Severity.MEDIUM
POLICY = Policy(allowedDnsServers=("10.1.0.53",))

PLUGINS: list[tuple[str, Verdict, Severity]] = [
    ("dnstap tcp://203.0.113.7:6000 full", OPEN, HIGH),
    ("dnstap tls://tap.example.com:6000", OPEN, HIGH),
    ("dnstap tcp://{$TAP}:6000", UNSEEN, HIGH),
    ("dnstap unix:///run/dnstap.sock full", FINE, HIGH),
    ("dnstap /run/dnstap.sock", FINE, HIGH),
    ("dnstap tcp://tap.monitoring.svc:6000", FINE, HIGH),
    ("trace zipkin 203.0.113.7:9411", OPEN, HIGH),
    ("trace datadog tracer.example.com", OPEN, HIGH),
    ("trace jaeger.monitoring.svc:9411", FINE, HIGH),
    ("trace", FINE, HIGH),
    ("transfer {\n to *\n}", OPEN, MEDIUM),
    ("transfer cluster.local {\n to 203.0.113.53:53\n}", OPEN, HIGH),
    ("transfer { to 10.0.0.53 }", UNSEEN, MEDIUM),
    ("secondary {\n transfer from 203.0.113.53\n}", OPEN, HIGH),
    ("secondary {\n transfer from 10.9.9.9\n}", UNSEEN, HIGH),
    ("secondary {\n transfer from 10.1.0.53\n}", FINE, HIGH),
    ("secondary {\n transfer from {$PRIMARY}\n}", UNSEEN, HIGH),
    ("etcd {\n endpoint https://etcd.example.com:2379\n}", OPEN, HIGH),
    ("etcd {\n endpoint http://10.0.0.9:2379\n}", FINE, HIGH),
    ("nomad service.nomad {\n address https://nomad.example.com\n}", OPEN, HIGH),
    ("kubernetes cluster.local {\n endpoint https://api.example.com\n}", OPEN, HIGH),
    ("kubernetes cluster.local {\n pods insecure\n}", FINE, HIGH),
    ("kubernetes cluster.local {\n kubeconfig /etc/coredns/custom/far.conf\n}", UNSEEN, MEDIUM),
    ("on startup /coredns -conf /etc/coredns/custom/evil.txt &", UNSEEN, HIGH),
    ("on shutdown {$COMMAND}", UNSEEN, HIGH),
    ("on", UNSEEN, HIGH),
    ("tls /etc/cert.pem /etc/key.pem", FINE, HIGH),
    ("tls {\n acme example.org\n}", OPEN, HIGH),
    ("tls {\n acme example.org\n ca https://acme.example.com/directory\n}", OPEN, HIGH),
    ("tls {\n acme example.org\n ca https://acme.pki.svc.cluster.local/directory\n}", FINE, HIGH),
    ("tls {\n acme example.org\n ca https://acme.corp.internal\n resolver 203.0.113.53:53\n}", OPEN, HIGH),
    ("forward . /etc/resolv.conf {\n resolver 203.0.113.53\n}", OPEN, HIGH),
    ("forward . 10.1.0.53 {\n resolver 10.9.9.9:53\n}", UNSEEN, HIGH),
    ("forward . 10.1.0.53 {\n resolver 10.1.0.53\n max_concurrent 1000\n}", FINE, HIGH),
    ("shed", FINE, HIGH),
    ("route53 example.org.:Z1", OPEN, HIGH),
    ("clouddns example.org.:project:zone", OPEN, HIGH),
    ("azure group:example.org {\n tenant t\n}", OPEN, HIGH),
    ("hosts {\n 203.0.113.7 hub.internal\n fallthrough\n}", OPEN, MEDIUM),
    ("hosts {\n 10.0.0.7 hub.internal\n fallthrough\n}", FINE, HIGH),
    ("hosts /etc/coredns/more.hosts", UNSEEN, MEDIUM),
    ("rewrite name hub.internal hub.example.com", OPEN, MEDIUM),
    ("rewrite stop name exact hub.internal hub.example.com", OPEN, MEDIUM),
    ("rewrite name suffix .internal .example.com", OPEN, MEDIUM),
    ("rewrite stop {\n name regex (.*)\\.internal {1}.example.com answer auto\n}", OPEN, MEDIUM),
    ("rewrite cname exact hub.internal hub.example.com", OPEN, MEDIUM),
    ("rewrite stop {\n name regex (.*)\\.example\\.com {1}.default.svc.cluster.local\n}", FINE, HIGH),
    ("rewrite name old.team.svc.cluster.local new.team.svc.cluster.local", FINE, HIGH),
    ("rewrite name a.internal acct.blob.core.windows.net", FINE, HIGH),
    ("rewrite type ANY HINFO", FINE, HIGH),
    ('template IN A internal {\n answer "{{ .Name }} 60 IN A 203.0.113.7"\n}', OPEN, MEDIUM),
    ('template IN A internal {\n answer "{{ .Name }} 60 IN A 10.0.0.7"\n}', FINE, HIGH),
    ("template ANY ANY internal.cloudapp.net {\n rcode NXDOMAIN\n}", FINE, HIGH),
    ("file /etc/coredns/db.example.org", UNSEEN, MEDIUM),
    ("unbound", UNSEEN, HIGH),
    ("fanout . 203.0.113.53", UNSEEN, HIGH),
    ("cache 30\nloop\nreload\nloadbalance\nautopath @kubernetes\nready\nhealth {\n lameduck 5s\n}", FINE, HIGH),
    ("prometheus :9153\nerrors\nlog . {\n class all\n}\nbind 169.254.20.10", FINE, HIGH),
    ("# dnstap tcp://203.0.113.7:6000", FINE, HIGH),
]


def findings_in(text: str, key: str, name: str = "coredns-custom") -> list[tuple[Verdict, Severity]]:
    """What is found of one file."""
    config_map = manifest(ConfigMap, name, "kube-system", data={key: text})
    dns_findings = findings("coredns-custom", with_one(config_map), policy=POLICY)
    about = CLUSTER if {finding.verdict for finding in dns_findings} == {FINE} else f"v1/ConfigMap kube-system/{name}"
    assert {finding.resource for finding in dns_findings} == {about}
    return [(finding.verdict, finding.severity) for finding in dns_findings]


@pytest.mark.parametrize(("line", "verdict", "severity"), PLUGINS)
def test_a_plug_in_is_open_where_it_leads_elsewhere(line: str, verdict: Verdict, severity: Severity) -> None:
    assert findings_in(f"example.com:53 {{\n{line}\n}}\n", "x.server") == [(verdict, severity)]
    assert findings_in(f"{line}\n", "x.override") == [(verdict, severity)]
    assert findings_in(f"(mine) {{\n{line}\n}}\n", "x.server") == [(verdict, severity)]


@pytest.mark.parametrize("line", ["forward . 203.0.113.53", "import /etc/more", "dnstap tcp://203.0.113.7:6000"])
def test_a_byte_order_mark_hides_no_plug_in(line: str) -> None:
    """CoreDNS drops it: lexer.load in coredns/caddy, caddyfile/lexer.go."""
    assert findings_in(f"\ufeff{line}\n", "x.override")[0][0] in {OPEN, UNSEEN}


@pytest.mark.parametrize("word", ["{$", "rewrite name suffix {x"])
def test_a_file_of_braces_that_never_close_is_read_to_its_end(word: str) -> None:
    """As much as a ConfigMap holds: searched anew from each brace it would take minutes."""
    file = f"forward . 203.0.113.53\n{word * (900_000 // len(word))}\n"
    assert (OPEN, HIGH) in findings_in(file, "x.override")


NODE_LOCAL = """cluster.local:53 {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    reload
    loop
    bind 169.254.20.10 10.0.0.10
    forward . %s {
        force_tcp
    }
    prometheus :9253
    health 169.254.20.10:8080
}
.:53 {
    errors
    cache 30
    forward . %s
}
"""


@pytest.mark.parametrize(
    ("cluster", "upstream", "verdict"),
    [
        ("__PILLAR__CLUSTER__DNS__", "__PILLAR__UPSTREAM__SERVERS__", FINE),
        ("10.0.0.10", "/etc/resolv.conf", FINE),
        ("10.0.0.11", "/etc/resolv.conf", UNSEEN),
        ("__PILLAR__CLUSTER__DNS__", "203.0.113.53", OPEN),
    ],
)
def test_the_cache_of_each_node_is_read_too(cluster: str, upstream: str, verdict: Verdict) -> None:
    spec = {"type": "ClusterIP", "clusterIP": "10.0.0.10", "selector": {"k8s-app": "kube-dns"}}
    dns = manifest(Service, "kube-dns", "kube-system", spec=spec)
    cache = manifest(ConfigMap, "node-local-dns", "kube-system", data={"Corefile": NODE_LOCAL % (cluster, upstream)})
    dns_findings = findings("coredns-custom", [*with_one(dns), cache], policy=POLICY)
    assert [finding.verdict for finding in dns_findings] == [verdict]


def test_a_cache_that_may_not_be_read_is_unknown() -> None:
    def names(one: Any) -> str:
        return str(one.message)

    dns_findings = findings("coredns-custom", with_one(manifest(Service, "x", "team", spec={})), forbidden=[ConfigMap])
    assert [finding.verdict for finding in dns_findings] == [UNSEEN]
    assert "list v1/configmaps" in names(dns_findings[0])
