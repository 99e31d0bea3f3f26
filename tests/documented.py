"""Every command that the pages tell a person to type, block by block, and how each is run by a test.

A block without a language is commands, one with `console` holds them behind a `$ `; drawings and output have `text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "SECURITY.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
# Lines that ask what is not here; no test can run them.
NOT_HERE = {
    r"az ": "Azure answers; the real az CLI parses it: tests/commands/test_az.py::"
    "test_every_az_command_is_understood_by_the_real_az",
    r"skopeo login ": "the token is that of a registry of Azure",
    r"zarf ": "Zarf is not built here; its package is checked against its schema: tests/unit/test_zarf_sample.py::"
    "test_the_sample_is_admitted_by_the_schema_of_zarf",
    r"kubectl logs ": "simulated nodes keep no logs; the real kubectl parses it: tests/commands/test_kubectl.py::"
    "test_every_kubectl_command_is_understood_by_the_real_kubectl",
    r"kubectl (cordon aks-gpu|delete pod llama-7c9d5)": "no node here has a faulty GPU; the real kubectl parses it: "
    "tests/commands/test_kubectl.py::test_every_kubectl_command_is_understood_by_the_real_kubectl",
    r"kubectl debug node/": "no node here has an AMD GPU; the real kubectl parses it: "
    "tests/commands/test_kubectl.py::test_every_kubectl_command_is_understood_by_the_real_kubectl",
    r"kubectl describe (httproutes|gateways) ": "no Gateway API is served here; the real kubectl parses it: "
    "tests/commands/test_kubectl.py::test_every_kubectl_command_is_understood_by_the_real_kubectl",
    r"ln -s .*kubectl-hermetic": "the file of a user's home; a test does it elsewhere: tests/commands/test_kubectl.py::"
    "test_kubectl_runs_hermetic_as_its_plug_in",
    r"kubectl hermetic ": "a plug-in of the user's PATH: tests/commands/test_kubectl.py::"
    "test_kubectl_runs_hermetic_as_its_plug_in",
    r"systemctl ": "no systemd runs here; it verifies the units: tests/unit/test_renewal_samples.py::"
    "test_systemd_verifies_the_units",
    r"make test\b": "it runs this test",
    r"flux install ": "the flux command embeds manifests that its Go module lacks; the tests make what it prints of "
    "its own kustomizations, equal object by object: testbed/flux.py",
}
# Lines that another test runs: by page, what they begin with, and the test.
ELSEWHERE = {
    ("README.md", r"make demo"): "tests/node/test_demo.py::test_the_demo_ends_green",
    ("README.md", r"make image cli"): "tests/shipping/test_operator_image.py::test_two_builds_give_the_same_bytes",
    ("README.md", r"skopeo copy "): "tests/shipping/test_bundle.py::"
    "test_skopeo_pushes_what_make_image_writes_as_the_page_says",
    ("README.md", r"helm install "): "tests/controlplane/test_chart.py::"
    "test_a_release_is_installed_upgraded_rolled_back_and_taken_away",
    ("docs/weights.md", r"kubectl (apply|wait|get) "): "tests/node/test_weights_verified.py::"
    "test_the_page_leads_from_the_jump_box_to_ready",
    ("docs/install.md", r"helm "): "tests/controlplane/test_chart.py::"
    "test_a_release_is_installed_upgraded_rolled_back_and_taken_away",
    ("docs/operations.md", r"helm "): "tests/controlplane/test_chart.py::"
    "test_a_release_is_installed_upgraded_rolled_back_and_taken_away",
    (
        "docs/install.md",
        r"(kubectl (apply --server-side -k \.|rollout status)|hermetic rbac )",
    ): "tests/controlplane/test_chart.py::test_the_commands_of_kustomize_reach_a_ready_model",
    ("docs/install.md", r"kubectl .*(pull\.yaml|hermetic-pull)"): "tests/node/test_image_pull.py::"
    "test_the_pod_of_the_page_proves_the_pull",
    ("docs/install.md", r"make image"): "tests/shipping/test_operator_image.py::test_two_builds_give_the_same_bytes",
    ("docs/install.md", r"make cli"): "tests/shipping/test_command_line.py::test_it_is_a_program",
    ("docs/install.md", r"install -m|hermetic --version"): "tests/shipping/test_bundle.py::"
    "test_the_command_line_in_it_is_put_in_place_as_the_page_says_and_verifies_the_bundle",
    ("docs/install.md", r"skopeo copy "): "tests/shipping/test_bundle.py::"
    "test_skopeo_pushes_what_make_image_writes_as_the_page_says",
    ("docs/bundle.md", r"make bundle$"): "tests/shipping/test_bundle.py::"
    "test_a_second_build_gives_the_same_files_in_the_same_order",
    ("docs/bundle.md", r"make bundle SIGN="): "tests/shipping/test_bundle.py::"
    "test_a_bundle_that_was_signed_is_verified_with_the_public_key",
    ("docs/bundle.md", r"tar .*cli/|sha256sum |install -m|hermetic --version"): "tests/shipping/test_bundle.py::"
    "test_the_command_line_in_it_is_put_in_place_as_the_page_says_and_verifies_the_bundle",
    ("docs/bundle.md", r"hermetic bundle verify "): "tests/shipping/test_bundle.py::"
    "test_it_is_verified_by_the_command_of_the_page",
    ("docs/cli.md", r"hermetic bundle verify "): "tests/shipping/test_bundle.py::"
    "test_it_is_verified_by_the_command_of_the_page",
    ("docs/bundle.md", r"hermetic bundle load "): "tests/shipping/test_bundle.py::"
    "test_the_command_of_the_page_loads_image_and_chart",
    ("docs/cli.md", r"hermetic bundle load "): "tests/shipping/test_bundle.py::"
    "test_the_command_of_the_page_loads_image_and_chart",
    ("docs/bundle.md", r"hermetic images "): "tests/unit/test_cli_images_lists.py::"
    "test_a_list_of_commands_copies_by_digest_to_the_tag_of_the_target",
    ("docs/bundle.md", r"skopeo copy "): "tests/shipping/test_bundle.py::test_skopeo_pushes_the_image_under_its_digest",
    ("docs/bundle.md", r"(tar .* chart crds|helm push) "): "tests/shipping/test_bundle.py::"
    "test_helm_pushes_the_chart_that_was_unpacked",
    ("docs/bundle.md", r"mkdir layout|oras cp "): "tests/shipping/test_bundle.py::"
    "test_oras_copies_the_unpacked_layout_under_its_digest",
    ("docs/supply-chain.md", r"(cosign|notation) "): "tests/shipping/test_supply_chain.py::"
    "test_cosign_and_notation_accept_what_the_commands_of_the_page_pushed",
    ("docs/supply-chain.md", r"git tag|make release"): "tests/shipping/test_supply_chain.py::"
    "test_the_release_holds_what_the_page_lists_and_its_checksums_cover_it",
    ("docs/supply-chain.md", r"make verify-release"): "tests/shipping/test_supply_chain.py::"
    "test_the_bundle_is_built_again_from_its_revision_with_the_same_bytes",
    ("docs/supply-chain.md", r"syft "): "tests/shipping/test_supply_chain.py::"
    "test_syft_lists_the_packages_of_the_inventory",
    ("docs/supply-chain.md", r"mkdir|oras|for tag"): "tests/shipping/test_supply_chain.py::"
    "test_cosign_and_notation_accept_what_the_commands_of_the_page_pushed",
    ("docs/supply-chain.md", r""): "tests/shipping/test_supply_chain.py::"
    "test_openssl_and_sha256sum_verify_the_files_by_the_commands_of_the_page",
    ("docs/bundle.md", r"ctr "): "tests/shipping/test_bundle.py::"
    "test_ctr_imports_the_image_under_the_name_by_which_pods_ask_for_it",
    ("docs/weights.md", r"hermetic stage model image|skopeo copy "): "tests/commands/test_oci_images.py::"
    "test_skopeo_pushes_it_under_its_digest_as_the_page_says",
    ("docs/cli.md", r"hermetic run --config /etc"): "tests/node/test_serving.py::"
    "test_a_share_model_answers_through_its_internal_load_balancer",
    ("docs/cli.md", r"hermetic stage .*--caches "): "tests/unit/test_weights_caches.py::"
    "test_caches_are_staged_for_their_key_and_nothing_else_of_the_twin",
    (
        "docs/weights.md",
        r"hermetic (stage nim-cache|plan --model share/llama-nim) ",
    ): "tests/unit/test_weights_docs.py::test_the_commands_of_a_nim_cache_run_and_print_its_profiles",
    ("docs/cli.md", r"hermetic bench "): "tests/controlplane/test_bench.py::"
    "test_a_tenant_benchmarks_a_model_with_the_rights_of_edit",
    ("docs/benchmark.md", r"hermetic bench "): "tests/controlplane/test_bench.py::"
    "test_a_tenant_benchmarks_a_model_with_the_rights_of_edit",
    ("docs/cli.md", r"hermetic convert "): "tests/unit/test_recipes_page.py::test_the_examples_of_the_command_run",
    ("docs/recipes.md", r""): "tests/unit/test_recipes_page.py::test_the_page_converts_a_command_and_shows_its_notes",
    ("docs/weights.md", r"hermetic stage .*--caches "): "tests/unit/test_weights_docs.py::"
    "test_the_command_of_compile_caches_runs_and_prints_what_the_page_shows",
    ("docs/first-audit.md", r""): "tests/unit/test_cli_first_audit.py::"
    "test_the_page_leads_from_an_empty_folder_to_a_signed_pass",
    ("docs/gateway.md", r"curl "): "tests/node/test_gateway.py::"
    "test_the_client_of_openai_asks_by_https_at_a_listener_that_ends_tls",
    ("docs/first-model.md", r"curl "): "tests/node/test_serving.py::"
    "test_a_share_model_answers_through_its_internal_load_balancer",
    ("docs/first-model.md", r""): "tests/controlplane/test_first_model.py::"
    "test_the_pages_lead_from_an_empty_cluster_to_a_ready_model",
    ("docs/change-and-undo.md", r""): "tests/controlplane/test_change_and_undo.py::"
    "test_a_change_keeps_the_promised_pods_and_its_undo_brings_the_template_back",
    # The remedies of findings: there is no finding here. Each is also filled in from a plant (tests/unit).
    ("docs/checks.md", r""): "tests/commands/test_kubectl.py::"
    "test_every_kubectl_command_is_understood_by_the_real_kubectl",
    ("docs/flux.md", r"kubectl delete |kubectl wait "): "tests/controlplane/test_flux.py::"
    "test_everything_goes_by_the_commands_of_the_page_but_namespaces_and_crds",
    ("docs/flux.md", r"tar |oras push "): "tests/controlplane/test_flux.py::"
    "test_the_commands_of_the_page_push_an_artifact_that_flux_applies",
    ("docs/development.md", r""): "tests/unit/test_development_page.py::test_command_of_the_page_succeeds",
    ("docs/renewal.md", r"install "): "tests/unit/test_renewal_samples.py::"
    "test_the_commands_of_the_page_install_each_file_where_the_others_look_for_it",
    ("docs/argocd.md", r"kubectl apply "): "tests/commands/test_argocd.py::"
    "test_the_command_of_the_page_adds_the_health_check_of_both_kinds_and_no_other_key",
    ("docs/flux.md", r"kubectl "): "tests/controlplane/test_flux.py::test_the_commands_of_the_page_apply_the_recipe",
}


@dataclass(frozen=True)
class Block:
    """One block of commands: the page, the heading it is under, which of the block there, and its commands."""

    page: str
    heading: str
    number: int
    commands: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.page}#{self.heading}-{self.number}"

    @property
    def run_here(self) -> str:
        """A script of the commands that no other test runs and that can run without Azure."""
        return "\n".join(line for line in self.commands if not reason_of(line) and not test_of(self.page, line))


def reason_of(line: str) -> str:
    """Why a command cannot run here, or nothing."""
    return next((why for start, why in NOT_HERE.items() if re.match(start, line)), "")


def test_of(page: str, line: str) -> str:
    """The other test that runs a command of a page, or nothing."""
    return next((test for (of, start), test in ELSEWHERE.items() if of == page and re.match(start, line)), "")


test_of.__test__ = False  # type: ignore[attr-defined]  # no test of pytest


@cache
def blocks() -> tuple[Block, ...]:
    """Every block of commands of every page."""
    return tuple(block for page in PAGES for block in _of_page(page))


def _of_page(page: str) -> Iterator[Block]:
    heading, inside, lines, counts = "", "", [], dict[str, int]()
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if inside and line == "```":
            if commands := _commands("\n".join(lines), inside):
                counts[heading] = counts.get(heading, 0) + 1
                yield Block(page, heading, counts[heading], commands)
            inside = ""
        elif inside:
            lines.append(line)
        elif line.startswith("```"):
            inside, lines = line.removeprefix("```") or "commands", []
        elif line.startswith("#"):
            heading = line.lstrip("# ")


def _commands(text: str, language: str) -> tuple[str, ...]:
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    if language == "console":
        return tuple(line[2:] for line in lines if line.startswith("$ "))
    return tuple(line for line in lines if line.strip()) if language == "commands" else ()
