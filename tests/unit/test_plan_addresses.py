"""Which addresses of a Service are private."""

from __future__ import annotations

import pytest

from hermetic.api.configuration import Configuration
from hermetic.plan.exposure.addresses import load_balancer_addresses, public_addresses
from tests.snapshots import POLICY


def a_service(*ingress: dict[str, str]) -> dict:
    return {"status": {"loadBalancer": {"ingress": list(ingress)}}}


@pytest.mark.parametrize("bare", [{}, {"status": {}}, {"status": {"loadBalancer": {"ingress": None}}}], ids=str)
def test_no_address_is_not_a_public_one(bare):
    assert load_balancer_addresses(bare) == ()
    assert public_addresses(bare, POLICY) == ()


@pytest.mark.parametrize(
    "address",
    ["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.255.1", "100.64.0.1", "100.127.255.255"],
)
def test_addresses_of_private_ranges_are_private_to_the_last(address):
    assert public_addresses(a_service({"ip": address}), POLICY) == ()


@pytest.mark.parametrize(
    "address",
    ["9.255.255.255", "11.0.0.0", "172.32.0.0", "192.169.0.0", "100.128.0.0", "8.8.8.8", "169.254.169.254", "::1"],
)
def test_addresses_beside_them_are_public(address):
    assert public_addresses(a_service({"ip": address}), POLICY) == (address,)


def test_host_name_can_point_anywhere_and_is_not_known_to_be_private():
    assert public_addresses(a_service({"hostname": "lb.contoso.internal"}), POLICY) == ("lb.contoso.internal",)


def test_ranges_of_one_s_own_count_when_the_configuration_lists_them():
    policy = Configuration.model_validate({"additionalPrivateRanges": ["198.18.0.0/15", "2001:db8::/32"]})
    assert public_addresses(a_service({"ip": "198.19.0.1"}, {"ip": "2001:db8::7"}), policy) == ()
    assert public_addresses(a_service({"ip": "198.20.0.1"}), policy) == ("198.20.0.1",)
