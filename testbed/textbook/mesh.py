"""AKS's service mesh add-on with its network plug-in, and a workload of the team's own with sidecars.

learn.microsoft.com/azure/aks/istio-about, istio-deploy-addon, istio-meshconfig, istio-cni; the settings that AKS writes
are printed in github.com/MicrosoftDocs/azure-docs/issues/123395, the sidecar is that of istio/istio,
manifests/charts/istio-control/istio-discovery/files/injection-template.yaml. AKS pulls the images by the registry of a
network isolated cluster (learn.microsoft.com/azure/aks/network-isolated).
"""

from __future__ import annotations

import json

from testbed.textbook.aks import Plane
from testbed.textbook.kinds import MESH, definitions
from testbed.textbook.objects import (
    MICROSOFT,
    Manifest,
    Part,
    agent,
    an_object,
    controller,
    default_deny,
    namespace,
    service,
    webhook,
)
from testbed.textbook.own import REGISTRY, egress_to_api_server, image

SYSTEM, REVISION = "aks-istio-system", "asm-1-27"
TEAM = "shop"
ISTIO, TAG = "oss/v2/istio", "v1.27.7-1"
DISCOVERY = f"istiod-{REVISION}"
_OF_AKS = f"""defaultConfig:
  discoveryAddress: {DISCOVERY}.{SYSTEM}.svc:15012
  gatewayTopology:
    numTrustedProxies: 1
  image:
    imageType: distroless
  tracing:
    zipkin:
      address: zipkin.{SYSTEM}:9411
defaultProviders:
  metrics:
  - prometheus
enablePrometheusMerge: true
rootNamespace: {SYSTEM}
trustDomain: cluster.local
"""
_OF_THE_TEAM = "accessLogFile: /dev/stdout\noutboundTrafficPolicy:\n  mode: REGISTRY_ONLY\n"
_PROXY_CONFIG = json.dumps(
    {
        "discoveryAddress": f"{DISCOVERY}.{SYSTEM}.svc:15012",
        "tracing": {"zipkin": {"address": f"zipkin.{SYSTEM}:9411"}},
    }
)


def service_mesh(plane: Plane) -> list[Manifest]:
    """The control plane, the plug-in on every node, and the namespace of the team."""
    pilot = Part(f"{MICROSOFT}/{ISTIO}/pilot:{TAG}", DISCOVERY, {"app": "istiod", "istio.io/rev": REVISION})
    plug_in = Part(
        f"{MICROSOFT}/{ISTIO}/install-cni:{TAG}",
        "azure-service-mesh-istio-cni-addon",
        {"k8s-app": "istio-cni-node"},
        capabilities=("NET_ADMIN", "NET_RAW", "SYS_PTRACE", "SYS_ADMIN", "DAC_OVERRIDE"),
        folders=("/opt/cni/bin", "/proc", "/etc/cni/net.d", "/var/run/istio-cni", "/var/run/netns"),
    )
    return [
        *definitions(MESH),
        namespace(SYSTEM),
        default_deny(SYSTEM),
        egress_to_api_server(SYSTEM, plane),
        *controller(DISCOVERY, SYSTEM, pilot, plane.system),
        *agent("azure-service-mesh-istio-cni-addon-node", SYSTEM, plug_in, plane.machines),
        service(DISCOVERY, SYSTEM, {"app": "istiod"}, 15012),
        webhook("MutatingWebhookConfiguration", f"istio-sidecar-injector-{REVISION}-{SYSTEM}", SYSTEM, DISCOVERY),
        webhook("ValidatingWebhookConfiguration", f"istio-validator-{REVISION}-{SYSTEM}", SYSTEM, DISCOVERY),
        _settings(f"istio-{REVISION}", _OF_AKS),
        _settings(f"istio-shared-configmap-{REVISION}", _OF_THE_TEAM),
        *_workload(plane),
    ]


def _settings(name: str, text: str) -> Manifest:
    return an_object("v1", "ConfigMap", name, SYSTEM, data={"mesh": text, "meshNetworks": "networks: {}"})


def _workload(plane: Plane) -> list[Manifest]:
    """With the plug-in, the injected init container only checks the rules of the pod and adds no capability."""
    sidecar = f"{REGISTRY}/aks-managed-repository/{ISTIO}/proxyv2:{TAG}"
    settings = {
        "PROXY_CONFIG": _PROXY_CONFIG,
        "CA_ADDR": f"{DISCOVERY}.{SYSTEM}.svc:15012",
        "PILOT_CERT_PROVIDER": "istiod",
    }
    part = Part(
        image("team/shop"), TEAM, {"app": TEAM, "istio.io/rev": REVISION}, env=settings, first=(sidecar,),
        beside=(sidecar,),
    )  # fmt: skip
    to_control_plane = {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [
            {
                "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SYSTEM}}}],
                "ports": [{"protocol": "TCP", "port": 15012}],
            }
        ],
    }
    route = {"hosts": [TEAM], "http": [{"route": [{"destination": {"host": TEAM}}]}]}
    return [
        namespace(TEAM, **{"istio.io/rev": REVISION}),
        default_deny(TEAM),
        an_object("networking.k8s.io/v1", "NetworkPolicy", "to-control-plane", TEAM, spec=to_control_plane),
        *controller(TEAM, TEAM, part, plane.system[:1]),
        service(TEAM, TEAM, {"app": TEAM}, 80),
        an_object("networking.istio.io/v1", "VirtualService", TEAM, TEAM, spec=route),
        an_object("security.istio.io/v1", "PeerAuthentication", "default", TEAM, spec={"mtls": {"mode": "STRICT"}}),
    ]
