"""Parts of a GPU, slices (MIG) and partitions (AMD): the memory of each, and Unknown for what no source states."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from hermetic.sizing.catalogue import GIB, MIB, partitions, sizes, slices
from hermetic.sizing.slices import is_shared, memory_label, offered, partition_mode, sliced_profile, why_not_offered

GPUS = {size.gpu.key: size.gpu for size in sizes().values()}
# Names of the MIG user guide, and GiB of `nvidia-smi mig -lgip`; None: no two listings agree.
PROFILES = {
    "A100-40GB": {"1g.5gb": 4.75, "1g.10gb": 9.62, "2g.10gb": 9.62, "3g.20gb": 19.5, "4g.20gb": 19.5, "7g.40gb": 39.25},
    "A100-80GB": {"1g.10gb": 9.5, "1g.20gb": 19.5, "2g.20gb": 19.5, "3g.40gb": 39.25, "4g.40gb": 39.25, "7g.80gb": 79},
    "H100-80GB": {
        "1g.10gb": 9.62, "1g.20gb": 19.5, "2g.20gb": 19.5, "3g.40gb": 39.25, "4g.40gb": 39.25, "7g.80gb": 79.1
    },
    "H100-NVL": {
        "1g.12gb": 10.62, "1g.24gb": 21.5, "2g.24gb": 21.5, "3g.47gb": 46.12, "4g.47gb": 46.12, "7g.94gb": 92.62
    },
    "H200": {
        "1g.18gb": 16.0, "1g.35gb": 32.25, "2g.35gb": 32.25, "3g.71gb": 69.5, "4g.71gb": 69.5, "7g.141gb": 139.72
    },
    "GB200": {"1g.23gb": None, "1g.47gb": 45.5, "2g.47gb": 45.5},
}  # fmt: skip
LISTED = [(key, profile, memory) for key, profiles in PROFILES.items() for profile, memory in profiles.items()]


@pytest.mark.parametrize("media", ["", ".me", ".me.all"])
@pytest.mark.parametrize(("key", "profile", "memory"), LISTED)
def test_a_slice_has_the_memory_and_the_share_of_its_profile(key, profile, memory, media):
    offer = offered(GPUS[key], f"nvidia.com/mig-{profile}{media}")
    assert "slices (MIG)" in offer.undivided
    assert offer.unknown == ()
    assert offer.gpu.memory.confirmed is (memory is not None)
    if memory is not None:
        assert offer.gpu.memory.value == int(memory * GIB)
    assert f"slice {profile} of {GPUS[key].name} with {profile[0]}/7 of its computing slices" == offer.gpu.name


def test_no_profile_is_in_the_catalogue_that_the_guide_does_not_name():
    assert {key: set(profiles) for key, profiles in slices().items()} == {
        key: set(profiles) for key, profiles in PROFILES.items()
    }


@pytest.mark.parametrize(("key", "profile"), [(key, profile) for key, profile, _ in LISTED])
def test_no_slice_has_more_memory_than_its_name_says_nor_than_the_whole_gpu(key, profile):
    slice_memory = slices()[key][profile].value
    assert slice_memory <= int(profile.split(".")[1].removesuffix("gb")) * GIB
    assert slice_memory <= GPUS[key].memory.value
    assert slice_memory >= 0.8 * int(profile.split(".")[1].removesuffix("gb")) * GIB


@pytest.mark.parametrize(
    ("resource", "key", "says"),
    [
        ("nvidia.com/mig-1g.10gb", "A10", "has no slices (MIG)"),
        ("nvidia.com/mig-1g.10gb", "T4", "has no slices (MIG)"),
        ("nvidia.com/mig-1g.10gb", "A100-80GB", ""),
        ("nvidia.com/mig-1g.10gb", "MI300X", "the deployment asks for nvidia.com/mig-1g.10gb"),
        ("nvidia.com/gpu", "A10", ""),
        ("amd.com/cpx_nps4", "A100-80GB", "the deployment asks for amd.com/cpx_nps4"),
        ("amd.com/cpx_nps4", "MI300X", ""),
    ],
)
def test_a_part_that_no_such_gpu_can_be_cut_into_is_refused(resource, key, says):
    clause = why_not_offered(resource, GPUS[key])
    assert bool(clause) == bool(says)
    assert says in clause


@pytest.mark.parametrize(
    ("key", "profile"),
    [
        *((key, "1g.10gb") for key in sorted(set(GPUS) - set(PROFILES))),
        ("GB200", "3g.93gb"),
        ("GB200", "7g.186gb"),
        ("GB300", "1g.35gb"),
    ],
)
def test_slices_whose_memory_no_listing_has_are_unknown(key, profile):
    offer = offered(GPUS[key], f"nvidia.com/mig-{profile}")
    assert offer.gpu == GPUS[key]
    assert "is not known" in " ".join(offer.unknown)


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.11gb", "nvidia.com/mig-1g.10gb.gfx", "nvidia.com/mig-9g.10gb"])
def test_a_profile_that_no_source_names_is_unknown(resource):
    offer = offered(GPUS["A100-80GB"], resource)
    assert offer.unknown == (f"the memory of a slice '{resource}' of NVIDIA A100 80 GB is not known",)


def test_a_gpu_shared_by_time_is_unknown():
    assert offered(GPUS["A100-80GB"], "nvidia.com/gpu.shared").unknown


# The compatibility matrix of AMD SMI for the MI300X: parts of each mode, and whether a source has their memory.
MODES = {
    "dpx_nps1": (2, True), "dpx_nps2": (2, False), "qpx_nps1": (4, False), "qpx_nps4": (4, False),
    "cpx_nps1": (8, True), "cpx_nps4": (8, True),
}  # fmt: skip


@pytest.mark.parametrize(("mode", "parts", "confirmed"), [(mode, *row) for mode, row in MODES.items()])
def test_a_partition_of_amd_has_its_share_of_the_memory(mode, parts, confirmed):
    mi300x = GPUS["MI300X"]
    for offer in (
        offered(mi300x, f"amd.com/{mode}", {}, units_per_gpu=parts),
        offered(mi300x, "amd.com/gpu", {"amd.com/gpu.compute-memory-partition": mode}, units_per_gpu=parts),
    ):
        assert offer.gpu.memory.value == mi300x.memory.value // parts
        assert (offer.gpu.memory.confirmed, offer.unknown) == (confirmed, ())
        assert offer.gpu.name == f"partition {mode} of {mi300x.name} with 1/{parts} of its computing"
        assert "not confirmed" in offer.undivided


def test_the_published_amounts_of_partitions_are_no_less_than_what_is_counted():
    mi300x = GPUS["MI300X"]
    # The topology of the driver in CPX, and amd-smi in DPX/NPS1.
    for mode, published in (("cpx_nps1", 25_767_706_624), ("cpx_nps4", 25_767_706_624), ("dpx_nps1", 98_296 * MIB)):
        counted = offered(mi300x, f"amd.com/{mode}", {}, units_per_gpu=8).gpu.memory.value
        assert 0.99 * published < counted <= published


def test_the_mode_of_one_partition_is_the_whole_gpu():
    for resource, labels in (
        ("amd.com/spx_nps1", {}),
        ("amd.com/gpu", {"amd.com/gpu.compute-memory-partition": "spx_nps1", "amd.com/gpu.vram": "192G"}),
        ("amd.com/gpu", {"amd.com/gpu.vram": "192G"}),
        ("amd.com/gpu", {"amd.com/gpu.vram": "many", "amd.com/gpu.compute-memory-partition": "other"}),
        ("amd.com/gpu", {}),
    ):
        offer = offered(GPUS["MI300X"], resource, labels, units_per_gpu=1)
        assert (offer.gpu, offer.unknown, offer.undivided) == (GPUS["MI300X"], (), "")


@pytest.mark.parametrize("mode", ["qpx_nps2", "cpx_nps2", "cpx_nps8", "tpx_nps1"])
def test_a_mode_that_the_matrix_of_the_gpu_lacks_is_unknown(mode):
    mi300x = GPUS["MI300X"]
    labelled = offered(mi300x, "amd.com/gpu", {"amd.com/gpu.compute-memory-partition": mode}, units_per_gpu=8)
    assert (labelled.gpu, labelled.unknown) == (
        mi300x, (f"the memory of a partition '{mode}' of {mi300x.name} is not known",)
    )  # fmt: skip
    assert labelled.undivided


def test_a_partition_that_no_node_lists_is_unknown():
    offer = offered(GPUS["MI300X"], "amd.com/cpx_nps4")
    assert offer.gpu.memory.value == GPUS["MI300X"].memory.value // 8
    assert "no node lists 'amd.com/cpx_nps4'" in " ".join(offer.unknown)
    assert offered(GPUS["MI300X"], "amd.com/spx_nps1").unknown == ()


def test_the_memory_label_of_amd_tells_a_partition_and_is_read_as_rounded():
    offer = offered(GPUS["MI300X"], "amd.com/gpu", {"amd.com/gpu.vram": "24G"}, units_per_gpu=8)
    assert (offer.gpu.memory.value, offer.unknown) == (int(23.5 * GIB), ())
    assert offer.undivided


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_more_gpus_than_the_vm_has_are_no_whole_gpus(resource):
    gpu = GPUS["MI300X" if resource.startswith("amd") else "A100-80GB"]
    assert offered(gpu, resource, {}, units_per_gpu=1).unknown == ()
    assert "more" in " ".join(offered(gpu, resource, {}, units_per_gpu=8).unknown)


@pytest.mark.parametrize(
    ("label", "mode"), [("cpx_nps4", "cpx_nps4"), ("", None), ("CPX_NPS4", None), ("cpx_nps4 ", None), ("x", None)]
)
def test_the_mode_is_read_from_the_label(label, mode):
    assert partition_mode({"amd.com/gpu.compute-memory-partition": label}) == mode


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_a_whole_gpu_is_what_the_catalogue_says(resource):
    gpu = GPUS["A100-80GB"]
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
    offer = offered(gpu, resource, labels)
    assert (offer.gpu, offer.unknown, offer.undivided) == (gpu, (), "")


def test_a_label_never_states_more_than_the_whole_gpu():
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/gpu.memory": "999999"}
    assert offered(GPUS["A100-80GB"], "nvidia.com/gpu", labels).gpu.memory.value == GPUS["A100-80GB"].memory.value
    stated = offered(GPUS["A100-80GB"], "nvidia.com/gpu", labels | {"nvidia.com/gpu.memory": "9728"})
    assert stated.gpu.memory.value == 9728 * MIB


@pytest.mark.parametrize(
    ("product", "profile"),
    [
        ("NVIDIA-A100-SXM4-80GB", None),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "1g.10gb"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", "1g.10gb"),
        ("NVIDIA-A100-SXM4-80GB-MIG-INVALID", "INVALID"),
        ("", None),
    ],
)
def test_the_product_names_the_profile(product, profile):
    assert sliced_profile({"nvidia.com/gpu.product": product}) == profile


@pytest.mark.parametrize(
    ("labels", "shared"),
    [
        ({}, False),
        ({"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.replicas": "1"}, False),
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "1"}, False),
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}, True),
        ({"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "2"}, True),
        ({"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, True),
    ],
)
def test_sharing_is_read_from_the_labels(labels, shared):
    assert is_shared(labels) is shared


@pytest.mark.parametrize("text", ["", "0", "-1", "9.5", "1e3", " 9728", "٣"])
def test_memory_that_is_no_number_is_not_known(text):
    assert memory_label({"nvidia.com/gpu.memory": text}) is None


def test_every_gpu_with_slices_is_in_the_catalogue():
    stated = tomllib.loads(files("hermetic.sizing.catalogue").joinpath("slices.toml").read_text("utf-8"))
    assert set(stated) | set(partitions()) <= set(GPUS)
