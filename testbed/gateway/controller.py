"""A stand-in for a controller of the Gateway API, with the real Envoy as its data plane. `make demo` runs it.

It serves the Gateways of classes with its controller name: runs Envoy for each behind a load balancer, tells Envoy the
routes and the ready pods, and sets the status of classes, Gateways, listeners and routes as the Gateway API documents
it. Every decision is a function of `listeners`, `attachment` and `translation`; this module watches and writes.

Worst case by default: Accepted and Programmed are there before Envoy has taken the routes in, which the Gateway API
allows; Envoy learns of a change of pods after a second; a Gateway whose annotations do not ask for an internal load
balancer gets a public address.
"""

from __future__ import annotations

import argparse
import contextlib
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.api import Api
from testbed.console import say
from testbed.errors import ApiError
from testbed.gateway import infrastructure
from testbed.gateway.attachment import Attachment, attachments
from testbed.gateway.conditions import ClassCondition, Condition, Conditions, GatewayReason, merged
from testbed.gateway.definitions import GROUP
from testbed.gateway.discovery import REFRESH_SECONDS, DiscoveryServer, config_source
from testbed.gateway.listeners import gateway_conditions, listener_states
from testbed.gateway.snapshot import Manifest, Snapshot, key_of, namespace_of
from testbed.gateway.translation import resources
from testbed.processes import Component

CONTROLLER = "hermetic.test/gateway-controller"
FIELD_MANAGER = "hermetic-test-gateway-controller"
REPOSITORY = Path(__file__).resolve().parents[2]
RETRY_SECONDS = 0.5
GATEWAYS = f"/apis/{GROUP}/v1"
PATHS = {
    "gatewayclasses": f"{GATEWAYS}/gatewayclasses",
    "gateways": f"{GATEWAYS}/gateways",
    "httproutes": f"{GATEWAYS}/httproutes",
    "referencegrants": f"{GATEWAYS}/referencegrants",
    "namespaces": "/api/v1/namespaces",
    "services": "/api/v1/services",
    "secrets": "/api/v1/secrets",
    "endpointslices": "/apis/discovery.k8s.io/v1/endpointslices",
}


@dataclass(frozen=True)
class Event:
    """All objects of a kind (`is_list`), or one object that came, changed or went."""

    plural: str
    objects: tuple[Manifest, ...]
    is_list: bool = False
    is_deletion: bool = False


@dataclass(frozen=True)
class DataPlane:
    """`image` of Envoy, and the address at which pods reach the discovery server."""

    image: str
    server: tuple[str, int]
    refresh_seconds: float = REFRESH_SECONDS


