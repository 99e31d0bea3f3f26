"""Route tables with the cluster's subnets that use them: findings name the table, which is what to change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hermetic.audit.cluster_scope import ScopedSubnet, each_subnet, missing
from hermetic.audit.egress.methods import Methods
from hermetic.audit.egress.subnet_context import SubnetContext, surroundings
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import Judgement, cannot_say, does_not_apply, whatever_is_damaged
from hermetic.audit.policy import Policy


@dataclass(frozen=True, slots=True)
class ServedTable:
    """A route table that was read, and the context of each subnet that uses it."""

    seen: Seen[RouteTable]
    table: RouteTable
    subnets: tuple[SubnetContext, ...]

    def lets_out(self, methods: Methods) -> bool:
        """Whether a route to the internet works in one of its subnets: default outbound access, or a method.

        A method that could not be read counts.
        """
        return any(not one.is_private or methods.may_serve(one.id) for one in self.subnets)


def each_table(
    estate: Estate, policy: Policy, judge: Callable[[ServedTable], Iterable[Judgement]]
) -> Iterator[Judgement]:
    """Apply `judge` to every route table of the cluster's subnets once; not applicable to a subnet without one."""
    by_table: defaultdict[str, list[SubnetContext]] = defaultdict(list)

    def gathered(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
        around = surroundings(estate, scoped, subnet)
        if around.table is None:
            yield does_not_apply(scoped.id, "NoRouteTable", "it has no route table", scoped.seen)
        else:
            by_table[around.table.target.lower()].append(around)

    yield from each_subnet(estate, policy, gathered)
    for subnets in by_table.values():
        seen = subnets[0].table
        if seen is not None and seen.value is not None and not subnets[0].are_routes_seen:
            cut = missing(f"{seen.target}: the answer has no list of routes")
            yield cannot_say(seen.target, "RoutesNotSeen", "the routes of the table were not seen", cut, seen)
        elif seen is not None and seen.value is not None:
            yield from whatever_is_damaged(seen.target, judge(ServedTable(seen, seen.value, tuple(subnets))))
        elif seen is not None:
            yield cannot_say(seen.target, "RouteTableNotSeen", "the route table could not be read", seen)
