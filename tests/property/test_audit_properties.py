"""Whatever the estate: damage, silence, order and unknown words never make it look cleaner."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.audit.model.address_ranges import networks, overlap, space, union, without
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import evaluate
from hermetic.audit.rules.nsg_rules import PROTOCOLS, RuleContext, holes, reachable_through
from testbed.azure.baseline import sealed_estate
from testbed.azure.generator import topology
from tests.audit_estates import rule
from tests.azure_collecting import policy_of
from tests.sampled_groups import LONG
from tests.sampling import Sample
from tests.shuffled_answers import shuffled
from tests.stand_in_answers import answers_of

Answers = Mapping[Question, Answer]

# ---------------------------------------------------------------- address sets


prefixes = st.builds("{}.0.0.0/{}".format, st.integers(0, 255), st.integers(1, 12)) | st.sampled_from(
    ["fd00::/8", "2000::/3", "::/0", "0.0.0.0/0", "2001:db8::/32"]
)
spaces = st.lists(prefixes, max_size=5).map(lambda texts: space(networks(texts)))


@given(spaces, spaces)
def test_a_set_is_what_is_left_and_what_was_taken(full, removed):
    left, shared = without(full, removed), overlap(full, removed)
    assert union((*left, *shared)) == full
    assert overlap(left, removed) == ()
    assert overlap(full, removed) == overlap(removed, full)


# ---------------------------------------------------------------- rules


WORDS = ("*", "Internet", "VirtualNetwork", "Storage", "Storage.WestEurope", "AzureCloud", "10.0.0.0/8", "0.0.0.0/0")
RULE_CONTEXT = RuleContext(
    space(networks(["10.0.1.0/24"])), space(networks(["10.0.0.0/16"])), network_tag_leads_out=True
)
rules = st.builds(
    lambda number, access, to, protocol, ports, source: {
        "number": number,
        "access": access,
        "to": to,
        "protocol": protocol,
        "destinationPortRange": ports,
        "sourceAddressPrefix": source,
    },
    st.integers(100, 130),
    st.sampled_from(["Allow", "Deny", "Deny", "Tomorrow"]),
    st.sampled_from((*WORDS, "20.0.0.0/8", "0.0.0.0/1", "128.0.0.0/1", "20.1.2.3")),
    st.sampled_from(["*", "Tcp", "Udp", "Icmp", "Tomorrow"]),
    st.sampled_from(["*", "443", "0-1023", "0-65535"]),
    st.sampled_from(["*", "10.0.1.0/24", "10.0.1.0/25", "10.0.9.0/24", "VirtualNetwork"]),
)
rule_lists = st.lists(rules, min_size=1, max_size=7, unique_by=lambda rule_fields: rule_fields["number"])


def let_out(chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """What gets out past a group of these rules, by protocol."""
    bodies = [
        rule(f"r{rule_fields['number']}", rule_fields["number"], rule_fields["access"], rule_fields["to"], **{
            name: rule_fields[name] for name in ("protocol", "destinationPortRange", "sourceAddressPrefix")
        })
        for rule_fields in chosen
    ]  # fmt: skip
    properties = {"securityRules": bodies, "defaultSecurityRules": [rule("all", 65500, "Deny")]}
    group = SecurityGroup.read(Body({"id": "g", "properties": properties}, ()))
    return reachable_through([holes(group.rules, RULE_CONTEXT)], RULE_CONTEXT)


def is_within(small: Mapping[str, Any], large: Mapping[str, Any]) -> bool:
    return all(without(small.get(protocol, ()), large.get(protocol, ())) == () for protocol in PROTOCOLS)


WIDER = {"to": "*", "protocol": "*", "destinationPortRange": "*", "sourceAddressPrefix": "*"}


@given(rule_lists, st.data())
def test_widening_a_deny_never_lets_more_out(chosen, data):
    denies = [number for number, rule_fields in enumerate(chosen) if rule_fields["access"] == "Deny"]
    if denies:
        index, field = data.draw(st.sampled_from(denies)), data.draw(st.sampled_from(sorted(WIDER)))
        wider = [dict(rule_fields) for rule_fields in chosen]
        wider[index][field] = WIDER[field]
        assert is_within(let_out(wider), let_out(chosen))


@given(rule_lists, rules)
def test_one_more_deny_never_lets_more_out_and_one_more_allow_never_less(chosen, rule):
    if rule["number"] not in {other["number"] for other in chosen}:
        more = let_out([*chosen, rule])
        assert is_within(more, let_out(chosen)) if rule["access"] == "Deny" else is_within(let_out(chosen), more)


@given(rule_lists, st.randoms())
def test_the_order_of_rules_in_a_list_never_matters(chosen, chance):
    mixed = list(chosen)
    chance.shuffle(mixed)
    assert let_out(mixed) == let_out(chosen)


@given(rule_lists, rule_lists)
def test_a_second_layer_never_lets_more_out(first, second):
    layers = [_layer(first), _layer(second)]
    assert is_within(reachable_through(layers, RULE_CONTEXT), reachable_through(layers[:1], RULE_CONTEXT))


def _layer(chosen: list[dict[str, Any]]) -> Any:
    bodies = [
        rule(f"r{rule_fields['number']}", rule_fields["number"], rule_fields["access"], rule_fields["to"])
        for rule_fields in chosen
    ]
    return holes(SecurityGroup.read(Body({"id": "g", "properties": {"securityRules": bodies}}, ())).rules, RULE_CONTEXT)


# ---------------------------------------------------------------- whole estates


SEEDS = st.integers(0, 60)


@cache
def seen(seed: int) -> tuple[Answers, Policy, str]:
    """Everything that is answered about one topology of the test bed."""
    stood_in = topology(seed).estate
    return answers_of(stood_in), policy_of(stood_in), stood_in.cluster


Findings = dict[tuple[str, str], Finding]
"""By check and resource."""


def judged(answers: Answers, policy: Policy, cluster: str) -> Findings:
    return _findings(Estate(cluster, ("azure",), answers), policy)


def judged_with(seed: int, changed: Answers) -> Findings:
    """The findings where some answers about a topology are others; what is read of the rest is not read anew."""
    return _findings(complete(seed).with_answers(changed), seen(seed)[1])


@cache
def complete(seed: int) -> Estate:
    answers, _, cluster = seen(seed)
    return Estate(cluster, ("azure",), answers)


@cache
def whole(seed: int) -> Findings:
    return _findings(complete(seed), seen(seed)[1])


def _findings(estate: Estate, policy: Policy) -> Findings:
    return {(finding.check, finding.resource.lower()): finding for finding in evaluate(estate, policy)}


def is_clean(finding: Finding) -> bool:
    return finding.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}


def looks_cleaner(before: Findings, after: Findings) -> list[str]:
    """Findings that were Fail or Unknown and are Pass or NotApplicable now."""
    pairs = [(before[key], finding) for key, finding in after.items() if key in before]
    return [
        f"{new.check} {new.resource}: {old.verdict} -> {new.verdict} ({new.message})"
        for old, new in pairs
        if new.verdict is Verdict.PASS and not is_clean(old)
    ]


@LONG
@given(SEEDS, st.data())
def test_an_answer_that_never_came_makes_nothing_look_cleaner(seed, data):
    answers, _, _ = seen(seed)
    lost = data.draw(
        st.sets(st.sampled_from(sorted(answers, key=lambda question: question.key)), min_size=1, max_size=3)
    )
    reason = data.draw(
        st.sampled_from(
            [unread_reason for unread_reason in UnreadReason if unread_reason is not UnreadReason.NOT_ASKED]
        )
    )
    silent = {question: Answer((), answers[question].evidence, Problem(reason, "lost")) for question in lost}
    assert looks_cleaner(whole(seed), judged_with(seed, silent)) == []


@LONG
@given(SEEDS, st.data())
def test_a_list_that_was_cut_makes_nothing_look_cleaner(seed, data):
    answers, _, _ = seen(seed)
    lists = sorted(
        (question for question in answers if question.verb == "list" and answers[question].bodies),
        key=lambda question: question.key,
    )
    question = data.draw(st.sampled_from(lists))
    remaining_bodies = answers[question].bodies[: data.draw(st.integers(0, len(answers[question].bodies)))]
    cut = Answer(remaining_bodies, answers[question].evidence, Problem(UnreadReason.TRUNCATED, "cut"))
    assert looks_cleaner(whole(seed), judged_with(seed, {question: cut})) == []


ODD = (7, "tomorrow", {"id": 3}, [3], [[]])


@given(SEEDS, st.integers(0, 2**32 - 1).map(random.Random), st.sampled_from(ODD))
def test_a_field_of_the_wrong_type_makes_nothing_look_cleaner(seed, chance, wrong_value):
    answers, _, _ = seen(seed)
    question = chance.choice(
        sorted((question for question in answers if answers[question].bodies), key=lambda question: question.key)
    )
    bodies = answers[question].bodies
    number = chance.randrange(len(bodies))
    path = chance.choice(list(_fields(bodies[number].value)))
    after = judged_with(seed, {question: _damaged(answers[question], number, path, wrong_value)})
    assert looks_cleaner(whole(seed), after) == []


FIELDS = 40  # outside CI, of hundreds


@pytest.mark.parametrize(("seed", "named"), [(51, ""), (1, "id")], ids=["every field", "every id"])
def test_no_field_of_the_wrong_type_makes_anything_look_cleaner(seed: int, named: str, sample: Sample) -> None:
    """Each field that is answered about an estate in turn; of bodies of the same form, the first that has it."""
    answers, _, _ = seen(seed)
    fields: dict[tuple[Any, ...], tuple[Question, int, tuple[Any, ...]]] = {}
    for question in sorted(answers, key=lambda question: question.key):
        for number, body in enumerate(answers[question].bodies):
            for path in _fields(body.value):
                shape = (question.kind, question.verb, *("" if isinstance(step, int) else step for step in path))
                fields.setdefault(shape, (question, number, path))
    chosen = [field_path for field_path in fields.values() if named in ("", field_path[2][-1])]
    cleaner = []
    for position, (question, number, path) in sample.of("fields", list(enumerate(chosen)), FIELDS):
        for odd_value in _odd(answers[question].bodies[number].value, path, position):
            after = judged_with(seed, {question: _damaged(answers[question], number, path, odd_value)})
            cleaner += [
                f"{question.kind} {path}: {odd_value} {cleaner_finding}"
                for cleaner_finding in looks_cleaner(whole(seed), after)
            ]
    assert cleaner == []


def _odd(value: Any, path: tuple[Any, ...], turn: int) -> Iterator[Any]:
    """One of the odd values by turns, and for an object one that has none of its fields."""
    yield ODD[turn % len(ODD)]
    for step in path:
        value = value[step]
    if isinstance(value, dict):
        yield {"tomorrow": 1}


def _damaged(answer: Answer, number: int, path: tuple[Any, ...], wrong_value: Any) -> Answer:
    """With the field of one body replaced."""
    bodies = list(answer.bodies)
    value = copy.deepcopy(dict(bodies[number].value))
    _put(value, path, wrong_value)
    bodies[number] = Body(value, bodies[number].evidence)
    return Answer(tuple(bodies), answer.evidence, answer.problem)


def _fields(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*above, step)
        yield from _fields(inner, (*above, step))


def _put(value: Any, path: tuple[Any, ...], wrong_value: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = wrong_value


@LONG
@given(SEEDS, st.integers(0, 2**32 - 1).map(random.Random))
def test_the_order_of_answers_and_lists_never_matters(seed, chance):
    answers, policy, cluster = seen(seed)
    questions = list(answers)
    chance.shuffle(questions)
    mixed = {question: shuffled(answers[question], chance) for question in questions}
    after = judged(mixed, policy, cluster)
    assert {key: _said(finding) for key, finding in after.items()} == {
        key: _said(finding) for key, finding in whole(seed).items()
    }


def _said(finding: Finding) -> tuple[Any, ...]:
    return (finding.verdict, finding.severity, finding.reason, finding.message, sorted(finding.path_texts))


# ---------------------------------------------------------------- methods


POINTERS = ("natGateway", "serviceGateway", "publicIPAddress", "publicIPAddressConfiguration", "outboundRules")


@given(SEEDS, st.sampled_from(POINTERS))
def test_removing_a_method_never_removes_a_pass(seed, pointer):
    answers, policy, cluster = seen(seed)
    fewer = {
        question: Answer(
            tuple(Body(_without(body.value, pointer), body.evidence) for body in answer.bodies),
            answer.evidence,
            answer.problem,
        )
        for question, answer in answers.items()
    }
    after = judged(fewer, policy, cluster)
    lost = [key for key, old in whole(seed).items() if old.verdict is Verdict.PASS and key in after]
    assert [key for key in lost if not is_clean(after[key])] == []


def _without(value: Any, field: str) -> Any:
    """Without the field, or with an empty list of it: Azure answers a list even where nothing is in it."""
    if isinstance(value, Mapping):
        other_fields = {key: inner for key, inner in value.items() if key != field or isinstance(inner, list)}
        return {key: [] if key == field else _without(inner, field) for key, inner in other_fields.items()}
    return [_without(item, field) for item in value] if isinstance(value, list) else value


# ---------------------------------------------------------------- unknown words


UNKNOWN_WORDS = [
    # kind of what is read, field whose every occurrence becomes a word of tomorrow, check that reads it
    ("Microsoft.Network/routeTables", "nextHopType", "route-default-appliance"),
    ("Microsoft.Network/networkSecurityGroups", "access", "nsg-internet-deny"),
    ("Microsoft.Network/networkSecurityGroups", "direction", "nsg-internet-deny"),
    ("Microsoft.Network/networkSecurityGroups", "protocol", "nsg-internet-deny"),
    ("Microsoft.Network/networkInterfaces", "nextHopType", "effective-routes"),
    ("Microsoft.Network/networkWatchers", "nextHopType", "nexthop-spotcheck"),
    ("Microsoft.Network/networkInterfaces", "access", "nsg-effective"),
    ("Microsoft.Network/loadBalancers", "name of sku", "lb-basic-sku"),
    ("Microsoft.ContainerService/managedClusters", "backendPoolType", "lb-ip-based-pool"),
    ("Microsoft.ContainerService/managedClusters", "ipFamilies", "cluster-dual-stack"),
    ("Microsoft.ContainerService/managedClusters", "networkPolicy", "nsg-v6"),
    ("Microsoft.Network/virtualNetworks/subnets", "privateEndpointNetworkPolicies", "nsg-pe-bypass"),
]


@pytest.mark.parametrize(("kind", "field", "check"), UNKNOWN_WORDS)
def test_an_unknown_word_never_passes(kind, field, check):
    stood_in = sealed_estate()
    answers, policy = answers_of(stood_in), policy_of(stood_in)
    before = judged(answers, policy, stood_in.cluster)
    changed = {
        question: _unknown(answer, field) if question.kind == kind else answer for question, answer in answers.items()
    }
    after = judged(changed, policy, stood_in.cluster)
    passed = {key for key, finding in before.items() if key[0] == check and finding.verdict is Verdict.PASS}
    assert passed
    assert {key for key in passed if key in after and after[key].verdict is Verdict.PASS} < passed
    assert any(not is_clean(finding) for key, finding in after.items() if key[0] == check)


def _unknown(answer: Answer, field: str) -> Answer:
    bodies = tuple(Body(_replaced(body.value, field), body.evidence) for body in answer.bodies)
    return Answer(bodies, answer.evidence, answer.problem)


def _replaced(value: Any, field: str) -> Any:
    if field == "name of sku":
        return {**value, "sku": {**value.get("sku", {}), "name": "Tomorrow"}}
    if isinstance(value, Mapping):
        return {key: _tomorrow(inner) if key == field else _replaced(inner, field) for key, inner in value.items()}
    return [_replaced(item, field) for item in value] if isinstance(value, list) else value


def _tomorrow(value: Any) -> Any:
    return ["Tomorrow"] if isinstance(value, list) else "Tomorrow"
