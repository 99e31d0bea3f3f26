"""Whatever a pod says, or something in its place: no exception, and no Pass without whole answers and a control."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from hermetic.audit.checks import probe
from hermetic.audit.estate.probe.readings import ProbeTarget, Reading, reply
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from tests.probe_runs import both, estate, run, sealed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted(sealed(host_network=True))
ALLOWED = Policy(allowed_dns_servers=("10.0.0.4",))
SEALED = json.dumps(sealed(host_network=True))


def verdicts(line: str) -> set[tuple[str, Verdict]]:
    observed_estate = estate(both(line, line))
    return {
        (finding.check, finding.verdict)
        for check in probe.CHECKS
        for finding in findings_of(check, observed_estate, ALLOWED)
    }


@given(st.text(max_size=300) | st.text(max_size=300).map(lambda text: f"z{text}"))
def test_any_text_is_read_and_passes_nothing(line):
    assert {verdict for _, verdict in verdicts(line)} == {Verdict.UNKNOWN}


@given(st.integers(min_value=0, max_value=len(SEALED) - 1))
def test_an_answer_cut_anywhere_passes_nothing(length):
    assert {verdict for _, verdict in verdicts(SEALED[:length])} == {Verdict.UNKNOWN}


@settings(max_examples=300)
@given(st.sampled_from(FIELDS), JSON)
def test_a_field_that_holds_anything_else_never_raises(field, value):
    ProbeRun.read(run({**sealed(host_network=True), field: value}, host_network=True))
    verdicts(json.dumps({**sealed(host_network=True), field: value}))


@given(st.sampled_from(FIELDS))
def test_a_field_that_is_missing_never_turns_a_check_into_a_pass_that_needs_it(field):
    needed_by = {
        "targets": {"probe-internet", "wireserver", "host-plugin"},
        "dns": {"dns-recursion"},
        "known": {"dns-recursion"},
        "v6": {"node-routes", "node-v6-default-route"},
        "v6Addresses": {"node-v6-default-route"},
        "nameservers": {"node-resolv", "dns-recursion"},
        "metadata": {"imds-lb", "imds-nic-pip", "imds-identity"},
    }
    without = {name: value for name, value in sealed(host_network=True).items() if name != field}
    passed = {check for check, verdict in verdicts(json.dumps(without)) if verdict is Verdict.PASS}

    assert not passed & needed_by.get(field, set())
    if field in {"v", "run", "controls"}:
        assert not passed


@given(st.text(max_size=60) | JSON)
def test_only_the_words_of_the_probe_say_that_something_was_held(raw):
    read = reply(ProbeTarget("public", "tls", "198.51.100.1", 443), raw)

    if read.reading is not Reading.UNREADABLE:
        assert isinstance(raw, str)
        assert raw[0] in "osatpeh"
