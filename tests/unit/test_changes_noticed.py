"""The tables "What changes, what notices it, how soon": no cell is empty, and existing tests verify each row."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HEADING = "## What changes, what notices it, how soon"
COLUMNS = ("what changes", "what notices it", "how soon", "verdict")
AUDIT, CLOCKS = "tests/controlplane/test_egress_audit.py", "tests/controlplane/test_clocks.py"
NEW, AGAIN = "tests/controlplane/test_new_evidence_needed.py", "tests/controlplane/test_closed_gate_recreated.py"
BINDING, DOUBTS = "tests/controlplane/test_binding_gate.py", "tests/controller/test_probe_doubts.py"
AUDITOR, PLACES = "tests/controller/test_auditor.py", "tests/controller/test_probe_places.py"
ROUNDS, FAILS = "tests/controller/test_probe_scheduler.py", "tests/unit/test_newer_fails.py"
PROBED = (
    f"{AUDIT}::test_a_probe_that_meets_an_open_machine_closes_and_a_later_round_opens",
    f"{ROUNDS}::test_a_leak_closes_at_the_end_of_its_round_and_opens_after_a_good_one",
)
AUDITED = (
    f"{AUDIT}::test_an_attestation_that_found_an_egress_path_closes_and_the_next_one_opens",
    f"{AUDIT}::test_evidence_that_expires_while_a_model_runs_is_announced_and_then_closes",
)

VERIFIED: dict[str, dict[str, tuple[str, ...]]] = {
    "docs/audit.md": {
        "an object of the cluster opens a path (a Service, a policy, a workload)": (
            f"{AUDIT}::test_a_foreign_public_load_balancer_closes_within_seconds_and_ends_no_pod",
            "tests/controlplane/test_audit_kube.py::test_a_planted_egress_path_is_found_and_gone_with_its_object",
        ),
        "a namespace with pods is deleted": (
            f"{AGAIN}::test_controller_without_pods_in_a_terminating_namespace_is_no_egress_path",
            "tests/unit/test_checks_terminating_namespaces.py::"
            "test_pod_in_a_terminating_namespace_without_a_policy_still_fails",
        ),
        "a node joins, and its policy agent is not ready yet (a GPU node; any node where none has a GPU)": (
            "tests/unit/test_checks_kubernetes_engine.py::test_every_gpu_node_needs_a_ready_agent",
            "tests/unit/test_checks_kubernetes_engine.py::test_without_any_gpu_every_node_needs_the_agent",
        ),
        "the operator loses a right to list a kind": (f"{AUDIT}::test_a_right_that_is_lost_is_unknown_and_named",),
        "a node is added to an attested pool": (
            f"{NEW}::test_an_attested_pool_that_grows_stays_a_pass",
            f"{ROUNDS}::test_a_leak_closes_at_the_end_of_its_round_and_opens_after_a_good_one",
        ),
        "an attested pool or subnet has its first ready node": (
            f"{PLACES}::test_new_place_is_unknown_at_once_and_stays_so_while_its_probe_never_answers",
        ),
        "a new pool has its first ready node": (
            f"{NEW}::test_a_ready_node_that_no_audit_covered_closes_also_after_a_restart",
            f"{NEW}::test_a_new_pool_counts_once_an_attestation_lists_it",
        ),
        "a node is in a new subnet": (f"{NEW}::test_a_ready_node_that_no_audit_covered_closes_also_after_a_restart",),
        "outbound type of the cluster, or public addresses of the nodes of a pool": (*PROBED, *AUDITED),
        "NSG or route table": (*PROBED, *AUDITED),
        "a rule of the declared firewall": (*PROBED, *AUDITED),
        "a private endpoint is added or approved": AUDITED,
        "node image of a pool": (
            "tests/unit/test_attested_nodes.py::test_another_node_image_is_told_and_keeps_the_pass",
        ),
        "a node is reimaged, or created again under its name": (
            f"{AGAIN}::test_node_that_is_created_again_under_its_name_is_probed_anew",
            f"{AGAIN}::test_node_that_is_reimaged_in_place_is_probed_anew",
        ),
        "packets of the probe are lost once, or the metadata service answers 429 once": (
            f"{PLACES}::test_one_doubtful_round_closes_nothing_and_is_repeated_at_once",
        ),
        "a pool or subnet stays silent": (
            f"{DOUBTS}::test_a_place_that_stays_doubtful_closes_and_different_places_do_not",
            f"{DOUBTS}::test_a_good_round_stops_counting_when_it_is_two_intervals_old",
            f"{DOUBTS}::test_a_pool_that_stays_silent_closes_each_time",
        ),
        "what the probe is to call (`probe.targets`)": (
            "tests/controller/test_gate_confirmed.py::test_targets_that_were_never_called_are_no_pass",
        ),
        "an exception's last day is over": (
            "tests/controller/test_auditor_rest.py::test_an_exception_ends_with_its_last_day_although_nothing_happens",
        ),
        "the operator ends and no other starts": (
            f"{BINDING}::test_evidence_that_ends_while_no_operator_runs_leaves_the_waiting_pod_without_a_node",
            "tests/unit/test_plan_pod_gate.py::test_pods_are_let_in_until_the_first_of_the_ends",
            "tests/controlplane/test_pod_gate.py::test_evidence_that_ends_while_no_operator_runs_lets_no_pod_in",
        ),
        "the operator ends while it closes the gate, and no other starts": (
            f"{BINDING}::test_operator_killed_between_the_two_writes_leaves_a_lease_that_gives_no_node",
        ),
        "the operator's clock is behind, or jumps back": (
            f"{CLOCKS}::test_clock_that_jumps_back_while_evidence_counts_admits_no_pod_until_it_is_right",
            f"{CLOCKS}::test_clock_that_is_behind_by_less_than_is_allowed_changes_nothing",
            f"{CLOCKS}::test_operator_that_starts_with_a_clock_that_is_behind_admits_no_pod",
        ),
        "the operator's clock is ahead, or jumps ahead": (
            f"{CLOCKS}::test_clock_that_is_ahead_ends_evidence_early_and_leaves_no_moment_after_its_end",
        ),
    },
    "docs/attestation.md": {
        "a newer attestation that says Pass is imported": (
            f"{AUDIT}::test_an_attestation_that_found_an_egress_path_closes_and_the_next_one_opens",
        ),
        "a newer attestation that says Fail is imported": (
            f"{AUDIT}::test_an_attestation_that_found_an_egress_path_closes_and_the_next_one_opens",
            "tests/controlplane/test_waiting_pods.py"
            "::test_pod_without_a_node_is_removed_and_a_node_that_comes_later_starts_nothing",
        ),
        "a newer Fail is imported that is refused as evidence": (
            f"{NEW}::test_a_newer_fail_without_a_uid_closes_also_after_a_restart",
        ),
        "any other statement is imported that is refused": (
            f"{NEW}::test_refused_statement_is_named_beside_the_one_that_counts_with_one_event_across_restarts",
        ),
        "the evidence expires": AUDITED[1:],
        "the accepted attestation is deleted": (
            "tests/controlplane/test_gate.py::test_evidence_that_is_taken_away_closes_and_scales_nothing_up",
            f"{AUDITOR}::test_an_older_one_is_a_replay_once_the_newest_is_gone",
        ),
        "policy file of the audit": (
            f"{NEW}::test_an_audit_without_a_listed_policy_file_closes_until_none_is_listed",
            f"{FAILS}::test_a_newer_fail_of_another_policy_makes_the_pass_unknown",
        ),
        "a key is removed from `spec.trustedKeys`": (
            f"{AUDITOR}::test_a_key_that_is_no_longer_trusted_takes_its_attestations_with_it",
        ),
        "a key is replaced: the new one beside the old one, then `notAfter` of the old one": (
            f"{NEW}::test_key_that_is_replaced_while_the_gate_is_open_closes_nothing",
        ),
        "`notAfter` of a key passes": (
            f"{FAILS}::test_a_newer_fail_of_a_key_after_its_end_makes_the_pass_unknown",
            f"{FAILS}::test_a_pass_of_a_key_after_its_end_is_refused_and_opens_nothing",
        ),
        "the clock of a jump box is behind": (
            f"{NEW}::test_fail_of_a_clock_three_hours_behind_closes_until_a_newer_pass_and_is_not_newer_when_created_again",
            f"{CLOCKS}::test_two_jump_boxes_with_different_clocks",
        ),
        "the clock of a jump box is ahead": (
            f"{CLOCKS}::test_two_jump_boxes_with_different_clocks",
            f"{FAILS}::test_pass_of_a_clock_that_is_ahead_never_counts_also_when_its_time_has_come",
        ),
        "the EgressAudit is deleted and created again (Flux with `prune`, a renamed Kustomization)": (
            f"{AGAIN}::test_audit_that_is_created_again_behind_a_closed_gate_starts_nothing",
        ),
    },
}
"""By page and first cell: the tests that show what the row says."""


def rows(page: str) -> list[tuple[str, ...]]:
    """The cells of the table below the heading, without its two lines of head."""
    text = (REPOSITORY / page).read_text()
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    assert cells[0] == COLUMNS
    return cells[2:]


@pytest.mark.parametrize("page", VERIFIED)
def test_no_cell_of_the_table_is_empty(page):
    assert [row for row in rows(page) if len(row) != len(COLUMNS) or not all(row)] == []


@pytest.mark.parametrize("page", VERIFIED)
def test_each_row_is_verified_by_tests_that_exist(page):
    assert [row[0] for row in rows(page)] == list(VERIFIED[page])
    names = [name for tests in VERIFIED[page].values() for name in tests]
    assert [name for name in names if name.partition("::")[2] not in functions_of(name.partition("::")[0])] == []


@cache
def functions_of(file: str) -> frozenset[str]:
    """The functions of a file of tests."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((REPOSITORY / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))
