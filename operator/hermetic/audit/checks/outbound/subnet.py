"""What a subnet itself lets out."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.judging import Judgement, does_not_apply, fails, passes
from hermetic.audit.policy import Policy
from hermetic.audit.scope import ScopedSubnet, each_subnet


def default_outbound(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Absent and null mean that Azure hands out hidden public addresses; only `false` closes it."""

    def judge(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
        if scoped.is_for_the_api_server_only:
            yield does_not_apply(
                scoped.id, "ApiServerSubnet", "the API server's own subnet has no machines", scoped.seen
            )
        elif subnet.default_outbound_access is False:
            yield passes(scoped.id, "PrivateSubnet", "defaultOutboundAccess is false", scoped.seen)
        else:
            yield fails(
                scoped.id,
                "DefaultOutboundNotDisabled",
                f"defaultOutboundAccess is {_shown(subnet.default_outbound_access)}: machines get a hidden way out",
                scoped.seen,
                paths=(f"subnet {subnet.name} -> default outbound -> internet",),
            )

    yield from each_subnet(estate, judge)


def nat_gateway(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A NAT gateway on the subnet is a way out, whatever masks it today."""

    def judge(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
        if subnet.nat_gateway is None:
            yield passes(scoped.id, "NoNatGateway", "no NAT gateway is attached", scoped.seen)
        else:
            yield fails(
                scoped.id,
                "NatGatewayAttached",
                f"NAT gateway {subnet.nat_gateway.id} is attached",
                scoped.seen,
                paths=(f"subnet {subnet.name} -> nat gateway -> internet",),
            )

    yield from each_subnet(estate, judge)


def _shown(value: bool | None) -> str:
    return "absent or null, which means true" if value is None else str(value).lower()
