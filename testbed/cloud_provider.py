"""Stands in for cloud-provider-azure: gives LoadBalancer Services their addresses, private or public, as it would.

    python -m testbed cloud-provider --kubeconfig FILE

An address is private only when `service.beta.kubernetes.io/azure-load-balancer-internal` is exactly "true";
anything else, "True" and "yes" included, gets a public one. That is the real provider's rule and the reason to have
this program: a typo puts a model on the internet. Like the real one it keeps a finalizer on the Services it serves,
never gives one port of an address to two of them, and says SyncLoadBalancerFailed in an event when it cannot serve.

Two switches for fault tests, annotations with the value "true" on a Service or on its namespace:
    hermetic.test/plant-public-address   an internal Service gets a public address all the same
    hermetic.test/withhold-address       no address, and one that was given is taken back
"""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import queue
import signal
import sys
import threading
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.api import Api
from testbed.console import say
from testbed.errors import ApiError, BedError
from testbed.processes import Component

PRIVATE_RANGE = "10.13.76.0/24"
PUBLIC_RANGE = "203.0.113.0/24"  # RFC 5737: routed nowhere
PRIVATE_NETWORKS = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
AZURE_RESERVED = 4  # the first addresses of every Azure subnet

INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"
ASKED_ADDRESS = "service.beta.kubernetes.io/azure-load-balancer-ipv4"
PLANT_PUBLIC = "hermetic.test/plant-public-address"
WITHHOLD = "hermetic.test/withhold-address"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
RETRY_SECONDS = 0.5

Service = dict[str, Any]
Network = ipaddress.IPv4Network
Address = ipaddress.IPv4Address


class Refused(BedError):
    """The cloud would not give this Service an address; the message is what it would say."""


class Ledger:
    """Which Service, by uid, holds which ports of which address. One port, one holder; one Service, one address.

    A frontend is shared by Services that name its address; each has rules and a probe of its own (cloud-provider-azure,
    topics/shared-ip).
    """

    def __init__(self) -> None:
        self._holders: dict[Address, dict[str, frozenset[int]]] = {}
        self._held: dict[str, Address] = {}

    def address_of(self, uid: str) -> Address | None:
        return self._held.get(uid)

    def book(self, address: Address, uid: str, ports: frozenset[int]) -> Address:
        """Raises Refused when another Service holds one of the ports; gives up what this Service held before."""
        rivals = {rival: booked for rival, booked in self._holders.get(address, {}).items() if rival != uid}
        if any(booked & ports for booked in rivals.values()):
            raise Refused(
                f"PrivateIPAddressInUse: private IP address {address} is already allocated to another resource"
            )
        self.release(uid)
        self._holders[address], self._held[uid] = {**rivals, uid: ports}, address
        return address

    def book_any(self, network: Network, uid: str, ports: frozenset[int]) -> Address:
        for offset in range(AZURE_RESERVED, network.num_addresses - 1):
            if network[offset] not in self._holders:
                return self.book(network[offset], uid, ports)
        raise Refused(f"SubnetIsFull: {network} has no free address")

    def release(self, uid: str) -> None:
        if uid in self._held:
            address = self._held.pop(uid)
            del self._holders[address][uid]
            if not self._holders[address]:
                del self._holders[address]

    def release_all_but(self, living: Container[str]) -> None:
        for uid in [uid for uid in self._held if uid not in living]:
            self.release(uid)


@dataclass(frozen=True)
class Seen:
    """What a watch saw: everything there is (`gone` False for all), or one object that came, changed or went."""

    kind: str
    objects: tuple[dict[str, Any], ...]
    complete: bool = False
    gone: bool = False


