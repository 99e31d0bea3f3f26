"""Slices of a GPU: the memory of every profile, and Unknown for what no source states."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from hermetic.sizing.catalogue import GIB, MIB, sizes, slices
from hermetic.sizing.slices import is_shared, memory_label, offered, sliced_profile

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
        "1g.18gb": 16.0, "1g.35gb": None, "2g.35gb": None, "3g.71gb": None, "4g.71gb": None, "7g.141gb": None
    },
}  # fmt: skip
LISTED = [(key, profile, memory) for key, profiles in PROFILES.items() for profile, memory in profiles.items()]


@pytest.mark.parametrize("media", ["", ".me", ".me.all"])
@pytest.mark.parametrize(("key", "profile", "memory"), LISTED)
def test_a_slice_has_the_memory_and_the_share_of_its_profile(key, profile, memory, media):
    offer = offered(GPUS[key], f"nvidia.com/mig-{profile}{media}")
    assert offer.is_slice
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


@pytest.mark.parametrize("key", sorted(set(GPUS) - set(PROFILES)))
def test_slices_of_other_gpus_are_unknown(key):
    offer = offered(GPUS[key], "nvidia.com/mig-1g.10gb")
    assert offer.gpu == GPUS[key]
    assert "is not known" in " ".join(offer.unknown)


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.11gb", "nvidia.com/mig-1g.10gb.gfx", "nvidia.com/mig-9g.10gb"])
def test_a_profile_that_no_source_names_is_unknown(resource):
    offer = offered(GPUS["A100-80GB"], resource)
    assert offer.unknown == (f"the memory of a slice '{resource}' of NVIDIA A100 80 GB is not known",)


def test_a_partition_of_amd_and_a_gpu_shared_by_time_are_unknown():
    assert offered(GPUS["MI300X"], "amd.com/cpx_nps4").unknown
    assert offered(GPUS["A100-80GB"], "nvidia.com/gpu.shared").unknown


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_a_whole_gpu_is_what_the_catalogue_says(resource):
    gpu = GPUS["A100-80GB"]
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
    offer = offered(gpu, resource, labels)
    assert (offer.gpu, offer.unknown, offer.is_slice) == (gpu, (), False)


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
    assert set(stated) <= set(GPUS)
