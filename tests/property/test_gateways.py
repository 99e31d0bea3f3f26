"""Whatever happens to gateways, configuration and spec in any order: no route is left that leads where it may not."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hermetic.objects.http_route import gateways_of, hostnames_of, paths_of
from hermetic.plan.planning import exposed, plan
from hermetic.plan.snapshot import ClusterSnapshot, GatewayFacts
from hermetic.plan.writes import Plan
from tests.gateways import ADDRESS, ALLOWED, a_gateway, allowing
from tests.scenarios import Manifest, a_baked_model, changed
from tests.snapshots import NOW, a_snapshot, carried_out, owner_of, serving, spec_of

NAMESPACE, ROUTE = "inference", ("HTTPRoute", "phi")
GATEWAYS = ("models", "another")
STATES = ("absent", "pending", "private", "private", "public", "exposed")
LINES: tuple[dict[str, Any], ...] = (
    {}, {}, {"paths": ["/"]}, {"hostnames": ["a.internal"]}, {"namespaces": ["team-b"]}, {"name": "of-nobody"},
)  # fmt: skip
ASKED: tuple[dict[str, Any] | None, ...] = (
    {}, {}, {"path": "/"}, {"path": "/inference/chat"}, {"hostname": "a.internal"}, None,
)  # fmt: skip
EVENTS = 40


@dataclass
class World:
    """One model, two gateways, and the configuration's lines for them."""

    random: Random
    states: dict[str, str] = field(default_factory=lambda: dict.fromkeys(GATEWAYS, "private"))
    lines: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in GATEWAYS})
    request: tuple[str, dict[str, Any] | None] = ("models", {})
    is_blocked: bool = False
    is_readable: bool = True
    snapshot: ClusterSnapshot = field(init=False)

    def __post_init__(self) -> None:
        snapshot = a_snapshot(owner_of(self.model), gateway=self.facts, policy=self.policy)
        self.snapshot = serving(carried_out(snapshot, plan(spec_of(self.model), snapshot, NOW)), 1)

    @property
    def model(self) -> Manifest:
        name, fields = self.request
        gateway = None if fields is None else {"name": name, "namespace": "gateways", **fields}
        model = a_baked_model(endpoint={} if gateway is None else {"gateway": gateway})
        return changed(model, resources={"memory": "1Gi", "sharedMemory": "2Gi"}) if self.is_blocked else model

    @property
    def policy(self) -> Any:
        return allowing(*({**ALLOWED, "name": name, **line} for name, line in self.lines.items()))

    @property
    def facts(self) -> GatewayFacts:
        """As the store observes them: of a Gateway that no line names it keeps nothing."""
        name, fields = self.request
        is_kept = any(line.key == ("gateways", name) for line in self.policy.gateways)
        if fields is None or not is_kept:
            return GatewayFacts()
        state = self.states[name]
        addresses = {"pending": (), "public": (ADDRESS, "20.1.2.3")}.get(state, (ADDRESS,))
        manifest = copy.deepcopy(a_gateway(addresses=addresses))
        manifest["metadata"]["name"] = name
        why = "has the Service 'envoy/edge' in front of its pods, which opens port 30000" if state == "exposed" else ""
        return GatewayFacts(None if state == "absent" else manifest, why)

    @property
    def route(self) -> Manifest | None:
        route: Any = self.snapshot.children.get(ROUTE)
        return route

    def happens(self) -> None:
        match self.random.choice(("gateway", "gateway", "line", "spec", "spec", "blocked", "readable")):
            case "gateway":
                self.states[self.random.choice(GATEWAYS)] = self.random.choice(STATES)
            case "line":
                self.lines[self.random.choice(GATEWAYS)] = self.random.choice(LINES)
            case "spec":
                self.request = (self.random.choice(GATEWAYS), self.random.choice(ASKED))
            case "blocked":
                self.is_blocked = not self.is_blocked
            case _:
                self.is_readable = not self.is_readable

    def reconciled(self) -> None:
        """Passes of the operator until it has nothing to write."""
        for _ in range(5):
            self.snapshot = replace(self.snapshot, gateway=self.facts, policy=self.policy)
            decided = self.planned()
            if not decided.apply and not decided.delete:
                return
            before = self.route
            self.snapshot = carried_out(self.snapshot, decided)
            if self.route is not None and (before is None or gateways_of(before) != gateways_of(self.route)):
                ((_, name),) = gateways_of(self.route)
                assert self.states[name] == "private", "a route by a gateway that was not shown to be private"
        raise AssertionError("the operator does not come to rest")

    def planned(self) -> Plan:
        if not self.is_readable:
            return Plan(delete=exposed(self.snapshot))
        return plan(spec_of(self.model), self.snapshot, NOW)

    def judged(self) -> None:
        """Of a spec that cannot be read the operator knows one Gateway at most, that which the spec names."""
        if self.route is None:
            return
        ((namespace, name),) = gateways_of(self.route)
        lines = [line for line in self.policy.gateways if line.key == (namespace, name)]
        assert any(
            (NAMESPACE in line.namespaces or "*" in line.namespaces)
            and all(map(line.allows_hostname, hostnames_of(self.route)))
            and all(line.allows_path(path, NAMESPACE) for path in paths_of(self.route))
            for line in lines
        ), "a route that the configuration does not allow"
        is_known = self.is_readable or (self.request[0] == name and self.request[1] is not None)
        assert not is_known or self.states[name] not in ("public", "exposed"), (
            "a route by a gateway that is not private"
        )


@given(st.integers(0, 2**32))
def test_no_order_of_events_leaves_a_route_by_a_gateway_that_is_not_private_or_not_allowed(seed: int) -> None:
    world = World(Random(seed))
    for _ in range(EVENTS):
        world.happens()
        world.reconciled()
        world.judged()
    world.states, world.lines = dict.fromkeys(GATEWAYS, "private"), {name: {} for name in GATEWAYS}
    world.request, world.is_blocked, world.is_readable = ("another", {}), False, True
    world.reconciled()
    assert world.route is not None
    assert gateways_of(world.route) == {("gateways", "another")}
