"""Quantities mean to us what they mean to Kubernetes' own client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity as kubernetes_reads

from hermetic.api.quantities import parse_quantity

UNITS = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
numbers = st.from_regex(r"[+-]?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})", fullmatch=True)


@given(numbers, st.sampled_from(UNITS))
def test_every_unit_is_worth_what_kubernetes_takes_it_for(number, unit):
    assert parse_quantity(number + unit) == kubernetes_reads(number + unit)


@given(numbers, st.sampled_from("eE"), st.integers(-6, 6))
def test_exponents_are_read_alike(number, e, power):
    assert parse_quantity(f"{number}{e}{power}") == kubernetes_reads(f"{number}{e}{power}")


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP _x", max_size=8))
def test_nothing_is_taken_for_a_quantity_that_kubernetes_refuses(text):
    try:
        ours = parse_quantity(text)
    except ValueError:
        return
    assert ours == kubernetes_reads(text)


@pytest.mark.parametrize("text", ["", " ", "1K", "1 Gi", "0x10", "1_000", "one", "1Gib", "1.2.3", "--1"])
def test_what_the_api_server_refuses_is_refused(text):
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)