class GatewayController:
    """Decides anew from everything that it has seen, whenever something changes."""

    def __init__(self, api: Api, discovery: DiscoveryServer, data_plane: DataPlane) -> None:
        self._api = api
        self._discovery = discovery
        self._data_plane = data_plane
        self._events: queue.Queue[Event] = queue.Queue()
        self._objects: dict[str, dict[str, Manifest]] = {}
        self._applied: dict[str, Manifest] = {}
        self._is_unsettled = False

    def run(self) -> None:
        """Works until the process ends."""
        for plural in PATHS:
            threading.Thread(target=self._follow, args=(plural,), daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                self._note(self._events.get(timeout=RETRY_SECONDS if self._is_unsettled else None))
            while not self._events.empty():
                self._note(self._events.get())
            if self._objects.keys() == PATHS.keys():
                self._settle(Snapshot(**self._objects))

    def _follow(self, plural: str) -> None:
        while True:
            try:
                listed = self._api.get(PATHS[plural])
                # members of a list do not name their kind, and a decision asks for it
                kind = {"kind": listed["kind"].removesuffix("List"), "apiVersion": listed["apiVersion"]}
                self._events.put(Event(plural, tuple({**kind, **entry} for entry in listed["items"]), is_list=True))
                for event in self._api.watch(PATHS[plural], listed["metadata"]["resourceVersion"]):
                    self._events.put(Event(plural, (event["object"],), is_deletion=event["type"] == "DELETED"))
            except (ApiError, OSError, ValueError) as error:
                say(f"gateway-controller: watch of {plural} ended, listing anew: {error}")
                time.sleep(RETRY_SECONDS)

    def _note(self, event: Event) -> None:
        objects = self._objects.setdefault(event.plural, {})
        if event.is_list:
            objects.clear()
        for manifest in event.objects:
            if event.is_deletion:
                objects.pop(key_of(manifest), None)
            else:
                objects[key_of(manifest)] = manifest

    # ------------------------------------------------------------------ what there should be

    def _settle(self, snapshot: Snapshot) -> None:
        self._is_unsettled = False
        attached = list(attachments(snapshot, CONTROLLER))
        for gateway in list(snapshot.gateways_of(CONTROLLER)):
            routes = [attachment for attachment in attached if key_of(attachment.gateway) == key_of(gateway)]
            source = config_source(self._data_plane.refresh_seconds)
            self._discovery.publish(key_of(gateway), resources(snapshot, gateway, routes, source))
            self._run_data_plane(snapshot, gateway)
            self._write("gateways", gateway, _gateway_status(snapshot, gateway, routes))
        for gateway_class in list(snapshot.gatewayclasses.values()):
            if gateway_class["spec"]["controllerName"] == CONTROLLER:
                self._write("gatewayclasses", gateway_class, _class_status(gateway_class))
        for route in list(snapshot.httproutes.values()):
            ours = [attachment for attachment in attached if key_of(attachment.route) == key_of(route)]
            self._write("httproutes", route, _route_status(route, ours))

    def _run_data_plane(self, snapshot: Snapshot, gateway: Manifest) -> None:
        plane, service = self._data_plane, infrastructure.service(gateway)
        deployment = infrastructure.deployment(gateway, plane.image, plane.server, plane.refresh_seconds)
        self._apply("/apis/apps/v1", "deployments", deployment)
        self._apply("/api/v1", "services", service, is_missing=key_of(service) not in snapshot.services)

    # ------------------------------------------------------------------ what is written

    def _apply(self, root: str, plural: str, manifest: Manifest, *, is_missing: bool = False) -> None:
        """Once for each version of the manifest, and again where it went."""
        path = f"{root}/namespaces/{namespace_of(manifest)}/{plural}/{manifest['metadata']['name']}"
        if is_missing or self._applied.get(path) != manifest:
            with self._tolerance(path):
                self._api.apply(path, manifest, FIELD_MANAGER)
                self._applied[path] = manifest

    def _write(self, plural: str, live: Manifest, status: Manifest) -> None:
        """The status, unless the object has it; on the version that was decided from, for a patch replaces lists."""
        if status.items() <= live.get("status", {}).items():
            return
        namespace = f"/namespaces/{namespace_of(live)}" if "namespace" in live["metadata"] else ""
        path = f"{GATEWAYS}{namespace}/{plural}/{live['metadata']['name']}"
        patch = {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"]}, "status": status}
        with self._tolerance(path):
            self._objects[plural][key_of(live)] = self._api.merge(f"{path}/status", patch)

    @contextlib.contextmanager
    def _tolerance(self, path: str) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            # gone or changed meanwhile: the watch brings what is true now
            if error.status not in {404, 409}:
                say(f"gateway-controller: {path}: {error}")
                self._is_unsettled = True
        except OSError as error:
            say(f"gateway-controller: {path}: {error}")
            self._is_unsettled = True


def _class_status(gateway_class: Manifest) -> Manifest:
    accepted = Condition(ClassCondition.ACCEPTED, True, GatewayReason.ACCEPTED, "Class is accepted")
    return {"conditions": _conditions([accepted], gateway_class, gateway_class.get("status", {}))}


def _gateway_status(snapshot: Snapshot, gateway: Manifest, routes: list[Attachment]) -> Manifest:
    states, previous = listener_states(snapshot, gateway), gateway.get("status", {})
    addresses = infrastructure.addresses_of(snapshot, gateway)
    ready_pods = infrastructure.ready_pods_of(snapshot, gateway)
    before = {listener["name"]: listener for listener in previous.get("listeners") or []}
    return {
        "addresses": [{"type": "IPAddress", "value": address} for address in addresses],
        "conditions": _conditions(gateway_conditions(gateway, states, addresses, ready_pods), gateway, previous),
        "listeners": [
            {
                "name": name,
                "supportedKinds": state.supported_kinds,
                "attachedRoutes": len({key_of(route.route) for route in routes if name in route.hostnames}),
                "conditions": _conditions(list(state.conditions), gateway, before.get(name, {})),
            }
            for state in states
            for name in [state.listener["name"]]
        ],
    }


def _route_status(route: Manifest, ours: list[Attachment]) -> Manifest:
    """Entries of other controllers stay, and ours for parents that the route names no longer go."""
    parents = route.get("status", {}).get("parents") or []
    before = [parent for parent in parents if parent["controllerName"] == CONTROLLER]
    entries = []
    for attachment in ours:
        previous: Manifest = next((entry for entry in before if entry["parentRef"] == attachment.parent), {})
        conditions = _conditions([attachment.accepted, attachment.resolved], route, previous)
        entries.append({"parentRef": attachment.parent, "controllerName": CONTROLLER, "conditions": conditions})
    foreign = [parent for parent in parents if parent["controllerName"] != CONTROLLER]
    return {"parents": foreign + entries} if foreign + entries + before else {}


def _conditions(conditions: list[Condition], owner: Manifest, previous: Manifest) -> Conditions:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return merged(conditions, owner["metadata"]["generation"], previous.get("conditions") or [], now)


def component(
    kubeconfig: Path, log: Path, image: str, address: str = "127.0.0.1", enter: Sequence[str] = ()
) -> Component:
    """The stand-in as a program of its own, not yet started.

    `enter` is what runs a program on a real node, and `address` then that of the node, where pods find the stand-in.
    """
    python = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "testbed", "gateway-controller"]
    options = [f"--kubeconfig={kubeconfig}", f"--image={image}", f"--address={address}"]
    # the prefix waits for what it runs, and would leave it behind
    bound = ["setpriv", "--pdeathsig", "KILL"] if enter else []
    return Component("gateway-controller", [*enter, *bound, *python, *options], log)


def main(arguments: list[str]) -> int:
    """`python -m testbed gateway-controller`: runs until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m testbed gateway-controller", description="a stand-in for one")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster to serve")
    parser.add_argument("--image", required=True, help="of Envoy, by digest")
    parser.add_argument("--address", default="127.0.0.1", help="where pods reach this program")
    parser.add_argument(
        "--refresh", type=float, default=REFRESH_SECONDS, metavar="SECONDS", help="of Envoy's questions"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    discovery = DiscoveryServer(options.address)
    plane = DataPlane(options.image, (options.address, discovery.port), options.refresh)
    say(f"gateway-controller: serves classes of {CONTROLLER}; Envoy asks {options.address}:{discovery.port}")
    GatewayController(Api(options.kubeconfig, "hermetic-gateway-controller"), discovery, plane).run()
    return 0
