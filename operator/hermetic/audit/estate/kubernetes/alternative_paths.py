"""Kinds whose presence alone can change the path of packets: gateways, second networks, separate proxies."""

from __future__ import annotations

from hermetic.audit.estate.kubernetes.objects import KubernetesObject, api_object


@api_object("cilium.io/v2/ciliumegressgatewaypolicies", "CiliumEgressGatewayPolicy", namespaced=False)
class CiliumEgressGatewayPolicy(KubernetesObject):
    pass


@api_object("cilium.io/v2/ciliumlocalredirectpolicies", "CiliumLocalRedirectPolicy")
class CiliumLocalRedirectPolicy(KubernetesObject):
    pass


@api_object("cilium.io/v2/ciliumenvoyconfigs", "CiliumEnvoyConfig")
class CiliumEnvoyConfig(KubernetesObject):
    pass


@api_object("cilium.io/v2/ciliumclusterwideenvoyconfigs", "CiliumClusterwideEnvoyConfig", namespaced=False)
class CiliumClusterwideEnvoyConfig(KubernetesObject):
    pass


@api_object("cilium.io/v2/ciliumexternalworkloads", "CiliumExternalWorkload", namespaced=False)
class CiliumExternalWorkload(KubernetesObject):
    pass


@api_object("crd.projectcalico.org/v1/egressgatewaypolicies", "EgressGatewayPolicy", namespaced=False)
class CalicoEgressGatewayPolicy(KubernetesObject):
    pass


@api_object("crd.projectcalico.org/v1/externalnetworks", "ExternalNetwork", namespaced=False)
class CalicoExternalNetwork(KubernetesObject):
    pass


@api_object("crd.projectcalico.org/v1/bgppeers", "BGPPeer", namespaced=False)
class CalicoBgpPeer(KubernetesObject):
    pass


@api_object("operator.tigera.io/v1/egressgateways", "EgressGateway")
class TigeraEgressGateway(KubernetesObject):
    pass


@api_object("k8s.cni.cncf.io/v1/network-attachment-definitions", "NetworkAttachmentDefinition")
class NetworkAttachmentDefinition(KubernetesObject):
    pass


@api_object("multitenancy.acn.azure.com/v1alpha1/podnetworks", "PodNetwork", namespaced=False)
class PodNetwork(KubernetesObject):
    """Interfaces of pods in other virtual networks."""


@api_object("networking.istio.io/v1alpha3/envoyfilters", "EnvoyFilter")
class EnvoyFilter(KubernetesObject):
    pass
