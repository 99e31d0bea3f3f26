"""The catalogue of Azure's GPU sizes: nothing without a source, nothing contradictory, and what the size pages say."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import pytest

from hermetic.api.model_facts import Attention
from hermetic.sizing.architectures import architectures, why_not_computed
from hermetic.sizing.catalogue import GIB, MIB, nearest_size, sizes, storages
from hermetic.sizing.families import READERS

FOLDER = files("hermetic.sizing.catalogue")
FILES = ("gpus.toml", "partitions.toml", "sizes.toml", "slices.toml", "storage.toml")
ABOUT = {"source", "sources", "unconfirmed", "name", "vendor", "scope", "slices"}

# Typed from Azure's pages of VM sizes: GPUs, the vendor's GB of each, vCPUs, GiB of memory.
PUBLISHED = {
    "Standard_NC24ads_A100_v4": (1, 80, 24, 220),
    "Standard_NC48ads_A100_v4": (2, 80, 48, 440),
    "Standard_NC96ads_A100_v4": (4, 80, 96, 880),
    "Standard_NC40ads_H100_v5": (1, 94, 40, 320),
    "Standard_NC80adis_H100_v5": (2, 94, 80, 640),
    "Standard_NCC40ads_H100_v5": (1, 94, 40, 320),
    "Standard_ND96asr_v4": (8, 40, 96, 900),
    "Standard_ND96amsr_A100_v4": (8, 80, 96, 1900),
    "Standard_ND96isr_H100_v5": (8, 80, 96, 1900),
    "Standard_ND96isr_H200_v5": (8, 141, 96, 1850),
    "Standard_ND96isr_MI300X_v5": (8, 192, 96, 1850),
    "Standard_ND128isr_NDR_GB200_v6": (4, 192, 128, 900),
    "Standard_ND128isr_GB300_v6": (4, 288, 128, 864),
    "Standard_ND128isrG5_GB300_v6": (4, 288, 128, 864),
    "Standard_NC4as_T4_v3": (1, 16, 4, 28),
    "Standard_NC8as_T4_v3": (1, 16, 8, 56),
    "Standard_NC16as_T4_v3": (1, 16, 16, 110),
    "Standard_NC64as_T4_v3": (4, 16, 64, 440),
    "Standard_NV36ads_A10_v5": (1, 24, 36, 440),
    "Standard_NV36adms_A10_v5": (1, 24, 36, 880),
    "Standard_NV72ads_A10_v5": (2, 24, 72, 880),
}
# Parts of an A10: the part in GB, vCPUs, GiB of memory.
PARTS_OF_AN_A10 = {
    "Standard_NV6ads_A10_v5": (4, 6, 55),
    "Standard_NV12ads_A10_v5": (8, 12, 110),
    "Standard_NV18ads_A10_v5": (12, 18, 220),
}
# Of the announcement of NCv6: GPUs, GB of each, vCPUs.
ANNOUNCED = {
    **{f"Standard_NC{cpus}ds_xl_RTXPro6000_v6": (gpus, gb, cpus) for cpus, gpus, gb in (
        (36, 1, 24), (72, 1, 48), (144, 1, 96), (288, 2, 96), (324, 2, 96)
    )},
    **{f"Standard_NC{cpus}lds_xl_RTXPro6000_v6": (gpus, gb, cpus) for cpus, gpus, gb in (
        (24, 1, 24), (36, 1, 24), (72, 1, 48), (144, 1, 96), (288, 2, 96), (324, 2, 96)
    )},
}  # fmt: skip
NETWORKS = {
    "Standard_NC24ads_A100_v4": 20, "Standard_NC48ads_A100_v4": 40, "Standard_NC96ads_A100_v4": 80,
    "Standard_NC40ads_H100_v5": 40, "Standard_NC80adis_H100_v5": 80, "Standard_ND96isr_H100_v5": 80,
}  # fmt: skip


def entries(name: str) -> dict[str, dict]:
    return tomllib.loads(FOLDER.joinpath(name).read_text("utf-8"))


@pytest.mark.parametrize(("name", "published"), PUBLISHED.items(), ids=list(PUBLISHED))
def test_a_size_is_as_its_page_says(name, published):
    gpus, gigabytes, cpus, memory = published
    size = sizes()[name]
    assert (size.gpus.value, size.vcpus.value, size.ram.value) == (gpus, cpus, memory * GIB)
    assert size.confirmed
    # A process finds less than the vendor's number read as GiB, and more than nine tenths of it as GB.
    assert 0.9 * gigabytes * 1e9 < size.gpu.memory.value < gigabytes * GIB


@pytest.mark.parametrize(("name", "announced"), ANNOUNCED.items(), ids=list(ANNOUNCED))
def test_a_size_that_was_announced_is_listed_and_not_confirmed(name, announced):
    gpus, gigabytes, cpus = announced
    size = sizes()[name]
    assert (size.gpus.value, size.vcpus.value) == (gpus, cpus)
    assert 0.9 * gigabytes * 1e9 < size.gpu.memory.value < gigabytes * GIB
    assert not size.confirmed


def test_no_size_is_in_the_catalogue_that_is_in_no_published_list():
    assert set(sizes()) == {*PUBLISHED, *PARTS_OF_AN_A10, *ANNOUNCED}


@pytest.mark.parametrize(("name", "published"), PARTS_OF_AN_A10.items(), ids=list(PARTS_OF_AN_A10))
def test_a_part_of_an_a10_is_listed_and_not_confirmed(name, published):
    gigabytes, cpus, memory = published
    size = sizes()[name]
    assert (size.gpus.value, size.vcpus.value, size.ram.value) == (1, cpus, memory * GIB)
    assert size.gpu.memory.value < gigabytes * GIB
    assert not size.confirmed


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("standard_nc24ads_a100_v4", "Standard_NC24ads_A100_v4"),
        ("NC24ads_A100_v4", "Standard_NC24ads_A100_v4"),
        ("Standard_NC24ads_A100_v5", "Standard_NC24ads_A100_v4"),
        ("Standard_ND96isr_H200_v6", "Standard_ND96isr_H200_v5"),
        ("Standard_NV36ads_A10", "Standard_NV36ads_A10_v5"),
        ("Standard_D4s_v5", None),
        ("", None),
        ("a-size-of-another-cloud", None),
    ],
)
def test_the_nearest_name_of_a_size_is_offered_for_a_slip_only(typed, nearest):
    assert nearest_size(typed) == nearest


@pytest.mark.parametrize(("name", "gigabits"), NETWORKS.items(), ids=list(NETWORKS))
def test_a_network_is_as_published_in_bits(name, gigabits):
    assert sizes()[name].nic.value == gigabits * 1e9 / 8


@pytest.mark.parametrize("name", FILES)
def test_every_value_has_a_source_that_the_file_explains(name):
    text = FOLDER.joinpath(name).read_text("utf-8")
    explained = set(re.findall(r"([a-z-]+) = ", " ".join(line for line in text.splitlines() if line.startswith("#"))))
    for key, entry in entries(name).items():
        assert {entry["source"], *entry.get("sources", {}).values()} <= explained, key


@pytest.mark.parametrize("name", FILES)
def test_marks_are_of_values_that_are_there(name):
    for key, entry in entries(name).items():
        values = entry.keys() - ABOUT
        assert {*entry.get("unconfirmed", ()), *entry.get("sources", {})} <= values, key


def test_names_are_those_of_azure():
    assert [name for name in sizes() if not re.fullmatch(r"Standard_[A-Za-z0-9_]+", name)] == []


def test_gpus_without_slices_are_those_that_the_guide_of_slices_does_not_list():
    without = {size.gpu.key for size in sizes().values() if not size.gpu.has_slices}
    assert without == {"T4", "A10", "A10-half", "A10-third", "A10-sixth"}
    assert not without & entries("slices.toml").keys()


def test_every_gpu_is_in_some_size():
    assert {size.gpu.key for size in sizes().values()} == set(entries("gpus.toml"))


def test_two_sizes_of_arm_machines_say_so():
    arm = {name for name, size in sizes().items() if size.cpu == "arm64"}
    assert arm == {name for name in sizes() if "GB200" in name or "GB300" in name}


def test_local_disks_are_counted_only_where_two_pages_agree():
    with_disks = {name: size.nvme_disks.value for name, size in sizes().items() if size.nvme_disks is not None}
    assert "Standard_NC24ads_A100_v4" not in with_disks
    assert with_disks["Standard_NC96ads_A100_v4"] == 4
    assert with_disks["Standard_ND96isr_H100_v5"] == 8


def test_storage_is_faster_from_one_line_to_the_next_and_shared_where_it_is_no_disk():
    shares = [storage for storage in storages() if storage.name.startswith("Azure Files")]
    assert [round(share.total.value / MIB) for share in shares] == [128, 203, 1125, 10340]
    assert {round(share.file.value / MIB) for share in shares} == {300}
    assert [storage.name for storage in storages() if not storage.shared] == ["local NVMe, filled beforehand"]
    lustre = [storage for storage in storages() if "Lustre" in storage.name]
    assert [round(storage.total.value / 1e9) for storage in lustre] == [2, 8]


def test_a_family_is_in_one_list_only_and_says_why():
    known_architectures = architectures()
    assert set(known_architectures.kinds.values()) == set(READERS)
    assert set(known_architectures.needs) <= set(READERS)
    assert set(known_architectures.needs.values()) <= set(Attention.model_fields)
    assert not known_architectures.computed & known_architectures.not_computed.keys()
    assert all(why.endswith(tuple("abcdefghijklmnopqrstuvwxyz")) for why in known_architectures.not_computed.values())
    assert why_not_computed("llama") is None
    assert why_not_computed("mamba").startswith("model type 'mamba': its state-space layers")
    assert "not on the list" in why_not_computed("of tomorrow")
