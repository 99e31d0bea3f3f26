"""A model behind a gateway: its route, the pods that may connect, and a sentence for each gateway that does not do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.plan.planning import exposed, plan
from hermetic.plan.snapshot import ClusterSnapshot, Exposure, GatewayFacts
from hermetic.plan.status import status
from hermetic.plan.writes import Plan
from tests.gateways import ALLOWED, GATEWAY, HTTPS_LISTENER, LISTENER, a_gateway, a_report, allowing
from tests.planning import edited, written
from tests.scenarios import Manifest, a_baked_model, a_share_model, changed
from tests.snapshots import NOW, a_snapshot, carried_out, conditions, owner_of, reporting_of, serving, spec_of

ROUTE = ("HTTPRoute", "phi")


def a_model(**gateway: Any) -> Manifest:
    return a_baked_model(endpoint={"gateway": {**GATEWAY, **gateway}})


def observed(gateway: Manifest | None, model: Manifest | None = None, **fields: Any) -> ClusterSnapshot:
    """The model's first plan, carried out, with one pod that serves."""
    model = model or a_model()
    facts = fields.pop("facts", GatewayFacts(gateway))
    snapshot = a_snapshot(owner_of(model), gateway=facts, **{"policy": allowing(ALLOWED), **fields})
    return serving(carried_out(snapshot, plan(spec_of(model), snapshot, NOW)), 1)


def served(snapshot: ClusterSnapshot, *reported: Manifest) -> ClusterSnapshot:
    """The same, once the gateway's controller has reported about the route."""
    return reporting_of(snapshot, "HTTPRoute", {"parents": list(reported or (a_report(),))})


def told(snapshot: ClusterSnapshot, model: Manifest | None = None) -> dict[str, Any]:
    spec = spec_of(model or a_model())
    return status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW)


def test_model_is_ready_once_its_private_gateway_serves_the_route() -> None:
    snapshot = observed(a_gateway())
    assert ROUTE in snapshot.children
    pending = conditions(told(snapshot))
    assert (pending["RouteServed"]["status"], pending["RouteServed"]["reason"]) == ("Unknown", "RoutePending")
    assert pending["Ready"]["reason"] == "RoutePending"

    computed = told(served(snapshot))
    assert conditions(computed)["RouteServed"]["reason"] == "RouteAccepted"
    assert conditions(computed)["EndpointPrivate"]["reason"] == "PrivateAddress"
    assert conditions(computed)["Ready"]["status"] == "True"
    assert computed["endpoint"] == {"url": "http://10.224.0.9/inference/phi/v1", "address": "10.224.0.9"}


def test_nothing_is_written_at_rest() -> None:
    snapshot = served(observed(a_gateway()))
    assert written(plan(spec_of(a_model()), snapshot, NOW)) == []


def test_route_leads_by_path_and_by_name_without_a_time_limit() -> None:
    spec = observed(a_gateway(), a_model(hostname="chat.contoso.internal", path="/inference/chat")).children[ROUTE][
        "spec"
    ]
    assert spec["hostnames"] == ["chat.contoso.internal"]
    by_path, by_name = spec["rules"]
    assert by_path["matches"] == [{"path": {"type": "PathPrefix", "value": "/inference/chat"}}]
    assert by_path["filters"][0]["urlRewrite"]["path"]["replacePrefixMatch"] == "/"
    (header,) = by_name["matches"][0]["headers"]
    assert (header["name"], header["value"]) == ("x-gateway-model-name", "meta/llama-3.1-8b-instruct")
    for rule in (by_path, by_name):
        assert rule["timeouts"] == {"request": "0s"}
        assert rule["backendRefs"] == [{"group": "", "kind": "Service", "name": "phi", "port": 8000, "weight": 1}]


def test_pods_of_the_gateway_alone_may_connect_and_the_service_is_inside_the_cluster() -> None:
    children = observed(a_gateway()).children
    assert children[("Service", "phi")]["spec"]["type"] == "ClusterIP"
    (rule,) = children[("NetworkPolicy", "phi")]["spec"]["ingress"]
    assert rule == {
        "from": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "envoy"}},
                "podSelector": {"matchLabels": {"gateway": "models"}},
            }
        ],
        "ports": [{"protocol": "TCP", "port": 8000}],
    }


