"""Two signed audits, one after the other: what the first one saw decides about machines that came after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import instance_nics, node_subnets
from testbed.azure.server import ArmStandIn
from testbed.processes import wait_until
from tests.attestations import an_ed25519_key, pem_of, public_pem_of
from tests.audits_by_command import a_stand_in, audit, report_in
from tests.commandline import hermetic
from tests.sampled_groups import AZURE_AUDITS, LONG

pytestmark = AZURE_AUDITS

WRITE = "Microsoft.Network/virtualNetworks/subnets/write"


def keys(folder: Path) -> Path:
    key = an_ed25519_key(1)
    (folder / "ours.key").write_text(pem_of(key.key))
    (folder / "ours.pub").write_text(public_pem_of(key.key))
    return folder / "ours.key"


def in_another_second() -> None:
    """An attestation must begin later than the one before it, and its times are whole seconds."""
    began = datetime.now(UTC).replace(microsecond=0)
    wait_until("the next second", lambda: datetime.now(UTC) >= began + timedelta(seconds=1), ())


def signed(arm: ArmStandIn, key: Path, number: int, *more: str | Path) -> dict[str, Any]:
    """The report of one signed audit; each begins in a second of its own."""
    in_another_second()
    previous = ("--previous", key.parent / f"{number - 1}.yaml") if number > 1 else ()
    to = ("--sign", key, "--attestation", key.parent / f"{number}.yaml")
    ran = audit(arm, *to, *previous, "-o", "json", *more)
    assert ran.code in {0, 3}, ran.err
    return report_in(ran.out)


def of_node(report: dict[str, Any], nic: str) -> tuple[str, str]:
    finding = next(
        candidate
        for candidate in report["findings"]
        if candidate["check"] == "nic-default-outbound" and candidate["resource"].lower() == nic.lower()
    )
    return finding["verdict"], finding["reason"]


def created(estate: Estate, nic: str, at: str) -> None:
    estate.properties(nic.partition("/networkInterfaces/")[0])["timeCreated"] = at


@LONG
def test_a_machine_that_came_after_an_attested_look_passes_until_the_subnet_is_written(tmp_path: Path) -> None:
    key = keys(tmp_path)
    with a_stand_in() as arm:
        estate = arm.estate
        estate.scale_set_outbound_shown_by = frozenset()
        old, new = instance_nics(estate)[:2]
        first = signed(arm, key, 1)
        assert {private_subnet["basis"] for private_subnet in first["privateSubnets"]} == {"audit"}
        assert of_node(first, new) == ("Unknown", "PrivateSinceUnknown")
        created(estate, new, datetime.now(UTC).isoformat())

        second = signed(arm, key, 2)
        assert of_node(second, new) == ("Pass", "CreatedInPrivateSubnet")
        assert of_node(second, old) == ("Unknown", "MachineOlder")
        moments = {
            private_subnet["subnet"].lower(): private_subnet["since"] for private_subnet in first["privateSubnets"]
        }
        handed_on = {
            private_subnet["subnet"].lower(): (private_subnet["since"], private_subnet["basis"])
            for private_subnet in second["privateSubnets"]
        }
        assert handed_on == {subnet: (since, "attestation") for subnet, since in moments.items()}

        # it may have been switched and switched back: the log shows a write after the second audit
        for subnet in node_subnets(estate):
            estate.log(subnet, WRITE, datetime.now(UTC).isoformat())
        third = signed(arm, key, 3)
        assert of_node(third, new) == ("Unknown", "WrittenSince")
        assert any(private_subnet["basis"] == "audit" for private_subnet in third["privateSubnets"])

    folder = tmp_path / "chain"
    folder.mkdir()
    for number in (1, 2, 3):
        (tmp_path / f"{number}.yaml").rename(folder / f"{number}.yaml")
    chain = hermetic("attest", "chain", folder, "--public-key", tmp_path / "ours.pub")
    assert chain.code == 0, chain.out + chain.err


@LONG
def test_a_subnet_that_was_public_at_one_look_begins_anew(tmp_path: Path) -> None:
    key = keys(tmp_path)
    with a_stand_in() as arm:
        estate = arm.estate
        estate.scale_set_outbound_shown_by = frozenset()
        nic, subnet = instance_nics(estate)[0], estate.site.gpu_subnet
        signed(arm, key, 1)
        created(estate, nic, datetime.now(UTC).isoformat())
        estate.properties(subnet)["defaultOutboundAccess"] = None
        in_another_second()
        ran = audit(
            arm, "--sign", key, "--attestation", tmp_path / "2.yaml", "--previous", tmp_path / "1.yaml", "-o", "json"
        )
        assert ran.code == 1, ran.err
        assert subnet.lower() not in {
            private_subnet["subnet"].lower() for private_subnet in report_in(ran.out)["privateSubnets"]
        }
        estate.properties(subnet)["defaultOutboundAccess"] = False
        third = signed(arm, key, 3)
        assert of_node(third, nic) == ("Unknown", "PrivateSinceUnknown")


def test_a_statement_is_voided_by_a_later_write_and_a_denied_log_changes_nothing(tmp_path: Path) -> None:
    with a_stand_in() as arm:
        estate = arm.estate
        estate.scale_set_outbound_shown_by = frozenset()
        nic = instance_nics(estate)[0]
        statements = "".join(
            f"  - {{subnet: {node_subnet}, since: '2026-08-01T00:00:00Z', statedBy: network-team}}\n"
            for node_subnet in node_subnets(estate)
        )
        (tmp_path / "policy.yaml").write_text(f"subnetsPrivateSince:\n{statements}")
        stated = ("--policy", tmp_path / "policy.yaml", "-o", "json")
        report = report_in(audit(arm, *stated).out)
        assert of_node(report, nic) == ("Pass", "CreatedInPrivateSubnet")
        [note] = report["notes"]
        assert note.startswith("network-team states that /subscriptions/")
        assert all(node_subnet in note for node_subnet in node_subnets(estate))
        assert " have been private since 2026-08-01T00:00:00Z; " in note
        estate.log(estate.site.gpu_subnet, WRITE, (datetime.now(UTC) - timedelta(days=3)).isoformat())
        assert of_node(report_in(audit(arm, *stated).out), nic) == ("Unknown", "WrittenSince")
        estate.deny(f"/subscriptions/{estate.cluster.split('/')[2]}", "Microsoft.Insights/eventtypes/values/read")
        assert of_node(report_in(audit(arm, *stated).out), nic) == ("Pass", "CreatedInPrivateSubnet")


def test_a_statement_about_a_subnet_that_is_not_the_clusters_is_told_to_decide_nothing(tmp_path: Path) -> None:
    with a_stand_in() as arm:
        other = arm.estate.site.gpu_subnet.replace("snet-gpu", "snet-gpuu")
        statements = (
            f"subnetsPrivateSince: [{{subnet: {other}, since: '2026-08-01T00:00:00Z', statedBy: network-team}}]\n"
        )
        (tmp_path / "policy.yaml").write_text(statements)
        [note] = report_in(audit(arm, "--policy", tmp_path / "policy.yaml", "-o", "json").out)["notes"]
        assert note == (
            f"`subnetsPrivateSince` names {other}, which is not a subnet of the cluster: the statement decides nothing"
        )