class CloudProvider:
    """Follows Services and namespaces and settles every LoadBalancer Service, again and again until it holds."""

    def __init__(self, api: Api, private: Network, public: Network) -> None:
        self._api = api
        self._private, self._public = private, public
        self._ledger = Ledger()
        self._services: dict[str, Service] = {}
        self._namespaces: dict[str, dict[str, Any]] = {}
        self._listed: set[str] = set()
        self._unsettled: set[str] = set()
        self._complaints: dict[str, str] = {}
        self._seen: queue.Queue[Seen] = queue.Queue()

    def run(self) -> None:
        """Works until the process ends."""
        for kind in ("namespaces", "services"):
            threading.Thread(target=self._follow, args=(kind,), daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                self._note(self._seen.get(timeout=RETRY_SECONDS if self._unsettled else None))
            # take in everything that is already known, so that no address is given away that a Service still has
            while not self._seen.empty():
                self._note(self._seen.get())
            if self._listed == {"namespaces", "services"}:
                for name in sorted(self._unsettled):
                    self._settle(name)

    # ------------------------------------------------------------------ what there is

    def _follow(self, kind: str) -> None:
        while True:
            try:
                listed = self._api.get(f"/api/v1/{kind}")
                self._seen.put(Seen(kind, tuple(listed["items"]), complete=True))
                for event in self._api.watch(f"/api/v1/{kind}", listed["metadata"]["resourceVersion"]):
                    self._seen.put(Seen(kind, (event["object"],), gone=event["type"] == "DELETED"))
            except (ApiError, OSError, ValueError) as error:
                say(f"cloud-provider: watch of {kind} ended, listing anew: {error}")
                time.sleep(RETRY_SECONDS)

    def _note(self, batch: Seen) -> None:
        registry = self._namespaces if batch.kind == "namespaces" else self._services
        if batch.complete:
            registry.clear()
            self._listed.add(batch.kind)
        for thing in batch.objects:
            if batch.gone:
                registry.pop(_name(thing), None)
            else:
                registry[_name(thing)] = thing
        if batch.kind == "services":
            self._adopt(batch.objects)
            self._unsettled = {
                name for name in self._unsettled | set(map(_name, batch.objects)) if name in self._services
            }
        else:
            homes = set(map(_name, batch.objects))
            self._unsettled |= {name for name, service in self._services.items() if _home(service) in homes}

    def _adopt(self, services: Iterable[Service]) -> None:
        """Books what Services already show, for after a restart of ours, and forgets those that are gone."""
        self._ledger.release_all_but({_uid(service) for service in self._services.values()})
        for service in services:
            published = _published(service)
            if published and _name(service) in self._services and self._ledger.address_of(_uid(service)) is None:
                try:
                    self._ledger.book(Address(published), _uid(service), _ports(service))
                except Refused as why:
                    say(f"cloud-provider: {_name(service)} shows an address that is not its own: {why}")

    # ------------------------------------------------------------------ what there should be

    def _settle(self, name: str) -> None:
        service = self._services[name]
        try:
            self._serve(service)
        except Refused as why:
            self._complain(service, str(why))  # and stay unsettled: another Service may give an address back
        except ApiError as error:
            # gone or changed under our hands: the watch brings what is true now
            if error.status in {404, 409}:
                self._unsettled.discard(name)
            else:
                say(f"cloud-provider: {name}: {error}")
        except OSError as error:
            say(f"cloud-provider: {name}: {error}")
        else:
            self._unsettled.discard(name)
            self._complaints.pop(name, None)

    def _serve(self, service: Service) -> None:
        if not _is_balanced(service):
            self._give_back(service)
            return
        if _published(service) is None:
            # a switch may have been thrown just now, and the watch of namespaces may lag behind that of Services
            self._namespaces[_home(service)] = self._api.get(f"/api/v1/namespaces/{_home(service)}")
        if self._switched(service, WITHHOLD):
            self._ledger.release(_uid(service))
            self._publish(service, None)
        else:
            self._keep_finalizer(service)
            self._publish(service, self._address_for(service))

    def _address_for(self, service: Service) -> Address:
        annotations = service["metadata"].get("annotations", {})
        internal = annotations.get(INTERNAL) == "true" and not self._switched(service, PLANT_PUBLIC)
        if internal and (requested := annotations.get(ASKED_ADDRESS)):
            return self._ledger.book(_private_address(requested), _uid(service), _ports(service))
        network = self._private if internal else self._public
        booked = self._ledger.address_of(_uid(service))
        if booked is not None and booked in network:
            return booked
        return self._ledger.book_any(network, _uid(service), _ports(service))

    def _switched(self, service: Service, switch: str) -> bool:
        namespace = self._namespaces.get(_home(service), {"metadata": {}})
        return any(thing["metadata"].get("annotations", {}).get(switch) == "true" for thing in (service, namespace))

    # ------------------------------------------------------------------ what we write

    def _give_back(self, service: Service) -> None:
        finalizers = service["metadata"].get("finalizers", [])
        if FINALIZER in finalizers:
            if "deletionTimestamp" not in service["metadata"]:
                self._publish(service, None)
            self._write_finalizers(service, [name for name in finalizers if name != FINALIZER])
        self._ledger.release(_uid(service))

    def _keep_finalizer(self, service: Service) -> None:
        finalizers = service["metadata"].get("finalizers", [])
        if FINALIZER not in finalizers:
            self._write_finalizers(service, [*finalizers, FINALIZER])

    def _write_finalizers(self, service: Service, finalizers: list[str]) -> None:
        # a merge patch replaces the whole list: only on the version that we saw
        metadata = {"finalizers": finalizers, "resourceVersion": service["metadata"]["resourceVersion"]}
        service["metadata"] = self._api.merge(_path(service), {"metadata": metadata})["metadata"]

    def _publish(self, service: Service, address: Address | None) -> None:
        if _published(service) == (str(address) if address else None):
            return
        ingress = [{"ip": str(address), "ipMode": "VIP"}] if address else None
        changed = self._api.merge(f"{_path(service)}/status", {"status": {"loadBalancer": {"ingress": ingress}}})
        service["metadata"], service["status"] = changed["metadata"], changed["status"]
        say(f"cloud-provider: {_name(service)} has {address or 'no address'}")

    def _complain(self, service: Service, why: str) -> None:
        name = _name(service)
        if self._complaints.get(name) == why:
            return
        self._complaints[name] = why
        say(f"cloud-provider: {name}: {why}")
        # an event is a courtesy: a namespace that is going away takes none
        with contextlib.suppress(ApiError, OSError):
            self._api.create(f"/api/v1/namespaces/{_home(service)}/events", _sync_failed(service, why))


def _sync_failed(service: Service, why: str) -> dict[str, Any]:
    meta, now = service["metadata"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    named = {"name": meta["name"], "namespace": meta["namespace"]}
    return {
        "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
        "involvedObject": {"apiVersion": "v1", "kind": "Service", "uid": meta["uid"], **named},
        "type": "Warning",
        "reason": "SyncLoadBalancerFailed",
        "message": f"Error syncing load balancer: failed to ensure load balancer: {why}",
        "source": {"component": "service-controller"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _is_balanced(service: Service) -> bool:
    """Whether the cloud serves it: a Service with a class of its own belongs to another provider."""
    spec = service["spec"]
    return (
        spec.get("type") == "LoadBalancer"
        and "loadBalancerClass" not in spec
        and "deletionTimestamp" not in service["metadata"]
    )


def _ports(service: Service) -> frozenset[int]:
    return frozenset(port["port"] for port in service["spec"].get("ports") or ())


def _private_address(text: str) -> Address:
    try:
        address = Address(text)
    except ValueError:
        raise Refused(f"{ASKED_ADDRESS}: {text!r} is not an IPv4 address") from None
    if not any(address in network for network in PRIVATE_NETWORKS):
        raise Refused(f"PrivateIPAddressNotInSubnet: {address} does not belong to the subnet")
    return address


def _published(service: Service) -> str | None:
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or [{}]
    address: str | None = ingress[0].get("ip")
    return address


def _path(service: Service) -> str:
    meta = service["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/services/{meta['name']}"


def _name(thing: dict[str, Any]) -> str:
    """`namespace/name` of a Service, plain `name` of a namespace."""
    meta: dict[str, str] = thing["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]


def _home(service: Service) -> str:
    namespace: str = service["metadata"]["namespace"]
    return namespace


def _uid(service: Service) -> str:
    uid: str = service["metadata"]["uid"]
    return uid


def component(kubeconfig: Path, log: Path, *flags: str) -> Component:
    """The stand-in as a program of its own, not yet started."""
    command = [sys.executable, "-m", "testbed", "cloud-provider", f"--kubeconfig={kubeconfig}", *flags]
    return Component("cloud-provider", command, log, {"PYTHONPATH": str(Path(__file__).resolve().parents[1])})


def main(arguments: list[str]) -> int:
    """`python -m testbed cloud-provider`: runs until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m testbed cloud-provider", description="a stand-in for Azure's")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster to serve")
    parser.add_argument("--private-range", type=Network, default=Network(PRIVATE_RANGE), metavar="CIDR")
    parser.add_argument("--public-range", type=Network, default=Network(PUBLIC_RANGE), metavar="CIDR")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    say(
        "cloud-provider: stands in for cloud-provider-azure; addresses of internal load balancers come from"
        f" {options.private_range}, of all others from {options.public_range}; nothing routes them beyond this cluster"
    )
    CloudProvider(Api(options.kubeconfig, "hermetic-cloud-provider"), options.private_range, options.public_range).run()
    return 0