def test_without_a_gateway_nobody_is_let_in_and_no_route_is_made() -> None:
    model = a_baked_model(endpoint={})
    snapshot = observed(None, model)
    assert ROUTE not in snapshot.children
    assert snapshot.children[("NetworkPolicy", "phi")]["spec"]["ingress"] == []
    assert "RouteServed" not in conditions(told(snapshot, model))


# ---------------------------------------------------------------------- wrong gateways

PROGRAMMED_FALSE = {"type": "Programmed", "status": "False", "reason": "NoResources", "message": "no quota left"}
LISTENERS_NOT_VALID = {"type": "Accepted", "status": "True", "reason": "ListenersNotValid", "message": "https"}
UNRESOLVED = {"type": "ResolvedRefs", "status": "False", "reason": "InvalidCertificateRef", "message": "no such Secret"}
UNKNOWN_KINDS = {**UNRESOLVED, "reason": "InvalidRouteKinds"}
PROGRAMMED = {"type": "Programmed", "status": "True", "reason": "Programmed"}
NOT_PROGRAMMED = {"type": "Programmed", "status": "False", "reason": "Pending", "message": "later"}
WRONG: dict[str, tuple[Manifest | None, dict[str, Any], str, str, str]] = {
    "absent": (None, {}, "Unknown", "GatewayNotFound", "Gateway 'gateways/models' does not exist"),
    "without an address": (
        a_gateway(addresses=()), {}, "Unknown", "GatewayAddressPending", "has no address yet that would show it",
    ),
    "public": (
        a_gateway(addresses=("10.0.0.4", "20.1.2.3")), {}, "False", "GatewayNotPrivate", "has the address '20.1.2.3'",
    ),
    "at a name": (
        a_gateway(addresses=("edge.example.com",)), {}, "False", "GatewayNotPrivate", "'edge.example.com', which is",
    ),
    "that asks for a public address": (
        a_gateway(requested=("20.1.2.3",)), {}, "False", "GatewayNotPrivate", "has the address '20.1.2.3'",
    ),
    "for routes of its own namespace": (
        a_gateway({**LISTENER, "allowedRoutes": {"namespaces": {"from": "Same"}}}),
        {}, "False", "NoListenerForNamespace", "takes HTTP routes of namespace 'inference' (allowedRoutes)",
    ),
    "that passes TLS through": (
        a_gateway({**LISTENER, "name": "tls", "protocol": "TLS"}), {}, "False", "NoListenerForNamespace",
        "(allowedRoutes): listener 'tls' has the protocol TLS and takes no HTTPRoute; TLS must end at a listener of",
    ),
    "for gRPC routes": (
        a_gateway({**LISTENER, "allowedRoutes": {"namespaces": {"from": "All"}, "kinds": [{"kind": "GRPCRoute"}]}}),
        {}, "False", "NoListenerForNamespace", "listener 'http' takes GRPCRoute only",
    ),
    "for routes of its own and of no namespace": (
        a_gateway(
            {**LISTENER, "allowedRoutes": {}},
            {**LISTENER, "name": "b", "allowedRoutes": {"namespaces": {"from": "None"}}},
        ),
        {}, "False", "NoListenerForNamespace",
        "listener 'http' takes routes of namespace 'gateways' only; listener 'b' takes routes of no namespace",
    ),
    "without its certificate": (
        a_gateway(HTTPS_LISTENER, reported={"https": [UNRESOLVED, NOT_PROGRAMMED]}),
        {}, "False", "ListenerNotProgrammed",
        "listener 'https' of Gateway 'gateways/models' is not in effect: ResolvedRefs False: InvalidCertificateRef: no",
    ),
    "without its certificate, beside plain HTTP": (
        a_gateway(LISTENER, HTTPS_LISTENER, reported={"https": [UNRESOLVED]}, conditions=[LISTENERS_NOT_VALID]),
        {}, "False", "ListenerNotProgrammed", "listener 'https' of Gateway 'gateways/models' is not in effect: Res",
    ),
    "whose listeners conflict": (
        a_gateway(reported={"http": [{"type": "Conflicted", "status": "True", "reason": "ProtocolConflict"}]}),
        {}, "False", "ListenerNotProgrammed", "Conflicted True: ProtocolConflict",
    ),
    "that is not in effect, so that its listener waits": (
        a_gateway(reported={"http": [NOT_PROGRAMMED]}, conditions=[PROGRAMMED_FALSE]),
        {}, "False", "GatewayNotProgrammed", "NoResources: no quota left",
    ),
    "whose listener waits": (
        a_gateway(reported={"http": [NOT_PROGRAMMED]}), {}, "False", "ListenerNotProgrammed",
        "Programmed False: Pending: later",
    ),
    "for another host": (
        a_gateway({**LISTENER, "hostname": "chat.contoso.internal"}),
        {"hostname": "models.contoso.internal"},
        "False", "NoListenerForHostname", "is for 'models.contoso.internal', but for chat.contoso.internal",
    ),
    "for host names by a pattern": (
        a_gateway({**LISTENER, "hostname": "*.contoso.internal"}),
        {}, "False", "NoListenerForHostname", "is for every host name, but for *.contoso.internal",
    ),
    "with a listener without a port": (
        a_gateway({name: value for name, value in LISTENER.items() if name != "port"}),
        {}, "False", "NoListenerForNamespace", "no listener of Gateway",
    ),
    "with a port that is no number": (
        a_gateway({**LISTENER, "port": "80"}), {}, "False", "NoListenerForNamespace", "no listener of Gateway",
    ),
    "with a name that is none": (
        a_gateway({**LISTENER, "hostname": "a.internal\n\x1b[31mb"}),
        {}, "False", "NoListenerForNamespace", "no listener of Gateway",
    ),
    "with TLS for a pattern of host names, beside plain HTTP": (
        a_gateway(LISTENER, {**HTTPS_LISTENER, "hostname": "*.contoso.internal"}),
        {}, "False", "NoListenerForHostname", "is for every host name, but for *.contoso.internal",
    ),
    "that is not in effect": (
        a_gateway(conditions=[PROGRAMMED_FALSE]), {}, "False", "GatewayNotProgrammed", "NoResources: no quota left",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_gateway_that_does_not_do_has_a_sentence(case: str) -> None:
    gateway, fields, truth, reason, sentence = WRONG[case]
    model = a_model(**fields)
    condition = conditions(told(observed(gateway, model), model))["RouteServed"]
    assert (condition["status"], condition["reason"]) == (truth, reason)
    assert sentence in condition["message"]


REPORTED = {
    "not accepted": (
        a_report(accepted=("False", "NotAllowedByListeners", "no listener allows it")),
        ("False", "RouteRefused", "reports Accepted False: NotAllowedByListeners: no listener allows it"),
    ),
    "without its backend": (
        a_report(resolved=("False", "BackendNotFound", "Service phi")),
        ("False", "RouteBackendRefused", "reports ResolvedRefs False: BackendNotFound: Service phi"),
    ),
    "not yet decided": (
        a_report(accepted=("Unknown", "Pending", "")), ("Unknown", "RoutePending", "has not reported Accepted yet"),
    ),
    "of another gateway": (
        a_report(name="another"), ("Unknown", "RoutePending", "controller of Gateway 'gateways/models' has not"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REPORTED)
def test_what_the_controller_reports_of_the_route_is_told(case: str) -> None:
    report, (truth, reason, sentence) = REPORTED[case]
    by_type = conditions(told(served(observed(a_gateway()), report)))
    assert (by_type["RouteServed"]["status"], by_type["RouteServed"]["reason"]) == (truth, reason)
    assert sentence in by_type["RouteServed"]["message"]
    assert (by_type["Ready"]["status"], by_type["Ready"]["reason"]) == ("False", reason)
    assert by_type["EndpointPrivate"]["status"] == "True"


def test_one_of_two_controllers_that_serves_the_route_is_enough() -> None:
    reports = (a_report(accepted=("False", "NoMatchingParent", "another class")), a_report())
    assert conditions(told(served(observed(a_gateway()), *reports)))["RouteServed"]["status"] == "True"


@pytest.mark.parametrize(("observed_generation", "is_noted"), [(1, True), (2, False)])
def test_report_about_an_earlier_version_of_the_route_counts_and_is_noted(
    observed_generation: int, is_noted: bool
) -> None:
    report = a_report()
    conditions_of_route = [
        {**condition, "observedGeneration": observed_generation} for condition in report["conditions"]
    ]
    snapshot = served(observed(a_gateway()), {**report, "conditions": conditions_of_route})
    route = snapshot.children[ROUTE]
    newer = {**route, "metadata": {**route["metadata"], "generation": 2}}
    served_condition = conditions(told(replace(snapshot, children={**snapshot.children, ROUTE: newer})))["RouteServed"]
    assert served_condition["status"] == "True"
    assert ("has not reported about the present version" in served_condition["message"]) == is_noted


# ---------------------------------------------------------------------- when there is a route


@pytest.mark.parametrize("gateway", [None, a_gateway(addresses=())], ids=["absent", "without an address"])
def test_no_route_is_made_before_the_gateway_is_shown_to_be_private_and_one_that_is_there_stays(
    gateway: Manifest | None,
) -> None:
    assert ROUTE not in observed(gateway).children
    snapshot = replace(served(observed(a_gateway())), gateway=GatewayFacts(gateway))
    assert plan(spec_of(a_model()), snapshot, NOW).delete == ()


@pytest.mark.parametrize(
    "facts",
    [
        GatewayFacts(a_gateway(addresses=("20.1.2.3",))),
        GatewayFacts(
            a_gateway(), exposed_by="has the Service 'envoy/edge' in front of its pods, which opens port 30000"
        ),
    ],
    ids=["address", "Service"],
)
@pytest.mark.parametrize("blocked", [False, True], ids=["spec", "blocked spec"])
def test_route_is_removed_at_once_when_the_gateway_is_not_private(facts: GatewayFacts, blocked: bool) -> None:
    snapshot = replace(served(observed(a_gateway())), gateway=facts)
    model = changed(a_model(), resources={"memory": "1Gi", "sharedMemory": "2Gi"}) if blocked else a_model()
    decided = plan(spec_of(model), snapshot, NOW)
    assert (decided.blocked is not None) is blocked
    assert [(deletion.kind.kind, deletion.urgent) for deletion in decided.delete] == [("HTTPRoute", True)]
    by_type = conditions(told(snapshot, model))
    assert by_type["EndpointPrivate"]["reason"] == by_type["RouteServed"]["reason"] == "GatewayNotPrivate"
    gone = carried_out(snapshot, decided)
    assert plan(spec_of(model), gone, NOW).delete == ()
    assert ("HTTPRoute", "absent") not in written(plan(spec_of(model), gone, NOW))
    assert "endpoint" not in told(gone, model)
    assert ("HTTPRoute", "absent") in written(
        plan(spec_of(a_model()), replace(gone, gateway=GatewayFacts(a_gateway())), NOW)
    )


def test_route_is_removed_when_the_gateway_is_no_longer_allowed_and_its_pods_are_shut_out() -> None:
    snapshot = replace(served(observed(a_gateway())), policy=allowing())
    decided = plan(spec_of(a_model()), snapshot, NOW)
    assert decided.blocked is not None
    assert [deletion.kind.kind for deletion in decided.delete] == ["HTTPRoute"]
    (change,) = decided.apply
    assert (change.manifest["kind"], change.manifest["spec"]["ingress"]) == ("NetworkPolicy", [])


ANOTHER = {**ALLOWED, "name": "another"}


def deleted(decided: Plan) -> list[tuple[str, bool]]:
    return [(deletion.kind.kind, deletion.urgent) for deletion in decided.delete]


@pytest.mark.parametrize("gateway", [None, a_gateway(addresses=())], ids=["absent", "without an address"])
def test_route_moves_to_another_gateway_only_once_that_is_shown_to_be_private(gateway: Manifest | None) -> None:
    policy = allowing(ALLOWED, ANOTHER)
    snapshot = replace(served(observed(a_gateway(), policy=policy)), gateway=GatewayFacts(gateway))
    model = a_model(name="another")
    decided = plan(spec_of(model), snapshot, NOW)
    assert ("HTTPRoute", "changed") not in written(decided)
    assert deleted(decided) == [("HTTPRoute", True)]
    private = replace(snapshot, gateway=GatewayFacts(a_gateway()))
    assert ("HTTPRoute", "changed") in written(plan(spec_of(model), private, NOW))
    assert plan(spec_of(model), private, NOW).delete == ()


@pytest.mark.parametrize(
    ("fields", "line", "spec"),
    [
        ({"path": "/"}, ALLOWED, {"path": "/"}),
        ({"hostname": "b.internal"}, {**ALLOWED, "hostnames": ["a.internal"]}, {"hostname": "b.internal"}),
        ({}, ALLOWED, {"name": "another"}),
        ({}, {**ALLOWED, "namespaces": ["team-b"]}, {"name": "another"}),
    ],
    ids=["path", "host name", "another gateway of the spec", "gateway"],
)
def test_route_of_a_blocked_spec_that_may_not_stay_as_it_is_goes(
    fields: dict[str, Any], line: Manifest, spec: dict[str, Any]
) -> None:
    lenient = allowing({**ALLOWED, "paths": ["/"]})
    snapshot = served(observed(a_gateway(), a_model(**fields), policy=lenient))
    assert ROUTE in snapshot.children
    snapshot = replace(snapshot, policy=allowing(line, ANOTHER))
    model = changed(a_model(**spec), resources={"memory": "1Gi", "sharedMemory": "2Gi"})
    decided = plan(spec_of(model), snapshot, NOW)
    assert decided.blocked is not None
    assert deleted(decided) == [("HTTPRoute", True)]


def test_route_of_a_blocked_spec_stays_while_what_it_asked_for_before_is_allowed() -> None:
    snapshot = served(observed(a_gateway()))
    decided = plan(spec_of(a_model(path="/team-b/chat")), snapshot, NOW)
    assert decided.blocked is not None
    assert decided.delete == ()


def test_route_of_a_blocked_spec_goes_with_the_field() -> None:
    snapshot = replace(served(observed(a_gateway())), gateway=GatewayFacts())
    model = changed(a_baked_model(endpoint={}), resources={"memory": "1Gi", "sharedMemory": "2Gi"})
    decided = plan(spec_of(model), snapshot, NOW)
    assert decided.blocked is not None
    assert deleted(decided) == [("HTTPRoute", True)]


def test_route_of_a_group_stays_where_a_blocked_spec_leaves_the_group() -> None:
    snapshot = edited(
        served(observed(a_gateway())),
        "HTTPRoute",
        lambda route: route["metadata"].update(name="group.chat", labels={"hermetic.dev/route-group": "chat"}),
    )
    children = {(kind, "group.chat" if kind == "HTTPRoute" else name): child
                for (kind, name), child in snapshot.children.items()}  # fmt: skip
    model = changed(a_baked_model(endpoint={}), resources={"memory": "1Gi", "sharedMemory": "2Gi"})
    left = replace(snapshot, children=children, gateway=GatewayFacts())
    assert plan(spec_of(model), left, NOW).delete == ()
    abandoned = replace(left, gateway=GatewayFacts(abandoned=("group.chat",)))
    assert deleted(plan(spec_of(model), abandoned, NOW)) == [("HTTPRoute", True)]


@pytest.mark.parametrize(
    ("facts", "policy", "goes"),
    [
        (GatewayFacts(a_gateway()), allowing(ALLOWED), False),
        (GatewayFacts(a_gateway(addresses=())), allowing(ALLOWED), False),
        (GatewayFacts(a_gateway(addresses=("20.1.2.3",))), allowing(ALLOWED), True),
        (GatewayFacts(a_gateway(), exposed_by="has the Service 'envoy/edge' in front"), allowing(ALLOWED), True),
        (GatewayFacts(a_gateway()), allowing(), True),
    ],
    ids=["private", "without an address", "public", "Service", "not allowed"],
)
def test_route_of_a_spec_that_cannot_be_read_goes_when_its_gateway_is_not_private(
    facts: GatewayFacts, policy: Configuration, goes: bool
) -> None:
    snapshot = replace(served(observed(a_gateway())), gateway=facts, policy=policy)
    assert [(deletion.kind.kind, deletion.urgent) for deletion in exposed(snapshot)] == [("HTTPRoute", True)] * goes


def test_route_goes_with_the_field_and_the_load_balancer_comes() -> None:
    snapshot = served(observed(a_gateway()))
    decided = plan(
        spec_of(a_share_model("phi", **{**a_model()["spec"], "endpoint": {"internalLoadBalancer": {}}})), snapshot, NOW
    )
    assert [deletion.kind.kind for deletion in decided.delete] == ["HTTPRoute"]
    assert {kind for kind, _ in written(decided)} == {"NetworkPolicy", "Service", "Deployment"}


def test_route_that_others_lead_elsewhere_is_corrected() -> None:
    snapshot = edited(
        served(observed(a_gateway())),
        "HTTPRoute",
        lambda route: route["spec"]["rules"][0]["backendRefs"][0].update(name="x"),
    )
    assert written(plan(spec_of(a_model()), snapshot, NOW)) == [("HTTPRoute", "drifted")]


def test_route_of_another_owner_is_not_overwritten() -> None:
    snapshot = edited(
        served(observed(a_gateway())), "HTTPRoute", lambda route: route["metadata"].pop("ownerReferences")
    )
    decided = plan(spec_of(a_model()), snapshot, NOW)
    assert decided.blocked is not None
    assert "HTTPRoute 'phi' exists and is not owned by this ModelDeployment" in decided.blocked.message


# ---------------------------------------------------------------------- what a spec may ask for

PRIVATE = GatewayFacts(a_gateway())
REFUSED: dict[str, tuple[Configuration, dict[str, Any], GatewayFacts, tuple[str, ...], str, str]] = {
    "no gateway is listed": (
        allowing(), {}, PRIVATE, (), "GatewayNotAllowed",
        "under `gateways`: - {name: models, namespace: gateways, namespaces: [inference], dataPlane:",
    ),
    "listed for another namespace": (
        allowing({**ALLOWED, "namespaces": ["team-b"]}), {}, PRIVATE, (), "GatewayNotAllowed", "'gateways/models'",
    ),
    "the one of its own namespace is not listed": (
        allowing(ALLOWED), {"namespace": None}, PRIVATE, (), "GatewayNotAllowed", "'inference/models'",
    ),
    "path of another namespace": (
        allowing(ALLOWED), {"path": "/team-b/chat"}, PRIVATE, (), "RouteNotAllowed",
        "'/team-b/chat' may not be used in namespace 'inference'; choose one below '/inference/'",
    ),
    "path of all": (allowing(ALLOWED), {"path": "/"}, PRIVATE, (), "RouteNotAllowed", "`endpoint.gateway.path` '/'"),
    "path of a namespace that begins alike": (
        allowing(ALLOWED), {"path": "/inference-b/chat"}, PRIVATE, (), "RouteNotAllowed", "'/inference-b/chat'",
    ),
    "another host name": (
        allowing({**ALLOWED, "hostnames": ["a.internal"]}), {"hostname": "b.internal"}, PRIVATE, (), "RouteNotAllowed",
        "`endpoint.gateway.hostname` 'b.internal' may not be used: the operator's configuration allows a.internal",
    ),
    "no host name": (
        allowing({**ALLOWED, "hostnames": ["a.internal"]}), {}, PRIVATE, (), "RouteNotAllowed", "hostname` must be set",
    ),
    "path of another model": (
        allowing(ALLOWED), {}, replace(PRIVATE, path_holder="inference/other"), (), "RouteConflict",
        "'/inference/phi' leads to the ModelDeployment 'inference/other', which had it first",
    ),
    "no Gateway API": (
        allowing(ALLOWED), {}, GatewayFacts(), ("gateways", "httproutes"), "GatewayApiMissing",
        "does not serve Gateway and HTTPRoute of gateway.networking.k8s.io/v1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_spec_may_not_ask_for_is_refused_with_the_line_that_would_allow_it(case: str) -> None:
    policy, fields, facts, absent, reason, sentence = REFUSED[case]
    model = a_model(**fields)
    snapshot = a_snapshot(owner_of(model), policy=policy, gateway=facts, absent=absent)
    decided = plan(spec_of(model), snapshot, NOW)
    assert decided.blocked is not None
    assert (decided.blocked.reason, decided.apply) == (reason, ())
    assert sentence in decided.blocked.message


def test_path_and_host_name_that_the_platform_allows_are_accepted() -> None:
    line = {**ALLOWED, "paths": ["/"], "hostnames": ["a.internal"]}
    model = a_model(path="/", hostname="a.internal")
    snapshot = served(observed(a_gateway(), model, policy=allowing(line)))
    assert told(snapshot, model)["endpoint"]["url"] == "http://a.internal/v1"


def test_name_of_another_model_leads_there_and_the_path_leads_here() -> None:
    facts = GatewayFacts(a_gateway(), model_name_holder="team-b/first")
    snapshot = served(observed(None, facts=facts))
    assert len(snapshot.children[ROUTE]["spec"]["rules"]) == 1
    condition = conditions(told(snapshot))["RouteServed"]
    assert condition["status"] == "True"
    assert "the header x-gateway-model-name leads to 'team-b/first'" in condition["message"]


# ---------------------------------------------------------------------- the URL

URLS = {
    "TLS before plain HTTP": ([LISTENER, HTTPS_LISTENER], {}, "https://10.224.0.9/inference/phi/v1"),
    "another port": ([{**LISTENER, "port": 8080}], {}, "http://10.224.0.9:8080/inference/phi/v1"),
    "another port of TLS": ([{**HTTPS_LISTENER, "port": 8443}], {}, "https://10.224.0.9:8443/inference/phi/v1"),
    "TLS at the port of plain HTTP": ([{**HTTPS_LISTENER, "port": 80}], {}, "https://10.224.0.9:80/inference/phi/v1"),
    "plain HTTP at the port of TLS": ([{**LISTENER, "port": 443}], {}, "http://10.224.0.9:443/inference/phi/v1"),
    "plain HTTP where TLS is for another host": (
        [{**HTTPS_LISTENER, "hostname": "a.internal"}, LISTENER],
        {"hostname": "b.internal"}, "http://b.internal/inference/phi/v1",
    ),
    "the listener's own host": (
        [{**LISTENER, "hostname": "chat.internal"}], {}, "http://chat.internal/inference/phi/v1",
    ),
    "a host of the listener's pattern": (
        [{**LISTENER, "hostname": "*.internal"}], {"hostname": "a.b.internal"}, "http://a.b.internal/inference/phi/v1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", URLS)
def test_url_is_that_of_the_listener(case: str) -> None:
    listeners, fields, url = URLS[case]
    model = a_model(**fields)
    assert told(served(observed(a_gateway(*listeners), model)), model)["endpoint"]["url"] == url


@pytest.mark.parametrize(
    ("reported", "url"),
    [
        ({"https": [UNRESOLVED]}, "https://10.224.0.9/inference/phi/v1"),
        ({"https": [UNRESOLVED], "other": []}, "https://10.224.0.9:8443/inference/phi/v1"),
        ({"https": [UNRESOLVED, PROGRAMMED], "other": []}, "https://10.224.0.9/inference/phi/v1"),
        ({"https": [UNKNOWN_KINDS], "other": []}, "https://10.224.0.9/inference/phi/v1"),
    ],
    ids=["of plain HTTP", "of a listener in effect", "that serves all the same", "with an unknown kind of routes"],
)
def test_url_never_falls_back_from_https_to_http(reported: dict[str, list[Manifest]], url: str) -> None:
    second = [{**HTTPS_LISTENER, "name": "other", "port": 8443}] if "other" in reported else []
    gateway = a_gateway(LISTENER, HTTPS_LISTENER, *second, reported=reported)
    assert told(served(observed(gateway)))["endpoint"]["url"] == url


SECTIONS = {
    "no TLS": ([LISTENER], {}, []),
    "TLS beside plain HTTP": ([LISTENER, HTTPS_LISTENER], {}, ["https"]),
    "two with TLS": ([HTTPS_LISTENER, LISTENER, {**HTTPS_LISTENER, "name": "b", "port": 8443}], {}, ["https", "b"]),
    "TLS of another host": ([LISTENER, {**HTTPS_LISTENER, "hostname": "a.internal"}], {"hostname": "b.internal"}, []),
    "TLS of a pattern": (
        [LISTENER, {**HTTPS_LISTENER, "hostname": "*.internal"}], {"hostname": "b.internal"}, ["https"],
    ),
    "TLS of a pattern, for every host": ([LISTENER, {**HTTPS_LISTENER, "hostname": "*.internal"}], {}, ["https"]),
    "TLS for other namespaces": ([LISTENER, {**HTTPS_LISTENER, "allowedRoutes": {}}], {}, []),
    "TLS that is not in effect": ([LISTENER, {**HTTPS_LISTENER, "name": "broken"}], {}, ["broken"]),
    "more than a route names": (
        [{**HTTPS_LISTENER, "name": f"l{number}", "port": 8000 + number} for number in range(40)],
        {}, [f"l{number}" for number in range(32)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SECTIONS)
def test_route_attaches_to_the_listeners_with_tls_where_there_are_any(case: str) -> None:
    listeners, fields, expected = SECTIONS[case]
    gateway = a_gateway(*listeners, reported={"broken": [UNRESOLVED]})
    assert sections(observed(gateway, a_model(**fields))) == expected


def sections(snapshot: ClusterSnapshot) -> list[str]:
    """The listeners that the live route names."""
    parents = snapshot.children[ROUTE]["spec"]["parentRefs"]
    assert {(parent["namespace"], parent["name"]) for parent in parents} == {("gateways", "models")}
    return [parent["sectionName"] for parent in parents if "sectionName" in parent]


def test_plain_http_is_not_opened_while_the_gateway_is_being_replaced() -> None:
    snapshot = served(observed(a_gateway(LISTENER, HTTPS_LISTENER)))
    assert written(plan(spec_of(a_model()), replace(snapshot, gateway=GatewayFacts(None)), NOW)) == []


def test_pattern_of_host_names_is_not_for_the_name_that_it_ends_with() -> None:
    model = a_model(hostname="internal")
    snapshot = observed(a_gateway({**LISTENER, "hostname": "*.internal"}), model)
    assert conditions(told(snapshot, model))["RouteServed"]["reason"] == "NoListenerForHostname"


def test_address_of_ipv6_stands_in_brackets() -> None:
    snapshot = served(observed(a_gateway(addresses=("fd00::9",))))
    assert told(snapshot)["endpoint"]["url"] == "http://[fd00::9]/inference/phi/v1"


# ---------------------------------------------------------------------- what is not known


@pytest.mark.parametrize("plural", ["gateways", "httproutes"])
def test_gateways_that_may_not_be_listed_leave_it_unknown(plural: str) -> None:
    by_type = conditions(told(observed(None, unseen=(plural,))))
    for kind in ("EndpointPrivate", "RouteServed"):
        assert (by_type[kind]["status"], by_type[kind]["reason"]) == ("Unknown", "PermissionLost")


def test_route_of_others_stays_an_exposure() -> None:
    exposure = Exposure("HTTPRoute", "team-b", "out", "is served by Gateway 'team-b/edge', which is not there")
    snapshot = served(observed(a_gateway(), exposures=(exposure,)))
    assert conditions(told(snapshot))["EndpointPrivate"]["reason"] == "EndpointExposed"
